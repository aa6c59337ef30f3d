package transport

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// sessionStreams holds the streams of one session whose events are kept.
type sessionStreams struct {
	key   string
	store EventStore

	// taking is held while a stream becomes the one for what belongs to no
	// request, so that two of them do not end each other. Nothing waits in it.
	taking sync.Mutex

	mu     sync.Mutex         // guards what follows
	live   map[uint64]*stream // those that have not ended
	notice *stream            // the one of the last GET that opened one
	closed bool               // the session has ended
}

// append keeps an event, unless the session has ended.
func (ss *sessionStreams) append(e Event) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if !ss.closed {
		ss.store.Append(ss.key, e)
	}
}

// add takes note of a stream.
func (ss *sessionStreams) add(s *stream) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.live[s.number] = s
}

// forget drops a stream that has ended.
func (ss *sessionStreams) forget(s *stream) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.live, s.number)
	if ss.notice == s {
		ss.notice = nil
	}
}

// find gives a stream that has not ended, or nil.
func (ss *sessionStreams) find(number uint64) *stream {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.live[number]
}

// noticed makes a stream the one for what belongs to no request, and gives the
// one before.
func (ss *sessionStreams) noticed(s *stream) (before *stream) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	before, ss.notice = ss.notice, s
	return before
}

// close forgets everything that is kept, unless the session can come back.
func (ss *sessionStreams) close(cause error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.closed = true
	if !errors.Is(cause, engine.ErrPassivated) {
		ss.store.Drop(ss.key)
	}
}

// streamsOf gives the streams of a session whose events are kept, or nil where
// they are not: without a store, and before the revision that has them.
func (h *HTTPHandler) streamsOf(session *engine.Session) *sessionStreams {
	if h.options.Events == nil || session.Revision() < engine.Rev20250326 {
		return nil
	}
	if known, ok := h.kept.Load(session); ok {
		return known.(*sessionStreams)
	}
	made := &sessionStreams{key: session.Key(), store: h.options.Events, live: make(map[uint64]*stream)}
	known, loaded := h.kept.LoadOrStore(session, made)
	if !loaded {
		session.OnClose(func(cause error) {
			h.kept.Delete(session)
			made.close(cause)
		})
	}
	return known.(*sessionStreams)
}

// newStream makes a stream of a session.
func (h *HTTPHandler) newStream(session *engine.Session, kept *sessionStreams) *stream {
	s := &stream{
		rev: session.Revision(), kept: kept, max: h.options.MaxQueueBytes, notRead: &h.refused.notRead,
		retryMS: retryMS(h.options.Retry),
	}
	if kept != nil {
		s.number = h.numbers.Add(1)
		kept.add(s)
	}
	return s
}

// job is what a POST asks for, for the goroutine that outlives it.
type job struct {
	body    []byte
	message codec.Message
}

// lend takes what was posted out of p, which may be given back then.
func (p *post) lend() *job {
	j := &job{body: p.body, message: p.message}
	p.body, p.message = nil, codec.Message{}
	return j
}

// postResumable serves a POST whose reply may be resumed. The engine runs on a
// goroutine of its own, so that the response can end before the request does.
func (h *HTTPHandler) postResumable(p *post, r *http.Request, session *engine.Session, kept *sessionStreams, batch bool) {
	j := p.lend()
	s := h.newStream(session, kept)
	l := newLink(s)
	l.json = p.json
	s.attach(l)
	defer l.leave()
	ctx := context.WithoutCancel(r.Context())
	go func() {
		answered := true
		if batch {
			answered = session.ReceiveBatch(ctx, j.body, s)
		} else {
			session.Receive(ctx, &j.message, nil, s)
		}
		s.conclude(answered)
	}()
	out := h.newEventWriter(p.w)
	defer out.close()
	h.carry(r, l, out, h.options.CommitDelay, session.Done())
}

// errGone means that events are no longer kept, or never were.
var errGone = errors.New("transport: events are not kept")

// missed gives the events that follow an id. whole tells that the stream ended
// with the last of them, or with the one that the id names.
func (ss *sessionStreams) missed(ctx context.Context, number, seq uint64) (events []Event, whole bool, err error) {
	from := seq
	if from > 0 {
		from-- // the event that is named shows that the id is one of ours
	}
	events, err = ss.store.After(ctx, ss.key, number, from)
	if err != nil {
		return nil, false, err
	}
	for i := range events {
		if events[i].Seq != events[0].Seq+uint64(i) {
			return nil, false, errGone
		}
	}
	if n := len(events); n > 0 {
		whole = events[n-1].Last
	}
	switch {
	case len(events) == 0:
		return nil, false, errGone
	case events[0].Seq == seq:
		return events[1:], whole, nil
	case events[0].Seq == seq+1:
		return events, whole, nil
	}
	return nil, false, errGone
}

// resume serves a GET with Last-Event-ID: what followed on that stream, and
// then the stream as it goes on.
func (h *HTTPHandler) resume(w http.ResponseWriter, r *http.Request, session *engine.Session, kept *sessionStreams, id string) {
	number, seq, ok := parseEventID(id)
	if !ok {
		h.refuseResume(w)
		return
	}
	s := kept.find(number)
	if s == nil {
		events, whole, err := kept.missed(r.Context(), number, seq)
		if err != nil || len(events) == 0 && !whole {
			h.refuseResume(w)
			return
		}
		out := h.newEventWriter(w)
		defer out.close()
		_ = out.replay(events)
		return
	}
	h.resumeLive(w, r, session, s, seq)
}

// resumeLive serves a GET that resumes a stream which has not ended.
func (h *HTTPHandler) resumeLive(w http.ResponseWriter, r *http.Request, session *engine.Session, s *stream, seq uint64) {
	events, err := s.since(r.Context(), seq)
	if err != nil {
		h.refuseResume(w)
		return
	}
	l := newLink(s)
	l.form, l.resumed = replyEvents, true
	until, live := takeOver(session, l)
	defer l.leave()
	defer session.Detach(l)
	seen := seq + uint64(len(events))
	if seen < until {
		// Something came between the look and the takeover.
		var more []Event
		more, _, err = s.kept.missed(r.Context(), s.number, seen)
		if err != nil {
			h.refuseResume(w)
			return
		}
		events = append(events, more[:min(uint64(len(more)), until-seen)]...)
	}
	out := h.newEventWriter(w)
	defer out.close()
	if out.replay(events) != nil || !live {
		return
	}
	h.carry(r, l, out, h.options.KeepAlive, session.Done())
}

// since gives the events of a live stream that follow a number.
func (s *stream) since(ctx context.Context, seq uint64) ([]Event, error) {
	s.mu.Lock()
	newest := s.seq
	s.mu.Unlock()
	switch {
	case seq > newest:
		return nil, errGone
	case seq == newest:
		return nil, nil
	}
	events, _, err := s.kept.missed(ctx, s.number, seq)
	return events, err
}

func (h *HTTPHandler) refuseResume(w http.ResponseWriter) {
	h.refuse(w, http.StatusBadRequest, codec.CodeInvalidRequest,
		"Bad Request: Last-Event-ID names no event of this session that is still kept")
}
