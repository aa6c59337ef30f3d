package bench

import (
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// sample is one call that has ended.
type sample struct {
	series   int
	outcome  outcome
	code     int           // JSON-RPC code or HTTP status
	lag      time.Duration // how late the generator began it; open loop only
	response time.Duration // from the intended start
	service  time.Duration // from the sending
	ttfb     time.Duration // from the sending to the first byte
	busy     time.Duration // how long it was somebody's business, as Little's law counts it
	think    time.Duration // how long its user thinks before a call, on average
	aside    bool          // it is no call: it has a series and is counted nowhere else
	meant    bool          // it was cancelled as its step says, which is no error
	inTime   bool          // it ended before the measured window did
}

// series is what calls are told apart by: each has a distribution of its own.
type series struct {
	method string
	tool   string // of tools/call, else empty
}

// triple is the three distributions of one series' successes. A histogram takes 170 KB, so they are made when the first
// success is there.
type triple struct{ response, service, ttfb *hdr.Histogram }

// each gives the histograms one after another, so that what is done to one is done to all.
func (t *triple) each() [3]**hdr.Histogram {
	return [3]**hdr.Histogram{&t.response, &t.service, &t.ttfb}
}

// make makes the histograms that are missing.
func (t *triple) make() {
	for _, h := range t.each() {
		if *h == nil {
			*h = newHist()
		}
	}
}

// add records the times of a success.
func (t *triple) add(s *sample) {
	if t.response == nil {
		t.make()
	}
	record(t.response, s.response)
	if !s.aside {
		record(t.service, s.service)
		record(t.ttfb, s.ttfb)
	}
}

// merge adds what o holds.
func (t *triple) merge(o *triple) {
	from := o.each()
	for i, h := range t.each() {
		*h = merged(*h, *from[i])
	}
}

// batch is what has been recorded since it was last emptied.
type batch struct {
	series    []triple
	failures  [outcomes]*hdr.Histogram
	counts    [outcomes]int64
	meant     int64 // of those cancelled
	lag       *hdr.Histogram
	rpcCodes  map[string]int64
	httpCodes map[string]int64
	answered  int64         // in the measured window
	ended     int64         // in the measured window, whatever the outcome
	busy      time.Duration // of those, summed
	think     time.Duration // of those, summed
}

func newBatch(n int) *batch {
	return &batch{series: make([]triple, n), lag: newHist(), rpcCodes: map[string]int64{}, httpCodes: map[string]int64{}}
}

// add records one call.
func (b *batch) add(s *sample) {
	if s.aside {
		b.series[s.series].add(s)
		return
	}
	b.counts[s.outcome]++
	if s.meant {
		b.meant++
	}
	record(b.lag, s.lag)
	if s.inTime {
		b.ended++
		b.busy += s.busy
		b.think += s.think
		if s.outcome.answered() {
			b.answered++
		}
	}
	if s.outcome == outcomeOK {
		b.series[s.series].add(s)
		return
	}
	if b.failures[s.outcome] == nil {
		b.failures[s.outcome] = newHist()
	}
	record(b.failures[s.outcome], s.response)
	switch s.outcome {
	case outcomeRPCError:
		b.rpcCodes[strconv.Itoa(s.code)]++
	case outcomeHTTPError:
		b.httpCodes[strconv.Itoa(s.code)]++
	}
}

// merge adds what o holds. Counts are added value by value, so that the result equals one histogram of all samples.
func (b *batch) merge(o *batch) {
	for i := range b.series {
		b.series[i].merge(&o.series[i])
	}
	for i := range o.failures {
		b.failures[i] = merged(b.failures[i], o.failures[i])
		b.counts[i] += o.counts[i]
	}
	b.lag.Merge(o.lag)
	for code, n := range o.rpcCodes {
		b.rpcCodes[code] += n
	}
	for code, n := range o.httpCodes {
		b.httpCodes[code] += n
	}
	b.meant += o.meant
	b.answered += o.answered
	b.ended += o.ended
	b.busy += o.busy
	b.think += o.think
}

// reset empties the batch and keeps its histograms.
func (b *batch) reset() {
	for i := range b.series {
		for _, h := range b.series[i].each() {
			if *h != nil {
				(*h).Reset()
			}
		}
	}
	for _, h := range b.failures {
		if h != nil {
			h.Reset()
		}
	}
	b.lag.Reset()
	clear(b.rpcCodes)
	clear(b.httpCodes)
	b.counts = [outcomes]int64{}
	b.meant, b.answered, b.ended, b.busy, b.think = 0, 0, 0, 0, 0
}

// total counts the calls of the batch.
func (b *batch) total() int64 {
	var n int64
	for _, c := range b.counts {
		n += c
	}
	return n
}

// errors counts those that were no success.
func (b *batch) errors() int64 { return b.total() - b.counts[outcomeOK] - b.meant }

// all merges the successes of the first series, as many as there are of calls.
func (b *batch) all(calls int) triple {
	var out triple
	out.make()
	for i := range calls {
		out.merge(&b.series[i])
	}
	return out
}

// shard is where some of the workers record. An open loop may have thousands of workers, and a histogram takes 170 KB, so
// workers share as many shards as there can be writers at the same instant; the lock is held for a few hundred
// nanoseconds and is hardly ever contended.
type shard struct {
	mu   sync.Mutex
	live *batch // guarded by mu
	_    [48]byte
}

func (s *shard) add(x *sample) {
	s.mu.Lock()
	s.live.add(x)
	s.mu.Unlock()
}

// recorder collects what the shards hold.
type recorder struct {
	shards   []*shard
	spare    *batch       // owned by the collector: swapped with a shard's
	inFlight atomic.Int64 // calls between sending and end
	examples [outcomes]atomic.Pointer[string]
}

func newRecorder(series int) *recorder {
	r := &recorder{spare: newBatch(series)}
	for range min(2*runtime.GOMAXPROCS(0), 16) {
		r.shards = append(r.shards, &shard{live: newBatch(series)})
	}
	return r
}

// shardOf gives the shard of a worker.
func (r *recorder) shardOf(worker int) *shard { return r.shards[worker%len(r.shards)] }

// collectInto moves everything that has been recorded into b. Only the collector calls it.
func (r *recorder) collectInto(b *batch) {
	for _, s := range r.shards {
		s.mu.Lock()
		s.live, r.spare = r.spare, s.live
		s.mu.Unlock()
		b.merge(r.spare)
		r.spare.reset()
	}
}

// example keeps the first description of an outcome.
func (r *recorder) example(o outcome, text func() string) {
	if r.examples[o].Load() == nil {
		s := text()
		r.examples[o].CompareAndSwap(nil, &s)
	}
}

// exampleOf gives the first description of an outcome, or "".
func (r *recorder) exampleOf(o outcome) string {
	if s := r.examples[o].Load(); s != nil {
		return *s
	}
	return ""
}
