package transport

import (
	"net/http"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// sessionOf finds the session that a POST belongs to, or opens one for an
// initialize, and gives it in use. It reports false when the request is
// answered.
func (h *HTTPHandler) sessionOf(p *post, r *http.Request) (*engine.Session, bool) {
	if h.engine.ModernOnly() {
		p.refuse(http.StatusBadRequest, h.engine.Unsupported(p.message.Version))
		return nil, false
	}
	m := &p.message
	key := headerOf(r, headerSession)
	switch {
	case key != "":
		session, err := h.engine.Acquire(r.Context(), key)
		switch {
		case session != nil:
			return session, true
		case err != nil:
			h.refuseSession(p.w, err, p.message.ID)
		default:
			p.refuse(http.StatusNotFound, codec.NewError(codeSessionNotFound, "Session not found"))
		}
	case m.Kind == codec.KindRequest && string(m.Method) == codec.MethodInitialize:
		return h.open(p, r)
	default:
		p.refuse(http.StatusBadRequest,
			codec.NewError(codec.CodeInvalidRequest, "Invalid Request: the Mcp-Session-Id header is missing"))
	}
	return nil, false
}

// open begins a session for an initialize.
func (h *HTTPHandler) open(p *post, r *http.Request) (*engine.Session, bool) {
	if fault := h.engine.CheckInitialize(&p.message); fault != nil {
		p.refuse(http.StatusBadRequest, fault)
		return nil, false
	}
	session, err := h.engine.OpenFor(r.Context(), &p.message)
	if err != nil {
		h.refuseSession(p.w, err, p.message.ID)
		return nil, false
	}
	p.w.Header()[headerSession] = []string{session.Key()}
	return session, true
}

// refuseSession answers where a session cannot be opened or found now.
func (h *HTTPHandler) refuseSession(w http.ResponseWriter, err error, id []byte) {
	wire := h.engine.WireError(err)
	status := http.StatusInternalServerError
	if wire.Code == codec.CodeOverloaded {
		status = http.StatusServiceUnavailable
	}
	jsonHead(w, status, nil)
	_, _ = w.Write(codec.AppendError(nil, id, wire))
}

// delete serves a DELETE: the client ends its session.
func (h *HTTPHandler) delete(w http.ResponseWriter, r *http.Request) {
	key, ok := h.sessionKey(w, r)
	if !ok {
		return
	}
	switch found, err := h.engine.Delete(r.Context(), key); {
	case err != nil:
		h.refuseSession(w, err, nil)
	case !found:
		h.refuse(w, http.StatusNotFound, codeSessionNotFound, "Session not found")
	default:
		if h.options.Events != nil {
			h.options.Events.Drop(key) // the session may not have been here
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// existing finds the session that a GET names and gives it in use, or answers.
func (h *HTTPHandler) existing(w http.ResponseWriter, r *http.Request) (*engine.Session, bool) {
	key, ok := h.sessionKey(w, r)
	if !ok {
		return nil, false
	}
	session, err := h.engine.Acquire(r.Context(), key)
	switch {
	case err != nil:
		h.refuseSession(w, err, nil)
	case session == nil:
		h.refuse(w, http.StatusNotFound, codeSessionNotFound, "Session not found")
	default:
		return session, true
	}
	return nil, false
}

// sessionKey gives the session id of a GET or DELETE, or answers.
func (h *HTTPHandler) sessionKey(w http.ResponseWriter, r *http.Request) (key string, ok bool) {
	if version := headerOf(r, headerVersion); version != "" {
		switch rev := engine.ParseRevision(version); {
		case rev == 0:
			h.refuse(w, http.StatusBadRequest, codec.CodeInvalidRequest, "Bad Request: unsupported MCP-Protocol-Version")
			return "", false
		case rev.IsModern():
			w.Header().Set("Allow", "POST")
			h.refuse(w, http.StatusMethodNotAllowed, codec.CodeInvalidRequest, "Method Not Allowed: this revision has only POST")
			return "", false
		}
	}
	if key = headerOf(r, headerSession); key == "" {
		h.refuse(w, http.StatusBadRequest, codec.CodeInvalidRequest, "Bad Request: the Mcp-Session-Id header is missing")
		return "", false
	}
	return key, true
}

// headerOf gives the first value of a header, or "". The name is in canonical
// form, which Header.Get would see to at each call.
func headerOf(r *http.Request, name string) string {
	if values := r.Header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// canonicalHeaders are the headers of a request, for those who mostly ask by the
// canonical name, which http.Header would make at each call.
type canonicalHeaders http.Header

var _ engine.Headers = canonicalHeaders(nil)

// Values gives the values of a header.
func (h canonicalHeaders) Values(name string) []string {
	if values, ok := h[name]; ok {
		return values
	}
	return http.Header(h).Values(name)
}
