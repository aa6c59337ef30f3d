package report

import (
	"fmt"

	"github.com/mcpengine/mcpengine/bench"
)

// overheadSection draws what a gateway adds, and tells what it multiplies and loses.
func overheadSection(o *bench.Overhead) section {
	s := section{Title: "Gateway overhead", Text: o.Answer}
	if c := differences(o); !c.empty() {
		s.Charts = append(s.Charts, c.view())
	}
	if len(o.Phases) > 0 {
		t := table{Title: "Phases", Note: "Differences are via minus direct, pair by pair.", Head: []string{
			"", "p50 direct", "p99 direct", "p50 via", "p99 via", "median of the differences", "their mean"}}
		for i := range o.Phases {
			p := &o.Phases[i]
			t.Rows = append(t.Rows, []string{p.Phase, micros(float64(p.Direct.P50US)), micros(float64(p.Direct.P99US)),
				micros(float64(p.Via.P50US)), micros(float64(p.Via.P99US)), withRange(&p.Median), withRange(&p.Mean)})
		}
		s.Tables = append(s.Tables, t)
	}
	if a := o.Amplification; a != nil {
		t := table{Title: "What reaches the upstream server", Head: []string{"for each", "of these", "sessions",
			"initialize", "server/discover", "tools/list", "tools/call"}}
		for _, row := range []struct {
			of string
			n  int64
			u  *bench.Upstream
		}{{"session of a client", a.Sessions, &a.PerSession}, {"tools/call", a.Calls, &a.PerCall}, {"tools/list",
			a.Lists, &a.PerList}} {
			t.Rows = append(t.Rows, []string{row.of, count(float64(row.n)), digits(row.u.Sessions),
				digits(row.u.Initialize), digits(row.u.Discover), digits(row.u.List), digits(row.u.Call)})
		}
		s.Tables = append(s.Tables, t)
	}
	if x := o.Replicas; x != nil {
		survived := "not looked at"
		if x.Survived != nil {
			survived = fmt.Sprintf("%s of %d", shareText(x.Survived), x.AtRisk)
		}
		s.Tables = append(s.Tables, table{Title: "Sessions among replicas", Head: []string{"replicas", "sessions",
			"requests", "lost their session", "with random routing", "failed otherwise", "sessions that survive"},
			Rows: [][]string{{count(float64(x.Replicas)), count(float64(x.Sessions)), count(float64(x.Requests)),
				digits(100*x.Loss) + " %", digits(100*x.LossRandom) + " %", count(float64(x.Failed)), survived}}})
	}
	return s
}

// differences draws how many pairs differed by how much.
func differences(o *bench.Overhead) *chart {
	c := &chart{title: "Differences of the service time",
		note:  "Pairs of calls by via minus direct; the one per cent at either end is in the bars there.",
		xName: "via minus direct"}
	bars := series{name: "pairs", class: "c1", shape: stairs}
	for _, b := range o.Histogram {
		bars.x, bars.y = append(bars.x, b.FromUS), append(bars.y, float64(b.Count))
	}
	if n := len(o.Histogram); n > 0 {
		last := o.Histogram[n-1]
		bars.x, bars.y = append(bars.x, last.ToUS), append(bars.y, float64(last.Count))
		c.x = linear(min(o.Histogram[0].FromUS, 0), last.ToUS, 8, signedMicros)
	} else {
		c.x = linear(0, 1, 8, signedMicros)
	}
	c.lines = []series{bars}
	c.y = linear(0, highest(c.lines)*1.05, 5, count)
	return c
}

// signedMicros writes a time that may be negative.
func signedMicros(us float64) string {
	if us < 0 {
		return "−" + micros(-us)
	}
	return micros(us)
}

// withRange writes a difference with its interval.
func withRange(d *bench.Difference) string {
	return signedMicros(d.US) + " (" + differenceRange(d) + ")"
}

func differenceRange(d *bench.Difference) string {
	if d.CI95 == nil {
		return "too few pairs for an interval"
	}
	return "95 %: " + signedMicros(d.CI95[0]) + " to " + signedMicros(d.CI95[1])
}

// measuredFigures are the few numbers that a reader of such a result looks for first.
func measuredFigures(r *bench.Result) []figure {
	var out []figure
	if n := r.SessionCapacity; n != nil {
		if n.MemoryOf != "" {
			out = append(out, figure{Value: bytesText(n.BytesPerSession), Name: "a session"})
		}
		most := figure{Value: count(float64(n.MaxSessions)), Name: "sessions at most"}
		if n.MaxSessions == 0 {
			most = figure{Value: count(float64(n.Tried)), Name: "sessions", Note: "none was refused"}
		}
		out = append(out, most)
		if i := n.Idle; i != nil && i.Found {
			out = append(out, figure{Value: seconds(i.ExpiryS), Name: "until an idle session ends"})
		}
		if s := n.Storm; s != nil {
			out = append(out, figure{
				Value: seconds(s.AllBackS), Name: "until all are back", Note: count(float64(s.Clients)) + " clients at once", Bad: s.NeverBack > 0})
		}
	}
	if o := r.Overhead; o != nil {
		for i := range o.Phases {
			p := &o.Phases[i]
			out = append(out, figure{Value: signedMicros(p.Median.US), Name: p.Phase + ", via minus direct", Note: differenceRange(&p.Median)})
		}
		if a := o.Amplification; a != nil {
			out = append(out, figure{Value: digits(a.PerCall.Call) + "×", Name: "calls upstream", Note: digits(a.PerCall.Sessions) + " sessions for each call"})
		}
		if x := o.Replicas; x != nil {
			out = append(out, figure{Value: digits(100*x.Loss) + " %", Name: "requests without their session", Bad: x.Lost > 0})
		}
	}
	return out
}
