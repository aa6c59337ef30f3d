package auth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// Require makes the middleware that lets requests through which have a valid
// token with all of the scopes, and with those of ResourceOptions.Needed. The
// context of such a request knows the token; the Authorization header is gone.
// Preflights (CORS) carry no token by their nature and are let through.
//
// It panics where a scope has characters that a scope cannot have (RFC 6749
// section 3.3).
func (s *Resource) Require(scopes ...string) func(http.Handler) http.Handler {
	mustBeScopes(scopes)
	always := slices.Clone(scopes)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isPreflight(r) {
				next.ServeHTTP(w, r)
				return
			}
			if i := s.authenticate(w, r, always); i != nil {
				next.ServeHTTP(&scopeWriter{ResponseWriter: w, resource: s, request: r, identity: i}, withIdentity(r, i))
			}
		})
	}
}

// withIdentity gives a copy of a request that knows the token but does not hold
// its text.
func withIdentity(r *http.Request, i *identity) *http.Request {
	r = r.WithContext(context.WithValue(r.Context(), identityKey{}, i))
	r.Header = r.Header.Clone()
	r.Header.Del("Authorization")
	return r
}

// authenticate finds out who makes a request, or answers it and gives nil.
func (s *Resource) authenticate(w http.ResponseWriter, r *http.Request, always []string) *identity {
	needed := s.needs(r, always)
	text, fault := s.bearer(r)
	if fault != nil {
		s.refuse(w, r, fault, needed)
		return nil
	}
	token, err := s.options.Verifier.Verify(r.Context(), text)
	switch {
	case errors.Is(err, ErrInvalidToken):
		s.options.Logger.DebugContext(r.Context(), "auth: a token was refused", "reason", err)
		s.refuse(w, r, &faultInvalid, needed)
		return nil
	case err != nil || token == nil:
		if r.Context().Err() == nil { // else the client has left
			s.options.Logger.WarnContext(r.Context(), "auth: a token cannot be verified", "error", err)
		}
		w.Header().Set("Retry-After", "1")
		s.refuse(w, r, &faultUnavailable, nil)
		return nil
	}
	i := newIdentity(token, s.options.Covers)
	if !i.holds(needed) {
		s.forbid(w, r, needed)
		return nil
	}
	return i
}

// needs gives the scopes of a request.
func (s *Resource) needs(r *http.Request, always []string) []string {
	if s.options.Needed == nil {
		return always
	}
	more := s.options.Needed(r)
	if len(more) == 0 {
		return always
	}
	all := slices.Clone(always)
	for _, scope := range more {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}

// fault is a reason to refuse a request. Its texts are constants, so that
// nothing of the request gets into the response.
type fault struct {
	status      int
	code        string // the error of RFC 6750 section 3.1, or "" where no token came
	description string
}

var (
	faultMissing = fault{http.StatusUnauthorized, "", "Authorization with a bearer token is required."}
	faultInvalid = fault{http.StatusUnauthorized, "invalid_token", "The access token is malformed, expired, or not for this resource."}
	faultScope   = fault{http.StatusForbidden, "insufficient_scope", "The access token lacks a scope that this operation needs."}
	faultQuery   = fault{http.StatusBadRequest, "invalid_request", "An access token must not be in the query."}
	faultHeader  = fault{http.StatusBadRequest, "invalid_request", "There must be one Authorization header."}
	// faultUnavailable has no challenge: another token would not help.
	faultUnavailable = fault{http.StatusServiceUnavailable, "temporarily_unavailable", "The access token cannot be verified now."}
)

// bearer takes the token from the Authorization header (RFC 6750 section 2.1).
func (s *Resource) bearer(r *http.Request) (string, *fault) {
	if r.URL.RawQuery != "" && r.URL.Query().Has("access_token") {
		return "", &faultQuery
	}
	values := r.Header["Authorization"]
	switch {
	case len(values) == 0:
		return "", &faultMissing
	case len(values) > 1:
		return "", &faultHeader
	}
	scheme, text, _ := strings.Cut(values[0], " ")
	text = strings.Trim(text, " ")
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return "", &faultMissing
	case len(text) > s.options.MaxTokenBytes || !isToken68(text):
		return "", &faultInvalid
	}
	return text, nil
}

// isToken68 tells whether text has the form of a bearer token (b64token in
// RFC 6750 section 2.1).
func isToken68(text string) bool {
	text = strings.TrimRight(text, "=")
	for _, c := range []byte(text) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~+/", c) >= 0:
		default:
			return false
		}
	}
	return text != ""
}

// isPreflight tells whether a request is a preflight of CORS.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// forbid answers that the scopes of an operation are not all there.
func (s *Resource) forbid(w http.ResponseWriter, r *http.Request, needed []string) {
	s.refuse(w, r, &faultScope, needed)
}

// refuse answers with a challenge and a JSON object that says the same.
func (s *Resource) refuse(w http.ResponseWriter, r *http.Request, f *fault, needed []string) {
	header := w.Header()
	switch f.status {
	case http.StatusServiceUnavailable:
		s.unavailable.Add(1)
	case http.StatusBadRequest:
		s.malformed.Add(1)
	case http.StatusForbidden:
		s.forbidden.Add(1)
	default:
		s.unauthorized.Add(1)
	}
	if f != &faultUnavailable {
		header.Set("WWW-Authenticate", s.challenge(f, needed))
	}
	if r.Header.Get("Origin") != "" && header.Get("Access-Control-Allow-Origin") == "" {
		// A page may read what it has to do; there is nothing else in it.
		header.Set("Access-Control-Allow-Origin", "*")
		header.Set("Access-Control-Expose-Headers", "WWW-Authenticate")
	}
	for _, name := range []string{"Content-Length", "Content-Encoding", "X-Accel-Buffering"} {
		header.Del(name) // of the response that a challenge replaces
	}
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	code := f.code
	if code == "" {
		code = "unauthorized"
	}
	body, _ := json.Marshal(map[string]string{"error": code, "error_description": f.description})
	w.WriteHeader(f.status)
	_, _ = w.Write(body)
}

// challenge makes the value of WWW-Authenticate.
func (s *Resource) challenge(f *fault, needed []string) string {
	text := "Bearer "
	if f.code != "" {
		text += "error=" + quote(f.code) + ", error_description=" + quote(f.description) + ", "
	}
	if len(needed) == 0 {
		needed = s.options.Scopes
	}
	if len(needed) > 0 {
		text += "scope=" + quote(strings.Join(needed, " ")) + ", "
	}
	return text + s.pointer
}

// quote makes a quoted-string (RFC 9110 section 5.6.4). What cannot be in a
// header is left out.
func quote(text string) string {
	quoted := []byte{'"'}
	for _, c := range []byte(text) {
		switch {
		case c == '"' || c == '\\':
			quoted = append(quoted, '\\', c)
		case ' ' <= c && c <= '~':
			quoted = append(quoted, c)
		}
	}
	return string(append(quoted, '"'))
}
