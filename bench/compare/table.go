package compare

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteTable writes the report for people: a line for each tool and metric, the warnings, and the verdict.
func (r *Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\tmetric\tbase\tnew\tchange\t%.3g %% interval\tp\tverdict\n", 100*(1-r.Level))
	protocols := map[string]bool{}
	for i := range r.Rows {
		protocols[r.Rows[i].Protocol] = true
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		name := "all calls"
		if row.Method != "*" {
			name = row.Method + " " + printable(row.Tool)
		}
		if len(protocols) > 1 {
			name += " (" + row.Protocol + ")"
		}
		if row.Verdict == NoSamples {
			fmt.Fprintf(t, "%s\t%s\t\t\t\t\t\t%s\n", name, row.Metric, row.Verdict)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s to %s\t%.2g\t%s\n", name, row.Metric, row.value(row.Base), row.value(row.New),
			row.percent(row.Change), row.percent(row.Low), row.percent(row.High), row.P, row.Verdict)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteByte('\n')
	for _, text := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", text)
	}
	b.WriteString(r.conclusion() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// conclusion is the verdict over all rows.
func (r *Report) conclusion() string {
	counts := map[Verdict]int{}
	for i := range r.Rows {
		counts[r.Rows[i].Verdict]++
	}
	switch {
	case counts[Regression] > 0:
		return fmt.Sprintf("REGRESSION in %d of %d comparisons", counts[Regression], len(r.Rows))
	case counts[Unclear]+counts[NoSamples] > 0:
		return fmt.Sprintf("no regression seen, but %d of %d comparisons are too uncertain to see one: run longer, or more often",
			counts[Unclear]+counts[NoSamples], len(r.Rows))
	}
	return "no regression"
}

// value writes a value in the unit of the metric.
func (r *Row) value(v float64) string {
	switch r.Metric {
	case "errors":
		return fmt.Sprintf("%.3g %%", 100*v)
	case "rate":
		return fmt.Sprintf("%.4g/s", v)
	}
	d := time.Duration(v * float64(time.Microsecond))
	digits := time.Duration(1)
	for d/digits >= 1000 {
		digits *= 10
	}
	return d.Round(digits).String()
}

// percent writes a change; that of errors is a difference in points.
func (r *Row) percent(v float64) string {
	switch {
	case math.IsNaN(v):
		return "?"
	case r.Metric == "errors":
		return fmt.Sprintf("%+.2f pt", 100*v)
	case v > 10:
		return fmt.Sprintf("×%.3g", 1+v)
	}
	return fmt.Sprintf("%+.1f %%", 100*v)
}

// printable keeps control characters of a tool's name, which a server has chosen, off the terminal.
func printable(s string) string { return strings.Trim(fmt.Sprintf("%+q", s), `"`) }
