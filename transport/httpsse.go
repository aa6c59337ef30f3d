package transport

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"sync"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// SSEOptions configures NewSSEHandler. Nil is fine; zero means the default
// written at each field.
type SSEOptions struct {
	// HTTP holds the guards and limits, which are those of Streamable HTTP.
	// Its Events, Retry and CommitDelay are without effect here.
	HTTP HTTPOptions
	// SSEPath is the path of the event stream. Default "/sse".
	SSEPath string
	// MessagePath is the path that clients post to. Default "/messages".
	MessagePath string
	// Endpoint is the URI that clients are told to post to, without query,
	// where it is not MessagePath, say behind a proxy that rewrites paths.
	// They resolve it against that of the event stream.
	Endpoint string
}

// SSEHandler serves an engine over HTTP+SSE, the deprecated transport of
// revision 2024-11-05, for clients that know nothing newer. Each GET of the
// event stream is a session, which ends with it; its first event names the URI
// for the client's messages, and everything that the server has to say comes on
// the stream. It stands beside the handler of Streamable HTTP.
type SSEHandler struct {
	http        *HTTPHandler // guards, limits and counters
	ssePath     string
	messagePath string
	endpoint    string
	sessions    sync.Map // key to *sseSession
}

var _ http.Handler = (*SSEHandler)(nil)

// NewSSEHandler makes the handler of both paths.
func NewSSEHandler(e *engine.Engine, o *SSEOptions) *SSEHandler {
	var c SSEOptions
	if o != nil {
		c = *o
	}
	c.HTTP.Events = nil
	h := &SSEHandler{
		http:    NewHTTPHandler(e, &c.HTTP),
		ssePath: orDefault(c.SSEPath, "/sse"), messagePath: orDefault(c.MessagePath, "/messages"),
	}
	h.endpoint = orDefault(c.Endpoint, h.messagePath)
	return h
}

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// Stats gives a snapshot.
func (h *SSEHandler) Stats() HTTPStats { return h.http.Stats() }

// ServeHTTP serves one request.
func (h *SSEHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if reason, ok := h.http.guard.allows(r); !ok {
		h.http.refuse(w, http.StatusForbidden, codec.CodeInvalidRequest, reason)
		return
	}
	if h.http.options.CORS && h.http.cors(w, r) {
		return
	}
	var serve func(http.ResponseWriter, *http.Request)
	var method string
	switch r.URL.Path {
	case h.ssePath:
		serve, method = h.stream, http.MethodGet
	case h.messagePath:
		serve, method = h.message, http.MethodPost
	default:
		http.NotFound(w, r)
		return
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		h.http.refuse(w, http.StatusMethodNotAllowed, codec.CodeInvalidRequest, "Method Not Allowed: use "+method)
		return
	}
	serve(w, r)
}

// sseSession is a session and the link of its stream. It is the engine's stream
// for the session and for the reply to each request.
type sseSession struct {
	*engine.Session
	link  *link
	owner string // the principal that opened it, and alone may post
}

var _ engine.Stream = (*sseSession)(nil)

// Send queues a frame, or drops it where the client is too far behind.
func (s *sseSession) Send(frame []byte) error { return s.link.Send(frame) }

// Flush wakes the writer.
func (s *sseSession) Flush() { s.link.Flush() }

// Finish queues an answer. A client that is so far behind that not even answers
// find room loses its session, as it would wait for them in vain.
func (s *sseSession) Finish(frame []byte, _ int) {
	if frame == nil {
		return
	}
	l := s.link
	l.stream.mu.Lock()
	defer l.stream.mu.Unlock()
	if len(l.queue) > l.stream.max {
		l.stream.end()
		return
	}
	_ = l.stream.put(frame, true)
}

// behind reports whether the client reads so little that it may not ask for more.
func (s *sseSession) behind() bool {
	l := s.link
	l.stream.mu.Lock()
	defer l.stream.mu.Unlock()
	return len(l.queue) > l.stream.max
}

// stream serves the GET of an event stream.
func (h *SSEHandler) stream(w http.ResponseWriter, r *http.Request) {
	if _, events := accepts(r.Header["Accept"]); !events {
		h.http.refuse(w, http.StatusNotAcceptable, codec.CodeInvalidRequest, "Not Acceptable: Accept must name text/event-stream")
		return
	}
	owner, err := h.http.engine.PrincipalOf(r.Context())
	if err != nil {
		h.http.refuseSession(w, err, nil)
		return
	}
	key := rand.Text()
	session, err := h.http.engine.OpenSession(key, nil)
	if err != nil {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, codec.CodeOverloaded, h.http.engine.WireError(err).Message)
		return
	}
	defer session.Close()
	release := session.Hold()
	defer release()
	l := newLink(&stream{max: h.http.options.MaxQueueBytes, notRead: &h.http.refused.notRead})
	l.form = replyEvents
	l.queue = append(l.queue, "event: endpoint\ndata: "+h.endpoint+"?sessionId="+url.QueryEscape(key)+"\n\n"...)
	l.wake()
	l.stream.attach(l)
	defer l.leave()
	s := &sseSession{Session: session, link: l, owner: owner}
	h.sessions.Store(key, s)
	defer h.sessions.Delete(key)
	session.Attach(l)
	defer session.Detach(l)
	out := h.http.newEventWriter(w)
	defer out.close()
	h.http.carry(r, l, out, h.http.options.KeepAlive, session.Done())
}

// message serves a POST of the client.
func (h *SSEHandler) message(w http.ResponseWriter, r *http.Request) {
	if !isJSON(headerOf(r, "Content-Type")) {
		h.http.refuse(w, http.StatusUnsupportedMediaType, codec.CodeInvalidRequest,
			"Unsupported Media Type: Content-Type must be application/json")
		return
	}
	key := r.URL.Query().Get("sessionId")
	if key == "" {
		h.http.refuse(w, http.StatusBadRequest, codec.CodeInvalidRequest, "Bad Request: the sessionId in the query is missing")
		return
	}
	known, ok := h.sessions.Load(key)
	if !ok {
		h.http.refuse(w, http.StatusNotFound, codeSessionNotFound, "Session not found")
		return
	}
	s := known.(*sseSession)
	switch who, err := h.http.engine.PrincipalOf(r.Context()); {
	case err != nil:
		h.http.refuseSession(w, err, nil)
		return
	case who != s.owner:
		h.http.refuse(w, http.StatusNotFound, codeSessionNotFound, "Session not found")
		return
	}
	if s.behind() {
		h.http.refused.notRead.Add(1)
		w.Header().Set("Retry-After", "1")
		h.http.refuse(w, http.StatusServiceUnavailable, codec.CodeOverloaded, "Service Unavailable: the event stream is not read")
		return
	}
	p := takePost(h.http, w, true, true)
	defer p.give()
	if !h.http.readBody(p, w, r) {
		h.http.refused.bodies.Add(1)
		return
	}
	if fault := s.receive(r, p); fault != nil {
		p.refuse(http.StatusBadRequest, h.http.engine.WireError(fault))
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write([]byte("Accepted"))
}

// receive hands what was posted to the engine. A request runs on a goroutine of
// its own, as its POST is answered at once.
func (s *sseSession) receive(r *http.Request, p *post) (fault error) {
	ctx := context.WithoutCancel(r.Context())
	if codec.IsBatch(p.body) {
		if s.Revision() != engine.Rev20250326 {
			return codec.Decode(p.body, &p.message)
		}
		j := p.lend()
		go s.ReceiveBatch(ctx, j.body, s)
		return nil
	}
	if fault := codec.Decode(p.body, &p.message); fault != nil {
		return fault
	}
	if p.message.Kind != codec.KindRequest {
		s.Touch()
		s.Receive(ctx, &p.message, nil, s)
		return nil
	}
	j := p.lend()
	go s.Receive(ctx, &j.message, nil, s)
	return nil
}
