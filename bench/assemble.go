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
		Conditions: r.conditions(window), Sessions: r.sessionCounts(), Requests: r.requestCounts(c), Latency: r.latencies(c),
		Server: c.usage.result(), Intervals: c.rows, log: r.histogramLog(c),
	}
	if res.Command == nil {
		res.Command = []string{}
	}
	if s := r.set.streams; s != nil {
		res.Streams = Streams{OpenPeak: s.peak.Load(), Events: s.events.Load()}
	}
	res.Verdict = r.verdict(c, window, res)
	observed := float64(r.cfg.Concurrency)
	if r.cfg.Rate > 0 && c.flightN > 0 {
		observed = c.flightSum / c.flightN
	}
	res.LittlesLaw = littlesLaw(c.total.ended, c.total.busy, window, observed)
	res.Thresholds = evaluate(r.cfg.Thresholds, res)
	r.mu.Lock()
	res.Ended = r.ended
	r.mu.Unlock()
	return res
}

func (r *run) conditions(window time.Duration) Conditions {
	agreed := r.set.agreed()
	c := Conditions{
		Target: r.cfg.target(), Transport: r.cfg.peer.transport(), Protocol: agreed.protocol, Loop: "closed",
		Concurrency: r.cfg.Concurrency, Sessions: r.cfg.Sessions, DurationS: round(window.Seconds(), 3),
		WarmupS: r.cfg.Warmup.Seconds(), Seed: r.cfg.Seed,
		Host:   Host{CPUs: runtime.GOMAXPROCS(0), OS: runtime.GOOS, Go: runtime.Version()},
		Server: agreed.server, TimeoutS: r.cfg.Timeout.Seconds(), InProcess: r.cfg.InProcess,
	}
	if r.cfg.Rate > 0 {
		c.Loop, c.RateRPS, c.Arrivals = "open", r.cfg.Rate, string(r.cfg.Arrivals)
		c.MaxInFlight, c.Overflow = r.cfg.MaxInFlight, string(r.cfg.Overflow)
	}
	for _, t := range r.tools {
		c.Tools = append(c.Tools, t.name)
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
		Cancelled: n[outcomeCancelled], Dropped: r.dropped.Load(), RPCCodes: c.total.rpcCodes, HTTPCodes: c.total.httpCodes,
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

// latencies gives a row for each tool that had a success, and the row of all.
func (r *run) latencies(c *collector) []Latency {
	out := []Latency{}
	row := func(method, tool string, t triple, response, service, failed []int) {
		out = append(out, Latency{
			Method: method, Tool: tool, Response: distOf(t.response, c.times.blocks(response...)),
			Service: distOf(t.service, c.times.blocks(service...)), TTFB: distOf(t.ttfb, nil),
			Blocks: c.times.resultBlocks(response, failed, failed == nil),
		})
	}
	var response, service []int
	for i, t := range c.total.tools {
		response, service = append(response, 2*i), append(service, 2*i+1)
		if t.response.TotalCount() > 0 {
			row("tools/call", r.tools[i].name, t, []int{2 * i}, []int{2*i + 1}, nil)
		}
	}
	failed := make([]int, outcomes)
	for o := range failed {
		failed[o] = 2*len(r.tools) + o
	}
	row("*", "", c.total.all(), response, service, failed)
	return out
}

func (r *run) verdict(c *collector, window time.Duration, res *Result) Verdict {
	begun := r.measured.Load()
	v := Verdict{AskedRPS: r.cfg.Rate, GeneratorCPU: c.cpu.share()}
	if s := window.Seconds(); s > 0 {
		v.DeliveredRPS = round(float64(begun)/s, 2)
		v.CompletedRPS = round(float64(c.total.answered)/s, 2)
	}
	if r.cfg.Rate > 0 {
		v.LagP99US = quantileOf(c.total.lag, 99)
	}
	e := evidence{
		open: r.cfg.Rate > 0, inProcess: r.cfg.InProcess, scheduled: begun + r.dropped.Load(), begun: begun, window: window,
		lagP99:     time.Duration(v.LagP99US) * time.Microsecond,
		serviceP99: time.Duration(res.Latency[len(res.Latency)-1].Service.P99US) * time.Microsecond,
		cpu:        v.GeneratorCPU, held: r.held.Load(), maxInFlight: r.cfg.MaxInFlight, overflow: r.cfg.Overflow,
		limit: r.cfg.peer.maxInFlight(r.cfg.Sessions, r.cfg.Streams), starved: r.starved.Load(),
	}
	v.Reasons = e.reasons()
	v.Valid = len(v.Reasons) == 0
	return v
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
