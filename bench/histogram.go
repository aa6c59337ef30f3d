package bench

import (
	"fmt"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram is a distribution of times in the form that runs record them: 1 µs to ten minutes, three significant digits.
// It takes what a Result holds and adds other samples or other results to it; the outcome equals one histogram of all
// samples. A Histogram is for one goroutine at a time.
type Histogram struct{ h *hdr.Histogram }

// NewHistogram makes an empty histogram.
func NewHistogram() *Histogram { return &Histogram{newHist()} }

// Histogram decodes the distribution of a result. A distribution without samples gives an empty histogram.
func (d *Dist) Histogram() (*Histogram, error) {
	out := NewHistogram()
	if d == nil || d.HDR == "" {
		return out, nil
	}
	h, err := hdr.Decode([]byte(d.HDR))
	if err != nil {
		return nil, fmt.Errorf("bench: the hdr of a distribution: %w", err)
	}
	out.h.Merge(h)
	return out, nil
}

// Record adds n samples of d. What lies outside the range counts as its end, so that no sample disappears.
func (h *Histogram) Record(d time.Duration, n int64) {
	if n > 0 {
		_ = h.h.RecordValues(microseconds(d), n) // it fails only outside the range
	}
}

// Merge adds the samples of o, which stays as it is.
func (h *Histogram) Merge(o *Histogram) { h.h.Merge(o.h) }

// Min gives the shortest time, and 0 where there are no samples.
func (h *Histogram) Min() time.Duration {
	if h.h.TotalCount() == 0 {
		return 0
	}
	return time.Duration(h.h.Min()) * time.Microsecond
}

// At gives the time that percent of the samples do not exceed, and 0 where there are no samples.
func (h *Histogram) At(percent float64) time.Duration {
	if h.h.TotalCount() == 0 {
		return 0
	}
	return time.Duration(h.h.ValueAtPercentile(percent)) * time.Microsecond
}

// Above counts the samples that are longer than d.
func (h *Histogram) Above(d time.Duration) int64 {
	return h.h.TotalCount() - countUpTo(sparse(h.h), microseconds(d))
}

// Count gives the number of samples.
func (h *Histogram) Count() int64 { return h.h.TotalCount() }

// Dist describes the histogram. It has no interval of p99, which needs to know when the samples were taken.
func (h *Histogram) Dist() *Dist { return distOf(h.h, nil) }
