package bench

import (
	"math"
	"slices"
	"time"
)

const bars = 40 // of a histogram of differences

// phasePairs gathers one phase of all pairs, in the order of time.
type phasePairs struct {
	sides      [2]*Histogram
	difference []float64 // microseconds
}

func (p *phasePairs) add(direct, via time.Duration) {
	for k, d := range [2]time.Duration{direct, via} {
		if p.sides[k] == nil {
			p.sides[k] = NewHistogram()
		}
		p.sides[k].Record(d, 1)
	}
	p.difference = append(p.difference, float64(via-direct)/float64(time.Microsecond))
}

func (p *phasePairs) phase(name string) OverheadPhase {
	out := OverheadPhase{Phase: name, Direct: &Dist{}, Via: &Dist{}}
	if len(p.difference) > 0 {
		out.Direct, out.Via = p.sides[0].Dist(), p.sides[1].Dist()
	}
	out.Median, out.Mean = differenceOf(medianOf(p.difference)), differenceOf(meanOf(p.difference))
	return out
}

func differenceOf(i interval95) Difference {
	d := Difference{US: round(i.value, 3)}
	if i.known {
		d.CI95 = &[2]float64{round(i.low, 3), round(i.high, 3)}
	}
	return d
}

// histogramOf counts differences in bars of the same width, from the first percentile to the last; what lies beyond is in
// the bars at the ends.
func histogramOf(x []float64) []DifferenceBar {
	if len(x) < 2 {
		return []DifferenceBar{}
	}
	sorted := slices.Sorted(slices.Values(x))
	low, high := between(sorted, 0.01), between(sorted, 0.99)
	width := (high - low) / bars
	if width <= 0 {
		return []DifferenceBar{{FromUS: low, ToUS: high, Count: len(x)}}
	}
	out := make([]DifferenceBar, bars)
	for i := range out {
		out[i].FromUS, out[i].ToUS = round(low+float64(i)*width, 3), round(low+float64(i+1)*width, 3)
	}
	for _, v := range x {
		i := int(math.Floor((v - low) / width))
		out[min(max(i, 0), bars-1)].Count++
	}
	return out
}
