// Package usl fits the Universal Scalability Law to measured throughputs.
//
// The law says what throughput X a system gives at concurrency N:
//
//	X(N) = λN / (1 + σ(N−1) + κN(N−1))
//
// λ is the throughput at concurrency one, σ the share of the work that cannot be done by two at once (contention), and κ
// what each has to do because of each other one (coherency). With κ above zero there is a concurrency beyond which more
// load gives less throughput; NMax is it.
//
// The package knows nothing of how the throughputs were measured. It is the only one that uses gonum.
package usl

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// MinLevels is the number of different concurrencies without which Fit refuses: three coefficients go through any three
// points, and say nothing then.
const MinLevels = 6

// minSpan is how far the highest concurrency must lie above the lowest one.
const minSpan = 4

// Point is one measurement: the throughput X, a second, at the concurrency N.
type Point struct{ N, X float64 }

// Coefficients are those of the law.
type Coefficients struct {
	Lambda float64 // throughput at concurrency 1, a second
	Sigma  float64 // contention, 0 to 1
	Kappa  float64 // coherency, 0 or more
}

// At gives the throughput at concurrency n.
func (c Coefficients) At(n float64) float64 {
	return c.Lambda * n / (1 + c.Sigma*(n-1) + c.Kappa*n*(n-1))
}

// NMax gives the concurrency of the highest throughput; false where throughput grows for ever.
func (c Coefficients) NMax() (float64, bool) {
	if c.Kappa <= 0 || c.Sigma >= 1 {
		return 0, false
	}
	return math.Sqrt((1 - c.Sigma) / c.Kappa), true
}

// Interval holds the two ends of a 95 % interval. High is +Inf where the data give no upper end.
type Interval struct{ Low, High float64 }

// Model is a fit with what is known about its error.
type Model struct {
	Coefficients
	LambdaCI, SigmaCI, KappaCI, NMaxCI Interval

	Residual float64 // root mean square of the relative differences between points and curve
	Lowest   float64 // concurrency measured
	Highest  float64 // concurrency measured
}

// Fit fits the law to the points, which may hold several measurements of one concurrency. The seed decides the random
// part of the intervals. The error says what is missing: six different concurrencies, the highest at least four times
// the lowest, all throughputs above zero.
//
// The law is linear in its coefficients when it is written as N/X = a + b(N−1) + cN(N−1), with a = 1/λ, b = σ/λ and
// c = κ/λ. The fit is the least sum of squares of the relative differences, because the noise of a throughput grows with
// the throughput; it is exact, with no start value and no iteration that could end elsewhere. A coefficient that would be
// negative is zero, and the others are fitted without it.
func Fit(points []Point, seed uint64) (*Model, error) {
	if err := check(points); err != nil {
		return nil, err
	}
	free, err := solve(points, [3]bool{true, true, true})
	if err != nil {
		return nil, err
	}
	best, err := feasible(points, free)
	if err != nil {
		return nil, err
	}
	m := &Model{Coefficients: best.coefficients(), Lowest: points[0].N, Highest: points[0].N}
	for _, p := range points {
		r := p.X/m.At(p.N) - 1
		m.Residual += r * r / float64(len(points))
		m.Lowest, m.Highest = min(m.Lowest, p.N), max(m.Highest, p.N)
	}
	m.Residual = math.Sqrt(m.Residual)
	m.intervals(points, free, seed)
	return m, nil
}

// check refuses what no curve can be drawn through.
func check(points []Point) error {
	var levels []float64
	for _, p := range points {
		if !(p.N > 0) || !(p.X > 0) || math.IsInf(p.N, 0) || math.IsInf(p.X, 0) {
			return fmt.Errorf("the scalability curve needs throughputs above zero, and got %g/s at %g", p.X, p.N)
		}
		levels = append(levels, p.N)
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	if len(levels) < MinLevels {
		return fmt.Errorf("the scalability curve needs at least %d different levels, and got %d", MinLevels, len(levels))
	}
	if low, high := levels[0], levels[len(levels)-1]; high < minSpan*low {
		return fmt.Errorf("the scalability curve needs levels that lie further apart: the highest, %g, is less than %d times the lowest, %g",
			high, minSpan, low)
	}
	return nil
}

// linear is a fit of N/X = a + b(N−1) + cN(N−1).
type linear struct {
	beta [3]float64
	cov  [3][3]float64 // of beta
	rss  float64       // sum of squares of the relative differences
}

// row gives what beta is multiplied with at concurrency n.
func row(n float64) [3]float64 { return [3]float64{1, n - 1, n * (n - 1)} }

// solve fits the coefficients that keep names; the others are zero.
func solve(points []Point, keep [3]bool) (*linear, error) {
	var cols []int
	for i, k := range keep {
		if k {
			cols = append(cols, i)
		}
	}
	a := mat.NewDense(len(points), len(cols), nil)
	one := mat.NewVecDense(len(points), nil)
	for i, p := range points {
		y, r := p.N/p.X, row(p.N)
		for j, col := range cols {
			a.Set(i, j, r[col]/y)
		}
		one.SetVec(i, 1)
	}
	var qr mat.QR
	qr.Factorize(a)
	var x, gram, inverse mat.Dense
	if err := qr.SolveTo(&x, false, one); err != nil {
		return nil, fmt.Errorf("the scalability curve cannot be fitted: %w", err)
	}
	gram.Mul(a.T(), a)
	if err := inverse.Inverse(&gram); err != nil {
		return nil, fmt.Errorf("the scalability curve cannot be fitted: %w", err)
	}
	l := &linear{}
	for j, col := range cols {
		l.beta[col] = x.At(j, 0)
	}
	for _, p := range points {
		d := l.relative(p)
		l.rss += d * d
	}
	variance := l.rss / float64(max(len(points)-len(cols), 1))
	for j, cj := range cols {
		for k, ck := range cols {
			l.cov[cj][ck] = variance * inverse.At(j, k)
		}
	}
	return l, nil
}

// relative is the relative difference between the curve and a point.
func (l *linear) relative(p Point) float64 { return l.fitted(p.N)*p.X/p.N - 1 }

// fitted gives N/X of the curve.
func (l *linear) fitted(n float64) float64 {
	r := row(n)
	return l.beta[0]*r[0] + l.beta[1]*r[1] + l.beta[2]*r[2]
}

func (l *linear) coefficients() Coefficients {
	return Coefficients{Lambda: 1 / l.beta[0], Sigma: l.beta[1] / l.beta[0], Kappa: l.beta[2] / l.beta[0]}
}

// allowed reports whether the law permits these coefficients.
func (l *linear) allowed() bool { return l.beta[0] > 0 && l.beta[1] >= 0 && l.beta[2] >= 0 }

// feasible gives the best fit without a negative coefficient. Of so few coefficients every choice can be tried.
func feasible(points []Point, free *linear) (*linear, error) {
	if free.allowed() {
		return free, nil
	}
	var best *linear
	for _, keep := range [][3]bool{{true, true, false}, {true, false, true}, {true, false, false}} {
		l, err := solve(points, keep)
		if err != nil {
			return nil, err
		}
		if l.allowed() && (best == nil || l.rss < best.rss) {
			best = l
		}
	}
	return best, nil // a constant fits always, because all points are positive
}
