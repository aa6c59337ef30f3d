package bench

import (
	"math/rand/v2"
	"sync"
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
	jobs  chan job  // open loop only; capacity 1
	agent *agent    // nil in a run without flows
	ended time.Time // when the last call was over
}

func (r *run) newWorker(n int) *worker {
	w := &worker{run: r, c: r.set.newCaller(), shard: r.rec.shardOf(n), jobs: make(chan job, 1)}
	if r.script != nil {
		w.agent = newAgent(r, n)
	}
	return w
}

// do makes one call, or takes one flow. It reports whether the target could be reached.
func (w *worker) do(j job) bool {
	r := w.run
	if r.script != nil {
		return w.perform(j)
	}
	r.begin(j.due)
	at, sess := r.set.pick(j.index, j.own)
	_, reached := w.call(&j, at, sess, r.tools[j.what].next(&r.turn), j.what, nil)
	return reached
}

// begin counts a start, and reports whether it was due in the measured window.
func (r *run) begin(due time.Time) (measured bool) {
	if due.Before(r.from) {
		r.warm.Add(1)
		return false
	}
	r.measured.Add(1)
	return true
}

// call makes one call and records it where it is due in the measured window. step judges the answer, if it is not nil.
// reached tells whether the target could be reached.
func (w *worker) call(j *job, at *place, sess session, q *query, series int, step *verdictOfStep) (o outcome, reached bool) {
	r, rep := w.run, &w.c.reply
	begin := time.Now()
	var err error
	if sess == nil {
		err = errNoSession
		rep.Sent, rep.FirstByte, rep.Done = time.Time{}, time.Time{}, time.Time{}
	} else {
		timeout := r.cfg.Timeout
		if step != nil && step.step.CancelAfter > 0 {
			timeout = step.step.CancelAfter
		}
		r.rec.inFlight.Add(1)
		err = sess.request(w.c, q, begin.Add(timeout))
		r.rec.inFlight.Add(-1)
	}
	o, code := verdictOf(err, rep, w.c.id)
	meant := false
	if step != nil {
		o, meant = step.judge(o, err, rep)
	}
	if o != outcomeOK && !meant {
		w.trouble(o, err, at, sess, step)
	}
	w.ended = rep.Done
	if w.ended.IsZero() {
		w.ended = time.Now()
	}
	if !j.due.Before(r.from) {
		w.record(j, begin, &sample{series: series, outcome: o, code: code, meant: meant})
	}
	return o, !rep.Sent.IsZero()
}

// record completes a sample by the instants of a call.
func (w *worker) record(j *job, begin time.Time, s *sample) {
	rep := &w.c.reply
	sent := rep.Sent
	if sent.IsZero() {
		sent = begin
	}
	s.lag, s.response, s.service = begin.Sub(j.ready), w.ended.Sub(j.due), w.ended.Sub(sent)
	s.busy, s.think = time.Since(begin), j.think
	s.inTime = w.ended.UnixNano() <= w.run.until.Load()
	if j.own || w.agent != nil && !w.run.cfg.open() {
		s.busy = s.response // what a user does not think, he waits
	}
	if !rep.FirstByte.IsZero() {
		s.ttfb = rep.FirstByte.Sub(sent)
	}
	w.shard.add(s)
}

// trouble looks at a call that was no success: the session may be lost, or this machine may be out of descriptors.
func (w *worker) trouble(o outcome, err error, at *place, sess session, step *verdictOfStep) {
	r := w.run
	r.rec.example(o, func() string {
		if step != nil {
			return step.step.where + ": " + step.why
		}
		return describe(err, &w.c.reply)
	})
	if exhausted(err) {
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
