package bench

import (
	"math/rand/v2"
	"sync"
	"time"
)

// crew is the workers of an open loop. A call is given to a worker that is free, the one that was busy last, whose
// connection is warm; only when none is free a new one is made, up to the cap.
type crew struct {
	run *run
	cap int
	wg  sync.WaitGroup

	mu      sync.Mutex
	free    []*worker // guarded by mu; a stack
	made    int       // guarded by mu
	waiting bool      // guarded by mu: the pacer wants to hear of a worker that becomes free

	freed chan struct{} // capacity 1
}

// take gives a free worker, or nil when the cap is reached; then freed tells when to ask again.
func (c *crew) take() *worker {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.pop(); w != nil || c.made == c.cap {
		return w
	}
	w := c.run.newWorker(c.made)
	c.made++
	c.wg.Go(func() { c.work(w) })
	return w
}

// pop gives a worker that is free already; where there is none, freed will tell. The caller holds mu.
func (c *crew) pop() *worker {
	n := len(c.free)
	if n == 0 {
		c.waiting = true
		return nil
	}
	w := c.free[n-1]
	c.free = c.free[:n-1]
	return w
}

// work makes calls until the crew is dismissed.
func (c *crew) work(w *worker) {
	defer c.run.set.release(w.c)
	for j := range w.jobs {
		w.do(j)
		c.mu.Lock()
		c.free = append(c.free, w)
		tell := c.waiting
		c.waiting = false
		c.mu.Unlock()
		if tell {
			select {
			case c.freed <- struct{}{}:
			default: // an earlier word has not been taken yet, and is as good
			}
		}
	}
}

// dismiss waits for the calls in flight and ends the workers.
func (c *crew) dismiss() {
	for ended := 0; ; {
		c.mu.Lock()
		w, made := c.pop(), c.made
		c.mu.Unlock()
		switch {
		case w != nil:
			close(w.jobs)
			ended++
		case ended == made:
			c.wg.Wait()
			return
		default:
			<-c.freed
		}
	}
}

// openLoop begins calls when they are due, whatever became of the calls before. One goroutine, the pacer, follows the
// schedule; a call that is due goes to a worker at once.
func (r *run) openLoop() {
	limit := r.cfg.peer.maxInFlight(r.cfg.Sessions, r.cfg.Streams)
	if r.cfg.MaxInFlight > 0 {
		limit = min(limit, r.cfg.MaxInFlight)
	}
	c := &crew{run: r, cap: limit, freed: make(chan struct{}, 1)}
	s := newSchedule(&r.cfg)
	r.pace(c, s)
	switch {
	case r.stop.Err() != nil:
		r.shorten(time.Now())
		r.dropped.Add(s.skipUntil(r.windowEnd().Sub(r.origin)))
	case r.cfg.Duration == 0: // the number of calls has ended the run, after the time that the schedule takes
		natural := time.Duration(float64(r.cfg.Requests) / r.cfg.Rate * float64(time.Second))
		end := r.from.Add(natural)
		if now := time.Now(); now.After(end) {
			end = now
		}
		r.shorten(end)
	}
	c.dismiss()
}

// pace follows the schedule to its end. Starts that were due before the end of the run, and could not be begun within
// lateGrace after it, are dropped.
func (r *run) pace(c *crew, s *schedule) {
	rng := rand.New(rand.NewPCG(r.cfg.Seed, toolsStream))
	var room time.Time // when the cap last let go of the pacer
	for index := 0; ; index++ {
		offset, ok := s.next()
		if !ok {
			return
		}
		due := r.origin.Add(offset)
		measured := offset >= r.cfg.Warmup
		if !r.sleepUntil(due) {
			r.shorten(time.Now())
			r.drop(measured && due.Before(r.windowEnd()))
			return
		}
		if r.tooLate() {
			r.drop(measured)
			r.dropped.Add(s.skipUntil(s.end))
			return
		}
		w := c.take()
		if w == nil {
			r.held.Add(1)
			if r.cfg.Overflow == Skip {
				r.drop(measured)
				continue
			}
			if w = r.await(c); w == nil {
				r.drop(measured)
				if r.stop.Err() == nil {
					r.dropped.Add(s.skipUntil(s.end))
				}
				return
			}
			room = time.Now()
		}
		ready := due
		if room.After(due) {
			ready = room
		}
		w.jobs <- job{due: due, ready: ready, index: index, what: r.picker.pick(rng.IntN)}
	}
}

// drop counts a start that was due and is not begun.
func (r *run) drop(measured bool) {
	if measured {
		r.dropped.Add(1)
	}
}

// await waits for a free worker; nil when the run is over first.
func (r *run) await(c *crew) *worker {
	var over <-chan time.Time
	if r.cfg.Duration > 0 {
		t := time.NewTimer(time.Until(r.windowEnd().Add(lateGrace)))
		defer t.Stop()
		over = t.C
	}
	for {
		select {
		case <-c.freed:
			if w := c.take(); w != nil {
				return w
			}
		case <-over:
			return nil
		case <-r.stop.Done():
			return nil
		}
	}
}

// tooLate reports whether the run is over.
func (r *run) tooLate() bool {
	return r.cfg.Duration > 0 && time.Since(r.windowEnd()) > lateGrace
}

// sleepUntil sleeps until at, in pieces so that an interrupt is seen. It reports whether at has come.
func (r *run) sleepUntil(at time.Time) bool {
	for {
		if r.stop.Err() != nil {
			return false
		}
		d := time.Until(at)
		if d <= 0 {
			return true
		}
		r.cfg.pause(min(d, 20*time.Millisecond))
	}
}
