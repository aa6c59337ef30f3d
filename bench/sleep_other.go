//go:build !linux

package bench

import "time"

// preciseSleep sleeps for d.
func preciseSleep(d time.Duration) { time.Sleep(d) }
