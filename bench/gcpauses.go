package bench

import (
	"math"
	"runtime/metrics"
	"time"
)

// gcPauses finds for how long the garbage collector has stopped this process between two moments. A pause is taken to
// be as long as the lower end of its bucket, so that nothing is blamed that has not been.
type gcPauses struct {
	before         []uint64
	longest, total time.Duration
}

const pausesMetric = "/sched/pauses/total/gc:seconds"

func readPauses() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: pausesMetric}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64Histogram {
		return nil // a later version of Go may have another name for it
	}
	return s[0].Value.Float64Histogram()
}

func (p *gcPauses) begin() {
	if h := readPauses(); h != nil {
		p.before = h.Counts
	}
}

// end adds up what has grown.
func (p *gcPauses) end() {
	h := readPauses()
	if h == nil {
		return
	}
	for i := range min(len(h.Counts), len(p.before)) {
		if n := h.Counts[i] - p.before[i]; n > 0 {
			p.longest = time.Duration(math.Max(h.Buckets[i], 0) * float64(time.Second))
			p.total += time.Duration(n) * p.longest
		}
	}
}
