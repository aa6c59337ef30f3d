package bench

import (
	"testing"
	"time"
)

// TestHistogramMerge checks that merging ranks all samples and averages nothing.
func TestHistogramMerge(t *testing.T) {
	fast, slow := NewHistogram(), NewHistogram()
	fast.Record(time.Millisecond, 900)
	slow.Record(100*time.Millisecond, 100)
	fast.Merge(slow)
	decoded, err := fast.Dist().Histogram()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []*Histogram{fast, decoded} {
		d := h.Dist()
		for _, c := range []struct {
			call      string
			got, want int64
			tolerance int64
		}{
			{"Count", d.Count, 1000, 0},
			{"P50US", d.P50US, 1000, 1},
			{"P90US", d.P90US, 1000, 1},
			{"P95US", d.P95US, 100_000, 100},
			{"MaxUS", d.MaxUS, 100_000, 100},
			{"Min", h.Min().Microseconds(), 1000, 1},
		} {
			if off := c.got - c.want; off > c.tolerance || -off > c.tolerance {
				t.Errorf("%s: got %d, want %d ± %d", c.call, c.got, c.want, c.tolerance)
			}
		}
	}
	if got := slow.Dist().Count; got != 100 {
		t.Errorf("Merge changed its argument: got %d samples, want 100", got)
	}
}

// TestHistogramEdges checks that samples outside the range are kept, and that nothing is made of no samples.
func TestHistogramEdges(t *testing.T) {
	h := NewHistogram()
	h.Record(-time.Second, 1)
	h.Record(time.Hour, 2)
	h.Record(time.Second, 0)
	h.Record(time.Second, -3)
	if d := h.Dist(); d.Count != 3 || d.P99US < 599_000_000 {
		t.Errorf("Dist: got count %d, p99 %d µs, want 3 samples up to ten minutes", d.Count, d.P99US)
	}
	for _, d := range []*Dist{nil, {}, NewHistogram().Dist()} {
		empty, err := d.Histogram()
		if err != nil || empty.Min() != 0 || empty.Dist().Count != 0 {
			t.Errorf("Histogram of %v: got %v, min %v, want an empty one", d, err, empty.Min())
		}
	}
	if _, err := (&Dist{HDR: "no histogram"}).Histogram(); err == nil {
		t.Error("Histogram of text that is none: got no error")
	}
}
