package transport

import (
	"sync/atomic"
	"time"
)

// relayTick is how long the holder of a role may be busy with one thing before
// the role goes to another goroutine.
const relayTick = time.Millisecond

// relay watches over a role that one goroutine at a time holds. The holder says
// when it does something that may take long, and learns afterwards whether it
// still has the role.
type relay struct {
	next  func()        // starts another goroutine with the role
	turn  atomic.Uint64 // odd while the holder is busy
	awake atomic.Bool
	wake  chan struct{}
	quit  chan struct{}
}

func (r *relay) init(next func()) {
	r.next = next
	r.wake = make(chan struct{}, 1)
	r.quit = make(chan struct{})
}

// enter begins something that may take long.
func (r *relay) enter() (turn uint64) {
	turn = r.turn.Add(1)
	if !r.awake.Load() && r.awake.CompareAndSwap(false, true) {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
	return turn
}

// leave ends it, and reports whether the role is still the caller's.
func (r *relay) leave(turn uint64) bool { return r.turn.CompareAndSwap(turn, turn+1) }

// holds reports whether the role has not been taken since enter.
func (r *relay) holds(turn uint64) bool { return r.turn.Load() == turn }

func (r *relay) stop() { close(r.quit) }

// watch moves the role on until stop. It ticks only while there is work.
func (r *relay) watch() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-r.wake:
		case <-r.quit:
			return
		}
		for r.awake.Load() {
			if !r.watchWhileAwake(timer) {
				return
			}
			r.awake.Store(false)
			if r.turn.Load()&1 == 1 && r.awake.CompareAndSwap(false, true) {
				continue
			}
		}
	}
}

// quietTicks is how many ticks without a new turn put the watcher to sleep.
const quietTicks = 20

// watchWhileAwake ticks until nothing has happened for a while. It reports
// false at stop.
func (r *relay) watchWhileAwake(timer *time.Timer) bool {
	last, quiet := r.turn.Load(), 0
	for quiet < quietTicks {
		timer.Reset(relayTick)
		select {
		case <-timer.C:
		case <-r.quit:
			return false
		}
		turn := r.turn.Load()
		if turn != last {
			last, quiet = turn, 0
			continue
		}
		quiet++
		if turn&1 == 1 && r.turn.CompareAndSwap(turn, turn+1) {
			r.next()
		}
	}
	return true
}
