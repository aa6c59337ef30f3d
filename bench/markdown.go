package bench

import (
	"fmt"
	"io"
	"strings"
)

// markdown builds a summary in the dialect of GitHub and GitLab.
type markdown struct{ b strings.Builder }

// WriteMarkdown writes a summary that fits a comment on a pull request: the verdict, the conditions, a table of response
// times by tool, the errors and the thresholds.
func (r *Result) WriteMarkdown(w io.Writer) error {
	m := &markdown{}
	m.head(r)
	m.table([]string{"response time", "calls", "p50", "p90", "p95", "p99", "p99.9", "max", "95 % interval of p99"}, r.latencyCells())
	m.outcomes(r)
	m.thresholds(r)
	_, err := io.WriteString(w, m.b.String())
	return err
}

func (m *markdown) head(r *Result) {
	c, v := &r.Conditions, &r.Verdict
	word := "✅ VALID"
	switch {
	case !v.Valid:
		word = "❌ INVALID"
	case r.crossed() > 0:
		word = fmt.Sprintf("❌ %d of %s crossed", r.crossed(), plural(int64(len(r.Thresholds)), "threshold"))
	}
	fmt.Fprintf(&m.b, "### mcp-load: %s\n\n", word)
	for _, reason := range v.Reasons {
		fmt.Fprintf(&m.b, "- %s\n", cell(reason))
	}
	if r.Interrupted {
		m.b.WriteString("- interrupted: what was measured until then\n")
	}
	if r.Ended != "" {
		fmt.Fprintf(&m.b, "- ended early: %s\n", cell(r.Ended))
	}
	if len(v.Reasons) > 0 || r.Interrupted || r.Ended != "" {
		m.b.WriteByte('\n')
	}
	rate := fmt.Sprintf("**%s/s** completed", rateText(v.CompletedRPS))
	if c.Loop == "open" {
		rate = fmt.Sprintf("**%s/s** delivered of %s/s asked, %s/s completed", rateText(v.DeliveredRPS), rateText(v.AskedRPS), rateText(v.CompletedRPS))
	}
	fmt.Fprintf(&m.b, "%s · **%s** · %s\n\n", rate, plural(r.Requests.Total, "call"), r.errorText())
	fmt.Fprintf(&m.b, "`%s` over %s, protocol %s, %s; %s for %s, warm-up %s, seed %d; generator: schedule lag p99 %s, CPU %.0f %%\n\n",
		strings.ReplaceAll(clip([]byte(c.Target)), "`", "'"), c.Transport, cell(c.Protocol), plural(int64(c.Sessions), "session"),
		c.LoadText(), secondsText(c.DurationS), secondsText(c.WarmupS), c.Seed, microsText(float64(v.LagP99US)), 100*v.GeneratorCPU)
}

func (r *Result) errorText() string {
	n := r.Requests.Total - r.Requests.OK
	if n == 0 {
		return "no errors"
	}
	return fmt.Sprintf("**%s** (%.3g %%)", plural(n, "error"), 100*float64(n)/float64(r.Requests.Total))
}

// crossed counts the thresholds that were.
func (r *Result) crossed() int {
	n := 0
	for i := range r.Thresholds {
		if !r.Thresholds[i].OK {
			n++
		}
	}
	return n
}

func (r *Result) latencyCells() [][]string {
	var out [][]string
	rows := r.Latency
	if len(rows) == 2 {
		rows = rows[:1] // the row of all says the same
	}
	for i := range rows {
		d := rows[i].Response
		if d == nil || d.Count == 0 {
			out = append(out, []string{rowName(&rows[i]), "0"})
			continue
		}
		tail, interval := "-", "too few samples"
		if d.P999US != nil {
			tail = microsText(float64(*d.P999US))
		}
		if ci := d.P99CI95US; ci != nil {
			interval = microsText(float64(ci[0])) + " to " + microsText(float64(ci[1]))
		}
		out = append(out, []string{
			rowName(&rows[i]), thousands(d.Count), microsText(float64(d.P50US)), microsText(float64(d.P90US)),
			microsText(float64(d.P95US)), microsText(float64(d.P99US)), tail, microsText(float64(d.MaxUS)), interval,
		})
	}
	return out
}

// outcomes lists what was no success.
func (m *markdown) outcomes(r *Result) {
	q := &r.Requests
	var rows [][]string
	for _, o := range []struct {
		what, name string
		n          int64
	}{
		{"tool errors", "tool_error", q.ToolError}, {"RPC errors", "rpc_error", q.RPCError}, {"HTTP errors", "http_error", q.HTTPError},
		{"transport errors", "transport_error", q.TransportError}, {"timed out", "timeout", q.Timeout},
		{"cancelled", "cancelled", q.Cancelled}, {"dropped (never begun)", "", q.Dropped},
	} {
		if o.n > 0 {
			rows = append(rows, []string{o.what, thousands(o.n), q.Examples[o.name]})
		}
	}
	if s := &r.Sessions; s.Failed > 0 {
		rows = append(rows, []string{"sessions that could not be opened", thousands(s.Failed)})
	}
	if s := &r.Sessions; s.Lost > 0 {
		rows = append(rows, []string{"sessions lost", thousands(s.Lost)})
	}
	if len(rows) > 0 {
		m.table([]string{"what went wrong", "times", "first"}, rows)
	}
}

func (m *markdown) thresholds(r *Result) {
	var rows [][]string
	for i := range r.Thresholds {
		t := &r.Thresholds[i]
		word := "✅"
		if !t.OK {
			word = "❌ crossed"
		}
		rows = append(rows, []string{t.Expr, t.valueText(), word})
	}
	if len(rows) > 0 {
		m.table([]string{"threshold", "came out", ""}, rows)
	}
}

// table writes a table; rows that are short are filled up.
func (m *markdown) table(head []string, rows [][]string) {
	write := func(cells []string) {
		for i := range head {
			text := ""
			if i < len(cells) {
				text = cell(cells[i])
			}
			m.b.WriteString("| " + text + " ")
		}
		m.b.WriteString("|\n")
	}
	write(head)
	rule := "|---"
	for i := 1; i < len(head); i++ {
		rule += "|---"
	}
	m.b.WriteString(rule + "|\n")
	for _, row := range rows {
		write(row)
	}
	m.b.WriteByte('\n')
}

// cell makes text safe for a cell: what a server has named must not change the table or bring tags along.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "\n", " ", "\r", " ", "`", "'", "*", `\*`, "_", `\_`, "[", `\[`).Replace(s)
}
