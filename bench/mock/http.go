package mock

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"

	maxBody = 4 << 20 // of a request

	codeSessionLimit   = -32000
	codeSessionUnknown = -32001
)

// exchange is what one request needs: its body, the message in it, the answer.
type exchange struct {
	body    []byte
	message codec.Message
	out     []byte
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// release keeps an exchange for the next request, unless it has become large.
func (x *exchange) release() {
	if cap(x.body)+cap(x.out) > 256<<10 {
		return
	}
	x.message.Reset()
	exchanges.Put(x)
}

// ServeHTTP serves one request of the endpoint. The arrival of a call is the instant at which its headers have been
// read.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrival := time.Now()
	s.count.httpRequest(r.Method)
	switch r.Method {
	case http.MethodPost:
		s.post(w, r, arrival)
	case http.MethodGet:
		s.get(w, r)
	case http.MethodDelete:
		s.remove(w, r)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// post serves a message.
func (s *Server) post(w http.ResponseWriter, r *http.Request, arrival time.Time) {
	x := exchanges.Get().(*exchange)
	defer x.release()
	var err error
	if x.body, err = readBody(x.body[:0], r); err != nil {
		fail(w, nil, http.StatusBadRequest, codec.CodeParseError, "the body could not be read: "+err.Error())
		return
	}
	m := &x.message
	if err := codec.Decode(x.body, m); err != nil {
		fault := codec.ErrInternal
		errors.As(err, &fault)
		fail(w, m.ID, http.StatusBadRequest, fault.Code, fault.Message)
		return
	}
	s.count.request(m.Method)
	switch {
	case m.IsModern() || r.Header.Get(headerVersion) == stateless:
		s.postModern(w, r, x, arrival)
	case m.Kind == codec.KindRequest && string(m.Method) == codec.MethodInitialize:
		s.postInitialize(w, x)
	default:
		s.postLegacy(w, r, x, arrival)
	}
}

// postModern serves a message of the stateless era. Headers that repeat the body are not looked at.
func (s *Server) postModern(w http.ResponseWriter, r *http.Request, x *exchange, arrival time.Time) {
	m := &x.message
	switch {
	case m.Kind != codec.KindRequest:
		w.WriteHeader(http.StatusAccepted)
	case m.MetaVersionPresent && string(m.MetaVersion) != stateless:
		x.out = codec.AppendError(x.out[:0], m.ID, unsupported(m.MetaVersion))
		reply(w, http.StatusBadRequest, x.out)
	default:
		s.respond(w, r, x, nil, arrival)
	}
}

// postInitialize opens a session.
func (s *Server) postInitialize(w http.ResponseWriter, x *exchange) {
	sess, err := s.table.open()
	if err != nil {
		fail(w, x.message.ID, http.StatusServiceUnavailable, codeSessionLimit, err.Error())
		return
	}
	defer s.table.release(sess)
	x.out = s.answerInitialize(x.out[:0], &x.message)
	w.Header().Set(headerSession, sess.id)
	reply(w, http.StatusOK, x.out)
}

// postLegacy serves a message of a session.
func (s *Server) postLegacy(w http.ResponseWriter, r *http.Request, x *exchange, arrival time.Time) {
	sess := s.sessionOf(w, r, x.message.ID)
	if sess == nil {
		return
	}
	defer s.table.release(sess)
	if x.message.Kind != codec.KindRequest {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	s.respond(w, r, x, sess, arrival)
}

// respond answers a request when it is time. Who has gone away meanwhile gets nothing.
func (s *Server) respond(w http.ResponseWriter, r *http.Request, x *exchange, sess *session, arrival time.Time) {
	due := s.enter(&x.message, arrival)
	var err error
	if x.out, err = s.leave(r.Context(), x.out[:0], sess, &x.message, due); err == nil {
		reply(w, http.StatusOK, x.out)
	}
}

// sessionOf gives the session that a request names, or answers it and gives nil.
func (s *Server) sessionOf(w http.ResponseWriter, r *http.Request, id []byte) *session {
	name := r.Header.Get(headerSession)
	if name == "" {
		const missing = "the header Mcp-Session-Id is missing: begin with initialize"
		fail(w, id, http.StatusBadRequest, codec.CodeInvalidRequest, missing)
		return nil
	}
	sess := s.table.use(name)
	if sess == nil {
		fail(w, id, http.StatusNotFound, codeSessionUnknown, "Session not found")
	}
	return sess
}

// remove ends a session.
func (s *Server) remove(w http.ResponseWriter, r *http.Request) {
	sess := s.sessionOf(w, r, nil)
	if sess == nil {
		return
	}
	s.table.delete(sess)
	s.table.release(sess)
	w.WriteHeader(http.StatusNoContent)
}

// readBody appends the body of a request, up to maxBody.
func readBody(dst []byte, r *http.Request) ([]byte, error) {
	if r.ContentLength > maxBody {
		return dst, errBodyTooLarge
	}
	if need := int(r.ContentLength) + 1; cap(dst) < need {
		dst = make([]byte, 0, max(need, 512))
	}
	for {
		n, err := r.Body.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		switch {
		case errors.Is(err, io.EOF):
			return dst, nil
		case err != nil:
			return dst, err
		case len(dst) > maxBody:
			return dst, errBodyTooLarge
		case len(dst) == cap(dst):
			dst = append(dst, 0)[:len(dst)]
		}
	}
}

var errBodyTooLarge = errors.New("it is larger than 4 MiB")

// fail answers with a status and an error of JSON-RPC.
func fail(w http.ResponseWriter, id []byte, status, code int, text string) {
	reply(w, status, appendFault(nil, id, code, text))
}

// reply writes a whole answer.
func reply(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = contentJSON
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone away does not want to know
}

var contentJSON = []string{"application/json"}
