package mock

import (
	"container/heap"
	"context"
	"runtime"
	"sync"
	"time"
)

// forever is how long a clock sleeps that nobody waits for.
const forever = time.Duration(1<<63 - 1)

// alarm is a sleep that can be cut short. sleep returns after d, or earlier when wake is called, also when that was
// before the sleep began. sleep belongs to one goroutine, wake to any.
type alarm interface {
	sleep(d time.Duration)
	wake()
	close()
}

// clock lets any number of goroutines wait for instants. One goroutine sleeps for all of them until the earliest is
// there: a thread for each, which a precise sleep would take, is more than thousands of calls should cost.
type clock struct {
	alarm   alarm
	stopped chan struct{}

	mu     sync.Mutex
	queue  waiters // guarded by mu
	closed bool    // guarded by mu
}

// waiter is one goroutine that waits for an instant.
type waiter struct {
	at    time.Time
	done  chan struct{}
	place int // in the heap; −1 when it has left it
}

func newClock(a alarm) *clock {
	c := &clock{alarm: a, stopped: make(chan struct{})}
	go c.run()
	return c
}

// wait returns at an instant, or with the error of ctx when that ends first.
func (c *clock) wait(ctx context.Context, at time.Time) error {
	if !time.Now().Before(at) {
		return ctx.Err()
	}
	w := c.start(at)
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		c.drop(w)
		return ctx.Err()
	}
}

// start gives a waiter whose channel closes at an instant. Who no longer wants to know drops it.
func (c *clock) start(at time.Time) *waiter {
	w := &waiter{at: at, done: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	heap.Push(&c.queue, w)
	if w.place == 0 && !c.closed {
		c.alarm.wake() // which never blocks; under the lock, because after close there is no alarm to wake
	}
	return w
}

// drop forgets a waiter.
func (c *clock) drop(w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.place >= 0 {
		heap.Remove(&c.queue, w.place)
	}
}

// run sleeps until the earliest instant and lets go of those whose instant has come.
//
// A sleep always ends late, by what the kernel needs to wake a thread: run aims earlier by the least of it, and yields
// for the rest, so that nobody is let go early and hardly anybody late.
func (c *clock) run() {
	defer close(c.stopped)
	var lead time.Duration
	for {
		now := time.Now()
		released, d, open := c.release(now)
		switch {
		case !open:
			return
		case released || d <= lead:
			runtime.Gosched() // those let go run now, on this thread
		default:
			c.alarm.sleep(d - lead)
			if late := time.Since(now) - (d - lead); late >= 0 { // else it was cut short
				lead = nextLead(lead, late)
			}
		}
	}
}

// maxLead bounds how long the clock yields before an instant.
const maxLead = 100 * time.Microsecond

// nextLead follows the least lateness of the sleeps: down at once, up slowly.
func nextLead(lead, late time.Duration) time.Duration {
	if late > lead {
		late = lead + (late-lead)/32
	}
	return min(late, maxLead)
}

// release lets the due waiters go and gives the time to the next one.
func (c *clock) release(now time.Time) (released bool, next time.Duration, open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) > 0 {
		if d := c.queue[0].at.Sub(now); d > 0 {
			return released, d, !c.closed
		}
		close(heap.Pop(&c.queue).(*waiter).done)
		released = true
	}
	return released, forever, !c.closed
}

// close ends the goroutine. Who waits still, does so until its context ends.
func (c *clock) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.alarm.wake()
	<-c.stopped
	c.alarm.close()
}

// waiters is a heap, the earliest instant first.
type waiters []*waiter

func (h waiters) Len() int           { return len(h) }
func (h waiters) Less(i, k int) bool { return h[i].at.Before(h[k].at) }
func (h waiters) Swap(i, k int) {
	h[i], h[k] = h[k], h[i]
	h[i].place, h[k].place = i, k
}
func (h *waiters) Push(x any) {
	w := x.(*waiter)
	w.place = len(*h)
	*h = append(*h, w)
}
func (h *waiters) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	w.place = -1
	return w
}

// timerAlarm is an alarm on the runtime's timers, which are off by up to about a millisecond in an idle process.
type timerAlarm struct {
	woken chan struct{}
	timer *time.Timer
}

func newTimerAlarm() *timerAlarm {
	t := &timerAlarm{woken: make(chan struct{}, 1), timer: time.NewTimer(forever)}
	t.timer.Stop()
	return t
}

func (t *timerAlarm) sleep(d time.Duration) {
	t.timer.Reset(d)
	select {
	case <-t.timer.C:
	case <-t.woken:
		t.timer.Stop()
	}
}

func (t *timerAlarm) wake() {
	select {
	case t.woken <- struct{}{}:
	default:
	}
}

func (t *timerAlarm) close() { t.timer.Stop() }
