package transport

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// watched is a relay whose roles are counted.
type watched struct {
	relay
	passed atomic.Int32
}

// watchedRelay runs a relay until the end of the test's bubble.
func watchedRelay(t *testing.T) *watched {
	w := new(watched)
	w.init(func() { w.passed.Add(1) })
	done := make(chan struct{})
	go func() { defer close(done); w.watch() }()
	t.Cleanup(func() { w.stop(); <-done })
	synctest.Wait()
	return w
}

func TestRelayPassesTheRole(t *testing.T) {
	for _, c := range []struct {
		name   string
		before time.Duration // idle time before the work
		work   time.Duration
		passed int32
	}{
		{"quick work keeps it", 0, 0, 0},
		{"work shorter than a tick keeps it", 0, relayTick * 9 / 10, 0},
		{"work of three ticks loses it", 0, 3 * relayTick, 1},
		{"work of an hour loses it once", 0, time.Hour, 1},
		{"also when the watcher had gone to sleep", time.Minute, 3 * relayTick, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watchedRelay(t)
				time.Sleep(c.before)
				turn := w.enter()
				if !w.holds(turn) {
					t.Error("holds after enter: got false, want true")
				}
				time.Sleep(c.work)
				synctest.Wait()
				lost := c.passed > 0
				if got := w.holds(turn); got == lost {
					t.Errorf("holds after %v: got %v, want %v", c.work, got, !lost)
				}
				if got := w.leave(turn); got == lost {
					t.Errorf("leave after %v: got %v, want %v", c.work, got, !lost)
				}
				if got := w.passed.Load(); got != c.passed {
					t.Errorf("roles passed on: got %d, want %d", got, c.passed)
				}
			})
		})
	}
}

// TestRelayKeepsTheRoleOfManyTurns: it is one turn that may take long, not the
// sum of many.
func TestRelayKeepsTheRoleOfManyTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchedRelay(t)
		for i := range 1000 {
			turn := w.enter()
			time.Sleep(relayTick / 2)
			if !w.leave(turn) {
				t.Fatalf("turn %d of half a tick: the role is gone", i)
			}
		}
		if got := w.passed.Load(); got != 0 {
			t.Errorf("roles passed on: got %d, want 0", got)
		}
	})
}

// TestRelayPassesTheRoleOn: whoever takes over may be slow as well.
func TestRelayPassesTheRoleOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const holders = 50
		var r relay
		var working atomic.Int32
		var next func()
		started := make(chan time.Time, holders)
		next = func() {
			if working.Add(1) > holders {
				return
			}
			go func() {
				turn := r.enter()
				started <- time.Now()
				time.Sleep(time.Minute)
				r.leave(turn)
			}()
		}
		r.init(func() { next() })
		done := make(chan struct{})
		go func() { defer close(done); r.watch() }()
		begin := time.Now()
		next()
		for range holders {
			<-started
		}
		if took, most := time.Since(begin), holders*2*relayTick; took > most {
			t.Errorf("time until %d holders had been slow: got %v, want at most %v", holders, took, most)
		}
		time.Sleep(time.Hour)
		r.stop()
		<-done
	})
}

// TestRelaySleeps: while nothing happens the watcher does not tick. In virtual
// time a year of ticks would take hours.
func TestRelaySleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchedRelay(t)
		w.leave(w.enter())
		time.Sleep(quietTicks * 2 * relayTick)
		synctest.Wait()
		if w.awake.Load() {
			t.Errorf("awake after %d quiet ticks: got true, want false", quietTicks*2)
		}
		turn := w.enter()
		if !w.awake.Load() {
			t.Error("awake after enter: got false, want true")
		}
		w.leave(turn)
		time.Sleep(365 * 24 * time.Hour)
	})
}

func TestRelayStopsWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := new(watched)
		w.init(func() { w.passed.Add(1) })
		done := make(chan struct{})
		go func() { defer close(done); w.watch() }()
		turn := w.enter()
		w.stop()
		<-done
		time.Sleep(time.Minute)
		if !w.leave(turn) || w.passed.Load() != 0 {
			t.Errorf("after stop: the role was passed on %d times, want never", w.passed.Load())
		}
	})
}
