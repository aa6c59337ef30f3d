package bench

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/mcpengine/mcpengine/codec"
)

const (
	headMost    = 100  // a sequence that begins above it was begun for somebody else, and nothing before it is missed
	missingMost = 1024 // numbers of one stream that may still come late
	idsKept     = 32   // of one stream, to find an event that comes again
	changesKept = 1024 // changes whose deliveries are followed at once
)

// streamTally counts what the server sends of its own accord, over all streams of a run: GET streams, the events of a
// reply before its response, and what a process says between answers.
type streamTally struct {
	events, lost, duplicated atomic.Int64

	mu      sync.Mutex
	gap     *hdr.Histogram // guarded by mu
	spread  *hdr.Histogram // guarded by mu
	changes int64          // guarded by mu: of which spread holds the time
	fan     []delivery     // guarded by mu: changes under way, by number
}

// delivery is one change on its way to its subscribers.
type delivery struct {
	key         uint64
	first, last time.Time
	count       int
}

func newStreamTally() *streamTally { return &streamTally{gap: newHist(), spread: newHist()} }

// track follows one stream. It belongs to whoever reads the stream.
type track struct {
	tally   *streamTally
	last    time.Time // of the event before
	ids     []uint64  // hashes of the last event ids, a ring
	seen    int
	numbers sequence // of notifications/message, "seq" in their data
	changes sequence // of notifications/resources/updated, "change" in their _meta
}

var idSeed = maphash.MakeSeed()

// note counts an event that arrived at now. id is that of the event, nil where it has none; m is its message, which has
// been decoded, or nil where it is none.
func (t *track) note(id []byte, m *codec.Message, now time.Time) {
	t.tally.events.Add(1)
	numbered := false
	if m != nil && m.Kind == codec.KindNotification {
		numbered = t.number(m, now)
	}
	if !numbered && t.repeats(id) {
		t.tally.duplicated.Add(1)
	}
	if !t.last.IsZero() {
		t.tally.mu.Lock()
		record(t.tally.gap, now.Sub(t.last))
		t.tally.mu.Unlock()
	}
	t.last = now
}

// number follows the sequence that the message belongs to, if it has a number.
func (t *track) number(m *codec.Message, now time.Time) bool {
	switch string(m.Method) {
	case codec.NotifyMessage:
		n, ok := codec.Int(codec.Member(m.Params, "data"), "seq")
		if ok {
			t.tally.take(&t.numbers, n, true)
		}
		return ok
	case codec.NotifyResourceUpdated:
		n, ok := codec.Int(m.Meta, "change")
		if ok && t.tally.take(&t.changes, n, false) {
			t.tally.delivered(maphash.Bytes(idSeed, m.URI)+uint64(n), now)
		}
		return ok
	}
	return false
}

// repeats reports whether the stream has had the id not long ago.
func (t *track) repeats(id []byte) bool {
	if len(id) == 0 {
		return false
	}
	h := maphash.Bytes(idSeed, id)
	if slices.Contains(t.ids, h) {
		return true
	}
	if len(t.ids) < idsKept {
		t.ids = append(t.ids, h)
	} else {
		t.ids[t.seen%idsKept] = h
	}
	t.seen++
	return false
}

// sequence is the numbers that one stream has had.
type sequence struct {
	begun   bool
	next    int64
	missing map[int64]struct{} // left out so far; bounded
}

// take counts what the number n says about those that should have come before it, and reports whether it is new. Where
// the numbers of the sequence begin at 1, those that are missing before the first one are lost too.
func (c *streamTally) take(s *sequence, n int64, fromOne bool) bool {
	if !s.begun {
		s.begun, s.next = true, n
		if fromOne && n > 0 && n <= headMost {
			s.next = 1
		}
	}
	if n < s.next {
		if _, late := s.missing[n]; late {
			delete(s.missing, n)
			c.lost.Add(-1)
			return true
		}
		c.duplicated.Add(1)
		return false
	}
	c.lost.Add(n - s.next)
	for k := s.next; k < n && len(s.missing) < missingMost; k++ {
		if s.missing == nil {
			s.missing = map[int64]struct{}{}
		}
		s.missing[k] = struct{}{}
	}
	s.next = n + 1
	return true
}

// delivered notes that a subscriber has heard of a change.
func (c *streamTally) delivered(key uint64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fan == nil {
		c.fan = make([]delivery, changesKept)
	}
	d := &c.fan[key%changesKept]
	if d.count > 0 && d.key != key {
		c.settle(d)
	}
	if d.count == 0 {
		*d = delivery{key: key, first: now, last: now}
	}
	d.count++
	if now.After(d.last) {
		d.last = now
	}
}

// settle closes the account of a change. The caller holds mu.
func (c *streamTally) settle(d *delivery) {
	if d.count > 0 {
		c.changes++
		record(c.spread, d.last.Sub(d.first))
	}
	*d = delivery{}
}

// result describes everything that came. The streams have ended.
func (c *streamTally) result() Streams {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.fan {
		c.settle(&c.fan[i])
	}
	out := Streams{Events: c.events.Load(), Lost: c.lost.Load(), Duplicated: c.duplicated.Load(), Changes: c.changes}
	if c.gap.TotalCount() > 0 {
		out.Gap = distOf(c.gap, nil)
	}
	if c.changes > 0 {
		out.Spread = distOf(c.spread, nil)
	}
	return out
}
