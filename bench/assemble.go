package bench

import (
	"runtime"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// result puts together what the collector has found.
func (r *run) result(c *collector, started time.Time) *Result {
	window := max(r.windowEnd().Sub(r.from), 0)
	res := &Result{
		Schema: Schema, Version: r.cfg.Version, Started: started.UTC().Truncate(time.Millisecond), Command: r.cfg.Argv,
		Conditions: r.conditions(window), Sessions: r.sessionCounts(), Requests: r.requestCounts(c), Latency: r.latencies(c), Flows: r.flowCounts(c),
		Server: c.usage.result(), Intervals: c.rows, log: r.histogramLog(c),
	}
	if res.Command == nil {
		res.Command = []string{}
	}
	res.Streams, res.ServerRequests = r.streamCounts(), r.serverRequests()
	res.Verdict = r.verdict(c, window, res)
	res.LittlesLaw = r.flights(c, window).law()
	res.Thresholds = evaluate(r.cfg.Thresholds, res)
	r.mu.Lock()
	res.Ended = r.ended
	r.mu.Unlock()
	return res
}

// flights gives what Little's law is checked with.
func (r *run) flights(c *collector, window time.Duration) *flights {
	f := &flights{window: window, ended: c.total.ended, busy: c.total.busy}
	switch {
	case !r.cfg.open():
		f.think = c.total.think
		f.population = max(r.cfg.Users, r.cfg.Concurrency)
	case c.flightN > 0:
		f.observed, f.samples = c.flightSum/c.flightN, c.flightN
	}
	return f
}

func (r *run) conditions(window time.Duration) Conditions {
	agreed := r.set.agreed()
	c := Conditions{
		Target: r.cfg.target(), Transport: r.cfg.peer.transport(), Protocol: agreed.protocol, Loop: "closed",
		Concurrency: r.cfg.Concurrency, Sessions: r.cfg.Sessions, DurationS: round(window.Seconds(), 3),
		WarmupS: r.cfg.Warmup.Seconds(), Seed: r.cfg.Seed,
		Host:   Host{CPUs: runtime.GOMAXPROCS(0), OS: runtime.GOOS, Go: runtime.Version()},
		Server: agreed.server, TimeoutS: r.cfg.Timeout.Seconds(), HTTP2: r.cfg.HTTP2, InProcess: r.cfg.InProcess,
		Scenario: r.cfg.Scenario,
	}
	switch {
	case r.cfg.open():
		c.Loop, c.RateRPS, c.Arrivals = "open", r.cfg.peakRate(), string(r.cfg.Arrivals)
		c.MaxInFlight, c.Overflow = r.cfg.MaxInFlight, string(r.cfg.Overflow)
	case r.cfg.Users > 0:
		c.Users, c.ThinkTime = r.cfg.Users, r.cfg.ThinkTime.String()
	}
	for _, s := range r.cfg.Stages {
		c.Stages = append(c.Stages, StageCondition{s.Duration.Seconds(), s.Rate})
		c.StartRPS = r.cfg.Rate
	}
	for _, s := range r.series[:r.calls] {
		if s.tool != "" {
			c.Tools = append(c.Tools, s.tool)
		}
	}
	return c
}

func (r *run) sessionCounts() Sessions {
	r.set.mu.Lock()
	defer r.set.mu.Unlock()
	return Sessions{
		Opened: r.set.opened.Load(), Failed: r.set.failed.Load(), Lost: r.set.lost.Load(), Closed: r.set.closed.Load(),
		Setup: distOf(r.set.setup, nil),
	}
}

func (r *run) requestCounts(c *collector) Requests {
	n := &c.total.counts
	q := Requests{
		Total: c.total.total(), OK: n[outcomeOK], ToolError: n[outcomeToolError], RPCError: n[outcomeRPCError],
		HTTPError: n[outcomeHTTPError], TransportError: n[outcomeTransportError], Timeout: n[outcomeTimeout],
		Cancelled: n[outcomeCancelled], CancelledMeant: c.total.meant, Dropped: r.dropped.Load(), RPCCodes: c.total.rpcCodes, HTTPCodes: c.total.httpCodes,
		Warmup: r.warm.Load(), Examples: map[string]string{}, Outcomes: map[string]*Dist{},
	}
	for o := outcomeOK + 1; o < outcomes; o++ {
		if text := r.rec.exampleOf(o); text != "" {
			q.Examples[o.String()] = text
		}
		if h := c.total.failures[o]; h != nil {
			q.Outcomes[o.String()] = distOf(h, nil)
		}
	}
	return q
}

// latencies gives a row for each series that had a success, and the row of all.
func (r *run) latencies(c *collector) []Latency {
	out := []Latency{}
	row := func(s series, t triple, response, service, failed []int) {
		l := Latency{
			Method: s.method, Tool: s.tool, Response: distOf(t.response, c.times.blocks(response...)),
			Service: distOf(t.service, c.times.blocks(service...)), TTFB: distOf(t.ttfb, nil),
		}
		if !r.cfg.brief {
			l.Blocks = c.times.resultBlocks(response, failed, failed == nil)
		}
		out = append(out, l)
	}
	var response, service []int
	for i, t := range c.total.series {
		s := r.series[i]
		switch {
		case i < r.calls:
			response, service = append(response, 2*i), append(service, 2*i+1)
			if t.response != nil {
				row(s, t, []int{2 * i}, []int{2*i + 1}, nil)
			}
		case s.method != flowSeries && t.response != nil:
			row(s, triple{response: t.response}, []int{2 * i}, nil, nil)
		}
	}
	failed := make([]int, outcomes)
	for o := range failed {
		failed[o] = 2*len(r.series) + o
	}
	row(series{method: "*"}, c.total.all(r.calls), response, service, failed)
	return out
}

// flowCounts says what became of the flows.
func (r *run) flowCounts(c *collector) []FlowCount {
	if r.script == nil {
		return nil
	}
	var out []FlowCount
	for i := range r.script.flows {
		f := &r.script.flows[i]
		n := FlowCount{Flow: f.name, Begun: f.begun.Load(), Completed: f.completed.Load(), Failed: f.failed.Load()}
		n.Unfinished = n.Begun - n.Completed - n.Failed
		f.mu.Lock()
		n.FirstWhy = f.firstWhy
		f.mu.Unlock()
		n.Duration = distOf(c.total.series[f.series].response, c.times.blocks(2*f.series))
		out = append(out, n)
	}
	return out
}

func (r *run) verdict(c *collector, window time.Duration, res *Result) Verdict {
	begun := r.measured.Load()
	v := Verdict{
		AskedRPS: round(r.cfg.askedRate(window), 2), GeneratorCPU: c.cpu.share(), GCPauseMaxUS: c.cpu.pauses.longest.Microseconds(),
	}
	if s := window.Seconds(); s > 0 {
		v.DeliveredRPS = round(float64(begun)/s, 2)
		v.CompletedRPS = round(float64(c.total.answered)/s, 2)
	}
	if r.cfg.paced() {
		res.Lag = distOf(c.total.lag, nil)
		v.LagP99US = res.Lag.P99US
	}
	e := r.evidence(&c.cpu, window, &v, res.Latency[len(res.Latency)-1].Service.P99US)
	v.Reasons = e.reasons()
	v.Valid = len(v.Reasons) == 0
	return v
}

// evidence gathers what the verdict is made from, of which v has lag and processor share already.
func (r *run) evidence(cpu *cpuShare, window time.Duration, v *Verdict, serviceP99US int64) evidence {
	begun := r.measured.Load()
	return evidence{
		open: r.cfg.open(), paced: r.cfg.paced(), inProcess: r.cfg.InProcess, scheduled: begun + r.dropped.Load(),
		begun: begun, window: window, lagP99: time.Duration(v.LagP99US) * time.Microsecond,
		serviceP99: time.Duration(serviceP99US) * time.Microsecond, cpu: v.GeneratorCPU, held: r.held.Load(),
		maxInFlight: r.cfg.MaxInFlight, overflow: r.cfg.Overflow, limit: r.cfg.peer.maxInFlight(r.cfg.Sessions, r.cfg.Streams),
		starved: r.starvedConnections(), stopped: cpu.pauses.total,
	}
}

func quantileOf(h *hdr.Histogram, percent float64) int64 {
	if h.TotalCount() == 0 {
		return 0
	}
	return h.ValueAtPercentile(percent)
}

// target names what the load was offered to.
func (c *Config) target() string {
	if len(c.Command) > 0 {
		return commandLine(c.Command)
	}
	return c.URL
}
