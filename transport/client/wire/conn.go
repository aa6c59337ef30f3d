package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

const (
	// MaxHeadBytes bounds the status line and headers of a reply.
	MaxHeadBytes = 64 << 10
	// MaxReplyBytes bounds the body of a JSON reply, and one event of an SSE reply.
	MaxReplyBytes = 16 << 20

	firstBuffer = 4 << 10                // a Conn's read buffer before it has to grow
	keepBuffer  = 1 << 20                // a buffer above this is given back after the call
	drainWait   = 250 * time.Millisecond // how long the end of an SSE reply may take after its response
	idleProbe   = 100 * time.Millisecond // a connection idle for longer is looked at before it is used
)

// Conn is one keep-alive connection to a Target. It dials when it is first used and again whenever the connection was
// closed. It belongs to one goroutine; only Abort may be called from another.
type Conn struct {
	target *Target
	// OnMessage receives, during Call, the notifications and requests that arrive before the response. The message
	// is borrowed. Nil ignores them.
	OnMessage func(*codec.Message)

	nc       net.Conn  // written under mu by the owner, read under mu by Abort
	src      io.Reader // what replies are read from: nc, or the body of an HTTP/2 reply
	answered bool      // a reply was read on nc, so that the peer may have closed it as idle
	lastUse  time.Time

	out  []byte // request under construction
	in   []byte // read buffer; in[r:w] has not been consumed
	r, w int
	body []byte // a chunked body, joined
	resp []byte // the event that carried the response
	head replyHead
	left bodyState
	sse  sseParser

	mu      sync.Mutex
	cancel  context.CancelFunc // ends a dial, or an HTTP/2 request, in progress
	aborted atomic.Bool
}

// NewConn returns a connection that has not been made yet.
func NewConn(t *Target) *Conn { return &Conn{target: t} }

// Request is one HTTP request. Head comes from Target.Head; Body is the frame to post, or nil for GET and DELETE. ID is
// the exact token of the request's id, and nil for anything that has no response.
type Request struct {
	Head []byte
	Body []byte
	ID   []byte
}

// Reply is what came back, and when. It may be used for one call after another; Message and SessionID borrow from the
// connection until its next call.
type Reply struct {
	Status    int
	SessionID []byte // Mcp-Session-Id header, nil when there is none
	// Message is the response: its Kind is codec.KindResponse or codec.KindError, or codec.KindInvalid where the
	// request had no ID.
	Message codec.Message
	// Sent is just before the request was written, FirstByte when the first bytes of the reply had been read, Done when
	// the response message was complete. Sent is zero where no connection could be made.
	Sent, FirstByte, Done time.Time
	// Retried is set when the request was sent again because the peer had closed the idle connection.
	Retried bool

	stdio pendingReply // what a Process needs to hand over a response
}

// Call sends one request and reads its reply until the response is there. A status that is not 2xx gives a
// *StatusError, everything else an *Error. A request is sent a second time only on a connection that had been idle and
// of which not one byte came back: that is what a peer does which closes an idle connection.
func (c *Conn) Call(req *Request, deadline time.Time, rep *Reply) error {
	rep.Status, rep.SessionID, rep.Retried = 0, nil, false
	rep.Sent, rep.FirstByte, rep.Done = time.Time{}, time.Time{}, time.Time{}
	rep.Message.Reset()
	if c.target.shared != nil {
		return c.callShared(req, deadline, rep)
	}
	c.build(req)
	c.probeIdle()
	for {
		fresh, err := c.connect(deadline)
		if err == nil {
			err = c.exchange(req, deadline, rep)
		}
		if err == nil || isStatus(err) {
			c.lastUse = rep.Done
			c.shrink()
			return err
		}
		c.Close()
		if !fresh && !rep.Retried && rep.FirstByte.IsZero() && closedByPeer(err) && !c.aborted.Load() {
			rep.Retried = true
			continue
		}
		return err
	}
}

// isStatus reports whether a reply was read to its end, though with a status that is not 2xx.
func isStatus(err error) bool {
	var status *StatusError
	return errors.As(err, &status)
}

// build writes the whole request into one buffer.
func (c *Conn) build(req *Request) {
	c.out = append(c.out[:0], req.Head...)
	if req.Body != nil {
		c.out = append(c.out, "Content-Length: "...)
		c.out = strconv.AppendInt(c.out, int64(len(req.Body)), 10)
		c.out = append(c.out, "\r\n"...)
	}
	c.out = append(c.out, "\r\n"...)
	c.out = append(c.out, req.Body...)
}

// connect makes the connection where there is none, and arms its deadline. fresh tells that it was made now.
func (c *Conn) connect(deadline time.Time) (fresh bool, err error) {
	if c.nc == nil {
		if err := c.dial(deadline); err != nil {
			return true, err
		}
		fresh = true
	}
	err = c.nc.SetDeadline(deadline)
	if c.aborted.Load() {
		return fresh, ioError("write", net.ErrClosed, true)
	}
	if err != nil {
		return fresh, ioError("write", err, false)
	}
	return fresh, nil
}

// dial opens the connection, and for https does the TLS handshake.
func (c *Conn) dial(deadline time.Time) error {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	c.mu.Lock()
	c.cancel = cancel
	c.mu.Unlock()
	if c.aborted.Load() {
		return ioError("dial", net.ErrClosed, true)
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", c.target.addr)
	if err == nil && c.target.TLS != nil {
		secure := tls.Client(nc, c.target.TLS)
		if err = secure.HandshakeContext(ctx); err != nil {
			_ = nc.Close() // the handshake error is the one to report
		}
		nc = secure
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel = nil
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return &Error{Kind: KindTimeout, Op: "dial", Err: err}
		}
		return ioError("dial", err, c.aborted.Load())
	}
	c.nc, c.src, c.answered, c.r, c.w = nc, nc, false, 0, 0
	return nil
}

// exchange writes the request and reads the reply on a connection that exists.
func (c *Conn) exchange(req *Request, deadline time.Time, rep *Reply) error {
	if rep.Sent.IsZero() {
		rep.Sent = time.Now()
	}
	if _, err := c.nc.Write(c.out); err != nil {
		return ioError("write", err, c.aborted.Load())
	}
	if err := c.readHead(rep); err != nil {
		return err
	}
	c.answered = true
	err := c.readBody(req, deadline, rep)
	if err == nil && !c.keepAlive() {
		c.Close()
	}
	return err
}

// readBody reads the reply whose head is there.
func (c *Conn) readBody(req *Request, deadline time.Time, rep *Reply) error {
	rep.Status = c.head.status
	if c.head.status < 200 || c.head.status > 299 {
		return c.readStatus(rep)
	}
	switch {
	case req.ID == nil:
		return c.skipBody(rep)
	case c.head.sse:
		return c.readEvents(req.ID, deadline, rep)
	}
	return c.readJSON(req.ID, rep)
}

// keepAlive reports whether the connection can carry another request.
func (c *Conn) keepAlive() bool { return !c.head.close && c.left.done && c.r == c.w }

// probeIdle drops a connection that the peer has closed while it was idle, so that a request is not written into it.
func (c *Conn) probeIdle() {
	if c.nc != nil && c.answered && time.Since(c.lastUse) > idleProbe && peerClosed(c.nc) {
		c.Close()
	}
}

// Close closes the connection; a later Call makes a new one.
func (c *Conn) Close() {
	c.mu.Lock()
	nc := c.nc
	c.nc = nil
	if c.target.shared != nil && c.cancel != nil {
		c.cancel() // what is left of the reply
		c.cancel = nil
	}
	c.mu.Unlock()
	if nc != nil {
		_ = nc.Close() // nothing is lost: every reply that mattered has been read
	}
	if body, ok := c.src.(io.Closer); ok && nc == nil {
		_ = body.Close() // of an HTTP/2 reply
	}
	c.src = nil
	c.r, c.w, c.answered = 0, 0, false
}

// Abort ends the call in progress, and every later one, with KindAborted. It may be called from any goroutine. The
// owner still closes the connection.
func (c *Conn) Abort() {
	c.aborted.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
	if c.nc != nil {
		_ = c.nc.SetDeadline(time.Unix(1, 0)) // fails only on a connection that is already closed
	}
}

// shrink gives back buffers that one large reply has blown up.
func (c *Conn) shrink() {
	if c.r == c.w && cap(c.in) > keepBuffer {
		c.in, c.r, c.w = nil, 0, 0
	}
	for _, b := range []*[]byte{&c.out, &c.body, &c.resp, &c.sse.data, &c.sse.line} {
		if cap(*b) > keepBuffer {
			*b = nil
		}
	}
}
