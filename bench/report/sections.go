package report

import (
	"fmt"

	"github.com/mcpengine/mcpengine/bench"
)

// sections is what commands other than run have found.
func sections(r *bench.Result) []section {
	var out []section
	if r.SessionCapacity != nil {
		out = append(out, sessionSection(r.SessionCapacity))
	}
	if r.Overhead != nil {
		out = append(out, overheadSection(r.Overhead))
	}
	return out
}

// sessionSection draws what sessions cost, and tells how many there can be and how they end.
func sessionSection(n *bench.SessionCapacity) section {
	s := section{Title: "Sessions", Text: n.Answer}
	if c := memoryOverSessions(n); !c.empty() {
		s.Charts = append(s.Charts, c.view())
	}
	facts := table{Title: "What was found", Head: []string{"", "value", "how"}}
	add := func(name, value, how string) { facts.Rows = append(facts.Rows, []string{name, value, how}) }
	if n.MemoryOf != "" {
		how := "no interval, too few steps"
		if ci := n.BytesPerSessionCI95; ci != nil {
			how = fmt.Sprintf("95 %%: %s to %s", bytesText(ci[0]), bytesText(ci[1]))
		}
		add("Memory of a session", bytesText(n.BytesPerSession), how)
	}
	limit, how := "none up to "+count(float64(n.Tried)), "no session was refused"
	if n.MaxSessions > 0 {
		limit, how = count(float64(n.MaxSessions)), "not confirmed"
		if n.Confirmed {
			how = "confirmed: one was ended, and exactly one more fitted"
		}
	}
	add("Most sessions", limit, how)
	if i := n.Idle; i != nil && i.Found {
		add("Idle sessions end after", seconds(i.ExpiryS), fmt.Sprintf("known after %s, gone after %s",
			seconds(i.AliveS), seconds(i.DeadS)))
	} else if i != nil {
		add("Idle sessions end after", "not found", "still known after "+seconds(i.AliveS))
	}
	if x := n.Released; x != nil {
		add("Memory back after DELETE", shareText(x.DeletedShare), count(float64(x.Deleted))+" sessions")
		add("Memory back when abandoned", shareText(x.AbandonedShare), fmt.Sprintf("%s sessions, after %s",
			count(float64(x.Abandoned)), seconds(x.WaitedS)))
	}
	s.Tables = append(s.Tables, facts)
	if n.Storm != nil {
		s.Tables = append(s.Tables, stormTable(n.Storm))
	}
	return s
}

// memoryOverSessions draws the steps and the line through them.
func memoryOverSessions(n *bench.SessionCapacity) *chart {
	c := &chart{title: "Memory over open sessions",
		xName: "open sessions",
		note:  "Of " + n.MemoryOf + ", when it had settled after each step; the slope of the line is the memory of a session."}
	steps := series{name: "measured", class: "c4", dots: true}
	for _, p := range n.Points {
		steps.x, steps.y = append(steps.x, float64(p.Sessions)), append(steps.y, float64(p.Bytes))
	}
	if len(steps.x) < 2 {
		c.x, c.y = linear(0, 1, 5, count), memoryScale(1)
		return c
	}
	last := steps.x[len(steps.x)-1]
	at := func(x float64) float64 { return max(n.BaseBytes+n.BytesPerSession*x, 0) }
	line := series{name: "fitted", class: "c1", x: []float64{0, last}, y: []float64{at(0), at(last)}}
	c.lines = []series{line, steps}
	c.x, c.y = linear(0, last, 8, count), memoryScale(highest(c.lines)*1.05)
	return c
}

func stormTable(n *bench.ReconnectStorm) table {
	t := table{
		Title: "Reconnect storm",
		Note: fmt.Sprintf("%s clients lost their connections and opened a session anew at once, %d times: "+
			"all were back within %s; %s of %s attempts failed, %d clients never came back. Meanwhile others made %s calls:",
			count(float64(n.Clients)), n.Waves, seconds(n.AllBackS), count(float64(n.Failures)), count(float64(n.Attempts)),
			n.NeverBack, perSecond(n.SteadyRPS)),
		Head: []string{"calls of others", "calls", "failed", "p50", "p99", "max"}, Bad: map[int]bool{},
	}
	for i, row := range []struct {
		when string
		c    *bench.SteadyCalls
	}{{"before", &n.Before}, {"during", &n.During}, {"after", &n.After}} {
		p99 := "too few samples"
		if row.c.P99US != nil {
			p99 = micros(float64(*row.c.P99US))
		}
		t.Bad[i] = row.c.Failed > 0
		t.Rows = append(t.Rows, []string{row.when, count(float64(row.c.Calls)), count(float64(row.c.Failed)),
			micros(float64(row.c.P50US)), p99, micros(float64(row.c.MaxUS))})
	}
	return t
}

func shareText(share *float64) string {
	if share == nil {
		return "not known"
	}
	return digits(100**share) + " %"
}

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
	bars := series{name: "pairs", class: "c1", steps: true}
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
