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

// httpBase is what the two transports over HTTP share.
type httpBase struct {
	c      *Client
	client *http.Client
	own    *http.Transport // nil where the user gave the HTTP client
	ctx    context.Context // ends with the link
	cancel context.CancelFunc
	wg     sync.WaitGroup // what runs on the side

	closingMu sync.Mutex // guards closing
	closing   bool
}

func newHTTPBase(c *Client) *httpBase {
	h := &httpBase{c: c, client: c.o.HTTPClient}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	if h.client == nil {
		h.own = newTransport()
		h.client = &http.Client{Transport: h.own, CheckRedirect: sameHost}
	}
	return h
}

func parseEndpoint(endpoint string) (*url.URL, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("client: endpoint: %w", err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("client: endpoint %q is not an http or https URL", endpoint)
	}
	return u, nil
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

// goes runs f in a goroutine that close waits for, unless the link is closing.
func (h *httpBase) goes(f func()) bool {
	h.closingMu.Lock()
	defer h.closingMu.Unlock()
	if h.closing {
		return false
	}
	h.wg.Go(f)
	return true
}

// end begins to close: nothing is started any more, and what runs is told.
func (h *httpBase) end() {
	h.closingMu.Lock()
	h.closing = true
	h.closingMu.Unlock()
	h.cancel()
}

// wait ends closing.
func (h *httpBase) wait() {
	h.wg.Wait()
	if h.own != nil {
		h.own.CloseIdleConnections()
	}
}

// newRequest makes a request with the headers of the user's. A session id among
// them is left out: the session's own is the only one that is ever right.
func (h *httpBase) newRequest(ctx context.Context, verb, url string, frame []byte) (*http.Request, error) {
	var body io.Reader
	if frame != nil {
		body = bytes.NewReader(frame)
	}
	req, err := http.NewRequestWithContext(ctx, verb, url, body)
	if err != nil {
		return nil, err
	}
	for name, values := range h.c.o.Header {
		req.Header[name] = values
	}
	req.Header.Del(headerSession)
	if frame != nil {
		req.Header.Set("Content-Type", typeJSON)
	}
	return req, nil
}

// discardBody reads a body to its end, so that the connection can be used again,
// and closes it. Nothing in it matters.
func discardBody(res *http.Response) {
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxErrorBody))
	closeBody(res)
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

func mediaType(res *http.Response) string {
	t, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}
