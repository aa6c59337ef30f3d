package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// ConnectSSE makes the handshake over the HTTP+SSE transport of revision
// 2024-11-05, which later revisions have replaced: endpoint is the URL of the
// event stream. The server names there where messages are to be posted, which
// must be of the same origin. The connection lasts as long as that stream. ctx
// governs the handshake only.
func ConnectSSE(ctx context.Context, endpoint string, o *Options) (*Client, error) {
	u, err := parseEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	if o != nil && o.asksStateless() { // which this transport does not have
		o = sessionOptions(o)
	}
	c := newClient(o)
	l := &oldLink{httpBase: newHTTPBase(c)}
	c.link = l
	if err := l.open(ctx, u); err != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.o.CloseGrace)
		defer cancel()
		if closeErr := c.Close(closing); closeErr != nil {
			c.log.Debug("client: closing after a failed connection", "error", closeErr)
		}
		return nil, fmt.Errorf("client: the event stream: %w", err)
	}
	return c.connect(ctx)
}

// oldLink is the link over HTTP+SSE. Each message to the server is a POST, whose
// answer says nothing; all messages of the server come on one stream.
type oldLink struct {
	*httpBase
	post string // set by open, before anything is sent
}

// open opens the stream, waits for the endpoint event and goes on reading on the
// side.
func (l *oldLink) open(ctx context.Context, u *url.URL) error {
	// The stream outlives ctx, which only ends the wait for the event.
	limit := l.c.o.CallTimeout
	if limit < 0 {
		limit = l.c.o.MaxCallTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stop := context.AfterFunc(ctx, l.cancel)
	events, res, err := l.begin(u)
	switch inTime := stop(); {
	case !inTime && err == nil:
		closeBody(res)
		return ctx.Err()
	case !inTime:
		return ctx.Err()
	case err != nil:
		return err
	}
	if !l.goes(func() { l.read(events, res) }) {
		closeBody(res)
		return ErrClosed
	}
	return nil
}

// begin opens the stream and reads its first event.
func (l *oldLink) begin(u *url.URL) (*SSEReader, *http.Response, error) {
	req, err := l.newRequest(l.ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Accept", typeSSE)
	res, err := l.client.Do(req)
	switch {
	case err != nil:
		return nil, nil, err
	case res.StatusCode != http.StatusOK:
		return nil, nil, readHTTPError(res)
	case mediaType(res) != typeSSE:
		closeBody(res)
		return nil, nil, fmt.Errorf("%w: a stream of content type %q", ErrMalformed, res.Header.Get("Content-Type"))
	}
	events := NewSSEReader(res.Body, l.c.o.MaxMessageBytes)
	e, err := events.Next()
	if err == nil {
		err = l.setPost(u, e)
	}
	if err != nil {
		closeBody(res)
		return nil, nil, err
	}
	return events, res, nil
}

// setPost takes the endpoint event. Another origin would get whatever this
// client sends.
func (l *oldLink) setPost(u *url.URL, e Event) error {
	if e.Type != "endpoint" {
		return fmt.Errorf("%w: the first event is %q, not endpoint", ErrMalformed, excerpt(e.Type))
	}
	target, err := u.Parse(string(e.Data))
	if err != nil {
		return fmt.Errorf("%w: the endpoint event: %w", ErrMalformed, err)
	}
	if target.Scheme != u.Scheme || target.Host != u.Host {
		return fmt.Errorf("%w: the endpoint event names another origin, %s", ErrMalformed, excerpt(target.Host))
	}
	l.post = target.String()
	return nil
}

// read receives messages until the stream ends, and the connection with it.
func (l *oldLink) read(events *SSEReader, res *http.Response) {
	defer closeBody(res)
	var m codec.Message
	for {
		e, err := events.Next()
		if err != nil {
			l.c.lost(fmt.Errorf("%w: %w", ErrDisconnected, err))
			return
		}
		if e.Type == "message" && len(e.Data) > 0 {
			l.c.receive(&m, e.Data, nil)
		}
	}
}

func (l *oldLink) negotiated(string) {}

func (l *oldLink) ready(context.Context) {}

// trySend cannot send without waiting: each frame is a request of its own.
func (l *oldLink) trySend([]byte) bool { return false }

func (l *oldLink) send(ctx context.Context, frame []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	req, err := l.newRequest(ctx, http.MethodPost, l.post, frame)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", typeJSON+", "+typeSSE)
	res, err := l.client.Do(req)
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return readHTTPError(res)
	}
	discardBody(res)
	return nil
}

// call posts on the side: the answer may be there before the POST is answered,
// and a POST that is cut off might cost the server its connection.
func (l *oldLink) call(k *call) error {
	ctx, cancel := context.WithCancel(l.ctx)
	posted := make(chan error, 1)
	k.sent = true
	started := l.goes(func() {
		defer cancel()
		posted <- l.send(ctx, k.frame)
	})
	if !started {
		cancel()
		return ErrClosed
	}
	select {
	case err := <-posted:
		return err
	case <-k.done:
	case <-k.ctx.Done():
	}
	if k.answered() {
		time.AfterFunc(tailTime, cancel)
	} else {
		cancel()
	}
	return nil
}

func (l *oldLink) close(context.Context) error {
	l.end()
	l.wait()
	return nil
}
