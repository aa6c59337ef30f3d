package report

import (
	"math"

	"github.com/mcpengine/mcpengine/bench"
)

// fewest is the least that an axis of whole numbers reaches up to, so that its ticks are whole.
const fewest = 5

// charts draws what changed while the run went on, and the spectra.
func charts(r *bench.Result) []chartView {
	var out []chartView
	for _, c := range []*chart{
		latencyOverTime(r), spectrum(r), throughput(r), failures(r), inFlight(r), sessionsOverTime(r), serverCPU(r), serverMemory(r),
	} {
		if !c.empty() {
			out = append(out, c.view())
		}
	}
	return out
}

// over collects a value of each interval, where keep wants it.
func over(r *bench.Result, value func(*bench.Interval) float64, keep func(*bench.Interval) bool) (x, y []float64) {
	for i := range r.Intervals {
		if iv := &r.Intervals[i]; keep(iv) {
			x, y = append(x, iv.TS), append(y, value(iv))
		}
	}
	return x, y
}

// within leaves out the piece of a second at the end, and what was only waited for after the measured time.
func within(r *bench.Result) func(*bench.Interval) bool {
	return func(iv *bench.Interval) bool { return iv.TS+0.999 <= r.Conditions.DurationS }
}

// timeAxis covers the run.
func timeAxis(r *bench.Result) *scale {
	end := r.Conditions.DurationS
	if n := len(r.Intervals); n > 0 {
		end = max(end, r.Intervals[n-1].TS)
	}
	s := linear(0, end, 8, seconds)
	s.high = max(end, 1) // no empty space at the end
	for len(s.ticks) > 0 && s.ticks[len(s.ticks)-1] > s.high {
		s.ticks = s.ticks[:len(s.ticks)-1]
	}
	return s
}

func latencyOverTime(r *bench.Result) *chart {
	answered := func(iv *bench.Interval) bool { return iv.RPS > 0 }
	c := &chart{title: "Response time over time", note: "Of the successes that ended in each second, from the intended start.", x: timeAxis(r), xName: "since the begin of the measured time"}
	x, y := over(r, func(iv *bench.Interval) float64 { return float64(iv.P50US) }, answered)
	c.lines = append(c.lines, series{name: "p50", class: "c1", x: x, y: y})
	x, y = over(r, func(iv *bench.Interval) float64 { return float64(iv.P99US) }, answered)
	c.lines = append(c.lines, series{name: "p99", class: "c2", x: x, y: y})
	c.y = latencyScale(lowest(c.lines), highest(c.lines))
	return c
}

func throughput(r *bench.Result) *chart {
	c := &chart{title: "Throughput", note: "Successes in each second.", x: timeAxis(r), xName: "since the begin of the measured time"}
	x, y := over(r, func(iv *bench.Interval) float64 { return iv.RPS }, within(r))
	c.lines = []series{{name: "answered", class: "c1", x: x, y: y}}
	asked := r.Verdict.AskedRPS
	if asked > 0 {
		c.marks = []mark{{value: asked, text: "asked " + perSecond(asked)}}
	}
	c.y = linear(0, max(highest(c.lines), asked)*1.08, 5, perSecond)
	return c
}

// failures is drawn only where there was one.
func failures(r *bench.Result) *chart {
	c := &chart{title: "Errors", note: "Calls that ended in each second without a success.", x: timeAxis(r), xName: "since the begin of the measured time"}
	x, y := over(r, func(iv *bench.Interval) float64 { return float64(iv.Errors) }, func(*bench.Interval) bool { return true })
	c.lines = []series{{name: "errors", class: "c3", x: x, y: y}}
	if highest(c.lines) == 0 {
		c.lines = nil
	}
	c.y = linear(0, max(highest(c.lines), fewest), 5, count)
	return c
}

func inFlight(r *bench.Result) *chart {
	c := &chart{title: "Calls in flight", note: "At the end of each second.", x: timeAxis(r), xName: "since the begin of the measured time"}
	x, y := over(r, func(iv *bench.Interval) float64 { return float64(iv.InFlight) }, within(r))
	c.lines = []series{{name: "in flight", class: "c1", x: x, y: y}}
	c.y = linear(0, max(highest(c.lines), fewest), 5, count)
	return c
}

func sessionsOverTime(r *bench.Result) *chart {
	c := &chart{title: "Sessions", note: "Open at the end of each second.", x: timeAxis(r), xName: "since the begin of the measured time"}
	x, y := over(r, func(iv *bench.Interval) float64 { return float64(iv.Sessions) }, within(r))
	c.lines = []series{{name: "open", class: "c4", x: x, y: y}}
	if highest(c.lines) == 0 {
		c.lines = nil
	}
	c.y = linear(0, max(highest(c.lines)*1.05, fewest), 5, count)
	return c
}

func serverCPU(r *bench.Result) *chart {
	c := &chart{title: "Server CPU", note: "Cores that the server's processes used.", x: timeAxis(r), xName: "since the begin of the measured time"}
	inWindow := within(r)
	known := func(iv *bench.Interval) bool { return iv.ServerRSS > 0 && inWindow(iv) }
	x, y := over(r, func(iv *bench.Interval) float64 { return iv.ServerCPU }, known)
	c.lines = []series{{name: "cores", class: "c1", x: x, y: y}}
	c.y = linear(0, highest(c.lines)*1.05, 5, digits)
	return c
}

func serverMemory(r *bench.Result) *chart {
	c := &chart{title: "Server memory", note: "Resident, of the server's processes.", x: timeAxis(r), xName: "since the begin of the measured time"}
	inWindow := within(r)
	known := func(iv *bench.Interval) bool { return iv.ServerRSS > 0 && inWindow(iv) }
	x, y := over(r, func(iv *bench.Interval) float64 { return float64(iv.ServerRSS) }, known)
	c.lines = []series{{name: "resident", class: "c4", x: x, y: y}}
	c.y = memoryScale(highest(c.lines) * 1.05)
	return c
}

// memoryScale has ticks at round numbers of binary units.
func memoryScale(high float64) *scale {
	unit := 1.0
	for high/unit >= 1024 {
		unit *= 1024
	}
	s := linear(0, high/unit, 5, digits)
	s.low, s.high, s.format = 0, s.high*unit, bytesText
	for i := range s.ticks {
		s.ticks[i] *= unit
	}
	return s
}

// spectrum draws every percentile: 1 call in x took longer than y. The lines end where a single sample would decide.
func spectrum(r *bench.Result) *chart {
	c := &chart{title: "Percentile spectrum", note: "Response time from the intended start (solid) and service time from the sending (dashed) by percentile. A straight rise is an exponential tail; a step is a stall."}
	row := all(r)
	most := 1.0
	add := func(name, class string, d *bench.Dist, drawn shape) {
		s, reach := spectrumLine(d)
		s.name, s.class, s.shape = name, class, drawn
		if len(s.x) > 0 {
			c.lines = append(c.lines, s)
			most = max(most, reach)
		}
	}
	add("response", "c2", row.Response, solid)
	add("service", "c1", row.Service, dashed)
	if rows := byTool(r); len(rows) > 1 {
		for i, l := range rows[:min(len(rows), 4)] {
			add(rowName(l), []string{"c4", "c5", "c6", "c7"}[i], l.Response, solid)
		}
	}
	c.x = logarithmic(1, most, percentile)
	c.xName = "percentile"
	c.y = latencyScale(lowest(c.lines), highest(c.lines))
	return c
}

// spectrumLine reads a distribution at percentiles that lie evenly on the logarithmic axis.
func spectrumLine(d *bench.Dist) (s series, reach float64) {
	h, err := d.Histogram()
	if err != nil || h.Count() == 0 {
		return s, 1
	}
	reach = max(float64(h.Count())/10, 10) // ten samples lie beyond
	for x := 1.0; x <= reach*(1+1e-9); x *= math.Pow(10, 0.05) {
		s.x = append(s.x, x)
		s.y = append(s.y, float64(h.At(100-100/x).Microseconds()))
	}
	return s, reach
}

// byTool gives the rows of single methods and tools.
func byTool(r *bench.Result) []*bench.Latency {
	var out []*bench.Latency
	for i := range r.Latency {
		if r.Latency[i].Method != "*" {
			out = append(out, &r.Latency[i])
		}
	}
	return out
}

func rowName(l *bench.Latency) string {
	switch {
	case l.Method == "*":
		return "all calls"
	case l.Tool != "":
		return l.Method + " " + l.Tool
	}
	return l.Method
}
