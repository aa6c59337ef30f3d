package auth

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

// ScopeError tells that an operation needs scopes which the token lacks.
type ScopeError struct {
	// Scopes are all that the operation needs, those included that the token has.
	Scopes []string
}

// Error names the scopes, so that a model which reads it as the error of a tool
// knows what is missing.
func (e *ScopeError) Error() string {
	return "auth: insufficient scope: this needs " + strings.Join(e.Scopes, " ")
}

// Demand checks in a handler that the token of the request holds scopes. It is
// for needs that only the handler knows: which tool, which arguments. The
// handler returns the error, which is a *ScopeError:
//
//	if err := auth.Demand(ctx, "files:write"); err != nil {
//		return err
//	}
//
// Behind Require, the request is then answered 403 with a challenge for these
// scopes, whatever the handler answers, so that the client can get a better
// token and try again (MCP 2026-07-28, basic/authorization, Scope Challenge
// Handling). So call it before anything has an effect. Where part of the
// response has been sent already, which is so for a stream, the error is an
// error of the protocol behind; a batch is refused as a whole. A context without
// a token holds no scope.
func Demand(ctx context.Context, scopes ...string) error {
	i := identityFrom(ctx)
	if i != nil && i.holds(scopes) {
		return nil
	}
	lacking := &ScopeError{Scopes: slices.Clone(scopes)}
	if i != nil {
		i.lacking.CompareAndSwap(nil, lacking)
	}
	return lacking
}

// ByTool makes a ResourceOptions.Needed from the scopes that tools need. It
// goes by the headers Mcp-Method and Mcp-Name, which requests of the revision
// 2026-07-28 have and which the engine holds to the body. Requests of the older
// revisions do not have them, or have them unchecked: where these are served,
// the tools must call Demand as well.
func ByTool(scopes map[string][]string) func(*http.Request) []string {
	tools := make(map[string][]string, len(scopes))
	for name, needed := range scopes {
		mustBeScopes(needed)
		tools[name] = slices.Clone(needed)
	}
	return func(r *http.Request) []string {
		if r.Header.Get("Mcp-Method") != "tools/call" {
			return nil
		}
		return tools[headerText(r.Header.Get("Mcp-Name"))]
	}
}

// headerText decodes a header value of the form =?base64?DATA?=, which is how
// the revision 2026-07-28 writes text that does not fit into a header.
func headerText(value string) string {
	value = strings.Trim(value, " \t")
	data, ok := strings.CutPrefix(value, "=?base64?")
	if !ok {
		return value
	}
	if data, ok = strings.CutSuffix(data, "?="); !ok {
		return value
	}
	text, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return value
	}
	return string(text)
}

// isScope tells whether s is a scope-token of RFC 6749 section 3.3.
func isScope(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c == '"' || c == '\\' || c > '~' {
			return false
		}
	}
	return s != ""
}

func mustBeScopes(scopes []string) {
	for _, s := range scopes {
		if !isScope(s) {
			panic("auth: " + s + " is not a scope")
		}
	}
}

// scopeWriter replaces a response by a challenge where a scope was found to be
// missing before the response began.
type scopeWriter struct {
	http.ResponseWriter
	resource *Resource
	request  *http.Request
	identity *identity
	begun    bool // the header has been written
	refused  bool // it was that of the challenge, and what follows is dropped
}

// WriteHeader writes the header, or the challenge.
func (w *scopeWriter) WriteHeader(status int) {
	switch {
	case w.begun:
		if !w.refused {
			w.ResponseWriter.WriteHeader(status)
		}
		return
	case status < http.StatusOK: // more will come
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.begun = true
	if lacking := w.identity.lacking.Load(); lacking != nil {
		w.refused = true
		w.resource.forbid(w.ResponseWriter, w.request, lacking.Scopes)
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes, or drops what a challenge has replaced.
func (w *scopeWriter) Write(p []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	if w.refused {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// FlushError flushes what has been written.
func (w *scopeWriter) FlushError() error {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush flushes for those who do not want to know of an error.
func (w *scopeWriter) Flush() { _ = w.FlushError() }

// Unwrap gives the writer behind to http.ResponseController.
func (w *scopeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
