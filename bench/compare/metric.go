package compare

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

const (
	tailSamples = 10   // samples beyond a quantile, on either side, without which it is not compared
	widest      = 16.0 // factor on either side of the ratio in which an interval is looked for
	bisections  = 24
)

// finding is a comparison of one metric.
type finding struct {
	base, new float64
	change    float64 // relative; of errors the difference of the shares
	low, high float64 // interval of the change
	p         float64
	known     bool // there were enough samples
}

// cdf is how often times occurred, in ascending order of the time in microseconds.
type cdf struct {
	values []float64
	upTo   []float64 // how many samples are at most the value
}

func newCDF(counts map[int64]int64) cdf {
	var d cdf
	n := 0.0
	for _, v := range slices.Sorted(maps.Keys(counts)) {
		n += float64(counts[v])
		d.values, d.upTo = append(d.values, float64(v)), append(d.upTo, n)
	}
	return d
}

// cdf puts the times of all blocks together.
func (s side) cdf() cdf {
	counts := map[int64]int64{}
	for _, run := range s {
		for i := range run {
			run[i].times.each(func(value, count float64) { counts[int64(value)] += int64(count) })
		}
	}
	return newCDF(counts)
}

// each calls f with every value and how often it occurred.
func (d *cdf) each(f func(value, count float64)) {
	before := 0.0
	for i, v := range d.values {
		f(v, d.upTo[i]-before)
		before = d.upTo[i]
	}
}

// below counts the samples that are less than v, or at most v.
func (d *cdf) below(v float64) (less, atMost float64) {
	i, found := slices.BinarySearch(d.values, v)
	if i > 0 {
		less = d.upTo[i-1]
	}
	if found {
		return less, d.upTo[i]
	}
	return less, less
}

func (d *cdf) total() float64 {
	if len(d.upTo) == 0 {
		return 0
	}
	return d.upTo[len(d.upTo)-1]
}

// quantile gives the smallest value that at least the share q of the samples does not exceed.
func (d *cdf) quantile(q float64) float64 {
	i, _ := slices.BinarySearch(d.upTo, math.Ceil(q*d.total()))
	return d.values[min(i, len(d.values)-1)]
}

// common gives the quantile q of a, with its times multiplied by factor, and b together, both with the same weight.
func common(a, b *cdf, factor, q float64) float64 {
	i, j := 0, 0
	at, na, nb := 0.0, a.total(), b.total()
	shareA, shareB := 0.0, 0.0
	for (shareA+shareB)/2 < q-1e-12 && (i < len(a.values) || j < len(b.values)) {
		if j == len(b.values) || i < len(a.values) && a.values[i]*factor <= b.values[j] {
			at, shareA = a.values[i]*factor, a.upTo[i]/na
			i++
			continue
		}
		at, shareB = b.values[j], b.upTo[j]/nb
		j++
	}
	return at
}

// slower counts the calls of a block that took longer than at; those that took just as long count one half.
func slower(b *block, at float64) part {
	less, atMost := b.times.below(at)
	return part{b.ok - (less+atMost)/2, b.ok}
}

// quantile compares the quantile q.
func quantile(base, next side, q, level float64) finding {
	a, b := base.cdf(), next.cdf()
	if min(a.total(), b.total())*(1-q) < tailSamples {
		return finding{}
	}
	f := finding{base: a.quantile(q), new: b.quantile(q), known: true}
	if f.base <= 0 || f.new <= 0 {
		return finding{base: f.base, new: f.new}
	}
	ratio := f.new / f.base
	f.change = ratio - 1
	test := func(factor float64) compared {
		at := common(&a, &b, factor, q)
		return welch(base.ratio(func(b *block) part { return slower(b, at/factor) }),
			next.ratio(func(b *block) part { return slower(b, at) }))
	}
	f.p = test(1).p()
	// beyond tells whether new, against base times factor, is slower (+1) or quicker (-1) for sure.
	beyond := func(factor float64) int {
		c := test(factor)
		if math.Abs(c.t) <= c.critical(level) {
			return 0
		}
		return cmp.Compare(c.t, 0)
	}
	f.low = edge(ratio/widest, ratio, func(factor float64) bool { return beyond(factor) > 0 }) - 1
	f.high = edge(ratio, ratio*widest, func(factor float64) bool { return beyond(factor) >= 0 }) - 1
	return f
}

// edge finds by bisection where before, which holds at the low end and not at the high one, ends.
func edge(low, high float64, before func(float64) bool) float64 {
	for range bisections {
		middle := math.Sqrt(low * high)
		if before(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// ratios compares ratios of sums that are above zero, such as means and rates.
func ratios(base, next side, level float64, of func(*block) part) finding {
	a, b := base.ratio(of), next.ratio(of)
	if !(a.value > 0) || !(b.value > 0) || math.IsNaN(a.se+b.se) {
		return finding{base: a.value, new: b.value}
	}
	c := welch(estimate{math.Log(a.value), a.se / a.value, a.df}, estimate{math.Log(b.value), b.se / b.value, b.df})
	middle, half := math.Log(b.value/a.value), c.critical(level)*math.Hypot(a.se/a.value, b.se/b.value)
	return finding{
		base: a.value, new: b.value, change: b.value/a.value - 1, low: math.Exp(middle-half) - 1, high: math.Exp(middle+half) - 1,
		p: c.p(), known: true,
	}
}

// shares compares shares that may be zero by their difference.
func shares(base, next side, level float64, of func(*block) part) finding {
	a, b := base.ratio(of), next.ratio(of)
	if math.IsNaN(a.value + b.value + a.se + b.se) {
		return finding{}
	}
	c := welch(a, b)
	half := c.critical(level) * math.Hypot(a.se, b.se)
	return finding{
		base: a.value, new: b.value, change: b.value - a.value, low: b.value - a.value - half, high: b.value - a.value + half,
		p: c.p(), known: true,
	}
}

func meanPart(b *block) part {
	x := 0.0
	b.times.each(func(value, count float64) { x += value * count })
	return part{x, b.ok}
}

func errorPart(b *block) part { return part{b.errors, b.ok + b.errors} }

func ratePart(b *block) part { return part{b.ok, b.seconds} }
