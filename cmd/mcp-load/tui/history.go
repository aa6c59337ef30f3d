package tui

import (
	"math"
	"slices"

	"github.com/mcpengine/mcpengine/bench"
)

const mostPoints = 240 // that a sparkline keeps; then neighbours become one

// point is one column of the sparklines.
type point struct{ rps, p50, p99 float64 }

// history is the run so far, in equal pieces.
type history struct {
	points []point
	width  int // looks that make a point
	n      int // looks in the last point
}

// add takes a look. Of the looks of one point the rate is the mean, the times are the highest: a peak must not disappear
// because a run is long.
func (h *history) add(p bench.Progress) {
	x := point{p.RPS, float64(p.P50US), float64(p.P99US)}
	h.width = max(h.width, 1)
	if h.n > 0 && h.n < h.width {
		last := &h.points[len(h.points)-1]
		last.rps += (x.rps - last.rps) / float64(h.n+1)
		last.p50, last.p99 = max(last.p50, x.p50), max(last.p99, x.p99)
		h.n++
		return
	}
	if len(h.points) == mostPoints {
		for i := range mostPoints / 2 {
			a, b := h.points[2*i], h.points[2*i+1]
			h.points[i] = point{(a.rps + b.rps) / 2, max(a.p50, b.p50), max(a.p99, b.p99)}
		}
		h.points = h.points[:mostPoints/2]
		h.width *= 2
	}
	h.points, h.n = append(h.points, x), 1
}

func (h *history) clone() history { return history{slices.Clone(h.points), h.width, h.n} }

// series gives one value of every point.
func (h *history) series(of func(point) float64) []float64 {
	out := make([]float64, len(h.points))
	for i, p := range h.points {
		out[i] = of(p)
	}
	return out
}

var bars = []rune("▁▂▃▄▅▆▇█")

// chart draws the last values in rows of the width, the upper row first; its heights go from zero to the highest of them.
func chart(values []float64, width, rows int) []string {
	values = values[max(0, len(values)-max(width, 0)):]
	highest, steps := peak(values), len(bars)
	out := make([]string, rows)
	for row := range out {
		line := make([]rune, len(values))
		for i, v := range values {
			full := 1 // a value always shows
			if highest > 0 {
				full = max(int(math.Round(v/highest*float64(steps*rows))), 1)
			}
			line[i] = ' '
			if n := min(full-(rows-1-row)*steps, steps); n > 0 {
				line[i] = bars[n-1]
			}
		}
		out[row] = string(line)
	}
	return out
}

// peak gives the highest value.
func peak(values []float64) float64 {
	highest := 0.0
	for _, v := range values {
		highest = max(highest, v)
	}
	return highest
}
