package transport

import (
	"net/http"
	"sync/atomic"
)

// HTTPRefusals counts what a handler turned away by itself, before the engine saw
// it, by reason. What the engine refuses is in engine.Refusals: sessions that do
// not exist (404), overload and draining (503), rate limits (429).
type HTTPRefusals struct {
	Headers    int64 // too many headers (431)
	Forbidden  int64 // a Host or an Origin that is not allowed (403)
	Methods    int64 // a method that is not served here (405)
	MediaTypes int64 // a Content-Type or an Accept that is not served (415, 406)
	Bodies     int64 // a body that was too large, too slow or cut off (413, 408, 400)
	Malformed  int64 // no message, no session id, a bad version, an unknown event (400)
	NotRead    int64 // messages without room on a stream that its client does not read
}

// refusals is what HTTPRefusals is a snapshot of.
type refusals struct {
	headers, forbidden, methods, mediaTypes, bodies, malformed, notRead atomic.Int64
}

// note counts a refusal by its status. Those of the engine are counted there.
func (r *refusals) note(status int) {
	switch status {
	case http.StatusRequestHeaderFieldsTooLarge:
		r.headers.Add(1)
	case http.StatusForbidden:
		r.forbidden.Add(1)
	case http.StatusMethodNotAllowed:
		r.methods.Add(1)
	case http.StatusUnsupportedMediaType, http.StatusNotAcceptable:
		r.mediaTypes.Add(1)
	case http.StatusBadRequest:
		r.malformed.Add(1)
	}
}

func (r *refusals) snapshot() HTTPRefusals {
	return HTTPRefusals{
		Headers: r.headers.Load(), Forbidden: r.forbidden.Load(), Methods: r.methods.Load(), MediaTypes: r.mediaTypes.Load(),
		Bodies: r.bodies.Load(), Malformed: r.malformed.Load(), NotRead: r.notRead.Load(),
	}
}

// refuse counts a refusal and answers.
func (h *HTTPHandler) refuse(w http.ResponseWriter, status, code int, message string) {
	h.refused.note(status)
	refuse(w, status, code, message)
}
