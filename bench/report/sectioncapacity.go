package report

import (
	"fmt"
	"regexp"
	"time"

	"github.com/mcpengine/mcpengine/bench"
)

// capacitySection shows what a search or a sweep has found.
func capacitySection(c *bench.Capacity) section {
	s := section{Title: "Capacity", Text: c.Answer, Details: "The step that shows the answer"}
	if swept(c) {
		s.add(scalability(c), stepLatency(c))
		s.Tables = append(s.Tables, coefficients(c.USL), ladder(c.Ladder))
	} else {
		s.add(stepLatency(c), searchPath(c))
	}
	s.Tables = append(s.Tables, stepTable(c))
	if c.USL != nil && len(c.USL.Warnings) > 0 {
		s.Lists = append(s.Lists, list{"Warnings", c.USL.Warnings})
	}
	return s
}

// swept tells a sweep, which has a ladder, from a search.
func swept(c *bench.Capacity) bool { return len(c.Ladder) > 0 }

// level gives what a step has held, in what the search has counted.
func level(c *bench.Capacity, s *bench.CapacityStep) float64 {
	switch c.Find {
	case bench.FindUsers:
		return float64(s.Users)
	case bench.FindSessions:
		return float64(s.Sessions)
	}
	return s.RateRPS
}

// found gives the level that is the answer; 0 where there is none.
func found(c *bench.Capacity) float64 {
	return level(c, &bench.CapacityStep{RateRPS: c.RateRPS, Users: c.Users, Sessions: c.Sessions})
}

// levelName says what a level is, and levelText writes one.
func levelName(c *bench.Capacity) string {
	switch {
	case swept(c) && c.ThinkS == 0:
		return "callers"
	case c.Find == bench.FindUsers:
		return "users"
	case c.Find == bench.FindSessions:
		return "sessions"
	}
	return "offered rate"
}

func levelText(c *bench.Capacity) func(float64) string {
	if c.Find == bench.FindRate {
		return perSecond
	}
	return count
}

// split makes two series of the steps: those that met the objectives, and the others. Steps without a value are left out.
func split(c *bench.Capacity, x, y func(i int, s *bench.CapacityStep) float64) []series {
	ok := series{name: "met the objectives", class: "c4", shape: dots}
	failed := series{name: "did not", class: "c3", shape: crosses}
	for i := range c.Steps {
		step := &c.Steps[i]
		to := &failed
		if step.OK {
			to = &ok
		}
		if v := y(i, step); v > 0 {
			to.x, to.y = append(to.x, x(i, step)), append(to.y, v)
		}
	}
	return []series{ok, failed}
}

// furthest gives the largest x of all lines.
func furthest(lines []series) float64 {
	v := 0.0
	for _, l := range lines {
		for _, x := range l.x {
			v = max(v, x)
		}
	}
	return v
}

// stepLatency sets the p99 of the steps against their levels, with the answer and the objective.
func stepLatency(c *bench.Capacity) *chart {
	out := &chart{
		title: "p99 response time by " + levelName(c), note: "One mark for each step that was held.", xName: levelName(c),
		lines: split(c,
			func(_ int, s *bench.CapacityStep) float64 { return level(c, s) },
			func(_ int, s *bench.CapacityStep) float64 { return float64(s.P99US) }),
	}
	high := highest(out.lines)
	if limit := objectiveP99(c.Objectives); limit > 0 {
		out.marks = append(out.marks, mark{value: limit, text: "objective " + micros(limit)})
		high = max(high, 1.1*limit)
	}
	if v := found(c); v > 0 {
		out.marks = append(out.marks, mark{value: v, text: levelText(c)(v), upright: true})
	}
	out.x = levelScale(c, furthest(out.lines))
	if out.y = linear(0, high, 5, micros); high > 10*lowest(out.lines) {
		out.y = logarithmic(lowest(out.lines), high, micros) // what failed lies far above
	}
	return out
}

// levelScale covers the levels, with little room beyond the last one.
func levelScale(c *bench.Capacity, high float64) *scale {
	s := linear(0, high*1.03, 8, levelText(c))
	s.high = max(high*1.03, 1)
	for len(s.ticks) > 0 && s.ticks[len(s.ticks)-1] > s.high {
		s.ticks = s.ticks[:len(s.ticks)-1]
	}
	return s
}

// searchPath shows how the search went, step after step.
func searchPath(c *bench.Capacity) *chart {
	out := &chart{
		title: "The search, step after step", note: "The level doubles until one fails; then the distance is halved, and the answer is held once more.",
		xName: "step",
		lines: split(c,
			func(i int, _ *bench.CapacityStep) float64 { return float64(i + 1) },
			func(_ int, s *bench.CapacityStep) float64 { return level(c, s) }),
	}
	if v := found(c); v > 0 {
		out.marks = append(out.marks, mark{value: v, text: levelText(c)(v), atLeft: true})
	}
	out.x = levelScale(&bench.Capacity{Find: bench.FindUsers}, float64(len(c.Steps)))
	out.y = linear(0, 1.05*highest(out.lines), 5, levelText(c))
	return out
}

var p99Form = regexp.MustCompile(`^p\(99(?:\.0*)?\)\s*<=?\s*(\S+)$`)

// objectiveP99 finds the limit for the p99 of all calls among the objectives, in microseconds; 0 where there is none.
func objectiveP99(objectives []string) float64 {
	for _, o := range objectives {
		if m := p99Form.FindStringSubmatch(o); m != nil {
			if d, err := time.ParseDuration(m[1]); err == nil {
				return float64(d) / float64(time.Microsecond)
			}
		}
	}
	return 0
}

// stepTable lists the steps in their order.
func stepTable(c *bench.Capacity) table {
	t := table{Title: "Steps", Head: []string{"phase", levelName(c), "answered", "errors", "p50", "p99", "held", "objectives", "why"}, Words: []int{7, 8}, Bad: map[int]bool{}}
	for i := range c.Steps {
		s := &c.Steps[i]
		word := "met"
		if !s.OK {
			word, t.Bad[i] = "not met", true
		}
		t.Rows = append(t.Rows, []string{
			s.Phase, levelText(c)(level(c, s)), perSecond(s.CompletedRPS), digits(100*s.Errors) + " %", micros(float64(s.P50US)),
			micros(float64(s.P99US)), digits(s.HoldS) + " s", word, s.Why,
		})
	}
	return t
}

// ladder lists how far a sweep goes with each of several objectives.
func ladder(rungs []bench.Rung) table {
	t := table{Title: "Objectives ladder", Note: "The highest level of which both visits meet the objective.", Head: []string{"objective", "highest level", "answered"}}
	for _, r := range rungs {
		row := []string{r.Objective, fmt.Sprintf("%d", r.Level), perSecond(r.RateRPS)}
		switch {
		case r.Level == 0:
			row = []string{r.Objective, "not even the lowest", ""}
		case r.Highest:
			row[1] = fmt.Sprintf("at least %d", r.Level)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
