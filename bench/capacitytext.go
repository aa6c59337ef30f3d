package bench

import (
	"fmt"
	"io"
	"strings"
)

// CapacityText writes a search for people while it goes on: the conditions, a line for every step, and the answer. Lines
// fit into 80 columns where the names in them are short.
type CapacityText struct {
	w       io.Writer
	summary summary
	find    Find
	err     error
}

// NewCapacityText writes to w. color adds ANSI colours.
func NewCapacityText(w io.Writer, color bool) *CapacityText {
	return &CapacityText{w: w, summary: summary{color: color}}
}

// flush writes what has been put together. The first error is kept for Answer.
func (t *CapacityText) flush() {
	if _, err := io.WriteString(t.w, t.summary.b.String()); err != nil && t.err == nil {
		t.err = err
	}
	t.summary.b.Reset()
}

// Conditions writes what the answer must not be quoted without. It is made for CapacityConfig.OnStart.
func (t *CapacityText) Conditions(c *CapacityConfig, at Conditions, single *Dist) {
	s := &t.summary
	t.find = c.Find
	fmt.Fprintf(&s.b, "%s\n\n", s.paint("1", strings.TrimSpace("mcp-load "+c.Version)+", Model Context Protocol capacity"))
	s.line("target", "%s", clip([]byte(at.Target)))
	if at.Server != "" {
		s.line("server", "%s, %s, protocol %s", clip([]byte(at.Server)), at.Transport, at.Protocol)
	}
	s.line("calls", "tools/call %s, timeout %s", clip([]byte(strings.Join(at.Tools, ", "))), secondsText(at.TimeoutS))
	arrivals := c.Arrivals
	setDefault(&arrivals, Constant)
	switch think := c.ThinkTime; {
	case c.Levels != nil && think.Mean > 0:
		s.line("sweep", "users, closed loop, %s, every level twice", think.describe())
	case c.Levels != nil:
		s.line("sweep", "callers, closed loop, every level twice")
	case t.find == FindUsers && think.Mean > 0:
		s.line("looking for", "users, closed loop, %s", think.describe())
	case t.find == FindUsers:
		s.line("looking for", "users, closed loop, no think time")
	case t.find == FindSessions:
		s.line("looking for", "sessions, open loop, %s/s in all, %s arrivals", levelText(c.Rate), arrivals)
	default:
		s.line("looking for", "rate, open loop, %s arrivals", arrivals)
	}
	s.line("objectives", "%s", joinAnd(c.Thresholds))
	s.line("host", "%s, %s, %s, seed %d", plural(int64(at.Host.CPUs), "CPU"), at.Host.OS, at.Host.Go, at.Seed)
	s.line("single caller", "p50 %s, p99 %s", microsText(float64(single.P50US)), microsText(float64(single.P99US)))
	s.b.WriteByte('\n')
	t.flush()
}

// Step writes the line of a step. It is made for CapacityConfig.OnStep.
func (t *CapacityText) Step(step CapacityStep) {
	s := &t.summary
	level := levelText(step.RateRPS) + "/s"
	switch {
	case step.Phase == "sweep":
		level = fmt.Sprintf("%5d %9s", step.Users, level)
	case t.find == FindUsers:
		level = fmt.Sprintf("%d users", step.Users)
	case t.find == FindSessions:
		level = fmt.Sprintf("%d sess.", step.Sessions)
	}
	word := s.paint("32", "ok  ")
	if !step.OK {
		word = s.paint("31", "FAIL")
	}
	fmt.Fprintf(&s.b, "  %-8s %12s %6.1f s  %s  %s\n", step.Phase, level, step.HoldS, word, step.Why)
	t.flush()
}

// Answer writes what the search has found.
func (t *CapacityText) Answer(r *Result) error {
	s, c := &t.summary, r.Capacity
	s.b.WriteByte('\n')
	if u := c.USL; u != nil {
		t.curve(u)
	}
	for i, rung := range c.Ladder {
		label := ""
		if i == 0 {
			label = "ladder"
		}
		switch {
		case rung.Level == 0:
			s.line(label, "%-12s not even the lowest level", rung.Objective)
		case rung.Highest:
			s.line(label, "%-12s at least %d callers, %s/s", rung.Objective, rung.Level, levelText(rung.RateRPS))
		default:
			s.line(label, "%-12s %d callers, %s/s", rung.Objective, rung.Level, levelText(rung.RateRPS))
		}
	}
	if v := r.Server; v != nil {
		s.line("server", "CPU %.2f s, memory %s at most, during the step that shows the answer", v.CPUSeconds, bytesText(v.RSSPeakBytes))
	}
	if c.TimedOut {
		s.line("time", "was over before the search was; --max-time gives it more")
	}
	if c.USL == nil && !c.Confirmed && len(c.Ladder) == 0 && c.RateRPS > 0 {
		s.line("warning", "the answer was not confirmed")
	}
	if r.Interrupted {
		s.line("warning", "interrupted: what was found until then")
	}
	s.line("answer", "%s", s.paint("1", c.Answer))
	t.flush()
	return t.err
}

// curve writes the coefficients of the scalability law.
func (t *CapacityText) curve(u *USL) {
	s := &t.summary
	ci := func(i [2]float64) string { return fmt.Sprintf("(%.3g to %.3g)", i[0], i[1]) }
	s.line("curve", "X(N) = λN / (1 + σ(N-1) + κN(N-1)), 95 %% intervals")
	s.line("λ", "%.4g/s %s: a single caller", u.Lambda, ci(u.LambdaCI95))
	s.line("σ", "%.3g %s: contention", u.Sigma, ci(u.SigmaCI95))
	s.line("κ", "%.3g %s: coherency", u.Kappa, ci(u.KappaCI95))
	if u.NMax != nil {
		high := "no upper end"
		if u.NMaxCI95[1] != nil {
			high = fmt.Sprintf("%.3g", *u.NMaxCI95[1])
		}
		beyond := ""
		if u.Extrapolated {
			beyond = ", beyond the levels tried"
		}
		s.line("N max", "%.1f callers (%.3g to %s)%s", *u.NMax, *u.NMaxCI95[0], high, beyond)
	}
	for _, w := range u.Warnings {
		s.line("warning", "%s", w)
	}
}
