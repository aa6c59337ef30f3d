package bench

import (
	"fmt"
	"math"
	"strings"
	"time"
)

const (
	growBlocks   = 10    // that the calls in flight are averaged in
	growBeyond   = 3.36  // standard errors of the slope: one in two hundred by chance, with 8 degrees of freedom
	growLeast    = 0.002 // of the rate: what is slower than that is no backlog
	growCalls    = 5     // calls over the whole step, likewise
	growClear    = 0.02  // of the rate: a backlog that grows so fast needs no second look
	overTimes    = 4     // how many times what the objective allows may be in flight before a step is ended early
	overLeast    = 20    // calls in flight, below which no step is ended early
	overTime     = 500 * time.Millisecond
	looseFactor  = 1.5 // how far, without an interval, a percentile must lie from its limit to be clear
	samplesLeast = 2   // samples above the quantile without which it is only the maximum
)

// judge decides whether a step meets the objectives.
type judge struct {
	conditions []condition
	slowest    float64 // the limit of the strictest percentile in microseconds; 0 where there is none
	share      float64 // of the calls that may lie above it

	sessions bool // are what is looked for

	least  float64 // samples without which a step says nothing
	wanted float64 // samples for the percentile and its interval
}

func newJudge(c *CapacityConfig) judge {
	j := judge{sessions: c.Find == FindSessions, least: 20, wanted: 200}
	for _, expr := range c.Thresholds {
		cond, err := parseThreshold(expr)
		if err != nil {
			continue // prepare has refused it
		}
		j.conditions = append(j.conditions, cond)
		if cond.metric == "errors" {
			j.wanted = max(j.wanted, 10/max(cond.limit, 1e-4))
		}
		if cond.metric != "p" {
			continue
		}
		above := max(1-cond.percent/100, 1e-5)
		j.least = max(j.least, samplesLeast/above)
		j.wanted = max(j.wanted, 20/above)
		if strings.HasPrefix(cond.op, "<") && cond.percent >= 90 && (j.slowest == 0 || cond.limit < j.slowest) {
			j.slowest, j.share = cond.limit, above
		}
	}
	return j
}

// watch follows the calls in flight of a step.
type watch struct {
	samples  []flightSample
	limit    float64       // calls in flight that the objective cannot be met with
	patience time.Duration // how long that must last
	over     time.Duration
	last     time.Duration
	all      bool // every session must be open
	stop     func()
	stopped  bool
}

// flightSample is the number of calls in flight at a moment of the measured window.
type flightSample struct{ at, n float64 }

// watch makes one for a step. In an open loop more calls than rate times limit cannot be in flight while nearly all of
// them are answered within the limit, so four times as many for a while, besides those that may hang, end the step early.
// That spares the server a backlog that takes longer than the step to go away.
func (j *judge) watch(c *Config, stop func()) *watch {
	w := &watch{stop: stop, limit: math.Inf(1), all: j.sessions}
	if c.Rate > 0 && j.slowest > 0 {
		w.limit = overTimes*c.Rate*j.slowest/1e6 + j.share*c.Rate*c.Timeout.Seconds() + overLeast
		w.patience = max(overTime, time.Duration(2*j.share*float64(c.Duration)))
	}
	return w
}

// progress is called from the goroutine of the collector.
func (w *watch) progress(p Progress) {
	if p.Phase != PhaseMeasuring {
		return
	}
	w.samples = append(w.samples, flightSample{p.Elapsed.Seconds(), float64(p.InFlight)})
	if float64(p.InFlight) > w.limit {
		w.over += p.Elapsed - w.last
	}
	w.last = p.Elapsed
	if (w.over > 0 && w.over >= w.patience || w.all && p.Sessions < int64(p.Wanted)) && !w.stopped {
		w.stopped = true
		w.stop()
	}
}

// growth gives how fast the calls in flight grow, a second, and whether that is beyond chance.
func growth(samples []flightSample) (slope float64, sure bool) {
	if len(samples) < 2*growBlocks {
		return 0, false
	}
	var x, y [growBlocks]float64
	var meanX, meanY float64
	for b := range growBlocks {
		part := samples[b*len(samples)/growBlocks : (b+1)*len(samples)/growBlocks]
		for _, s := range part {
			x[b] += s.at / float64(len(part))
			y[b] += s.n / float64(len(part))
		}
		meanX += x[b] / growBlocks
		meanY += y[b] / growBlocks
	}
	var xx, xy, rest float64
	for b := range growBlocks {
		xx += (x[b] - meanX) * (x[b] - meanX)
		xy += (x[b] - meanX) * (y[b] - meanY)
	}
	slope = xy / xx
	for b := range growBlocks {
		d := y[b] - meanY - slope*(x[b]-meanX)
		rest += d * d
	}
	return slope, slope > growBeyond*math.Sqrt(rest/(growBlocks-2)/xx)
}

// backlog describes how the calls in flight of a step grew.
type backlog struct {
	grows     float64 // calls a second; 0 where it may be chance, or too little to count
	steady    bool    // it grew all the time, and not from one moment on, as in a stall
	saturated float64 // calls a second that came through meanwhile
}

func (w *watch) backlog(rate, delivered float64) backlog {
	n := len(w.samples)
	if rate == 0 || n < 4 {
		return backlog{}
	}
	first, middle, last := w.samples[0], w.samples[n/2], w.samples[n-1]
	early, later := (middle.n-first.n)/(middle.at-first.at), (last.n-middle.n)/(last.at-middle.at)
	b := backlog{steady: early > later/2}
	slope, sure := growth(w.samples)
	if sure && slope >= growLeast*rate && slope*last.at >= growCalls {
		b.grows = slope
	}
	if b.steady {
		b.saturated = max(delivered-(last.n-first.n)/(last.at-first.at), 0)
	}
	return b
}

// judge decides about a step, and says why in a few words.
func (j *judge) judge(res *Result, w *watch) (t trial, why string) {
	v := &res.Verdict
	rate := res.Conditions.RateRPS
	b := w.backlog(rate, v.DeliveredRPS)
	t, why = j.server(res, w, b)
	if own := ownFault(res); own != "" {
		// Late calls make the times worse and never better, so what holds in spite of them holds. In a closed loop a
		// generator without CPU makes fewer calls, and then nothing is shown.
		if t.ok && (rate > 0 || res.Verdict.GeneratorCPU <= cpuMost) {
			t.clear = false
			return t, why + ", lag " + durationText(time.Duration(v.LagP99US)*time.Microsecond)
		}
		return trial{generator: true}, own
	}
	return t, why
}

// server judges a step as if the generator were without fault.
func (j *judge) server(res *Result, w *watch, b backlog) (t trial, why string) {
	rate := res.Conditions.RateRPS
	begun := float64(res.Requests.Total) / max(float64(res.Requests.Total+res.Requests.Dropped), 1)
	switch n := &res.Sessions; {
	case res.Ended != "":
		return trial{clear: true}, res.Ended
	case n.Failed > 0:
		return trial{clear: n.Failed > 1}, fmt.Sprintf("%s of %s sessions not opened", thousands(n.Failed), thousands(int64(res.Conditions.Sessions)))
	case n.Lost > 0:
		return trial{clear: n.Lost > 1}, plural(n.Lost, "session") + " lost"
	case w.stopped:
		return trial{clear: b.steady, saturated: b.saturated},
			fmt.Sprintf("backlog of %s calls, ended early", thousands(int64(w.samples[len(w.samples)-1].n)))
	case b.grows > 0:
		return trial{clear: b.grows > growClear*rate, saturated: b.saturated}, fmt.Sprintf("backlog grows by %.2g calls/s", b.grows)
	case begun < deliveredLeast:
		return trial{saturated: b.saturated}, fmt.Sprintf("only %.1f %% of the calls begun", 100*begun)
	}
	return j.objectives(res)
}

// objectives holds the thresholds against the result. The first that is crossed is the reason.
func (j *judge) objectives(res *Result) (t trial, why string) {
	t = trial{ok: true, clear: true}
	var parts []string
	for i, c := range j.conditions {
		value, known := c.value(res)
		ok := known && c.holds(value)
		clear := j.isClear(&c, value, res)
		if !ok {
			if !known {
				return trial{clear: res.Requests.OK == 0}, "no call succeeded"
			}
			return trial{clear: clear}, fmt.Sprintf("%s, not %s %s", valueOf(&c, value, res), c.op, limitText(&c))
		}
		t.clear = t.clear && clear
		if i == 0 || value > 0 {
			parts = append(parts, valueOf(&c, value, res))
		}
	}
	return t, strings.Join(parts, ", ")
}

// isClear reports whether a value lies so far from its limit that chance cannot have put it on the wrong side.
func (j *judge) isClear(c *condition, value float64, res *Result) bool {
	if ci := intervalOf(c, res); ci != nil {
		return float64(ci[1]) < c.limit || float64(ci[0]) > c.limit
	}
	if c.metric == "errors" {
		n := float64(res.Requests.Total)
		return value == 0 || math.Abs(value-c.limit) > 3*math.Sqrt(c.limit*(1-c.limit)/max(n, 1))
	}
	return value > looseFactor*c.limit || value < c.limit/looseFactor
}

// intervalOf gives the interval of the p99 of all calls, which is the only one that a result holds.
func intervalOf(c *condition, res *Result) *[2]int64 {
	if c.metric == "p" && c.percent == 99 && c.method == "*" {
		return res.Latency[len(res.Latency)-1].Response.P99CI95US
	}
	return nil
}

// valueOf writes what a step has shown of an objective.
func valueOf(c *condition, value float64, res *Result) string {
	switch c.metric {
	case "errors":
		return fmt.Sprintf("errors %.2g %%", 100*value)
	case "p":
		text := fmt.Sprintf("p(%g) %s", c.percent, microsText(value))
		if ci := intervalOf(c, res); ci != nil {
			text += fmt.Sprintf(" (%s to %s)", microsText(float64(ci[0])), microsText(float64(ci[1])))
		}
		return text
	}
	return c.metric + " " + microsText(value)
}

// limitText writes the limit of an objective.
func limitText(c *condition) string {
	if c.metric == "errors" {
		return fmt.Sprintf("%.3g %%", 100*c.limit)
	}
	return microsText(c.limit)
}

// ownFault says what the generator did wrong in a step, or "". A schedule that could not be kept because the calls came
// back too late is no fault of the generator.
func ownFault(res *Result) string {
	v := &res.Verdict
	service := res.Latency[len(res.Latency)-1].Service
	lag := time.Duration(v.LagP99US) * time.Microsecond
	limit := max(lagMost, time.Duration(lagShare*float64(service.P99US))*time.Microsecond)
	switch {
	case lag > limit:
		return fmt.Sprintf("generator late: lag p99 %s, CPU %.0f %%", durationText(lag), 100*v.GeneratorCPU)
	case v.GeneratorCPU > cpuMost && !res.Conditions.InProcess:
		return fmt.Sprintf("generator used %.0f %% of the CPU", 100*v.GeneratorCPU)
	}
	for _, reason := range v.Reasons {
		switch {
		case strings.HasPrefix(reason, "this machine refused"):
			return "generator out of descriptors or ports"
		case strings.HasSuffix(reason, "could not keep the schedule"):
			return "generator began too few calls"
		}
	}
	return ""
}

// errorShare is the share of the calls that were no success.
func errorShare(res *Result) float64 {
	if res.Requests.Total == 0 {
		return 0
	}
	return 1 - float64(res.Requests.OK)/float64(res.Requests.Total)
}
