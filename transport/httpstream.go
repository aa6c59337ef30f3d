package transport

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// stream is an event stream of a session: the reply to a POST, or what the
// server has to say by itself. A link, one at a time, carries it to the client.
// Where its events are kept the stream outlives its links: what comes while
// there is none is found in the store by the GET that resumes the stream.
type stream struct {
	number  uint64
	rev     engine.Revision
	kept    *sessionStreams // where events are kept, or nil
	notices bool            // it is for what belongs to no request
	max     int             // bytes that wait for the client
	notRead *atomic.Int64   // counts what found no room
	retryMS int64           // how long a client waits before it comes back

	mu    sync.Mutex // guards what follows, and the link's; never held while writing
	seq   uint64     // of the last event
	link  *link      // nil while there is none
	known bool       // the client has an id to resume from
	ended bool       // no more frames
}

var (
	_ engine.Stream     = (*stream)(nil)
	_ engine.Detachable = (*stream)(nil)
	_ engine.Stream     = (*link)(nil)
)

// link carries a stream to one HTTP response, whose goroutine is the one
// writer. For the stream of a GET it is what the session is given, so that a
// link that was taken over from ends itself and not the stream.
type link struct {
	stream  *stream
	ready   chan struct{} // capacity 1: there is something to take
	json    bool          // the reply may be a plain JSON response
	resumed bool          // the client has an id already

	// Guarded by stream.mu.
	form   replyForm
	status int // of a JSON response
	queue  []byte
	spare  []byte
	last   uint64 // the number of the last event that went this way
	over   bool   // nothing is added any more
}

// newLink makes a link that is not yet the stream's.
func newLink(s *stream) *link {
	return &link{stream: s, ready: make(chan struct{}, 1), status: http.StatusOK}
}

// primes reports whether the stream begins with an event that has no data.
func (s *stream) primes() bool { return s.kept != nil && s.rev >= engine.Rev20251125 }

// Send queues a frame that precedes the answer.
func (s *stream) Send(frame []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(frame, false)
}

// put queues a frame; one that is an answer is never dropped. s.mu is held.
func (s *stream) put(frame []byte, answer bool) error {
	if s.ended {
		return engine.ErrStreamClosed
	}
	l := s.link
	if s.kept == nil {
		if l == nil {
			return engine.ErrStreamClosed
		}
		if !answer && l.full(frame) {
			s.notRead.Add(1)
			return engine.ErrStreamFull
		}
		l.commit(s.retryMS)
		l.queue = appendEvent(l.queue, frame)
		return nil
	}
	s.seq++
	s.kept.append(Event{Stream: s.number, Seq: s.seq, Frame: frame, Last: answer})
	switch {
	case l == nil:
	case !answer && l.full(frame):
		// The client is too far behind. It gets what is queued, and the rest
		// when it comes back.
		s.notRead.Add(1)
		l.release(s.retryMS)
	default:
		l.commit(s.retryMS)
		l.last = s.seq
		l.queue = appendEventFields(l.queue, s.number, s.seq, frame)
	}
	return nil
}

// Finish queues the answer, or ends the stream without one.
func (s *stream) Finish(frame []byte, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finish(frame, code)
}

// finish is Finish. s.mu is held.
func (s *stream) finish(frame []byte, code int) {
	if s.ended {
		return
	}
	l := s.link
	switch {
	case frame != nil && l != nil && l.form == replyNone && l.json:
		l.form = replyJSON
		l.queue = append(l.queue, frame...)
		if code == codec.CodeOverloaded {
			l.status = http.StatusServiceUnavailable
		}
	case frame != nil:
		_ = s.put(frame, true)
	default:
		if l != nil {
			l.commit(s.retryMS)
		}
		if s.kept != nil {
			s.seq++
			s.kept.append(Event{Stream: s.number, Seq: s.seq, Last: true})
		}
	}
	s.end()
}

// end takes the stream out of use. s.mu is held.
func (s *stream) end() {
	s.ended = true
	if s.link != nil {
		s.link.over = true
		s.link.wake()
		s.link = nil
	}
	if s.kept != nil {
		s.kept.forget(s)
	}
}

// conclude ends the stream after the engine is done with its request, in case
// that it is not ended. A POST without anything to answer is accepted.
func (s *stream) conclude(answered bool) {
	s.mu.Lock()
	l := s.link
	if !s.ended && !answered && l != nil && l.form == replyNone {
		l.form, l.status = replyJSON, http.StatusAccepted
		s.end()
	}
	s.finish(nil, 0)
	s.mu.Unlock()
}

// Flush wakes the writer of the link.
func (s *stream) Flush() {
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l != nil {
		l.wake()
	}
}

// Detach closes the response that carries the stream and keeps the stream: the
// client gets the rest when it resumes.
func (s *stream) Detach(retry time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.primes():
		return engine.ErrNotDetachable
	case s.ended:
		return engine.ErrStreamClosed
	case s.link == nil:
		return nil
	}
	s.link.release(retryMS(retry))
	return nil
}

// retryMS gives a time for the retry field, at least a millisecond.
func retryMS(d time.Duration) int64 { return max(1, d.Milliseconds()) }

// attach makes a link that of the stream, which the link before loses. It gives
// the number of the last event that goes to the client by other ways, and
// reports false where the stream has ended.
func (s *stream) attach(l *link) (from uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return s.seq, false
	}
	if old := s.link; old != nil {
		old.over = true
		old.wake()
	}
	s.link, s.known = l, s.known || l.resumed
	l.last = s.seq
	return s.seq, true
}

// release lets the link end while the stream goes on, and tells the client when
// to come back. stream.mu is held.
func (l *link) release(retryMS int64) {
	if l.form == replyNone {
		l.commit(retryMS)
	} else {
		l.hint(retryMS)
	}
	l.over = true
	l.stream.link = nil
	l.wake()
}

// hint tells the client when to come back after the end of the response, where
// its revision knows of that. stream.mu is held.
func (l *link) hint(retryMS int64) {
	s := l.stream
	switch {
	case s.primes():
		l.queue = appendPriming(l.queue, s.number, l.last, retryMS)
	case s.rev >= engine.Rev20251125:
		l.queue = appendRetry(l.queue, retryMS)
	}
}

// commit makes the reply an event stream. stream.mu is held.
func (l *link) commit(retryMS int64) {
	if l.form != replyNone {
		return
	}
	l.form = replyEvents
	s := l.stream
	if s.primes() && !l.resumed {
		l.queue = appendPriming(l.queue, s.number, 0, retryMS)
		s.known = true
	}
}

// begin makes the reply an event stream at once.
func (l *link) begin() {
	l.stream.mu.Lock()
	defer l.stream.mu.Unlock()
	l.commit(l.stream.retryMS)
	l.wake()
}

// full reports whether a frame finds no room. One that is alone always does.
// stream.mu is held.
func (l *link) full(frame []byte) bool {
	return len(l.queue) > 0 && len(l.queue)+len(frame) > l.stream.max
}

// wake tells the writer that there is something to take.
func (l *link) wake() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// Send queues a frame of the session that belongs to no request.
func (l *link) Send(frame []byte) error { return l.stream.Send(frame) }

// Finish ends the stream, unless another link carries it now.
func (l *link) Finish(frame []byte, _ int) {
	s := l.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != l {
		l.over = true
		return
	}
	if frame != nil {
		_ = s.put(frame, false)
	}
	if s.link == l {
		l.hint(s.retryMS)
	}
	s.finish(nil, 0)
}

// Flush wakes the writer, and that of the link that carries the stream now.
func (l *link) Flush() {
	l.wake()
	l.stream.Flush()
}

// portion is what a writer takes at once.
type portion struct {
	form   replyForm
	status int
	bytes  []byte
	over   bool // it is the last one
}

// take gives what is queued.
func (l *link) take() portion {
	s := l.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	p := portion{form: l.form, status: l.status, bytes: l.queue, over: l.over}
	l.queue, l.spare = l.spare, nil
	s.known = s.known || s.kept != nil && l.last > 0
	return p
}

// recycle gives the bytes of a portion back.
func (l *link) recycle(b []byte) {
	if cap(b) > 4<<10 {
		return
	}
	l.stream.mu.Lock()
	l.spare = b[:0]
	l.stream.mu.Unlock()
}

// tick is called when nothing was written for a while: it commits a reply that
// takes long to an event stream, or keeps the stream alive.
func (l *link) tick() {
	l.stream.mu.Lock()
	defer l.stream.mu.Unlock()
	switch {
	case l.over:
	case l.form == replyNone:
		l.commit(l.stream.retryMS)
	case len(l.queue) == 0:
		l.queue = append(l.queue, keepAlive...)
	}
}

// leave is called when nothing takes from the link any more. A stream that
// nobody can resume ends.
func (l *link) leave() {
	s := l.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != l {
		return
	}
	s.link = nil
	if s.kept == nil || !s.known {
		s.end()
	}
}
