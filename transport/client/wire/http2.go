package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"
)

const sharedIdle = 30 * time.Second // after which an HTTP/2 connection without requests is closed

// sharedClient speaks HTTP/2 for all connections of a Target, which are then no more than calls on the few connections
// that the library keeps. It is net/http's client and costs several times what the hand-written path for HTTP/1.1 does;
// what a run over HTTP/2 measures holds that cost.
type sharedClient struct {
	transport *http.Transport
	scheme    string
	host      string
}

func newSharedClient(t *Target) *sharedClient {
	only := &http.Protocols{}
	s := &sharedClient{scheme: "http", host: t.host}
	if t.TLS != nil {
		s.scheme = "https"
		only.SetHTTP2(true)
	} else {
		only.SetUnencryptedHTTP2(true)
	}
	s.transport = &http.Transport{Protocols: only, DisableCompression: true, IdleConnTimeout: sharedIdle}
	if t.TLS != nil {
		s.transport.TLSClientConfig = t.TLS.Clone()
		s.transport.TLSClientConfig.NextProtos = []string{"h2"}
	}
	return s
}

// request makes an HTTP request from a head that Target.Head has built.
func (s *sharedClient) request(ctx context.Context, req *Request) (*http.Request, error) {
	head := io.MultiReader(bytes.NewReader(req.Head), bytes.NewReader([]byte("\r\n")))
	r, err := http.ReadRequest(bufio.NewReaderSize(head, len(req.Head)+2))
	if err != nil {
		return nil, protocolError("the head of the request is not HTTP: %w", err)
	}
	r.RequestURI = ""
	r.URL.Scheme, r.URL.Host = s.scheme, s.host
	r.Body = http.NoBody
	if req.Body != nil {
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(req.Body)), nil }
		r.Body, _ = open()
		r.GetBody, r.ContentLength = open, int64(len(req.Body))
	}
	return r.WithContext(ctx), nil
}

// callShared is Call over HTTP/2. Repeating a request that the peer has not looked at is the library's business.
func (c *Conn) callShared(req *Request, deadline time.Time, rep *Reply) error {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	defer c.Close()
	err := c.beginCall(ctx, cancel, req, rep)
	if err == nil {
		err = c.readBody(req, deadline, rep)
	}
	c.shrink()
	return c.sharedError(ctx, err)
}

// beginCall sends a request and takes the head of its reply.
func (c *Conn) beginCall(ctx context.Context, cancel context.CancelFunc, req *Request, rep *Reply) error {
	c.mu.Lock()
	c.cancel = cancel
	c.mu.Unlock()
	if c.aborted.Load() {
		return ioError("dial", context.Canceled, true)
	}
	r, err := c.target.shared.request(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { rep.Sent = time.Now() },
	}), req)
	if err != nil {
		return err
	}
	reply, err := c.target.shared.transport.RoundTrip(r)
	if err != nil {
		op := "read"
		if rep.Sent.IsZero() {
			op = "dial"
		}
		return ioError(op, err, c.aborted.Load())
	}
	rep.FirstByte = time.Now()
	c.src, c.r, c.w = reply.Body, 0, 0
	return c.takeHead(reply, rep)
}

// takeHead notes of a reply's head what readHead would.
func (c *Conn) takeHead(reply *http.Response, rep *Reply) error {
	c.head = replyHead{status: reply.StatusCode, length: -1, location: reply.Header.Get("Location")}
	for _, name := range []string{"Content-Type", "Mcp-Session-Id"} {
		if value := reply.Header.Get(name); value != "" {
			if err := c.head.header([]byte(name), []byte(value)); err != nil {
				return err
			}
		}
	}
	rep.SessionID = c.head.session
	c.left.start(&c.head) // the body goes on until the stream ends
	return nil
}

// sharedError sorts what the library gave by what ended the call.
func (c *Conn) sharedError(ctx context.Context, err error) error {
	var failed *Error
	if !errors.As(err, &failed) || failed.Kind == KindProtocol {
		return err
	}
	switch {
	case c.aborted.Load():
		failed.Kind = KindAborted
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		failed.Kind = KindTimeout
	}
	return failed
}

// beginShared is beginStream over HTTP/2.
func (c *Conn) beginShared(head []byte, deadline time.Time) error {
	var rep Reply
	ctx, cancel := context.WithCancel(context.Background())
	opening := time.AfterFunc(time.Until(deadline), cancel)
	err := c.beginCall(ctx, cancel, &Request{Head: head}, &rep)
	if err == nil {
		err = c.acceptsStream(&rep)
	}
	if !opening.Stop() {
		return &Error{Kind: KindTimeout, Op: "read", Err: context.DeadlineExceeded}
	}
	return c.sharedError(ctx, err)
}

// seeOutShared reads and ignores the rest of a reply whose response is there, for a short time.
func (c *Conn) seeOutShared() {
	c.mu.Lock()
	limit := time.AfterFunc(drainWait, c.cancel)
	c.mu.Unlock()
	defer limit.Stop()
	for !c.left.done {
		if _, err := c.next(); err != nil {
			return
		}
	}
}
