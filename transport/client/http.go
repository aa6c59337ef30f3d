package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

const (
	headerSession  = "Mcp-Session-Id"
	headerProtocol = "Mcp-Protocol-Version"
	headerLastID   = "Last-Event-Id"

	typeJSON = "application/json"
	typeSSE  = "text/event-stream"

	// maxErrorBody is how much of the body of a failed request is read.
	maxErrorBody = 64 << 10
	// maxSessionID limits the session id, which is kept and sent each time.
	maxSessionID = 4 << 10
)

// ConnectHTTP makes the handshake with the MCP endpoint of a server (section
// Streamable HTTP of the transports) and opens the GET stream. ctx governs the
// handshake only.
func ConnectHTTP(ctx context.Context, endpoint string, o *Options) (*Client, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("client: endpoint: %w", err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("client: endpoint %q is not an http or https URL", endpoint)
	}
	c := newClient(o)
	h := &httpLink{c: c, endpoint: u.String(), client: c.o.HTTPClient, tails: make(chan struct{}, maxTails)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	if h.client == nil {
		h.own = newTransport()
		h.client = &http.Client{Transport: h.own, CheckRedirect: sameHost}
	}
	c.link = h
	return c.connect(ctx)
}

// newTransport makes a connection pool that ends with its Client.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          64,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

// sameHost keeps a redirect from taking the session id to another host, and a
// POST from becoming a GET.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > 5:
		return errors.New("client: too many redirects")
	case req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host:
		return fmt.Errorf("client: refused to follow a redirect to another host, %s", req.URL.Host)
	case req.Method != first.Method:
		return fmt.Errorf("client: refused to follow a redirect that turns %s into %s", first.Method, req.Method)
	}
	return nil
}

// httpLink is the link over Streamable HTTP. A call's POST and the reading of
// its reply run on the goroutine of the caller.
type httpLink struct {
	c        *Client
	endpoint string
	client   *http.Client
	own      *http.Transport // nil where the user gave the HTTP client
	ctx      context.Context // ends with the link
	cancel   context.CancelFunc
	wg       sync.WaitGroup // the GET stream and the tails
	tails    chan struct{}  // a slot for each reply stream that is read to its end

	mu       sync.Mutex // guards the following
	session  string
	revision string // the negotiated one
	closing  bool
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

// goes runs f in a goroutine that close waits for, unless the link is closing.
func (h *httpLink) goes(f func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return false
	}
	h.wg.Go(f)
	return true
}

// request makes a request with the headers that all have. session is the
// session id that it carries.
func (h *httpLink) request(ctx context.Context, verb string, frame []byte) (req *http.Request, session string, err error) {
	var body io.Reader
	if frame != nil {
		body = bytes.NewReader(frame)
	}
	if req, err = http.NewRequestWithContext(ctx, verb, h.endpoint, body); err != nil {
		return nil, "", err
	}
	for name, values := range h.c.o.Header {
		req.Header[name] = values
	}
	req.Header.Del(headerSession) // the session's own is the only one that is ever right
	if frame != nil {
		req.Header.Set("Content-Type", typeJSON)
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

// readHTTPError makes an error of a response, and closes it.
func readHTTPError(res *http.Response) error {
	defer closeBody(res)
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody)) // what could be read will do
	e := &HTTPError{Status: res.StatusCode, Header: res.Header, Body: string(body)}
	var m codec.Message
	if codec.Decode(body, &m) == nil && m.Kind == codec.KindError {
		var rpc *codec.Error
		if errors.As(parseError(m.Error), &rpc) {
			e.RPC = rpc
		}
	}
	return e
}

// closeBody closes a body. Nothing can be done about an error: the connection
// is not used again.
func closeBody(res *http.Response) { _ = res.Body.Close() }

func (h *httpLink) send(ctx context.Context, frame []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	res, err := h.post(ctx, frame)
	if err != nil {
		return err
	}
	defer closeBody(res)
	if mediaType(res) != typeSSE {
		// Read to its end, the connection can be used again.
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxErrorBody))
	}
	return nil
}

// trySend cannot send without waiting: each frame is a request of its own.
func (h *httpLink) trySend([]byte) bool { return false }

func mediaType(res *http.Response) string {
	t, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}

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
func (h *httpLink) readJSON(res *http.Response, k *call) error {
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
	h.mu.Lock()
	h.closing = true
	h.mu.Unlock()
	h.cancel()
	err := h.deleteSession(ctx)
	h.wg.Wait()
	if h.own != nil {
		h.own.CloseIdleConnections()
	}
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
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxErrorBody)) // nothing in it matters
		closeBody(res)
		return nil
	}
	return fmt.Errorf("client: deleting the session: %w", readHTTPError(res))
}
