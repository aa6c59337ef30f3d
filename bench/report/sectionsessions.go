package report

import (
	"fmt"

	"github.com/mcpengine/mcpengine/bench"
)

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
	steps := series{name: "measured", class: "c4", shape: dots}
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
