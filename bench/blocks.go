package bench

import (
	"fmt"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// resultBlocks is how many pieces of time a result keeps apart. They serve those who compare results: the calls of a
// server share its queue, so only whole pieces of time are nearly independent of each other.
const resultBlocks = 40

// Block is one of up to 40 pieces of nearly equal time that make up the measured window and the drain after it. Calls are
// counted in the piece in which they ended. A row of one tool holds its successes; the row of method "*" has the counts of
// all calls and no histogram where it would repeat those of the tools.
type Block struct {
	FromS  float64 `json:"from_s"` // from the begin of the measured window
	ToS    float64 `json:"to_s"`
	OK     int64   `json:"ok"`            // successes
	Errors int64   `json:"errors"`        // calls of any other outcome; row "*" only
	HDR    string  `json:"hdr,omitempty"` // response times of the successes, encoded as in Dist; empty without any
}

// resultBlocks cuts the timeline into blocks. ok are the series of the successes, failed those of everything else;
// encode asks for the histograms.
func (t *timeline) resultBlocks(ok, failed []int, encode bool) []Block {
	n := min(len(t.slots), resultBlocks)
	out := make([]Block, n)
	h := newHist()
	for i := range out {
		first, end := i*len(t.slots)/n, (i+1)*len(t.slots)/n
		b := &out[i]
		b.FromS, b.ToS = round(t.slots[first].from.Seconds(), 6), round(t.slots[end-1].to.Seconds(), 6)
		h.Reset()
		for j := first; j < end; j++ {
			for _, series := range ok {
				b.OK += countOf(t.slots[j].at(series))
				fill(h, t.slots[j].at(series))
			}
			for _, series := range failed {
				b.Errors += countOf(t.slots[j].at(series))
			}
		}
		if encode && b.OK > 0 {
			if text, err := h.EncodeV2(); err == nil { // it fails on counts that overflow
				b.HDR = string(text)
			}
		}
	}
	return out
}

// fill puts buckets into h.
func fill(h *hdr.Histogram, buckets []bucket) {
	for _, b := range buckets {
		_ = h.RecordValues(b.value, b.count) // the values come from a histogram of the same range
	}
}

// Bucket is how often a time occurred. Times are in microseconds, with three significant digits.
type Bucket struct{ ValueUS, Count int64 }

// Buckets lists the times of the block in ascending order.
func (b *Block) Buckets() ([]Bucket, error) {
	if b.HDR == "" {
		return nil, nil
	}
	h, err := hdr.Decode([]byte(b.HDR))
	if err != nil {
		return nil, fmt.Errorf("bench: the hdr of a block: %w", err)
	}
	return exported(sparse(h)), nil
}

// exported turns the buckets of this package into those of its interface.
func exported(in []bucket) []Bucket {
	out := make([]Bucket, len(in))
	for i, b := range in {
		out[i] = Bucket{b.value, b.count}
	}
	return out
}

// Seconds gives the length of the block.
func (b *Block) Seconds() float64 {
	return max(b.ToS-b.FromS, float64(time.Microsecond)/float64(time.Second))
}
