package report

import (
	"fmt"
	"math"
	"strconv"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/bench/usl"
)

// scalability sets the throughput of a sweep against the calls at the server, with the law that was fitted.
func scalability(c *bench.Capacity) *chart {
	out := &chart{
		title: "Scalability", note: "Throughput of both visits to each level.", xName: levelName(c),
		lines: split(c,
			func(_ int, s *bench.CapacityStep) float64 { return atServer(c, s) },
			func(_ int, s *bench.CapacityStep) float64 { return s.CompletedRPS }),
	}
	if c.ThinkS > 0 {
		out.xName = "mean number of calls at the server (users who think are not there)"
	}
	far := furthest(out.lines)
	if u := c.USL; u != nil {
		out.note = "Throughput of both visits to each level, and the Universal Scalability Law fitted to them."
		if u.NMax != nil && *u.NMax < 2*far { // further out it would press the points together
			far = max(far, 1.15*(*u.NMax))
			out.marks = append(out.marks, mark{value: *u.NMax, text: "N max " + digits(*u.NMax), upright: true})
			out.band = interval(u.NMaxCI95, far)
			out.note += " The shaded part is the 95 % interval of N max, the number with the highest throughput."
		}
		out.lines = append(out.lines, curve(u, far))
	}
	out.x = levelScale(&bench.Capacity{Find: bench.FindUsers}, far)
	out.y = linear(0, 1.1*highest(out.lines), 5, perSecond)
	return out
}

// atServer gives the concurrency that the law is about.
func atServer(c *bench.Capacity, s *bench.CapacityStep) float64 {
	if c.ThinkS > 0 {
		return s.InFlight
	}
	return float64(s.Users)
}

// interval closes an interval whose upper end is not known at far.
func interval(ci [2]*float64, far float64) *[2]float64 {
	if ci[0] == nil {
		return nil
	}
	out := [2]float64{*ci[0], far}
	if ci[1] != nil {
		out[1] = *ci[1]
	}
	return &out
}

// curve draws the law up to far.
func curve(u *bench.USL, far float64) series {
	const points = 200
	law := usl.Coefficients{Lambda: u.Lambda, Sigma: u.Sigma, Kappa: u.Kappa}
	s := series{name: "fitted law", class: "c1"}
	for i := range points + 1 {
		n := math.Max(far*float64(i)/points, 0)
		s.x, s.y = append(s.x, n), append(s.y, law.At(n))
	}
	return s
}

// coefficients lists those of the law with their intervals.
func coefficients(u *bench.USL) table {
	t := table{
		Title: "Universal Scalability Law", Note: "X(N) = λN / (1 + σ(N−1) + κN(N−1))",
		Head: []string{"", "value", "95 % interval", "meaning"}, Words: []int{3},
	}
	if u == nil {
		return t
	}
	three := func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
	row := func(name string, v float64, ci [2]float64, unit, meaning string) {
		t.Rows = append(t.Rows, []string{name, three(v) + unit, fmt.Sprintf("%s to %s", three(ci[0]), three(ci[1])), meaning})
	}
	row("λ", u.Lambda, u.LambdaCI95, "/s", "throughput of a single caller")
	row("σ", u.Sigma, u.SigmaCI95, "", "contention: the share of the work that cannot be done at the same time")
	row("κ", u.Kappa, u.KappaCI95, "", "coherency: what each caller costs every other one")
	if u.NMax != nil {
		meaning := "callers at the highest throughput"
		if u.Extrapolated {
			meaning += ", beyond the levels that were tried"
		}
		ends := "no upper end"
		if u.NMaxCI95[0] != nil && u.NMaxCI95[1] != nil {
			ends = fmt.Sprintf("%s to %s", three(*u.NMaxCI95[0]), three(*u.NMaxCI95[1]))
		} else if u.NMaxCI95[0] != nil {
			ends = "from " + three(*u.NMaxCI95[0]) + ", " + ends
		}
		t.Rows = append(t.Rows, []string{"N max", digits(*u.NMax), ends, meaning})
	}
	if u.PeakRPS != nil {
		t.Rows = append(t.Rows, []string{"X(N max)", perSecond(*u.PeakRPS), "", "the highest throughput"})
	}
	t.Rows = append(t.Rows, []string{"residual", digits(100*u.Residual) + " %", "", "distance between points and curve, root mean square"})
	return t
}
