package bench

import (
	"math/rand/v2"
	"sync"
	"time"
)

// wakeEarly is how much of a wait is left to Config.pause, which is more precise than the runtime's timers and costs a
// thread.
const wakeEarly = 2 * time.Millisecond

// userLoop runs the virtual users: each has a session of its own, and again and again thinks, calls and waits for the
// answer. It is a closed loop, whose rate is what comes out: by the response-time law X = N / (R + Z).
func (r *run) userLoop() {
	var wg sync.WaitGroup
	for n := range r.cfg.Users {
		wg.Go(func() { r.user(n) })
	}
	wg.Wait()
	r.shorten(time.Now()) // where the number of calls has ended the run, the last answer ends the window
}

// user is one virtual user. A call is due when its think time is over, and its response time counts from then.
func (r *run) user(n int) {
	w := r.newWorker(n)
	defer r.set.release(w.c)
	rng := rand.New(rand.NewPCG(r.cfg.Seed, thinkStream+uint64(n)<<8))
	due := r.origin.Add(r.cfg.ThinkTime.residual(rng))
	for r.wakeAt(due) && due.UnixNano() < r.until.Load() {
		if r.cfg.Requests > 0 && !due.Before(r.from) && !r.claim() {
			return
		}
		reached := w.do(job{due: due, ready: due, index: n, own: true, what: r.picker.pick(rng.IntN), think: r.cfg.ThinkTime.Mean})
		due = time.Now()
		think := r.cfg.ThinkTime.draw(rng)
		if !reached {
			think = max(think, deadPause)
		}
		due = due.Add(think)
	}
}

// wakeAt sleeps until at, and reports whether at has come before the run was stopped.
func (r *run) wakeAt(at time.Time) bool {
	if d := time.Until(at); d > wakeEarly {
		r.rest(d - wakeEarly)
	}
	if d := time.Until(at); d > 0 && r.stop.Err() == nil {
		r.cfg.pause(min(d, wakeEarly))
	}
	return r.stop.Err() == nil
}
