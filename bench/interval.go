package bench

import "math"

const (
	intervalBlocks = 20    // time blocks that an interval is made from
	blockNeeds     = 100   // samples in each
	student19      = 2.093 // 97.5 % point of Student's t with 19 degrees of freedom
)

// blockInterval gives a 95 % interval of the quantile q, or nil when there are too few samples.
//
// Latencies of a queue are correlated, so a formula for independent samples gives an interval that is far too narrow.
// The run is cut into blocks of time instead, which are nearly independent when they are long against the memory of the
// queue. For every block we take the number of samples above the overall quantile; how much that share varies from block
// to block gives the standard error of the rank q, and the values at the ends of the rank's interval are the interval of
// the quantile (Woodruff's method, with batch means for the variance). It is not symmetric, as a tail is not.
func blockInterval(blocks [][]bucket, q float64) *[2]int64 {
	if len(blocks) < intervalBlocks {
		return nil
	}
	var all []bucket
	for _, b := range blocks {
		all = mergeSparse(all, b)
	}
	total := countOf(all)
	at := valueAt(all, total, q)
	above := total - countUpTo(all, at)
	share := float64(above) / float64(total)
	var sum float64
	for _, b := range blocks {
		n := countOf(b)
		if n < blockNeeds {
			return nil
		}
		r := float64(n-countUpTo(b, at)) - share*float64(n)
		sum += r * r
	}
	count := float64(len(blocks))
	se := math.Sqrt(sum*count/(count-1)) / float64(total)
	low, high := q-student19*se, q+student19*se
	if high > 1-1/float64(total) {
		return nil // the interval reaches beyond the largest sample, so its upper end is unknown
	}
	return &[2]int64{valueAt(all, total, low), valueAt(all, total, high)}
}

func countOf(b []bucket) int64 {
	var n int64
	for _, x := range b {
		n += x.count
	}
	return n
}

// countUpTo counts the samples that are at most v.
func countUpTo(b []bucket, v int64) int64 {
	var n int64
	for _, x := range b {
		if x.value > v {
			break
		}
		n += x.count
	}
	return n
}

// valueAt gives the smallest value that at least the share q of the total samples does not exceed.
func valueAt(b []bucket, total int64, q float64) int64 {
	need := int64(math.Ceil(max(q, 0) * float64(total)))
	var n, last int64
	for _, x := range b {
		last = x.value
		if n += x.count; n >= need {
			break
		}
	}
	return last
}
