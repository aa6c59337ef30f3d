package selfcheck

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcpengine/mcpengine/bench"
)

// WriteTable writes the report for people, at most 80 columns wide.
func (r *Report) WriteTable(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "mcp-load selftest (%s), version %s, %s %s, %d CPUs\n\n", r.Form, r.Version, r.Host.Go, r.Host.OS, r.Host.CPUs)
	r.Noise.write(b)
	if r.Rates != nil {
		r.Rates.write(b)
	}
	if len(r.Checks) > 0 {
		fmt.Fprintf(b, "%-50s %-15s %s\n", "oracle", "expected", "measured")
	}
	why := ""
	for i := range r.Checks {
		c := &r.Checks[i]
		fmt.Fprintf(b, "%-4s %2d  %-41s %-15s %s\n", c.Outcome, c.Oracle, c.What, c.expectedText(), c.measuredText())
		if c.Outcome == Busy && c.Why != why {
			why = c.Why // of the same oracle it is mostly the same
			writeWrapped(b, why)
		}
	}
	fmt.Fprintf(b, "\n%d passed, %d failed, %d not to be told on a machine this busy, in %.0f s\n", r.Passed, r.Failed, r.TooBusy, r.TookS)
	return b.Flush()
}

func (n *Noise) write(b *bufio.Writer) {
	fmt.Fprintf(b, "%-50s %9s %9s %9s\n", "noise floor", "p50", "p99", "max")
	row := func(what string, p50, p99, most int64) {
		fmt.Fprintf(b, "  %-48s %9s %9s %9s\n", what, ofUS(p50), ofUS(p99), ofUS(most))
	}
	for _, d := range []struct {
		what string
		dist *bench.Dist
	}{{"a timer of 2 ms is late by", n.Timer}, {"schedule lag at 200/s", n.Lag}} {
		if d.dist != nil {
			row(d.what, d.dist.P50US, d.dist.P99US, d.dist.MaxUS)
		}
	}
	row("response time beyond the 5 ms of the peer", n.Response.P50US, n.Response.P99US, n.Response.MaxUS)
	fmt.Fprintln(b)
}

func (r *Rates) write(b *bufio.Writer) {
	fmt.Fprintf(b, "%-50s %9s %19s\n", "highest VALID rate", "calls/s", "CPU per call")
	row := func(what string, rate, cpu float64) {
		if rate == 0 {
			fmt.Fprintf(b, "  %-48s %9s\n", what, "none")
			return
		}
		fmt.Fprintf(b, "  %-48s %9.0f %19s\n", what, rate, short(ofMicros(cpu)))
	}
	name := "closed loop"
	if r.ClosedRPS > 0 {
		name = fmt.Sprintf("closed loop, %d in flight", r.ClosedConcurrency)
	}
	row(name, r.ClosedRPS, r.ClosedCPUUS)
	row("open loop, a trial of two at least", r.OpenRPS, r.OpenCPUUS)
	fmt.Fprintln(b)
}

// writeWrapped writes text in lines of at most 80 columns.
func writeWrapped(b *bufio.Writer, text string) {
	const indent = "         "
	column := 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
			column = len(indent) + n
			b.WriteString(indent + word)
		case column+1+n > 80:
			column = len(indent) + n
			b.WriteString("\n" + indent + word)
		default:
			column += 1 + n
			b.WriteString(" " + word)
		}
	}
	b.WriteString("\n")
}

func ofUS(us int64) string { return short(time.Duration(us) * time.Microsecond) }
