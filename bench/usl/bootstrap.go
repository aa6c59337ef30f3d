package usl

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
)

const (
	resamples = 999
	tail      = 0.025 // on each side of a 95 % interval
)

// intervals fills in the 95 % intervals from a bootstrap of the relative differences between points and curve.
//
// There are few points, so the percentiles of the resampled coefficients alone would give intervals that are too narrow.
// Each resample is studentized instead: how many of its own standard errors it lies from the curve that it was drawn
// from. The interval turns that distribution around.
func (m *Model) intervals(points []Point, free *linear, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x75736c))
	parameters := float64(len(free.beta))
	widen := math.Sqrt(float64(len(points)) / max(float64(len(points))-parameters, 1))
	differences := make([]float64, len(points))
	for i, p := range points {
		differences[i] = widen * free.relative(p)
	}
	center, centerErr := free.derived()
	var t [4][]float64
	drawn := make([]Point, len(points))
	for range resamples {
		for i, p := range points {
			drawn[i] = Point{N: p.N, X: p.N / free.fitted(p.N) * max(1+differences[rng.IntN(len(points))], 0.01)}
		}
		again, err := solve(drawn, [3]bool{true, true, true})
		if err != nil || again.beta[0] <= 0 {
			continue
		}
		value, se := again.derived()
		for k := range t {
			if se[k] > 0 {
				t[k] = append(t[k], (value[k]-center[k])/se[k])
			}
		}
	}
	var ends [4]Interval
	for k := range t {
		slices.Sort(t[k])
		ends[k] = Interval{center[k] - quantile(t[k], 1-tail)*centerErr[k], center[k] - quantile(t[k], tail)*centerErr[k]}
	}
	m.LambdaCI = around(m.Lambda, ends[0])
	m.SigmaCI = around(m.Sigma, ends[1])
	m.KappaCI = around(m.Kappa, ends[2])
	if n, ok := m.NMax(); ok {
		m.NMaxCI = around(n, Interval{peakAt(ends[3].High), peakAt(ends[3].Low)})
	}
}

// derived gives λ, σ, κ and κ/(1−σ) of a linear fit, and their standard errors by the delta method.
func (l *linear) derived() (value, se [4]float64) {
	a, b, c := l.beta[0], l.beta[1], l.beta[2]
	value = [4]float64{1 / a, b / a, c / a, c / (a - b)}
	for k, g := range [4][3]float64{
		{-1 / (a * a), 0, 0}, {-b / (a * a), 1 / a, 0}, {-c / (a * a), 0, 1 / a},
		{-c / (a - b) / (a - b), c / (a - b) / (a - b), 1 / (a - b)},
	} {
		var v float64
		for i := range g {
			for j := range g {
				v += g[i] * l.cov[i][j] * g[j]
			}
		}
		se[k] = math.Sqrt(max(v, 0))
	}
	return value, se
}

// peakAt gives the concurrency of the highest throughput from κ/(1−σ), +Inf where it grows for ever.
func peakAt(ratio float64) float64 {
	if ratio <= 0 {
		return math.Inf(1)
	}
	return 1 / math.Sqrt(ratio)
}

// quantile of a sorted list; 0 of an empty one, which a fit without any noise gives.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return stat.Quantile(q, stat.Empirical, sorted, nil)
}

// around cuts an interval to what the law permits, and makes it hold the value itself.
func around(value float64, i Interval) Interval {
	return Interval{max(min(i.Low, value), 0), max(i.High, value)}
}
