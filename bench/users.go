package bench

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// wakeEarly is how much of a wait is left to Config.pause, which is more precise than the runtime's timers and costs a
// thread.
const wakeEarly = 2 * time.Millisecond

// userLoop runs the virtual users: each has a session of its own, and again and again thinks, calls and waits for the
// answer. It is a closed loop, whose rate is what comes out: by the response-time law X = N / (R + Z).
func (r *run) userLoop() {
	var wg sync.WaitGroup
	var last atomic.Int64 // end of the last call
	enough := make(chan struct{})
	for n := range r.cfg.Users {
		wg.Go(func() { r.user(n, enough, &last) })
	}
	wg.Wait()
	switch {
	case r.cfg.Requests > 0 && r.claimed.Load() >= r.cfg.Requests && r.stop.Err() == nil:
		r.shorten(time.Unix(0, last.Load())) // the last answer ends the window
	case r.cfg.Duration > 0:
		r.rest(time.Until(r.windowEnd())) // nobody has a call left, but the time is not over
	}
	r.shorten(time.Now())
}

// user is one virtual user. A call is due when its think time is over, and its response time counts from then. Whoever
// takes the last of the calls that were asked for closes enough, which wakes those who think.
func (r *run) user(n int, enough chan struct{}, last *atomic.Int64) {
	w := r.newWorker(n)
	defer r.set.release(w.c)
	rng := rand.New(rand.NewPCG(r.cfg.Seed, thinkStream+uint64(n)<<8))
	due := r.origin.Add(r.cfg.ThinkTime.residual(rng))
	for due.UnixNano() < r.until.Load() && r.wakeAt(due, enough) {
		if r.cfg.Requests > 0 && !due.Before(r.from) {
			n := r.claimed.Add(1)
			if n == r.cfg.Requests {
				close(enough)
			}
			if n > r.cfg.Requests {
				return
			}
		}
		reached := w.do(job{
			due: due, ready: due, index: n, own: true, what: r.picker.pick(rng.IntN), think: r.cfg.ThinkTime.Mean,
		})
		due = time.Now()
		raise(last, due.UnixNano())
		think := r.cfg.ThinkTime.draw(rng)
		if !reached {
			think = max(think, deadPause)
		}
		due = due.Add(think)
	}
}

// wakeAt sleeps until at, and reports whether at has come before the run was stopped, or enough was closed, which may
// be nil.
func (r *run) wakeAt(at time.Time, enough <-chan struct{}) bool {
	if d := time.Until(at); d > wakeEarly {
		t := time.NewTimer(d - wakeEarly)
		defer t.Stop()
		select {
		case <-t.C:
		case <-enough:
			return false
		case <-r.stop.Done():
			return false
		}
	}
	if d := time.Until(at); d > 0 && r.stop.Err() == nil {
		r.cfg.pause(min(d, wakeEarly))
	}
	return r.stop.Err() == nil
}
