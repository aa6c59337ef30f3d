package mock

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

// pollAlarm sleeps in the kernel, on a thread whose timer slack is a nanosecond: the runtime's timers count in
// milliseconds when the process is idle, and the kernel's default slack is 50 µs. A write to an event descriptor cuts the
// sleep short.
type pollAlarm struct{ event int }

// newAlarm gives the most precise alarm of this system.
func newAlarm() alarm {
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return newTimerAlarm()
	}
	return &pollAlarm{event: event}
}

func (p *pollAlarm) sleep(d time.Duration) {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // of this thread; without it the sleep is less exact, no more
	fds := []unix.PollFd{{Fd: int32(p.event), Events: unix.POLLIN}}
	limit := unix.NsecToTimespec(int64(d))
	if n, _ := unix.Ppoll(fds, &limit, nil); n > 0 {
		var count [8]byte
		_, _ = unix.Read(p.event, count[:]) // takes the event back; there is one, so it cannot block
	}
}

func (p *pollAlarm) wake() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(p.event, one[:]) // fails only where the counter is full, and then the alarm is awake
}

func (p *pollAlarm) close() { _ = unix.Close(p.event) }
