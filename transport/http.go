package transport

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// Header names of the protocol, in the canonical form of package http.
const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
	// headerLastEvent names the event after which a stream is resumed.
	headerLastEvent = "Last-Event-Id"
)

// codeSessionNotFound is the code that implementations of the legacy revisions
// agree on for a session that does not exist.
const codeSessionNotFound = -32001

// HTTPHandler serves an engine over Streamable HTTP. It is an http.Handler for
// one endpoint path, around which any middleware may stand.
type HTTPHandler struct {
	engine  *engine.Engine
	options HTTPOptions
	guard   *guard
	posts   sync.Pool // of *post
	watch   watch
	streams atomic.Int64 // open event streams
	read    atomic.Int64 // bytes of bodies
	refused refusals

	numbers atomic.Uint64 // of the last stream whose events are kept
	kept    sync.Map      // *engine.Session to *sessionStreams
}

var _ http.Handler = (*HTTPHandler)(nil)

// NewHTTPHandler makes the handler of an endpoint: POST for messages, with a
// JSON or an event-stream reply; GET for the stream of what the server has to
// say by itself; DELETE for the end of a session.
func NewHTTPHandler(e *engine.Engine, o *HTTPOptions) *HTTPHandler {
	h := &HTTPHandler{engine: e, options: o.withDefaults()}
	h.guard = newGuard(&h.options)
	h.posts.New = h.newPost
	h.watch.init(h)
	// The ids of streams are not those of an earlier process, whose sessions may
	// come back: no more than 65,536 are made in a millisecond.
	if e.SealsSessions() {
		h.numbers.Store(uint64(time.Now().UnixMilli()) << 16)
	}
	return h
}

// HTTPStats is a snapshot of what a handler holds and has done.
type HTTPStats struct {
	Streams       int   // open event streams
	BodyBytesRead int64 // bytes taken from bodies
	// ReplayBytes is what is kept for replay in the session that has the most,
	// or 0 where the store does not tell: MemoryEvents does.
	ReplayBytes int
	Refusals    HTTPRefusals
}

// Stats gives a snapshot.
func (h *HTTPHandler) Stats() HTTPStats {
	stats := HTTPStats{Streams: int(h.streams.Load()), BodyBytesRead: h.read.Load(), Refusals: h.refused.snapshot()}
	if sized, ok := h.options.Events.(interface{ LargestSession() int }); ok {
		stats.ReplayBytes = sized.LargestSession()
	}
	return stats
}

// ServeHTTP serves one request.
func (h *HTTPHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(r.Header) > h.options.MaxHeaders {
		w.Header().Set("Connection", "close")
		h.refuse(w, http.StatusRequestHeaderFieldsTooLarge, codec.CodeInvalidRequest, "Request Header Fields Too Large: too many headers")
		return
	}
	if reason, ok := h.guard.allows(r); !ok {
		h.refuse(w, http.StatusForbidden, codec.CodeInvalidRequest, reason)
		return
	}
	if h.options.CORS && h.cors(w, r) {
		return
	}
	switch r.Method {
	case http.MethodPost:
		h.post(w, r)
	case http.MethodGet:
		h.get(w, r)
	case http.MethodDelete:
		h.delete(w, r)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		h.refuse(w, http.StatusMethodNotAllowed, codec.CodeInvalidRequest, "Method Not Allowed: use POST, GET or DELETE")
	}
}

// cors marks the response for an allowed origin, and reports true when the
// request was a preflight and is answered.
func (h *HTTPHandler) cors(w http.ResponseWriter, r *http.Request) bool {
	origin := headerOf(r, "Origin")
	if origin == "" {
		return false
	}
	header := w.Header()
	header.Add("Vary", "Origin")
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate")
	if r.Method != http.MethodOptions {
		return false
	}
	header.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
	header.Set("Access-Control-Allow-Headers", "Content-Type, Accept, Authorization, Last-Event-ID, "+
		"Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name"+wantedParams(r.Header.Values("Access-Control-Request-Headers")))
	header.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// wantedParams gives those of the headers that a preflight asks for which repeat
// an argument of a tool; their names are the tools'.
func wantedParams(asked []string) string {
	var list strings.Builder
	for _, value := range asked {
		for name := range strings.SplitSeq(value, ",") {
			name = strings.TrimSpace(name)
			if len(name) > len("mcp-param-") && strings.EqualFold(name[:len("mcp-param-")], "mcp-param-") {
				list.WriteString(", " + name)
			}
		}
	}
	return list.String()
}

// post serves a POST: one message, or a batch.
func (h *HTTPHandler) post(w http.ResponseWriter, r *http.Request) {
	if !isJSON(headerOf(r, "Content-Type")) {
		h.refuse(w, http.StatusUnsupportedMediaType, codec.CodeInvalidRequest,
			"Unsupported Media Type: Content-Type must be application/json")
		return
	}
	json, events := accepts(r.Header["Accept"])
	if !json && !events {
		h.refuse(w, http.StatusNotAcceptable, codec.CodeInvalidRequest,
			"Not Acceptable: Accept must name application/json and text/event-stream")
		return
	}
	p := takePost(h, w, json, events)
	defer p.give()
	if !h.readBody(p, w, r) {
		h.refused.bodies.Add(1)
		return
	}
	if codec.IsBatch(p.body) {
		p.message.Reset() // it is not decoded
		h.batch(p, r)
		return
	}
	fault := codec.Decode(p.body, &p.message)
	if fault != nil {
		p.refuse(http.StatusBadRequest, h.engine.WireError(fault))
		return
	}
	if version := headerOf(r, headerVersion); p.message.MetaVersionPresent || !isLegacyVersion(version) {
		h.modern(p, r, version)
		return
	}
	session, ok := h.sessionOf(p, r)
	if !ok {
		return
	}
	defer session.Release()
	if p.message.Kind == codec.KindRequest {
		if kept := h.streamsOf(session); kept != nil && events {
			h.postResumable(p, r, session, kept, false)
			return
		}
		p.arm()
		session.Receive(r.Context(), &p.message, nil, p)
		return
	}
	session.Receive(r.Context(), &p.message, nil, p)
	w.WriteHeader(http.StatusAccepted)
}

// isLegacyVersion reports whether a version header is missing, or names a
// revision with sessions.
func isLegacyVersion(version string) bool {
	rev := engine.ParseRevision(version)
	return version == "" || rev != 0 && !rev.IsModern()
}

// modern serves a message of the stateless era.
func (h *HTTPHandler) modern(p *post, r *http.Request, version string) {
	p.modern = true
	switch p.message.Kind {
	case codec.KindRequest:
		if !p.events && string(p.message.Method) == codec.MethodListen {
			p.refuse(http.StatusNotAcceptable, codec.NewError(codec.CodeInvalidRequest,
				"Not Acceptable: a subscription needs text/event-stream"))
			return
		}
		p.arm()
		h.engine.ReceiveModern(r.Context(), nil, &p.message, canonicalHeaders(r.Header), p)
	case codec.KindNotification:
		if !engine.ParseRevision(version).IsModern() {
			p.refuse(http.StatusBadRequest, h.engine.Unsupported([]byte(version)))
			return
		}
		// Nothing can be cancelled so: over HTTP the end of the request's
		// connection is its cancellation, and its id is nobody else's.
		p.w.WriteHeader(http.StatusAccepted)
	default:
		p.refuse(http.StatusBadRequest, codec.NewError(codec.CodeInvalidRequest,
			"Invalid Request: in this revision a server asks nothing, and takes no responses"))
	}
}

// batch serves a POST whose body is an array.
func (h *HTTPHandler) batch(p *post, r *http.Request) {
	if !isLegacyVersion(headerOf(r, headerVersion)) {
		fault := codec.Decode(p.body, &p.message)
		p.refuse(http.StatusBadRequest, h.engine.WireError(fault))
		return
	}
	session, ok := h.sessionOf(p, r)
	if !ok {
		return
	}
	defer session.Release()
	if session.Revision() != engine.Rev20250326 {
		fault := codec.Decode(p.body, &p.message)
		p.refuse(http.StatusBadRequest, h.engine.WireError(fault))
		return
	}
	if kept := h.streamsOf(session); kept != nil && p.events {
		h.postResumable(p, r, session, kept, true)
		return
	}
	p.arm()
	if !session.ReceiveBatch(r.Context(), p.body, p) {
		p.accept()
	}
}

// refuse answers with an HTTP status and a JSON-RPC error that has no id.
func refuse(w http.ResponseWriter, status, code int, message string) {
	w.Header()["Content-Type"] = contentJSON
	w.WriteHeader(status)
	_, _ = w.Write(codec.AppendError(nil, nil, codec.NewError(code, message)))
}

var (
	contentJSON   = []string{"application/json"}
	contentEvents = []string{"text/event-stream"}
)

// readBody reads the body of a POST. It reports false when the request is
// answered.
func (h *HTTPHandler) readBody(p *post, w http.ResponseWriter, r *http.Request) bool {
	limit := h.options.MaxMessageBytes
	if r.ContentLength > int64(limit) {
		h.tooLarge(w)
		return false
	}
	turn := p.wait(waitsBody)
	body, err := readAll(p.body[:0], r.Body, limit)
	late := p.gotBody(turn)
	p.body = body
	h.read.Add(int64(len(body)))
	switch {
	case err == nil:
		if late {
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		}
		return true
	case errors.Is(err, errTooLarge):
		h.tooLarge(w)
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusRequestTimeout, codec.CodeInvalidRequest, "Request Timeout: the body did not arrive")
	default:
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusBadRequest, codec.CodeInvalidRequest, "Bad Request: the body is cut off or malformed")
	}
	return false
}

var errTooLarge = errors.New("transport: body too large")

// tooLarge refuses a body. The server may read a part of the rest before it
// closes the connection, and not for longer than a body may take.
func (h *HTTPHandler) tooLarge(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.options.BodyTimeout))
	w.Header().Set("Connection", "close")
	refuse(w, http.StatusRequestEntityTooLarge, codec.CodeInvalidRequest,
		"Content Too Large: a message may have "+strconv.Itoa(h.options.MaxMessageBytes)+" bytes")
}

// readAll reads into buf, which grows, until the end or limit bytes.
func readAll(buf []byte, r io.Reader, limit int) ([]byte, error) {
	for {
		if len(buf) > limit {
			return buf, errTooLarge
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			if len(buf) > limit {
				return buf, errTooLarge
			}
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}

// isEventStream reports whether a client takes an event stream.
func isEventStream(r *http.Request) bool {
	_, events := accepts(r.Header["Accept"])
	return events && len(r.Header["Accept"]) > 0
}
