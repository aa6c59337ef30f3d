package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client/wire"
)

// connectStateless connects to an endpoint of the stateless revision. The error
// is a *legacyError where the endpoint is of the session-based era.
func connectStateless(ctx context.Context, endpoint string, o *Options) (*Client, error) {
	c := newClient(o)
	c.target = endpoint
	c.link = &statelessLink{httpBase: newHTTPBase(c), endpoint: endpoint, tails: make(chan struct{}, maxTails)}
	return c.connect(ctx)
}

// statelessLink is the link over HTTP to a server of the stateless revision: each
// request is a POST of its own, whose end cancels it. There is no session, no
// GET, no DELETE, and no stream that could be resumed.
type statelessLink struct {
	*httpBase
	endpoint string
	tails    chan struct{} // a slot for each reply that is read to its end
}

func (l *statelessLink) negotiated(string) {}

func (l *statelessLink) ready(context.Context) {}

// trySend cannot send without waiting: each frame is a request of its own.
func (l *statelessLink) trySend([]byte) bool { return false }

// send posts a notification. The revision has none for clients over HTTP; those
// of the user's carry the headers that a server may look for.
func (l *statelessLink) send(ctx context.Context, frame []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	var m codec.Message
	if err := codec.Decode(frame, &m); err != nil {
		return err
	}
	res, err := l.post(ctx, frame, wire.MethodHeaders(ProtocolStateless, string(m.Method), ""))
	if err != nil {
		return err
	}
	if mediaType(res) == typeSSE { // it may have no end
		closeBody(res)
	} else {
		discardBody(res)
	}
	return nil
}

// post sends a frame. A status that is no success is an error.
func (l *statelessLink) post(ctx context.Context, frame []byte, header http.Header) (*http.Response, error) {
	req, err := l.newRequest(ctx, http.MethodPost, l.endpoint, frame)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	req.Header.Set("Accept", typeJSON+", "+typeSSE)
	res, err := l.client.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 != 2 {
		return nil, readHTTPError(res)
	}
	return res, nil
}

func (l *statelessLink) call(k *call) error {
	ctx, cancel := context.WithCancel(l.ctx)
	defer context.AfterFunc(k.ctx, cancel)()
	k.sent = true
	res, err := l.post(ctx, k.frame, k.header)
	if err != nil {
		cancel()
		return err
	}
	switch mediaType(res) {
	case typeSSE:
		return l.readReply(cancel, res, k)
	case typeJSON:
		defer cancel()
		return l.readJSON(res, k)
	}
	defer cancel()
	defer closeBody(res)
	return fmt.Errorf("%w: status %d, content type %q, to a request", ErrMalformed, res.StatusCode, res.Header.Get("Content-Type"))
}

// readReply receives the messages of a reply stream up to the response. It owns
// cancel, which ends the connection.
func (l *statelessLink) readReply(cancel context.CancelFunc, res *http.Response, k *call) error {
	events := NewSSEReader(res.Body, l.c.o.MaxMessageBytes)
	var m codec.Message
	for !k.answered() {
		e, err := events.Next()
		switch {
		case errors.Is(err, ErrTooLarge):
		case err != nil:
			err = fmt.Errorf("%w: %w", ErrNoResponse, err)
		case e.Type == "message" && len(e.Data) > 0:
			l.c.receive(&m, e.Data, k)
		}
		if err != nil {
			cancel()
			closeBody(res)
			return err
		}
	}
	l.readTail(cancel, res)
	return nil
}

// readTail reads a stream to its end, on the side and not for long, so that the
// connection can be used again. Nothing may follow a response.
func (l *statelessLink) readTail(cancel context.CancelFunc, res *http.Response) {
	end := func() {
		cancel()
		closeBody(res)
	}
	select {
	case l.tails <- struct{}{}:
	default:
		end()
		return
	}
	started := l.goes(func() {
		defer func() { <-l.tails }()
		defer time.AfterFunc(tailTime, cancel).Stop()
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxErrorBody)) // nothing in it matters
		end()
	})
	if !started {
		<-l.tails
		end()
	}
}

func (l *statelessLink) close(context.Context) error {
	l.end()
	l.wait()
	return nil
}
