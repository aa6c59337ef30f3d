package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"
)

const (
	flightTick = 10 * time.Millisecond // how often, on average, the calls in flight are counted
	deadAfter  = 5 * time.Second       // without an answer, and with connections refused all the time
)

// collector empties the shards while a run is under way: once a slot, of which a whole number make a second.
type collector struct {
	run   *run
	width time.Duration // of a slot

	total *batch   // everything so far
	cur   *batch   // of the slot under way
	times timeline // sparse histograms of the slots
	rows  []Interval
	usage *serverUsage // nil where the server's process is not known

	row      []bucket // successes of the second under way
	rowBegin time.Duration
	rowErrs  int64
	begun    bool          // the measured window has begun
	last     time.Duration // end of the last slot
	silent   time.Duration // how long the target has not answered

	cpu      cpuShare
	standing standing // the verdict so far

	flightSum, flightN float64 // samples of the calls in flight

	done chan struct{}
	wg   sync.WaitGroup
}

func newCollector(r *run) *collector {
	perS := 10
	if d := r.cfg.Duration.Seconds(); d > 0 {
		perS = min(max(int(math.Ceil(3*intervalBlocks/d)), 1), 50) // a busy machine misses some
	}
	return &collector{
		run: r, width: time.Second / time.Duration(perS), total: newBatch(len(r.series)), cur: newBatch(len(r.series)),
		rows: []Interval{}, done: make(chan struct{}),
	}
}

// start begins to collect in the background.
func (c *collector) start() {
	c.wg.Go(c.loop)
	c.wg.Go(c.countFlights)
}

// finish takes what is left. After it nothing may be recorded.
func (c *collector) finish() {
	close(c.done)
	c.wg.Wait()
	if !c.begun {
		c.begin()
	}
	c.slot(time.Since(c.run.from))
	c.progress()
	c.endRow(true)
	c.endUsage()
}

// sleep waits until at; false when the run is over.
func (c *collector) sleep(at time.Time) bool {
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.done:
		return false
	}
}

func (c *collector) loop() {
	r := c.run
	for at := r.origin; at.Before(r.from); at = at.Add(openingTick) {
		r.cfg.OnProgress(Progress{
			Phase: PhaseWarmup, Elapsed: time.Since(r.origin), Total: r.cfg.Warmup, Sessions: r.alive(), Wanted: r.cfg.Sessions,
			InFlight: r.rec.inFlight.Load(),
		})
		if !c.sleep(minTime(at.Add(openingTick), r.from)) {
			return
		}
	}
	c.begin()
	for c.sleep(r.from.Add(c.last.Truncate(c.width) + c.width)) { // a slot that a busy machine has missed is left out
		c.slot(time.Since(r.from))
		c.progress()
	}
}

// begin opens the measured window.
func (c *collector) begin() {
	c.begun = true
	c.cpu.begin()
	c.usage = newServerUsage(c.run.serverPIDs())
}

// endUsage closes the measured window, if the end of the schedule has not done so.
func (c *collector) endUsage() {
	c.cpu.end()
	c.usage.sample()
}

// slot takes what was recorded since the last one, which ended at now.
func (c *collector) slot(now time.Duration) {
	r := c.run
	r.rec.collectInto(c.cur)
	s := slot{from: c.last, to: now, series: c.series()}
	c.times.add(s)
	c.total.merge(c.cur)
	c.tellSlot(&s)
	for i := range r.calls {
		c.row = mergeSparse(c.row, s.series[2*i])
	}
	c.rowErrs += c.cur.errors()
	c.watchTarget(now - c.last)
	c.last = now
	if now.Truncate(time.Second) > c.rowBegin.Truncate(time.Second) {
		c.usage.sample()
		c.endRow(false)
		c.judge()
	}
	if !time.Now().Before(r.windowEnd()) {
		c.cpu.end()
	}
	c.cur.reset()
}

// series lists the sparse histograms of a slot: response and service time of each series, then the failures by outcome.
func (c *collector) series() [][]bucket {
	out := make([][]bucket, 0, 2*len(c.cur.series)+int(outcomes))
	for _, t := range c.cur.series {
		out = append(out, sparse(t.response), sparse(t.service))
	}
	for _, h := range c.cur.failures {
		out = append(out, sparse(h))
	}
	return out
}

// endRow closes the second under way. last is for the piece at the end, which is left out when nothing ended in it.
func (c *collector) endRow(last bool) {
	n := countOf(c.row)
	if last && n == 0 && c.rowErrs == 0 {
		return
	}
	took := max((c.last - c.rowBegin).Seconds(), c.width.Seconds())
	iv := Interval{
		TS: c.rowBegin.Truncate(time.Second).Seconds(), RPS: round(float64(n)/took, 2), Errors: c.rowErrs,
		Sessions: c.run.alive(), InFlight: c.run.rec.inFlight.Load(),
	}
	iv.ServerCPU, iv.ServerRSS = c.usage.interval(took)
	if n > 0 {
		iv.P50US, iv.P99US = valueAt(c.row, n, 0.5), valueAt(c.row, n, quantile99)
	}
	c.rows = append(c.rows, iv)
	c.row, c.rowErrs, c.rowBegin = nil, 0, c.last
}

// watchTarget ends a run whose target has gone away.
func (c *collector) watchTarget(took time.Duration) {
	switch {
	case c.cur.counts[outcomeTransportError] > 0 && c.cur.total() == c.cur.counts[outcomeTransportError]:
		c.silent += took
	case c.cur.total() > 0:
		c.silent = 0
	}
	if c.silent >= deadAfter && c.run.stop.Err() == nil {
		c.run.endEarly(fmt.Sprintf("the target has stopped answering, for %s by now (%s); is the server still running?",
			deadAfter, c.run.rec.exampleOf(outcomeTransportError)))
	}
}

// progress reports the slot that has just been taken.
func (c *collector) progress() {
	r := c.run
	s := &c.times.slots[len(c.times.slots)-1]
	var ok []bucket
	for i := range r.calls {
		ok = mergeSparse(ok, s.at(2*i))
	}
	n := countOf(ok)
	p := Progress{
		Phase: PhaseMeasuring, Elapsed: time.Since(r.from), Total: r.cfg.Duration, Sessions: r.alive(), Wanted: r.cfg.Sessions,
		Calls: c.total.total(), Limit: r.callsAsked(), Errors: c.total.errors(), InFlight: r.rec.inFlight.Load(),
		RPS: float64(n) / max((s.to-s.from).Seconds(), 1e-3), Delivered: r.deliveredRPS(time.Now()), Dropped: r.dropped.Load(),
		Lost: r.set.lost.Load(), Failed: r.set.failed.Load(), Outcomes: c.total.errorCounts(), LagP99US: c.standing.lagP99US,
		CPU: c.standing.cpu, Reasons: c.standing.reasons,
	}
	if n > 0 {
		p.P50US, p.P99US = valueAt(ok, n, 0.5), valueAt(ok, n, quantile99)
	}
	if r.stop.Err() != nil || !time.Now().Before(r.windowEnd()) {
		p.Phase, p.Total, p.Limit, p.Elapsed = PhaseDraining, 0, 0, time.Since(r.windowEnd())
	}
	r.cfg.OnProgress(p)
}

// callsAsked gives how many calls end the run; 0 where the time does, or a number of flows.
func (r *run) callsAsked() int64 {
	if r.script != nil {
		return 0
	}
	return r.cfg.Requests
}

// countFlights samples the calls in flight during the measured window: the independent side of Little's law. The
// moments are random, because regular ones could keep step with constant arrivals.
func (c *collector) countFlights() {
	rng := rand.New(rand.NewPCG(c.run.cfg.Seed, flightStream))
	for at := c.run.from; ; at = at.Add(flightTick/2 + time.Duration(rng.Int64N(int64(flightTick)))) {
		if !c.sleep(at) {
			return
		}
		if time.Now().After(c.run.windowEnd()) {
			return
		}
		c.flightSum += float64(c.run.rec.inFlight.Load())
		c.flightN++
	}
}

// cpuShare measures how much of the processors this process uses between two moments.
type cpuShare struct {
	from, to         time.Time
	usedFrom, usedTo time.Duration
	pauses           gcPauses
}

func (s *cpuShare) begin() {
	s.from, s.usedFrom = time.Now(), cpuTime()
	s.pauses.begin()
}

// end takes the second moment; later calls change nothing.
func (s *cpuShare) end() {
	if s.to.IsZero() {
		s.to, s.usedTo = time.Now(), cpuTime()
		s.pauses.end()
	}
}

// share is the part of the cores that this process can use.
func (s *cpuShare) share() float64 {
	wall := s.to.Sub(s.from).Seconds()
	if wall <= 0 {
		return 0
	}
	return round((s.usedTo-s.usedFrom).Seconds()/wall/float64(runtime.GOMAXPROCS(0)), 4)
}

// alive counts the sessions that are open.
func (r *run) alive() int64 { return r.set.opened.Load() - r.set.lost.Load() }

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func round(f float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(f*p) / p
}
