package bench

import (
	"time"
)

// Slot is what a short piece of the measured window has added, for those who count along while a run is under way.
type Slot struct {
	From, To time.Duration    // from the begin of the measured window
	Outcomes map[string]int64 // calls that ended in it, by the names of the result's requests
	Latency  []SlotLatency    // of the successes, for each tool that had one
	Lag      []Bucket         // how late the generator itself began the calls that ended in it; open loop
	Begun    int64            // calls of the measured window begun so far
	Dropped  int64            // calls due so far and never begun
	Sessions int64            // alive
	InFlight int64
}

// SlotLatency is the times of one tool's successes in a slot.
type SlotLatency struct {
	Method, Tool      string
	Response, Service []Bucket
}

// tellSlot hands the slot that has just been taken, whose batch is not emptied yet, to OnSlot.
func (c *collector) tellSlot(s *slot) {
	r := c.run
	if r.cfg.OnSlot == nil {
		return
	}
	out := Slot{
		From: s.from, To: s.to, Outcomes: map[string]int64{}, Begun: r.measured.Load(), Dropped: r.dropped.Load(),
		Sessions: r.alive(), InFlight: r.rec.inFlight.Load(),
	}
	for o, n := range c.cur.counts {
		if n > 0 {
			out.Outcomes[outcome(o).String()] = n
		}
	}
	for i := range r.calls {
		if response := s.at(2 * i); len(response) > 0 {
			out.Latency = append(out.Latency, SlotLatency{r.series[i].method, r.series[i].tool, exported(response), exported(s.at(2*i + 1))})
		}
	}
	if r.cfg.paced() {
		out.Lag = exported(sparse(c.cur.lag))
	}
	r.cfg.OnSlot(out)
}

// standing is the verdict so far. It is looked at once a second, because it walks through whole histograms.
type standing struct {
	lagP99US int64
	cpu      float64
	reasons  []string
}

// judge renews the verdict so far.
func (c *collector) judge() {
	r := c.run
	now, end := time.Now(), r.windowEnd()
	if !c.begun || now.After(end) {
		return
	}
	cpu := c.cpu
	cpu.end()
	v := Verdict{GeneratorCPU: cpu.share()}
	if r.cfg.paced() {
		v.LagP99US = quantileOf(c.total.lag, 99)
	}
	e := r.evidence(&cpu, now.Sub(r.from), &v, slowestP99(c.total.series[:r.calls]))
	c.standing = standing{lagP99US: v.LagP99US, cpu: v.GeneratorCPU, reasons: e.reasons()}
}

// slowestP99 gives the p99 of the service time of the series whose is longest, in microseconds.
func slowestP99(series []triple) int64 {
	var p99 int64
	for _, t := range series {
		if t.service != nil {
			p99 = max(p99, quantileOf(t.service, 99))
		}
	}
	return p99
}

// deliveredRPS gives the calls begun in the measured window, a second.
func (r *run) deliveredRPS(now time.Time) float64 {
	s := minTime(now, r.windowEnd()).Sub(r.from).Seconds()
	if s <= 0 {
		return 0
	}
	return float64(r.measured.Load()) / s
}

// errorCounts lists the outcomes that are no success and occurred.
func (b *batch) errorCounts() map[string]int64 {
	out := map[string]int64{}
	for o := outcomeOK + 1; o < outcomes; o++ {
		if b.counts[o] > 0 {
			out[o.String()] = b.counts[o]
		}
	}
	return out
}
