package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mcpengine/mcpengine/bench"
)

// Metrics are the metrics that Options can name. Percentiles and the mean are of the response time of each tool's
// successes; errors is the share of all calls that were no success; rate is successes a second.
var Metrics = []string{"p50", "p90", "p95", "p99", "p999", "mean", "errors", "rate"}

// Options says what is compared and what counts as a regression.
type Options struct {
	// Metrics to compare; none means p50, p99 and errors, and rate as well where the loop is closed.
	Metrics []string
	// MaxChange is the relative change up to which a worse value is tolerated, also when it is significant: 0.05 tolerates
	// 5 %.
	MaxChange float64
	// MaxErrors is the same for the share of errors, as a difference: 0.001 tolerates one more failure in 1,000 calls.
	MaxErrors float64
	// Level is the chance of a false alarm in a comparison of equal servers, over all metrics and tools together; 0 means
	// 0.01.
	Level float64
	// AnyConditions compares results of different conditions, which becomes a warning.
	AnyConditions bool
}

// Verdict is what came out for one metric.
type Verdict string

// The verdicts. Unclear is a comparison that could have missed a change of twice what is tolerated, and of 10 % at
// least: the runs were too short or too noisy.
const (
	Regression  Verdict = "REGRESSION"
	Improvement Verdict = "improvement"
	Same        Verdict = "no change"
	Unclear     Verdict = "unclear"
	NoSamples   Verdict = "too few samples"
)

// Row is the comparison of one metric of one tool.
type Row struct {
	Protocol string
	Method   string // "*" for all calls
	Tool     string
	Metric   string
	Base     float64 // microseconds, calls a second, or a share
	New      float64
	Change   float64 // relative; of errors the difference of the shares
	Low      float64 // ends of the interval of Change, at 1 − Level
	High     float64
	P        float64 // two-sided, corrected for the number of comparisons
	Verdict  Verdict
}

// Report is what a comparison has found.
type Report struct {
	Rows     []Row
	Warnings []string // what the reader should know before believing the rows
	Level    float64
	Runs     [2]int // of the old and the new state
}

// Regressed reports whether anything became worse.
func (r *Report) Regressed() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Verdict == Regression })
}

// Error is a comparison that cannot be made. Its text says what to do.
type Error struct {
	// Invalid is set where a result has called itself invalid.
	Invalid bool
	Text    string
}

// Error gives the text.
func (e *Error) Error() string { return e.Text }

func refuse(format string, args ...any) error { return &Error{Text: fmt.Sprintf(format, args...)} }

// Results holds results of the new state against results of the old one. The error is an *Error.
func Results(base, next []*bench.Result, o Options) (*Report, error) {
	if o.Level == 0 {
		o.Level = 0.01
	}
	for _, m := range o.Metrics {
		if !slices.Contains(Metrics, m) {
			return nil, refuse("unknown metric %q: choose one of %s", m, strings.Join(Metrics, ", "))
		}
	}
	report := &Report{Level: o.Level, Runs: [2]int{len(base), len(next)}}
	byProtocol, err := pair(base, next)
	if err != nil {
		return nil, err
	}
	for _, pr := range byProtocol {
		if err := report.check(pr, o.AnyConditions); err != nil {
			return nil, err
		}
		if err := report.add(pr, o); err != nil {
			return nil, err
		}
	}
	if min(len(base), len(next)) < 3*len(byProtocol) {
		report.Warnings = append(report.Warnings, "fewer than 3 runs a side: how much runs differ from each other is not seen (give 3 or more, made in turns)")
	}
	report.judge(o)
	return report, nil
}

// add compares the metrics of every tool.
func (r *Report) add(pr pairing, o Options) error {
	metrics := o.Metrics
	if len(metrics) == 0 {
		metrics = []string{"p50", "p99", "errors"}
		if pr.base[0].Conditions.Loop == "closed" {
			metrics = append(metrics, "rate")
		}
	}
	keys, err := pr.keys()
	if err != nil {
		return err
	}
	for _, k := range keys {
		base, err := sideOf(pr.base, k)
		if err != nil {
			return err
		}
		next, err := sideOf(pr.next, k)
		if err != nil {
			return err
		}
		for _, m := range metrics {
			if (m == "errors" || m == "rate") != (k.method == "*") {
				continue
			}
			f := find(m, base, next, o.Level)
			row := Row{
				Protocol: pr.protocol, Method: k.method, Tool: k.tool, Metric: m, Base: f.base, New: f.new,
				Change: f.change, Low: f.low, High: f.high, P: f.p,
			}
			if !f.known {
				row.Verdict, row.P = NoSamples, 1
			}
			r.Rows = append(r.Rows, row)
		}
	}
	return nil
}

// find compares one metric.
func find(metric string, base, next side, level float64) finding {
	switch metric {
	case "mean":
		return ratios(base, next, level, meanPart)
	case "rate":
		return ratios(base, next, level, ratePart)
	case "errors":
		return shares(base, next, level, errorPart)
	}
	q := map[string]float64{"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}[metric]
	return quantile(base, next, q, level)
}

// judge corrects the p-values by Holm's method and gives the verdicts.
func (r *Report) judge(o Options) {
	var tested []*Row
	for i := range r.Rows {
		if r.Rows[i].Verdict == "" {
			tested = append(tested, &r.Rows[i])
		}
	}
	slices.SortStableFunc(tested, func(a, b *Row) int { return cmp.Compare(a.P, b.P) })
	p := 0.0
	for i, row := range tested {
		p = max(p, min(1, row.P*float64(len(tested)-i)))
		row.P = p
		row.Verdict = row.verdict(o)
	}
}

func (r *Row) verdict(o Options) Verdict {
	tolerated, unseen := o.MaxChange, max(0.10, 2*o.MaxChange)
	worse, most := r.Change, r.High
	switch r.Metric {
	case "errors":
		tolerated, unseen = o.MaxErrors, max(0.01, 2*o.MaxErrors)
	case "rate":
		worse, most = -r.Change, -r.Low
	}
	switch {
	case r.P < o.Level && worse > tolerated:
		return Regression
	case r.P < o.Level && worse < -tolerated:
		return Improvement
	case most > unseen || math.IsNaN(most):
		return Unclear
	}
	return Same
}
