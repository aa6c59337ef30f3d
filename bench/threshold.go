package bench

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// condition is a threshold that has been read.
type condition struct {
	method, tool string  // "*" and "" for all calls
	metric       string  // "p", "mean", "max" or "errors"
	percent      float64 // of metric "p"
	op           string
	limit        float64 // microseconds, or a share
}

var thresholdForm = regexp.MustCompile(`^(?:([a-z]+(?:/[A-Za-z_/]+)?)(?:\{tool=([^}]+)\})?\s+)?(p\(([0-9.]+)\)|mean|max|errors)\s*(<=|>=|<|>)\s*(\S+)$`)

// parseThreshold reads one expression.
func parseThreshold(expr string) (condition, error) {
	bad := usage("threshold %q is not understood: write for example 'p(99)<200ms', 'errors<0.1%%' or 'tools/call{tool=search} p(99)<200ms'", expr)
	m := thresholdForm.FindStringSubmatch(strings.TrimSpace(expr))
	if m == nil {
		return condition{}, bad
	}
	c := condition{method: m[1], tool: m[2], metric: m[3], op: m[5]}
	if c.method == "" {
		c.method = "*"
	}
	if m[4] != "" {
		p, err := strconv.ParseFloat(m[4], 64)
		if err != nil || p <= 0 || p > 100 {
			return condition{}, bad
		}
		c.metric, c.percent = "p", p
	}
	if c.metric != "errors" {
		d, err := time.ParseDuration(m[6])
		if err != nil || d < 0 {
			return condition{}, bad
		}
		c.limit = float64(d) / float64(time.Microsecond)
		return c, nil
	}
	number, percent := strings.CutSuffix(m[6], "%")
	share, err := strconv.ParseFloat(number, 64)
	if err != nil || !(share >= 0) {
		return condition{}, bad
	}
	if c.method != "*" {
		return condition{}, usage("threshold %q: errors are counted for the whole run, so write 'errors%s%s' without a method", expr, c.op, m[6])
	}
	if percent {
		share /= 100
	}
	c.limit = share
	return c, nil
}

// evaluate holds a result against the conditions. One that finds no samples is not met.
func evaluate(exprs []string, r *Result) []Threshold {
	out := []Threshold{}
	for _, expr := range exprs {
		t := Threshold{Expr: expr}
		if c, err := parseThreshold(expr); err == nil {
			var known bool
			t.Value, known = c.value(r)
			t.OK = known && c.holds(t.Value)
		}
		out = append(out, t)
	}
	return out
}

// value gives what the result says about the condition's metric.
func (c *condition) value(r *Result) (v float64, known bool) {
	if c.metric == "errors" {
		if r.Requests.Total == 0 {
			return 0, false
		}
		return float64(r.Requests.Total-r.Requests.OK-r.Requests.CancelledMeant) / float64(r.Requests.Total), true
	}
	all := NewHistogram()
	for _, l := range r.Latency {
		if l.Method == c.method && (c.tool == "" || l.Tool == c.tool) {
			if h, err := l.Response.Histogram(); err == nil {
				all.Merge(h)
			}
		}
	}
	if all.h.TotalCount() == 0 {
		return 0, false
	}
	switch c.metric {
	case "mean":
		return all.h.Mean(), true
	case "max":
		return float64(all.h.Max()), true
	}
	return float64(all.h.ValueAtPercentile(c.percent)), true
}

func (c *condition) holds(v float64) bool {
	switch c.op {
	case "<":
		return v < c.limit
	case "<=":
		return v <= c.limit
	case ">":
		return v > c.limit
	}
	return v >= c.limit
}

// IsShare reports whether the value of a condition is a share and not a time.
func IsShare(expr string) bool {
	c, err := parseThreshold(expr)
	return err == nil && c.metric == "errors"
}

// CheckThreshold reports what is wrong with the expression of a threshold.
func CheckThreshold(expr string) error {
	_, err := parseThreshold(expr)
	return err
}
