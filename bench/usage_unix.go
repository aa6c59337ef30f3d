//go:build unix

package bench

import (
	"syscall"
	"time"
)

// cpuTime is what this process has used of the processors so far, its children left out.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// openFiles is how many descriptors this process may have. The Go runtime has raised the soft limit to the hard one.
func openFiles() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 1024
	}
	return int(min(uint64(l.Cur), 1<<20))
}
