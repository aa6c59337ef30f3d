package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// abort ends what is in flight.
func (m *overheadRun) abort() {
	for _, w := range m.ways() {
		w.set.abort()
	}
}

// close ends the sessions of both ways in good order.
func (m *overheadRun) close() {
	m.closing.Do(func() {
		m.unwatch()
		for _, w := range m.ways() {
			w.set.revive()
			w.set.closeAll()
		}
	})
}

// sessions counts those of both ways.
func (m *overheadRun) sessions() Sessions {
	var out Sessions
	setup := newHist()
	for _, w := range m.ways() {
		w.set.mu.Lock()
		setup.Merge(w.set.setup)
		w.set.mu.Unlock()
		out.Opened += w.set.opened.Load()
		out.Failed += w.set.failed.Load()
		out.Lost += w.set.lost.Load()
		out.Closed += w.set.closed.Load()
	}
	out.Setup = distOf(setup, nil)
	return out
}

// judge says whether the comparison can be trusted.
func (m *overheadRun) judge(res *Result) {
	v, o := &res.Verdict, &m.found
	begun := o.Pairs + o.Failed
	seconds := m.cfg.Duration.Seconds()
	v.AskedRPS, v.DeliveredRPS, v.CompletedRPS = m.cfg.Rate, round(float64(begun)/seconds,
		3), round(float64(o.Pairs)/seconds, 3)
	if len(m.lags) > 0 {
		v.LagP99US = int64(between(slices.Sorted(slices.Values(m.lags)), 0.99))
	}
	res.Requests.Total, res.Requests.OK = int64(2*begun), int64(2*o.Pairs)
	for i, w := range m.ways() {
		if err := w.set.failure(); err != nil {
			res.Requests.Examples[[2]string{"direct", "via"}[i]] = err.Error()
		}
	}
	if m.ctx.Err() != nil {
		return // it was ended early, and says so
	}
	if begun < int(deliveredLeast*float64(m.due)) {
		v.Reasons = append(v.Reasons, fmt.Sprintf(
			"only %s of %s pairs were begun in the time: lower --rate, or let more be under way (-c)",
			thousands(int64(begun)), thousands(int64(m.due))))
	}
	if o.Pairs < spreadNeeds {
		v.Reasons = append(v.Reasons, fmt.Sprintf(
			"%s are too few for an interval, at least %d are needed: take longer (-d), or a higher --rate",
			plural(int64(o.Pairs), "pair"), spreadNeeds))
	}
	if o.Failed > begun/10 {
		v.Reasons = append(v.Reasons, fmt.Sprintf("a call failed in %s of %s pairs, so what is compared is not the usual case",
			thousands(int64(o.Failed)), thousands(int64(begun))))
	}
}

// WriteOverhead writes an overhead for people, the conditions first and the answer last.
func (r *Result) WriteOverhead(w io.Writer, color bool) error {
	s, o, c := &summary{color: color}, r.Overhead, &r.Conditions
	fmt.Fprintf(&s.b, "%s\n\n", s.paint("1", strings.TrimSpace("mcp-load "+r.Version)+", Model Context Protocol gateway overhead"))
	if o.Direct != "" {
		s.line("direct", "%s", clip([]byte(o.Direct)))
	}
	s.line("via", "%s  (%s, protocol %s)", clip([]byte(o.Via)), clip([]byte(c.Server)), c.Protocol)
	tool := o.ViaTool
	if o.Tool != "" && o.Tool != o.ViaTool {
		tool = o.Tool + ", by the name of " + o.ViaTool + " through the gateway"
	}
	s.line("calls", "tools/call %s, timeout %s, seed %d", clip([]byte(tool)), secondsText(c.TimeoutS), c.Seed)
	if o.Direct != "" {
		s.line("load", "%s pairs a second for %s after a warm-up of %s, at most %d under way;",
			rateText(o.RateRPS), secondsText(c.DurationS), secondsText(c.WarmupS), c.Concurrency)
		s.line("", "a pair is one call on each way, in a random order")
	}
	s.line("host", "%s, %s, %s", plural(int64(c.Host.CPUs), "CPU"), c.Host.OS, c.Host.Go)
	s.verdictOf(r)
	if len(o.Phases) > 0 {
		s.line("pairs", "%s, %s failed; begun at most %s late (p99)", thousands(int64(o.Pairs)),
			thousands(int64(o.Failed)), microsText(float64(r.Verdict.LagP99US)))
		s.overheadPhases(o)
	}
	if a := o.Amplification; a != nil {
		fmt.Fprintf(&s.b, "\n  %s %10s %11s %9s %11s %11s\n", s.paint("1", pad("upstream, for each", 22)), "sessions",
			"initialize", "discover", "tools/list", "tools/call")
		for _, row := range []struct {
			of string
			n  int64
			u  *Upstream
		}{{"session of a client", a.Sessions, &a.PerSession}, {"tools/call", a.Calls, &a.PerCall}, {"tools/list",
			a.Lists, &a.PerList}} {
			fmt.Fprintf(&s.b, "  %-22s %10.3g %11.3g %9.3g %11.3g %11.3g\n", row.of, row.u.Sessions, row.u.Initialize,
				row.u.Discover, row.u.List, row.u.Call)
		}
	}
	if x := o.Replicas; x != nil {
		s.replicas(x)
	}
	s.b.WriteByte('\n')
	for _, way := range []string{"direct", "via"} {
		if text := r.Requests.Examples[way]; text != "" {
			s.line("first failure", "%s: %s", way, clip([]byte(text)))
		}
	}
	s.line("answer", "%s", s.paint("1", o.Answer))
	_, err := io.WriteString(w, s.b.String())
	return err
}

// verdictOf writes the verdict of a result that is no run.
func (s *summary) verdictOf(r *Result) {
	word := s.paint("1;32", "VALID")
	if !r.Verdict.Valid {
		word = s.paint("1;31", "INVALID")
	}
	if r.Interrupted {
		word += " (interrupted: what was measured until then)"
	}
	s.b.WriteByte('\n')
	s.line("verdict", "%s", word)
	for _, reason := range r.Verdict.Reasons {
		s.line("", "%s", reason)
	}
	if r.Ended != "" {
		s.line("ended early", "%s", r.Ended)
	}
}

func (s *summary) overheadPhases(o *Overhead) {
	fmt.Fprintf(&s.b, "\n  %s %9s %9s %9s %9s   %-34s %s\n", s.paint("1", pad("phase", 8)), "p50", "p99", "p50 via",
		"p99 via",
		"median of the differences (95 %)", "mean (95 %)")
	for i := range o.Phases {
		p := &o.Phases[i]
		fmt.Fprintf(&s.b, "  %-8s %9s %9s %9s %9s   %-34s %s\n", p.Phase, microsText(float64(p.Direct.P50US)),
			microsText(float64(p.Direct.P99US)),
			microsText(float64(p.Via.P50US)), microsText(float64(p.Via.P99US)), p.Median.short(), p.Mean.short())
	}
}

// short writes a difference into a column.
func (d *Difference) short() string {
	if d.CI95 == nil {
		return signedText(d.US)
	}
	return fmt.Sprintf("%s (%s to %s)", signedText(d.US), signedText(d.CI95[0]), signedText(d.CI95[1]))
}

func (s *summary) replicas(o *ReplicaObservation) {
	s.b.WriteByte('\n')
	interval := ""
	if o.LossCI95 != nil {
		interval = fmt.Sprintf(" (95 %%: %.2f to %.2f %%)", 100*o.LossCI95[0], 100*o.LossCI95[1])
	}
	s.line("replicas", "%d; %s of %s requests in %s lost their session: %.2f %%%s", o.Replicas, thousands(o.Lost),
		thousands(o.Requests),
		plural(int64(o.Sessions), "session"), 100*o.Loss, interval)
	s.line("", "%s failed for another reason; routing that does not know sessions would lose %.2f %%",
		thousands(o.Failed), 100*o.LossRandom)
	if o.Survived != nil {
		s.line("survival", "%d of %d sessions work without one replica", o.Survivors, o.AtRisk)
	}
}
