package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// Errors to compare with errors.Is. Errors that the server answers are
// *codec.Error; those of HTTP are *HTTPError; a call whose time is up gives
// context.DeadlineExceeded.
var (
	// ErrClosed is the error of every call after Close.
	ErrClosed = errors.New("client: closed")
	// ErrDisconnected tells that the server ended the connection.
	ErrDisconnected = errors.New("client: the server ended the connection")
	// ErrSessionLost tells that the server no longer knows the session (it
	// answered 404 to a request with a session id). The Client is of no more
	// use; the protocol asks for a new handshake. The error also holds the
	// *HTTPError.
	ErrSessionLost = errors.New("client: the server no longer knows the session")
	// ErrMalformed tells that what the server sent is no answer as the protocol
	// has it.
	ErrMalformed = errors.New("client: malformed answer")
	// ErrTooLarge tells that a message exceeds Options.MaxMessageBytes, or that
	// a list exceeds its limits.
	ErrTooLarge = errors.New("client: too large")
	// ErrNoResponse tells that a reply stream ended before the response and
	// could not be resumed. Whether the server ran the call is unknown.
	ErrNoResponse = errors.New("client: the reply stream ended before the response")
	// ErrTooManyCalls tells that Options.MaxPending calls are waiting already.
	ErrTooManyCalls = errors.New("client: too many calls in flight")
	// ErrBadParams tells that params are not a JSON object; nothing was sent.
	ErrBadParams = errors.New("client: params must be a JSON object")
)

// errAnswered is the cause that ends the context of a call whose answer came on
// another stream than its own.
var errAnswered = errors.New("client: answered")

// errPeerCancelled is the cause that ends the context of a request of the
// server which the server cancelled.
var errPeerCancelled = errors.New("client: cancelled by the server")

// HTTPError is an HTTP answer that is no success. Where its body is a JSON-RPC
// error response, errors.As finds that *codec.Error too.
type HTTPError struct {
	Status int
	Header http.Header
	// Body is the beginning of the body, up to 64 KiB.
	Body string
	// RPC is the JSON-RPC error that the body holds, or nil.
	RPC *codec.Error
}

// Error gives the status, and the error in the body or the body's beginning.
func (e *HTTPError) Error() string {
	s := fmt.Sprintf("client: HTTP status %d %s", e.Status, http.StatusText(e.Status))
	if e.RPC != nil {
		return s + ": " + e.RPC.Error()
	}
	if body := strings.TrimSpace(e.Body); body != "" {
		return s + ": " + excerpt(body)
	}
	return s
}

// Unwrap gives the JSON-RPC error of the body.
func (e *HTTPError) Unwrap() error {
	if e.RPC == nil {
		return nil
	}
	return e.RPC
}

// VersionError tells that the server answered initialize with a revision that
// this client does not speak. The connection has been closed.
type VersionError struct{ Asked, Answered string }

// Error names both revisions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("client: asked for revision %q, and the server answered %q, which is not supported", e.Asked, e.Answered)
}

// ExitError tells that the spawned process ended by itself. It is an
// ErrDisconnected.
type ExitError struct {
	// State is how it ended, as "exit status 3".
	State string
	// Stderr is the end of what it wrote to stderr.
	Stderr string
}

// Error gives the state and the end of stderr.
func (e *ExitError) Error() string {
	s := "client: the server process ended: " + e.State
	if e.Stderr != "" {
		s += "; its stderr ended with: " + e.Stderr
	}
	return s
}

// Unwrap gives ErrDisconnected.
func (e *ExitError) Unwrap() error { return ErrDisconnected }

// timeoutError is the end of a call by its time limit.
type timeoutError struct {
	method string
	after  time.Duration
	hint   string // a fault seen on the connection since the call began
}

func (e *timeoutError) Error() string {
	s := fmt.Sprintf("client: no answer to %s in %v", e.method, e.after)
	if e.hint != "" {
		s += " (" + e.hint + ")"
	}
	return s
}

func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }

// Timeout tells net.Error users what it is.
func (e *timeoutError) Timeout() bool { return true }

// excerpt shortens text for an error message.
func excerpt[S ~string | ~[]byte](s S) string {
	const most = 200
	if len(s) <= most {
		return strings.ToValidUTF8(string(s), "?")
	}
	return strings.ToValidUTF8(string(s[:most]), "?") + "…"
}
