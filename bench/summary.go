package bench

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// summary builds the text that people read. Every line begins with a label in a column of its own.
type summary struct {
	b     strings.Builder
	color bool
}

const labelWidth = 14

// WriteSummary writes about 30 lines for people, the conditions first. color adds ANSI colours to the verdict and the
// headings.
func (r *Result) WriteSummary(w io.Writer, color bool) error {
	s := &summary{color: color}
	s.conditions(r)
	s.verdict(r)
	s.sessions(r)
	s.requests(r)
	s.flows(r)
	s.table("Response time", "from the intended start", r, func(l *Latency) *Dist { return l.Response })
	s.table("Service time", "from send", r, func(l *Latency) *Dist { return l.Service })
	s.rest(r)
	_, err := io.WriteString(w, s.b.String())
	return err
}

// line writes a label and its text; an empty label continues the line above.
func (s *summary) line(label, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(&s.b, "  %s %s\n", s.paint("2", pad(label, labelWidth)), text)
}

// paint wraps text into an ANSI attribute.
func (s *summary) paint(code, text string) string {
	if !s.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s *summary) conditions(r *Result) {
	c := &r.Conditions
	fmt.Fprintf(&s.b, "%s\n\n", s.paint("1", strings.TrimSpace("mcp-load "+r.Version)+", Model Context Protocol load test"))
	server := ""
	if c.Server != "" {
		server = "  (" + clip([]byte(c.Server)) + ")"
	}
	s.line("target", "%s%s", clip([]byte(c.Target)), server)
	transport := c.Transport
	if c.HTTP2 {
		transport = "HTTP/2"
	}
	s.line("transport", "%s, protocol %s, %s", transport, c.Protocol, plural(int64(c.Sessions), "session"))
	s.line("load", "%s for %s, warm-up %s, timeout %s, seed %d", c.LoadText(), secondsText(c.DurationS), secondsText(c.WarmupS), secondsText(c.TimeoutS), c.Seed)
	calls := "tools/call " + clip([]byte(strings.Join(c.Tools, ", ")))
	if len(r.Flows) > 0 {
		calls = strings.TrimSpace("the flows of "+clip([]byte(c.Scenario))) + ": rates are flows a second"
	}
	s.line("calls", "%s", calls)
	where := ""
	if c.InProcess {
		where = "; generator and server share one process"
	}
	s.line("host", "%s, %s, %s%s", plural(int64(c.Host.CPUs), "CPU"), c.Host.OS, c.Host.Go, where)
}

// LoadText describes the loop in words: open or closed, with its rate and arrivals, its stages, or its users.
func (c *Conditions) LoadText() string {
	if c.Users > 0 {
		think, _ := ParseThink(c.ThinkTime) // written by String
		return fmt.Sprintf("closed loop, %s, %s", plural(int64(c.Users), "user"), think.describe())
	}
	if c.Loop == "closed" {
		return fmt.Sprintf("closed loop, %d in flight", c.Concurrency)
	}
	limit := ""
	if c.MaxInFlight > 0 {
		limit = fmt.Sprintf(", at most %d in flight (%s)", c.MaxInFlight, c.Overflow)
	}
	if len(c.Stages) > 0 {
		return fmt.Sprintf("open loop, %s, peak %s/s %s%s", c.stagesText(), rateText(c.RateRPS), c.Arrivals, limit)
	}
	return fmt.Sprintf("open loop, %s/s %s%s", rateText(c.RateRPS), c.Arrivals, limit)
}

func (s *summary) verdict(r *Result) {
	v := &r.Verdict
	word := s.paint("1;32", "VALID")
	if !v.Valid {
		word = s.paint("1;31", "INVALID")
	}
	if r.Interrupted {
		word += " (interrupted: what was measured until then)"
	}
	s.b.WriteByte('\n')
	s.line("verdict", "%s", word)
	for _, reason := range v.Reasons {
		s.line("", "%s", reason)
	}
	if r.Ended != "" {
		s.line("ended early", "%s", r.Ended)
	}
	if r.Conditions.Loop == "open" {
		share := 0.0
		if begun := r.begun(); begun+r.Requests.Dropped > 0 {
			share = 100 * float64(begun) / float64(begun+r.Requests.Dropped)
		}
		s.line("rate", "asked %s, delivered %s (%.1f %% of the schedule), completed %s",
			r.starts(v.AskedRPS), r.starts(v.DeliveredRPS), share, r.callRate(v.CompletedRPS))
		s.line("generator", "schedule lag p99 %s, CPU %.0f %%", microsText(float64(v.LagP99US)), 100*v.GeneratorCPU)
		return
	}
	s.line("rate", "delivered %s, completed %s", r.starts(v.DeliveredRPS), r.callRate(v.CompletedRPS))
	lag := ""
	if r.Conditions.Users > 0 {
		lag = "lag of due calls p99 " + microsText(float64(v.LagP99US)) + ", "
	}
	s.line("generator", "%sCPU %.0f %%", lag, 100*v.GeneratorCPU)
}

func (s *summary) sessions(r *Result) {
	n := &r.Sessions
	setup := ""
	if n.Setup != nil && n.Setup.Count > 0 {
		setup = fmt.Sprintf("; set-up p50 %s, p99 %s", microsText(float64(n.Setup.P50US)), microsText(float64(n.Setup.P99US)))
	}
	s.b.WriteByte('\n')
	s.line("sessions", "%s opened, %s failed, %s lost, %s closed%s",
		thousands(n.Opened), thousands(n.Failed), thousands(n.Lost), thousands(n.Closed), setup)
	if r.Conditions.Protocol == Stateless {
		s.line("", "stateless: each is one server/discover, and the server keeps nothing of it")
	}
	s.streams(&r.Streams)
	if q := r.ServerRequests; q != nil {
		s.line("it asked for", "%s sampling, %s elicitation, %s roots, %s ping; %s refused, %s answers failed", thousands(q.Sampling),
			thousands(q.Elicitation), thousands(q.Roots), thousands(q.Ping), thousands(q.Refused), thousands(q.Failed))
	}
}

// streams tells what came without being asked for.
func (s *summary) streams(n *Streams) {
	if n.OpenPeak+n.Events+n.Failed == 0 {
		return
	}
	s.line("streams", "%s: %s lost, %s duplicated; GET streams: %s open at once, %s not opened, %s broken", plural(n.Events, "event"),
		thousands(n.Lost), thousands(n.Duplicated), thousands(n.OpenPeak), thousands(n.Failed), thousands(n.Broken))
	for _, d := range []struct {
		what string
		dist *Dist
	}{{"between two events of a stream", n.Gap}, {plural(n.Changes, "change") + ", first to last subscriber", n.Spread}} {
		if d.dist != nil {
			s.line("", "%s: p50 %s, p99 %s, max %s", d.what,
				microsText(float64(d.dist.P50US)), microsText(float64(d.dist.P99US)), microsText(float64(d.dist.MaxUS)))
		}
	}
}

func (s *summary) requests(r *Result) {
	q := &r.Requests
	s.line("requests", "%s: %s ok, %s tool errors, %s RPC errors, %s HTTP errors, %s transport errors,",
		thousands(q.Total), thousands(q.OK), thousands(q.ToolError), thousands(q.RPCError), thousands(q.HTTPError), thousands(q.TransportError))
	s.line("", "%s timed out, %s cancelled; %s dropped (never begun)", thousands(q.Timeout), thousands(q.Cancelled), thousands(q.Dropped))
	for _, codes := range []struct {
		what string
		n    map[string]int64
	}{{"RPC codes", q.RPCCodes}, {"HTTP codes", q.HTTPCodes}} {
		if len(codes.n) > 0 {
			s.line(codes.what, "%s", countsText(codes.n))
		}
	}
	for _, o := range slices.Sorted(maps.Keys(q.Examples)) {
		s.line("first "+shortOutcome(o), "%s", q.Examples[o])
	}
}

// shortOutcome fits the name of an outcome into the label column.
func shortOutcome(o string) string {
	return strings.TrimSuffix(strings.TrimPrefix(o, "transport_"), "_error")
}

// countsText lists codes, the most frequent first.
func countsText(n map[string]int64) string {
	codes := slices.SortedFunc(maps.Keys(n), func(a, b string) int {
		return cmp.Or(cmp.Compare(n[b], n[a]), cmp.Compare(a, b))
	})
	var out []string
	for i, code := range codes {
		if i == 8 {
			out = append(out, "and others")
			break
		}
		out = append(out, code+": "+thousands(n[code]))
	}
	return strings.Join(out, ", ")
}

// table writes one row for each tool, and one for all where there are several.
func (s *summary) table(title, from string, r *Result, get func(*Latency) *Dist) {
	rows := r.Latency
	if len(rows) == 2 {
		rows = rows[:1] // the row of all says the same
	}
	width := 29 // room for the heading
	for i := range rows {
		width = max(width, min(utf8.RuneCountInString(rowName(&rows[i])), 40))
	}
	fmt.Fprintf(&s.b, "\n  %s %8s %8s %8s %8s %8s %8s   %s\n", s.paint("1", pad(title+", "+from, width+10)),
		"p50", "p90", "p95", "p99", "p99.9", "max", "95 % interval of p99")
	for i := range rows {
		d := get(&rows[i])
		if d == nil && rows[i].Method != "*" {
			continue // a notification has no service time
		}
		if d == nil || d.Count == 0 {
			fmt.Fprintf(&s.b, "  %s %9s\n", pad(rowName(&rows[i]), width), "no success")
			continue
		}
		tail, interval := "-", "too few samples"
		if d.P999US != nil {
			tail = microsText(float64(*d.P999US))
		}
		if d.Count >= intervalBlocks*blockNeeds {
			interval = "not known, run longer"
		}
		if ci := d.P99CI95US; ci != nil {
			interval = microsText(float64(ci[0])) + " to " + microsText(float64(ci[1]))
		}
		fmt.Fprintf(&s.b, "  %s %9s %s %s %s %s %s %s   %s\n", pad(rowName(&rows[i]), width), thousands(d.Count),
			right(microsText(float64(d.P50US))), right(microsText(float64(d.P90US))), right(microsText(float64(d.P95US))),
			right(microsText(float64(d.P99US))), right(tail), right(microsText(float64(d.MaxUS))), interval)
	}
}

func rowName(l *Latency) string {
	if l.Method == "*" {
		return "all calls"
	}
	return strings.TrimSpace(l.Method + " " + clip([]byte(l.Tool)))
}

func (s *summary) rest(r *Result) {
	s.b.WriteByte('\n')
	switch v := r.Server; {
	case v == nil:
		s.line("server", "process not known here (--server-pid tells it)")
	default:
		who := fmt.Sprintf("pid %d", v.PID)
		switch {
		case r.Conditions.InProcess:
			who = "this process"
		case v.Processes > 1:
			who = fmt.Sprintf("%d processes", v.Processes)
		}
		s.line("server", "%s: CPU %.2f s, memory %s at the start, %s at the end, %s at most",
			who, v.CPUSeconds, bytesText(v.RSSStartBytes), bytesText(v.RSSEndBytes), bytesText(v.RSSPeakBytes))
		if each := v.RSSProcess; v.Processes > 1 {
			s.line("", "of one process: %s at least, median %s, %s at most", bytesText(each.MinBytes), bytesText(each.MedianBytes), bytesText(each.MaxBytes))
		}
	}
	if l := r.LittlesLaw; l != nil {
		word := "agrees"
		if !l.OK {
			word = s.paint("33", "WARNING: the run was too short or not in a steady state, or its times are wrong")
		}
		of := "in flight predicted"
		if r.Conditions.Users > 0 {
			of = "users predicted (X·(R+Z))"
		}
		s.line("Little's law", "%.2f %s, %.2f observed: %s", l.Predicted, of, l.Observed, word)
	}
	if len(r.Thresholds) == 0 {
		s.line("thresholds", "none set")
	}
	for i, t := range r.Thresholds {
		label, word := "", s.paint("32", "ok")
		if i == 0 {
			label = "thresholds"
		}
		if !t.OK {
			word = s.paint("31", "CROSSED")
		}
		s.line(label, "%s  %s (%s)", t.Expr, word, t.valueText())
	}
}

// valueText writes what came out in a readable unit.
func (t *Threshold) valueText() string {
	if !t.OK && t.Value == 0 {
		return "no call to judge by"
	}
	if strings.Contains(t.Expr, "errors") {
		return fmt.Sprintf("%.3g %%", 100*t.Value)
	}
	return microsText(t.Value)
}

func secondsText(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
}

// pad fills s with blanks up to a width in characters, and shortens what is longer.
func pad(s string, width int) string {
	n := utf8.RuneCountInString(s)
	if n > width {
		return string([]rune(s)[:width-1]) + "…"
	}
	return s + strings.Repeat(" ", width-n)
}

// right aligns a time in a column of the table.
func right(s string) string {
	return strings.Repeat(" ", max(0, 8-utf8.RuneCountInString(s))) + s
}
