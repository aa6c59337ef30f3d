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
	tool     int
	outcome  outcome
	code     int           // JSON-RPC code or HTTP status
	lag      time.Duration // how late the generator began it; open loop only
	response time.Duration // from the intended start
	service  time.Duration // from the sending
	ttfb     time.Duration // from the sending to the first byte
	busy     time.Duration // how long it kept its worker
	inTime   bool          // it ended before the measured window did
}

// triple is the three distributions of one tool's successes.
type triple struct{ response, service, ttfb *hdr.Histogram }

// batch is what has been recorded since it was last emptied.
type batch struct {
	tools     []triple
	failures  [outcomes]*hdr.Histogram
	counts    [outcomes]int64
	lag       *hdr.Histogram
	rpcCodes  map[string]int64
	httpCodes map[string]int64
	answered  int64         // in the measured window
	ended     int64         // in the measured window, whatever the outcome
	busy      time.Duration // of those, summed
}

func newBatch(tools int) *batch {
	b := &batch{tools: make([]triple, tools), lag: newHist(), rpcCodes: map[string]int64{}, httpCodes: map[string]int64{}}
	for i := range b.tools {
		b.tools[i] = triple{newHist(), newHist(), newHist()}
	}
	return b
}

// add records one call.
func (b *batch) add(s *sample) {
	b.counts[s.outcome]++
	record(b.lag, s.lag)
	if s.inTime {
		b.ended++
		b.busy += s.busy
		if s.outcome.answered() {
			b.answered++
		}
	}
	if s.outcome == outcomeOK {
		t := &b.tools[s.tool]
		record(t.response, s.response)
		record(t.service, s.service)
		record(t.ttfb, s.ttfb)
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
	for i := range b.tools {
		b.tools[i].response.Merge(o.tools[i].response)
		b.tools[i].service.Merge(o.tools[i].service)
		b.tools[i].ttfb.Merge(o.tools[i].ttfb)
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
	b.answered += o.answered
	b.ended += o.ended
	b.busy += o.busy
}

// reset empties the batch and keeps its histograms.
func (b *batch) reset() {
	for _, t := range b.tools {
		t.response.Reset()
		t.service.Reset()
		t.ttfb.Reset()
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
	b.answered, b.ended, b.busy = 0, 0, 0
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
func (b *batch) errors() int64 { return b.total() - b.counts[outcomeOK] }

// all merges the successes of every tool.
func (b *batch) all() triple {
	if len(b.tools) == 1 {
		return b.tools[0]
	}
	out := triple{newHist(), newHist(), newHist()}
	for _, t := range b.tools {
		out.response.Merge(t.response)
		out.service.Merge(t.service)
		out.ttfb.Merge(t.ttfb)
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

func newRecorder(tools int) *recorder {
	r := &recorder{spare: newBatch(tools)}
	for range min(2*runtime.GOMAXPROCS(0), 16) {
		r.shards = append(r.shards, &shard{live: newBatch(tools)})
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
