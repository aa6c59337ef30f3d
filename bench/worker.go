package bench

import (
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"
)

// deadPause keeps a closed loop from spinning against a target that refuses connections.
const deadPause = 50 * time.Millisecond

// job is one call to make.
type job struct {
	due   time.Time     // intended start; in a closed loop the moment at which the worker was free
	ready time.Time     // from when on only the generator can be to blame for a late start
	index int           // chooses the session
	own   bool          // and no other session will do
	what  int           // the tool to call
	think time.Duration // mean of the think time before it
}

// worker makes one call at a time on its own connection.
type worker struct {
	run   *run
	c     *caller
	shard *shard
	jobs  chan job // open loop only; capacity 1
}

func (r *run) newWorker(n int) *worker {
	return &worker{run: r, c: r.set.newCaller(), shard: r.rec.shardOf(n), jobs: make(chan job, 1)}
}

// do makes one call and records it where it is due in the measured window. It reports whether the target could be
// reached.
func (w *worker) do(j job) bool {
	r, rep := w.run, &w.c.reply
	measured := !j.due.Before(r.from)
	if measured {
		r.measured.Add(1)
	} else {
		r.warm.Add(1)
	}
	begin := time.Now()
	at, sess := r.set.pick(j.index, j.own)
	var err error
	if sess == nil {
		err = errNoSession
		rep.Sent, rep.FirstByte, rep.Done = time.Time{}, time.Time{}, time.Time{}
	} else {
		r.rec.inFlight.Add(1)
		err = sess.request(w.c, r.tools[j.what].next(&r.turn), begin.Add(r.cfg.Timeout))
		r.rec.inFlight.Add(-1)
	}
	o, code := verdictOf(err, rep, w.c.id)
	if o != outcomeOK {
		w.trouble(o, err, at, sess)
	}
	if measured {
		w.record(j, begin, o, code)
	}
	return !rep.Sent.IsZero()
}

// record turns the instants of a call into a sample.
func (w *worker) record(j job, begin time.Time, o outcome, code int) {
	rep := &w.c.reply
	done, sent := rep.Done, rep.Sent
	if done.IsZero() {
		done = time.Now()
	}
	if sent.IsZero() {
		sent = begin
	}
	s := sample{
		series: j.what, outcome: o, code: code, lag: begin.Sub(j.ready), response: done.Sub(j.due), service: done.Sub(sent),
		busy: time.Since(begin), think: j.think, inTime: done.UnixNano() <= w.run.until.Load(),
	}
	if j.own {
		s.busy = s.response // what a user does not think, he waits
	}
	if !rep.FirstByte.IsZero() {
		s.ttfb = rep.FirstByte.Sub(sent)
	}
	w.shard.add(&s)
}

// trouble looks at a call that was no success: the session may be lost, or this machine may be out of descriptors.
func (w *worker) trouble(o outcome, err error, at *place, sess session) {
	r := w.run
	r.rec.example(o, func() string { return describe(err, &w.c.reply) })
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.EADDRNOTAVAIL) {
		r.starved.Add(1)
	}
	if sess != nil && sess.lost(err) {
		r.set.replace(r.stop, at, sess)
	}
}

// closedLoop keeps Concurrency calls in flight until the time or the number of calls is used up. Worker w uses the
// sessions w, w+C, w+2C and so on.
func (r *run) closedLoop() {
	var wg sync.WaitGroup
	for n := range r.cfg.Concurrency {
		wg.Go(func() { r.closedWorker(n) })
	}
	wg.Wait()
	r.shorten(time.Now()) // where the number of calls has ended the run, the last answer ends the window
}

func (r *run) closedWorker(n int) {
	w := r.newWorker(n)
	defer r.set.release(w.c)
	rng := rand.New(rand.NewPCG(r.cfg.Seed, toolsStream+uint64(n)<<8))
	for index := n; r.stop.Err() == nil; index += r.cfg.Concurrency {
		now := time.Now()
		if now.UnixNano() >= r.until.Load() {
			return
		}
		if r.cfg.Requests > 0 && !now.Before(r.from) && !r.claim() {
			return
		}
		if !w.do(job{due: now, ready: now, index: index, what: r.picker.pick(rng.IntN)}) {
			r.rest(deadPause)
		}
	}
}

// claim takes one of the calls that were asked for; false when none is left.
func (r *run) claim() bool { return r.claimed.Add(1) <= r.cfg.Requests }

// rest waits for d, or until no further call may be begun.
func (r *run) rest(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.stop.Done():
	}
}
