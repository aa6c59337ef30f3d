package compare

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	mostMerges     = 2    // times that blocks are merged in pairs: 40, 20, 10
	fewestUnits    = 10   // that merging leaves of one run
	mergeLevel     = 0.20 // of the test whether neighbours are correlated; high, since to miss it is the worse mistake
	differentLevel = 0.20 // of the test whether runs differ by more than their blocks explain
)

// block is one piece of time of one run.
type block struct {
	seconds float64
	ok      float64
	errors  float64
	times   cdf // of the successes
}

// side is all runs of one state, each as its blocks in order.
type side [][]block

// part is what a block adds to a ratio of sums, such as slower calls to calls, or microseconds to calls.
type part struct{ x, n float64 }

// estimate is a ratio of sums over a side, with its standard error.
type estimate struct{ value, se, df float64 }

// ratio estimates the sum of all x over the sum of all n. The standard error comes from how much the units of time, and
// the runs, deviate from it.
func (s side) ratio(of func(*block) part) estimate {
	var sum part
	parts := make([][]part, len(s))
	for i, run := range s {
		parts[i] = make([]part, len(run))
		for j := range run {
			p := of(&run[j])
			parts[i][j] = p
			sum.x += p.x
			sum.n += p.n
		}
	}
	if sum.n == 0 {
		return estimate{math.NaN(), math.NaN(), 1}
	}
	value := sum.x / sum.n
	variance, df := spread(parts, value)
	return estimate{value, math.Sqrt(variance) / sum.n, df}
}

// spread gives the variance of the sum of all deviations from the value, and its degrees of freedom. Blocks deviate from
// the value of their own run; where the runs deviate by more than that explains, they are what counts.
func spread(parts [][]part, value float64) (variance, df float64) {
	k, runSquares := float64(len(parts)), 0.0
	blocks := make([][]float64, len(parts))
	for i, run := range parts {
		var sum part
		for _, p := range run {
			sum.x += p.x
			sum.n += p.n
		}
		d := sum.x - value*sum.n
		runSquares += d * d
		blocks[i] = make([]float64, len(run))
		for j, p := range run {
			if sum.n > 0 {
				blocks[i][j] = p.x - sum.x/sum.n*p.n
			}
		}
	}
	for merges := 0; merges < mostMerges && correlated(blocks) && mergeable(blocks); merges++ {
		for i := range blocks {
			blocks[i] = mergePairs(blocks[i])
		}
	}
	units, squares := 0.0, 0.0
	for _, run := range blocks {
		for _, d := range run {
			units++
			squares += d * d
		}
	}
	df = units - k
	if df < 1 {
		return math.NaN(), 1
	}
	variance = squares * units / df * inflation(blocks)
	if k < 2 || runSquares == 0 {
		return variance, df
	}
	ofRuns := runSquares * k / (k - 1)
	if variance == 0 || (distuv.F{D1: k - 1, D2: df}).Survival(ofRuns/variance) < differentLevel {
		return ofRuns, k - 1
	}
	return variance, df
}

// mergeable reports whether every run has blocks enough to be merged once more.
func mergeable(runs [][]float64) bool {
	return !slices.ContainsFunc(runs, func(run []float64) bool { return len(run) < 2*fewestUnits })
}

// mergePairs adds neighbours; what is left over goes to the last pair.
func mergePairs(d []float64) []float64 {
	out := make([]float64, len(d)/2)
	for i, x := range d {
		out[min(i/2, len(out)-1)] += x
	}
	return out
}

// neighbours gives the correlation of neighbours and how many pairs it is made from.
func neighbours(runs [][]float64) (r, pairs float64) {
	var squares, products float64
	for _, run := range runs {
		for i, d := range run {
			squares += d * d
			if i > 0 {
				products += d * run[i-1]
				pairs++
			}
		}
	}
	if squares == 0 {
		return 0, pairs
	}
	return products / squares, pairs
}

// correlated tests neighbours for a positive correlation.
func correlated(runs [][]float64) bool {
	r, pairs := neighbours(runs)
	return r*math.Sqrt(pairs) > distuv.UnitNormal.Quantile(1-mergeLevel)
}

// inflation is by how much the correlation of neighbours that is left makes the variance of the sum larger, as in an
// autoregressive series. An estimate from few units is low by about 1/n, which is put right.
func inflation(runs [][]float64) float64 {
	r, pairs := neighbours(runs)
	if pairs < 4 {
		return 1
	}
	r = min(max(r+1/pairs, 0), 0.8)
	return (1 + r) / (1 - r)
}

// compared is the difference of two estimates in units of its standard error.
type compared struct{ t, df float64 }

// welch compares two estimates.
func welch(a, b estimate) compared {
	va, vb := a.se*a.se, b.se*b.se
	v := va + vb
	diff := b.value - a.value
	if v == 0 {
		switch {
		case diff > 0:
			return compared{math.Inf(1), 1}
		case diff < 0:
			return compared{math.Inf(-1), 1}
		}
		return compared{0, 1}
	}
	return compared{diff / math.Sqrt(v), v * v / (va*va/a.df + vb*vb/b.df)}
}

// p gives the two-sided p-value.
func (c compared) p() float64 {
	if math.IsInf(c.t, 0) {
		return 0
	}
	return 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: c.df}.CDF(-math.Abs(c.t))
}

// critical gives the t beyond which a two-sided test of the level rejects.
func (c compared) critical(level float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: c.df}.Quantile(1 - level/2)
}
