package transport

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// NewListener wraps the listener of an http.Server that has timeouts. Such a
// server moves the read deadline of a connection six times for each request,
// and each move is work for the runtime's timers. The connections of this
// listener remember the deadline that is wanted and leave an earlier one in
// place: where that one passes first, the read goes on with the right one.
// Deadlines are kept as exactly as without. Connections that are not TCP are
// given as they are.
func NewListener(l net.Listener) net.Listener { return &listener{l} }

type listener struct{ net.Listener }

// Accept waits for the next connection.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok && err == nil {
		return &lazyConn{TCPConn: tcp}, nil
	}
	return c, err
}

// lazyConn is a connection that moves its read deadline only where it must.
type lazyConn struct {
	*net.TCPConn

	mu      sync.Mutex // guards what follows; not held while reading
	wanted  time.Time  // the deadline of reads; zero means none
	armed   time.Time  // that of TCPConn; not later than wanted while a read is under way
	readers int        // reads under way
}

// longAgo is later than the times by which a deadline means "stop reading now".
var longAgo = time.Unix(1<<20, 0)

// SetDeadline sets both deadlines.
func (c *lazyConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline sets the time after which reads fail.
func (c *lazyConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = t
	switch {
	case t.IsZero():
		if c.armed.IsZero() || c.armed.After(longAgo) {
			return nil
		}
	case t.Before(longAgo):
		if c.readers == 0 {
			return nil // a read asks before it begins
		}
	case !c.armed.IsZero() && c.armed.After(longAgo) && !t.Before(c.armed):
		return nil
	}
	return c.arm()
}

// arm sets what is wanted. c.mu is held.
func (c *lazyConn) arm() error {
	c.armed = c.wanted
	return c.TCPConn.SetReadDeadline(c.armed)
}

// Read reads until the deadline that is wanted.
func (c *lazyConn) Read(b []byte) (int, error) {
	if !c.begin() {
		return 0, os.ErrDeadlineExceeded
	}
	defer c.end()
	for {
		n, err := c.TCPConn.Read(b)
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || c.over() {
			return n, err
		}
	}
}

// WriteTo copies all that is read to w. That of TCPConn would not know the
// deadline that is wanted.
func (c *lazyConn) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, struct{ io.Reader }{c}) }

// begin counts a read, unless its deadline lies long ago.
func (c *lazyConn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.wanted.IsZero() && c.wanted.Before(longAgo) {
		return false
	}
	c.readers++
	return true
}

func (c *lazyConn) end() {
	c.mu.Lock()
	c.readers--
	c.mu.Unlock()
}

// over reports whether the deadline that is wanted has passed. Where it has not,
// a read may go on with it.
func (c *lazyConn) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.wanted.IsZero() && !time.Now().Before(c.wanted) {
		return true
	}
	return c.arm() != nil
}
