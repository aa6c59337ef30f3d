package bench

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client/wire"
)

// ConnectError is why no session could be opened, in one line that says what to do.
type ConnectError struct {
	Text string
	Err  error
}

// Error gives the text.
func (e *ConnectError) Error() string { return e.Text }

// Unwrap gives the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// connectError explains err, which has kept the first session from being opened.
func (r *run) connectError(err error) error {
	target, began := r.cfg.target(), "initialize"
	if r.cfg.Protocol == Stateless {
		began = codec.MethodDiscover
	}
	text := fmt.Sprintf("%s: %v", target, err)
	var status *wire.StatusError
	errors.As(err, &status)
	var we *wire.Error
	var dns *net.DNSError
	var old *legacyError
	hint := tlsHint(target, err)
	switch {
	case hint != "":
		text = hint
	case errors.As(err, &old) && (status == nil || isRPCError(status.Body)):
		text = fmt.Sprintf("%s: %v; --protocol auto uses what it does serve", target, old)
	case status != nil:
		text = statusHint(target, began, status)
	case errors.As(err, &dns):
		text = fmt.Sprintf("cannot connect to %s: there is no host %s; check the name", target, dns.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		text = fmt.Sprintf("cannot connect to %s: connection refused; is the server running, and is the port right?", target)
	case errors.Is(err, wire.ErrCommandNotFound):
		text = fmt.Sprintf("cannot start %s: there is no such command", r.cfg.target())
	case r.cfg.HTTP2 && errors.As(err, &we) && (we.Kind == wire.KindTransport || we.Kind == wire.KindDial):
		text = fmt.Sprintf("cannot connect to %s: it does not seem to speak HTTP/2 (%v); leave --http2 out", target, we.Err)
	case errors.As(err, &we) && we.Kind == wire.KindTimeout:
		text = fmt.Sprintf("%s did not answer within %s (--timeout)", target, r.cfg.Timeout)
	case errors.As(err, &we) && we.Kind == wire.KindAborted:
		text = "interrupted before the first session was open"
	case len(r.cfg.Command) > 0 && errors.As(err, &we) && errors.Is(err, io.EOF):
		text = fmt.Sprintf("%s did not answer %s: %v; run it by hand to see what it wants", target, began, we.Err)
	case errors.Is(err, wire.ErrWebPage):
		text = fmt.Sprintf("%s answered with a web page: there is no MCP endpoint at this path (the usual one is /mcp)", target)
	case errors.As(err, &we) && we.Kind == wire.KindProtocol:
		text = fmt.Sprintf("%s does not speak MCP over Streamable HTTP: %v", target, we.Err)
		if len(r.cfg.Command) > 0 {
			text = fmt.Sprintf("%s does not speak MCP on its standard streams: %v", target, we.Err)
		}
	}
	return &ConnectError{Text: text, Err: err}
}

// isRPCError reports whether a body is a JSON-RPC error.
func isRPCError(body []byte) bool {
	var m codec.Message
	return codec.Decode(body, &m) == nil && m.Kind == codec.KindError
}

// statusHint explains an HTTP status in reply to the first request.
func statusHint(target, began string, e *wire.StatusError) string {
	switch {
	case isRPCError(e.Body) && began == "initialize":
		return fmt.Sprintf("%s answered initialize with HTTP status %d: %s; if it serves no sessions, --protocol auto is what it needs", target, e.Status, clip(e.Body))
	case e.Status == wire.StatusNotFound || e.Status == wire.StatusMethodNotAllowed:
		return fmt.Sprintf("%s answered %d: there is no MCP endpoint at this path (the usual one is /mcp)", target, e.Status)
	case e.Status == wire.StatusUnauthorized || e.Status == wire.StatusForbidden:
		return fmt.Sprintf("%s answered %d: it wants credentials, give them with -H 'Authorization: Bearer ...'", target, e.Status)
	case e.Location != "":
		return fmt.Sprintf("%s redirects to %s: give that address", target, clip([]byte(e.Location)))
	case len(e.Body) > 0:
		return fmt.Sprintf("%s answered %s with HTTP status %d: %s", target, began, e.Status, clip(e.Body))
	}
	return fmt.Sprintf("%s answered %s with HTTP status %d", target, began, e.Status)
}
