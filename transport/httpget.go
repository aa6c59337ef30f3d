package transport

import (
	"net/http"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// get serves a GET: it opens the session's event stream, which takes over from
// one that is open, or goes on with the stream that Last-Event-ID names.
func (h *HTTPHandler) get(w http.ResponseWriter, r *http.Request) {
	if !isEventStream(r) {
		h.refuse(w, http.StatusNotAcceptable, codec.CodeInvalidRequest, "Not Acceptable: Accept must name text/event-stream")
		return
	}
	if err := h.engine.Accepting(); err != nil {
		h.refuseSession(w, err, nil) // before a session comes back for nothing
		return
	}
	session, ok := h.existing(w, r)
	if !ok {
		return
	}
	defer session.Release()
	kept := h.streamsOf(session)
	if id := headerOf(r, headerLastEvent); id != "" && kept != nil {
		h.resume(w, r, session, kept, id)
		return
	}

	s := h.newStream(session, kept)
	s.notices = true
	l := newLink(s)
	defer l.leave()
	l.begin()
	takeOver(session, l)
	defer session.Detach(l)
	out := h.newEventWriter(w)
	defer out.close()
	h.carry(r, l, out, h.options.KeepAlive, session.Done())
}

// takeOver makes a link that of its stream, and the stream, where that is what
// it is for, the one for what belongs to no request. It gives what attach does.
func takeOver(session *engine.Session, l *link) (from uint64, live bool) {
	s := l.stream
	if s.kept != nil {
		s.kept.taking.Lock()
		defer s.kept.taking.Unlock()
	}
	from, live = s.attach(l)
	if !live || !s.notices {
		return from, live
	}
	session.Attach(l)
	if s.kept != nil {
		if before := s.kept.noticed(s); before != nil && before != s {
			before.conclude(true)
		}
	}
	return from, live
}
