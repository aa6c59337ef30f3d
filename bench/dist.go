package bench

import (
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

const (
	lowestUS   = 1
	highestUS  = 10 * 60 * 1e6 // ten minutes
	hdrDigits  = 3
	tailNeeds  = 10_000 // samples without which p99.9 says nothing
	quantile99 = 0.99
)

func newHist() *hdr.Histogram { return hdr.New(lowestUS, highestUS, hdrDigits) }

// microseconds rounds d to what the histograms hold.
func microseconds(d time.Duration) int64 {
	return min(max(int64((d+500*time.Nanosecond)/time.Microsecond), 0), highestUS)
}

// record notes d. It cannot fail, because microseconds keeps to the range.
func record(h *hdr.Histogram, d time.Duration) { _ = h.RecordValue(microseconds(d)) }

// distOf describes a histogram; nil gives nil. blocks are the same samples by time, for the interval of p99.
func distOf(h *hdr.Histogram, blocks [][]bucket) *Dist {
	if h == nil {
		return nil
	}
	d := &Dist{Count: h.TotalCount()}
	if d.Count == 0 {
		return d
	}
	d.MeanUS = h.Mean()
	d.P50US = h.ValueAtPercentile(50)
	d.P90US = h.ValueAtPercentile(90)
	d.P95US = h.ValueAtPercentile(95)
	d.P99US = h.ValueAtPercentile(99)
	if d.Count >= tailNeeds {
		v := h.ValueAtPercentile(99.9)
		d.P999US = &v
	}
	d.MaxUS = h.Max()
	d.P99CI95US = blockInterval(blocks, quantile99)
	if b, err := h.EncodeV2(); err == nil { // it fails on counts that overflow, and a result without it is still true
		d.HDR = string(b)
	}
	return d
}

// bucket is how often a value occurred: a histogram without its zeros.
type bucket struct{ value, count int64 }

// sparse lists the buckets of a histogram, in ascending order of value.
func sparse(h *hdr.Histogram) []bucket {
	if h == nil || h.TotalCount() == 0 {
		return nil
	}
	var out []bucket
	for _, bar := range h.Distribution() {
		if bar.Count > 0 {
			out = append(out, bucket{bar.To, bar.Count})
		}
	}
	return out
}

// mergeSparse adds two lists of buckets.
func mergeSparse(a, b []bucket) []bucket {
	if len(a) == 0 || len(b) == 0 {
		return append(a, b...)
	}
	out := make([]bucket, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].value < b[0].value:
			out, a = append(out, a[0]), a[1:]
		case a[0].value > b[0].value:
			out, b = append(out, b[0]), b[1:]
		default:
			out = append(out, bucket{a[0].value, a[0].count + b[0].count})
			a, b = a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// merged puts h into into, which is made when it is nil and needed.
func merged(into, h *hdr.Histogram) *hdr.Histogram {
	if h == nil || h.TotalCount() == 0 {
		return into
	}
	if into == nil {
		into = newHist()
	}
	into.Merge(h)
	return into
}
