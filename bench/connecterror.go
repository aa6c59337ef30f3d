package bench

import (
	"errors"
	"fmt"
	"net"
	"syscall"

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
	target := r.cfg.target()
	text := fmt.Sprintf("%s: %v", target, err)
	var status *wire.StatusError
	var we *wire.Error
	var dns *net.DNSError
	switch {
	case errors.As(err, &status):
		text = statusHint(target, status)
	case errors.As(err, &dns):
		text = fmt.Sprintf("cannot connect to %s: there is no host %s; check the name", target, dns.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		text = fmt.Sprintf("cannot connect to %s: connection refused; is the server running, and is the port right?", target)
	case errors.Is(err, wire.ErrCommandNotFound):
		text = fmt.Sprintf("cannot start %s: there is no such command", r.cfg.target())
	case errors.As(err, &we) && we.Kind == wire.KindTimeout:
		text = fmt.Sprintf("%s did not answer within %s (--timeout)", target, r.cfg.Timeout)
	case errors.As(err, &we) && we.Kind == wire.KindAborted:
		text = "interrupted before the first session was open"
	case errors.As(err, &we) && we.Kind == wire.KindProtocol:
		text = fmt.Sprintf("%s does not speak MCP over Streamable HTTP: %v", target, we.Err)
		if len(r.cfg.Command) > 0 {
			text = fmt.Sprintf("%s does not speak MCP on its standard streams: %v", target, we.Err)
		}
	}
	return &ConnectError{Text: text, Err: err}
}

// statusHint explains an HTTP status in reply to initialize.
func statusHint(target string, e *wire.StatusError) string {
	switch {
	case e.Status == wire.StatusNotFound || e.Status == wire.StatusMethodNotAllowed:
		return fmt.Sprintf("%s answered %d: there is no MCP endpoint at this path (the usual one is /mcp)", target, e.Status)
	case e.Status == wire.StatusUnauthorized || e.Status == wire.StatusForbidden:
		return fmt.Sprintf("%s answered %d: it wants credentials, give them with -H 'Authorization: Bearer ...'", target, e.Status)
	case e.Location != "":
		return fmt.Sprintf("%s redirects to %s: give that address", target, clip([]byte(e.Location)))
	case len(e.Body) > 0:
		return fmt.Sprintf("%s answered initialize with HTTP status %d: %s", target, e.Status, clip(e.Body))
	}
	return fmt.Sprintf("%s answered initialize with HTTP status %d", target, e.Status)
}
