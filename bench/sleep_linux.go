package bench

import (
	"syscall"
	"time"
)

// coarse is the granularity of the runtime's timers while the process is idle: its poller counts in milliseconds.
const coarse = 2 * time.Millisecond

// preciseSleep sleeps for d. The runtime's timer does all but the last part, which the kernel does to about 60 µs, so
// that calls of a schedule with less than a millisecond between them do not begin in bunches.
func preciseSleep(d time.Duration) {
	if d > coarse {
		start := time.Now()
		time.Sleep(d - coarse)
		d -= time.Since(start)
	}
	if d > 0 {
		t := syscall.NsecToTimespec(int64(d))
		_ = syscall.Nanosleep(&t, nil) // woken early by a signal, the caller looks at the clock and sleeps again
	}
}
