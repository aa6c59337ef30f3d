package bench

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

const (
	mostCosines  = 12 // waves that a long-run variance is made from: few, so that slow drift is among them
	leastCosines = 4
	spreadNeeds  = 60 // samples without which an interval says nothing
	pointsNeed   = 6  // of a line
)

// interval95 is a value with its 95 % interval. Known is false where there are too few samples for the interval.
type interval95 struct {
	value, low, high float64
	known            bool
}

// cosines gives how many waves a series of n is held to.
func cosines(n int) int {
	return max(min(int(0.4*math.Pow(float64(n), 2.0/3)), mostCosines), leastCosines)
}

// longRunError gives the standard error of the mean of a series in its order of time, which may be correlated and may
// drift, and the degrees of freedom of that error.
//
// It is the equal-weighted cosine estimator: the lowest waves that fit into the series say how much its mean wanders.
// Independent noise is the same in all waves; correlation and drift are the stronger the slower, so that the slowest
// waves hold what an average over the whole series can be wrong by. The means of few waves follow Student's t.
func longRunError(x []float64) (se float64, freedom int) {
	n := float64(len(x))
	mean := stat.Mean(x, nil)
	freedom = cosines(len(x))
	var sum float64
	for j := 1; j <= freedom; j++ {
		var wave float64
		for t, v := range x {
			wave += (v - mean) * math.Cos(math.Pi*float64(j)*(float64(t)+0.5)/n)
		}
		sum += 2 / n * wave * wave
	}
	return math.Sqrt(sum / float64(freedom) / n), freedom
}

// student95 is the 97.5 % point of Student's t.
func student95(freedom int) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(freedom)}.Quantile(0.975)
}

// meanOf gives the mean of a series in its order of time.
func meanOf(x []float64) interval95 {
	if len(x) == 0 {
		return interval95{}
	}
	m := stat.Mean(x, nil)
	if len(x) < spreadNeeds {
		return interval95{value: m}
	}
	se, freedom := longRunError(x)
	half := student95(freedom) * se
	return interval95{m, m - half, m + half, true}
}

// medianOf gives the median of a series in its order of time. How much the share of samples below it wanders gives the
// error of its rank, and the values at the ends of the rank's interval are the interval.
func medianOf(x []float64) interval95 {
	if len(x) == 0 {
		return interval95{}
	}
	sorted := slices.Sorted(slices.Values(x))
	at := func(q float64) float64 { return between(sorted, q) }
	m := at(0.5)
	if len(x) < spreadNeeds {
		return interval95{value: m}
	}
	below := make([]float64, len(x))
	for i, v := range x {
		switch {
		case v < m:
			below[i] = 1
		case v == m:
			below[i] = 0.5
		}
	}
	se, freedom := longRunError(below)
	half := student95(freedom) * se
	return interval95{m, at(0.5 - half), at(0.5 + half), true}
}

// between gives the quantile q of sorted values, on the line between the two that are next to it.
func between(sorted []float64, q float64) float64 {
	whole, part := math.Modf(min(max(q, 0), 1) * float64(len(sorted)-1))
	i := int(whole)
	if part == 0 {
		return sorted[i]
	}
	return sorted[i] + part*(sorted[i+1]-sorted[i])
}

// fitLine fits y = base + slope·x by least squares to points in their order of time. What is left over may be correlated
// from one point to the next, as the memory of a process is, so the interval is made from its long-run error.
func fitLine(x, y []float64) (base float64, slope interval95) {
	if len(x) < 2 {
		return 0, interval95{}
	}
	base, slope.value = stat.LinearRegression(x, y, nil, false)
	if len(x) < pointsNeed {
		return base, slope
	}
	n, mean := float64(len(x)), stat.Mean(x, nil)
	score := make([]float64, len(x))
	var spread, left float64
	for i := range x {
		e := y[i] - base - slope.value*x[i]
		score[i] = (x[i] - mean) * e
		spread += (x[i] - mean) * (x[i] - mean)
		left += e * e
	}
	if spread == 0 {
		return base, interval95{value: slope.value}
	}
	se, freedom := longRunError(score)
	independent := student95(len(x)-2) * math.Sqrt(left/(n-2)/spread)
	eaten := n / (n - 3) // a line takes some of the slowest waves out of what is left over
	half := max(eaten*student95(freedom)*se*n/spread, independent)
	slope.low, slope.high, slope.known = slope.value-half, slope.value+half, true
	return base, slope
}
