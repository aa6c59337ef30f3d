package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Kind says at which layer an exchange failed; callers count by it.
type Kind uint8

const (
	// KindDial means that no connection could be made, or that the process could not be started.
	KindDial Kind = iota + 1
	// KindTransport means that an established connection broke before the response was complete.
	KindTransport
	// KindProtocol means that the peer answered with something that is neither valid HTTP nor a valid MCP reply.
	KindProtocol
	// KindTimeout means that the deadline of the call passed first.
	KindTimeout
	// KindAborted means that Abort ended the call.
	KindAborted
)

// String gives the word that summaries use for the kind.
func (k Kind) String() string {
	switch k {
	case KindDial:
		return "dial"
	case KindTransport:
		return "transport"
	case KindProtocol:
		return "protocol"
	case KindTimeout:
		return "timeout"
	case KindAborted:
		return "aborted"
	}
	return "kind " + strconv.Itoa(int(k))
}

// Error is every failure of an exchange that is not an HTTP status. Err is the cause.
type Error struct {
	Kind Kind
	Op   string // what was being done: "dial", "write", "read", "parse", "start"
	Err  error
}

// Error names the operation and the cause. The addresses that package net has in its texts are left out: they differ from
// one connection to the next, and whoever made the call knows the one that matters.
func (e *Error) Error() string {
	cause := e.Err
	if op, ok := cause.(*net.OpError); ok {
		cause = op.Err
	}
	return e.Op + ": " + strings.TrimPrefix(cause.Error(), e.Op+": ")
}

// Unwrap gives the cause, so that errors.Is finds syscall and io sentinels.
func (e *Error) Unwrap() error { return e.Err }

// StatusError is an HTTP reply whose status is not 2xx. Body is its beginning, for messages and for the JSON-RPC error
// that some servers put there.
type StatusError struct {
	Status   int
	Location string // of a redirect, which is never followed
	Body     []byte
}

// Error gives the status and, where there is one, the place a redirect points to.
func (e *StatusError) Error() string {
	if e.Location != "" {
		return fmt.Sprintf("HTTP status %d, redirect to %s", e.Status, e.Location)
	}
	return "HTTP status " + strconv.Itoa(e.Status)
}

// ErrWebPage is the cause of a KindProtocol error when what should be a JSON-RPC message begins as HTML does.
var ErrWebPage = errors.New("the reply is a web page and no JSON-RPC message")

// ErrTooLarge is the cause of a KindProtocol error when a reply or its head exceeds the limit of the Conn.
var ErrTooLarge = errors.New("reply exceeds the size limit")

// ErrNoResponse is the cause of a KindProtocol error when a reply ended without the response to the request.
var ErrNoResponse = errors.New("reply ended without the response to this request")

// protocolError wraps a violation of HTTP or JSON-RPC by the peer.
func protocolError(format string, args ...any) error {
	return &Error{Kind: KindProtocol, Op: "parse", Err: fmt.Errorf(format, args...)}
}

// ioError classifies what a socket or pipe operation returned.
func ioError(op string, err error, aborted bool) error {
	kind := KindTransport
	switch {
	case aborted:
		kind = KindAborted
	case errors.Is(err, os.ErrDeadlineExceeded):
		kind = KindTimeout
	case op == "dial":
		kind = KindDial
		var ne net.Error
		if errors.As(err, &ne) && ne.Timeout() {
			kind = KindTimeout
		}
	}
	return &Error{Kind: kind, Op: op, Err: err}
}

// closedByPeer reports whether err is what a connection gives that the other side has closed.
func closedByPeer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
