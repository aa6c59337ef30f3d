package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/mcpengine/mcpengine/codec"
)

// ConnectHTTP makes the handshake with the MCP endpoint of a server (section
// Streamable HTTP of the transports) and opens the GET stream. ctx governs the
// handshake only.
//
// Where the endpoint answers initialize with 400, 404 or 405, it may be one of
// the transport of 2024-11-05, and ConnectSSE is tried, as section Backwards
// Compatibility has it, unless Options.NoFallback is set. Where that fails too,
// the error is the first one.
//
// With Options.Protocol "2026-07-28" there is neither handshake nor GET stream:
// server/discover is the one request. With "auto" it comes first, and what the
// endpoint makes of it decides.
func ConnectHTTP(ctx context.Context, endpoint string, o *Options) (*Client, error) {
	u, err := parseEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	if o != nil && o.asksStateless() {
		c, err := connectStateless(ctx, u.String(), o)
		var legacy *legacyError
		if !errors.As(err, &legacy) || o.Protocol != ProtocolAuto {
			return c, err
		}
		o = sessionOptions(o)
	}
	c := newClient(o)
	h := &httpLink{httpBase: newHTTPBase(c), endpoint: u.String(), tails: make(chan struct{}, maxTails), opened: make(chan struct{})}
	c.link = h
	connected, err := c.connect(ctx)
	var refused *HTTPError
	if err == nil || c.o.NoFallback || !errors.As(err, &refused) || c.server.Protocol != "" {
		return connected, err
	}
	switch refused.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		older, olderErr := ConnectSSE(ctx, endpoint, o)
		if olderErr == nil {
			return older, nil
		}
		c.log.Debug("client: the transport of 2024-11-05 does not work either", "error", olderErr)
	}
	return nil, err
}

// httpLink is the link over Streamable HTTP. A call's POST and the reading of
// its reply run on the goroutine of the caller.
type httpLink struct {
	*httpBase
	endpoint string
	tails    chan struct{} // a slot for each reply stream that is read to its end

	openedOnce sync.Once
	opened     chan struct{} // closed when the first GET was answered or has failed

	mu       sync.Mutex // guards the following
	session  string
	revision string // the negotiated one
}

func (h *httpLink) sessionID() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.session
}

func (h *httpLink) negotiated(revision string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.revision = revision
}

// request makes a request with the headers that all have. session is the
// session id that it carries.
func (h *httpLink) request(ctx context.Context, verb string, frame []byte) (req *http.Request, session string, err error) {
	if req, err = h.newRequest(ctx, verb, h.endpoint, frame); err != nil {
		return nil, "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session != "" {
		req.Header.Set(headerSession, h.session)
	}
	if h.revision != "" {
		req.Header.Set(headerProtocol, h.revision)
	}
	return req, h.session, nil
}

// post sends a frame. A status that is no success is an error.
func (h *httpLink) post(ctx context.Context, frame []byte) (*http.Response, error) {
	req, session, err := h.request(ctx, http.MethodPost, frame)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", typeJSON+", "+typeSSE)
	res, err := h.client.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	err = readHTTPError(res)
	if res.StatusCode == http.StatusNotFound && session != "" {
		err = fmt.Errorf("%w: %w", ErrSessionLost, err)
		h.c.lost(err)
	}
	return nil, err
}

func (h *httpLink) send(ctx context.Context, frame []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	res, err := h.post(ctx, frame)
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

// trySend cannot send without waiting: each frame is a request of its own.
func (h *httpLink) trySend([]byte) bool { return false }

func (h *httpLink) call(k *call) error {
	ctx, cancel := context.WithCancel(h.ctx)
	stop := context.AfterFunc(k.ctx, cancel)
	defer stop()
	k.sent = true
	res, err := h.post(ctx, k.frame)
	if err != nil {
		cancel()
		return err
	}
	if k.method == codec.MethodInitialize {
		if err := h.keepSession(res); err != nil {
			cancel()
			closeBody(res)
			return err
		}
	}
	switch mediaType(res) {
	case typeSSE:
		return h.readReply(ctx, cancel, res, k)
	case typeJSON:
		defer cancel()
		return h.readJSON(res, k)
	}
	defer cancel()
	defer closeBody(res)
	return fmt.Errorf("%w: status %d, content type %q, to a request", ErrMalformed, res.StatusCode, res.Header.Get("Content-Type"))
}

// keepSession keeps the session id of the response to initialize.
func (h *httpLink) keepSession(res *http.Response) error {
	id := res.Header.Get(headerSession)
	if len(id) > maxSessionID {
		return fmt.Errorf("%w: a session id of %d bytes", ErrMalformed, len(id))
	}
	for _, c := range []byte(id) {
		if c < 0x21 || c > 0x7e {
			return fmt.Errorf("%w: a session id with other than visible ASCII characters", ErrMalformed)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session = id
	return nil
}

// readJSON reads a reply that is one message.
func (h *httpBase) readJSON(res *http.Response, k *call) error {
	defer closeBody(res)
	limit := h.c.o.MaxMessageBytes
	body, err := io.ReadAll(io.LimitReader(res.Body, int64(limit)+1))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNoResponse, err)
	case len(body) > limit:
		return fmt.Errorf("%w: a reply of more than %d bytes", ErrTooLarge, limit)
	}
	var m codec.Message
	h.c.receive(&m, body, k)
	if !k.answered() {
		return fmt.Errorf("%w: a reply without the response: %s", ErrMalformed, excerpt(body))
	}
	return nil
}

// close ends the streams, deletes the session and closes idle connections.
func (h *httpLink) close(ctx context.Context) error {
	h.end()
	err := h.deleteSession(ctx)
	h.wait()
	return err
}

// deleteSession tells the server that the session is over. A server that does
// not have that (405), or no longer knows the session (404), is in order.
func (h *httpLink) deleteSession(ctx context.Context) error {
	if h.sessionID() == "" || errors.Is(h.c.Err(), ErrSessionLost) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, h.c.o.CloseGrace)
	defer cancel()
	req, _, err := h.request(ctx, http.MethodDelete, nil)
	if err != nil {
		return err
	}
	res, err := h.client.Do(req)
	if err != nil {
		return fmt.Errorf("client: deleting the session: %w", err)
	}
	switch {
	case res.StatusCode/100 == 2, res.StatusCode == http.StatusMethodNotAllowed, res.StatusCode == http.StatusNotFound:
		discardBody(res)
		return nil
	}
	return fmt.Errorf("client: deleting the session: %w", readHTTPError(res))
}
