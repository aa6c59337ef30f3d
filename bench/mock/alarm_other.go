//go:build !linux

package mock

// newAlarm gives the most precise alarm of this system.
func newAlarm() alarm { return newTimerAlarm() }
