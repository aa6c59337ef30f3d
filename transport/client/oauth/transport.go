package oauth

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
)

const (
	// maxAttempts is how often one request is made, with ever better tokens.
	maxAttempts = 4
	// youngGrant is how long a token must exist before its refusal is a reason
	// to bother the user again, if it has never been accepted.
	youngGrant = time.Minute
	// failureHolds is how long the failure of a flow answers for the next one,
	// so that many requests do not open many browser windows. brieflyHolds is for
	// failures that a user has nothing to do with.
	failureHolds = 10 * time.Second
	brieflyHolds = time.Second
	// maxDrained is how much of a refusal's body is read to keep its connection.
	maxDrained = 64 << 10
)

// ErrClosed is the error of a request that needs a token after Close.
var ErrClosed = errors.New("oauth: closed")

// Transport is an http.RoundTripper that sends requests to one MCP server with an
// access token, and gets one where it is asked for.
type Transport struct {
	o         Options
	ownBase   bool
	endpoint  *url.URL
	canonical string       // the endpoint as a resource
	side      *http.Client // for everything but the server
	ctx       context.Context
	cancel    context.CancelFunc
	flows     sync.WaitGroup

	dynamic *Registration // of the flow that runs, there is one

	mu      sync.Mutex // guards the following
	closed  bool
	grant   *grant    // the newest, or nil
	flight  *flight   // the flow that runs, or nil
	failed  error     // of the last flow
	failing time.Time // until when failed counts
}

// grant is a token and what it is bound to. It does not change.
type grant struct {
	token    *oauth2.Token
	resource *resource
	server   *server
	client   *Registration
	scopes   []string // all that were asked for
	renewed  bool     // by a refresh token
	at       time.Time
	accepted atomic.Bool // by the server, once
}

// flight is a flow that many may wait for.
type flight struct {
	done chan struct{}
	err  error // once done is closed
}

// want tells why a token is needed.
type want struct {
	challenge challenge
	renew     bool // a refresh token will do
}

// New makes a Transport. Errors tell which option is wrong; nothing is sent.
func New(o Options) (*Transport, error) {
	resolved, endpoint, err := o.resolved()
	if err != nil {
		return nil, err
	}
	t := &Transport{o: resolved, ownBase: o.Base == nil, endpoint: endpoint, canonical: canonical(endpoint)}
	t.side = newHTTPClient(resolved.MetadataBase)
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t, nil
}

// canonical gives the canonical URI of a server (MCP, Canonical Server URI).
func canonical(u *url.URL) string {
	path := u.EscapedPath()
	if path == "/" {
		path = ""
	}
	return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Host) + path
}

// String names the server and nothing else.
func (t *Transport) String() string { return "oauth.Transport(" + t.canonical + ")" }

// HTTPClient makes the client for client.Options.HTTPClient. It follows redirects
// within the origin only.
func (t *Transport) HTTPClient() *http.Client {
	return &http.Client{Transport: t, CheckRedirect: withinOrigin}
}

func withinOrigin(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects || !sameOrigin(req.URL, via[0].URL) || req.Method != via[0].Method {
		return errors.New("oauth: refused to follow a redirect")
	}
	return nil
}

// Close ends a flow that runs. Requests go on with the token that there is.
func (t *Transport) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.cancel()
	t.flows.Wait()
	if base, ok := t.o.Base.(*http.Transport); ok && t.ownBase {
		base.CloseIdleConnections()
	}
}

// Authorize gets a token before the first request, from what is found at the
// well-known URIs. A program with a user calls it so that no call of the client
// runs into its time limit while the user reads. It returns at once where a
// valid token exists already.
func (t *Transport) Authorize(ctx context.Context) error {
	t.mu.Lock()
	g := t.grant
	t.failed = nil
	t.mu.Unlock()
	if g != nil && g.token.Valid() {
		return nil
	}
	return t.obtain(ctx, g, want{renew: true})
}

// RoundTrip makes a request, with the token that belongs to its URL. Where it is
// refused for want of a better token, this is got and the request made again,
// if its body can be had again (http.Request.GetBody). The flow has a time limit
// of its own and goes on when the context of the request ends.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		g, err := t.current(req)
		if err != nil {
			closeRequest(req)
			return nil, err
		}
		try, err := withToken(req, g, attempt > 1)
		if err != nil {
			return nil, err
		}
		res, err := t.o.Base.RoundTrip(try)
		if err != nil || !t.concerns(g, req.URL) {
			return res, err
		}
		w, again := t.judge(res, g)
		if !again || attempt == maxAttempts || req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
			return res, nil
		}
		_, _ = io.CopyN(io.Discard, res.Body, maxDrained)
		_ = res.Body.Close()
		if err := t.obtain(req.Context(), g, w); err != nil {
			return nil, err
		}
	}
}

// concerns tells whether a URL belongs to the resource of a grant, or of the one
// that is to be got.
func (t *Transport) concerns(g *grant, u *url.URL) bool {
	if g != nil {
		return covers(g.resource.url, u)
	}
	return covers(t.endpoint, u)
}

// current gives the grant for a request, or nil. An expired one is renewed.
func (t *Transport) current(req *http.Request) (*grant, error) {
	t.mu.Lock()
	g := t.grant
	t.mu.Unlock()
	if g == nil || g.token.Valid() || !t.concerns(g, req.URL) {
		return g, nil
	}
	if err := t.obtain(req.Context(), g, want{renew: true}); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.grant, nil
}

// withToken gives a copy of a request that has the token, and a body of its own
// where it is made again.
func withToken(req *http.Request, g *grant, again bool) (*http.Request, error) {
	try := req.Clone(req.Context())
	if again && req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		try.Body = body
	}
	if g != nil && covers(g.resource.url, req.URL) {
		try.Header.Set("Authorization", "Bearer "+g.token.AccessToken)
	}
	return try, nil
}

func closeRequest(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// judge looks at a response: whether a better token would help, and which.
func (t *Transport) judge(res *http.Response, g *grant) (want, bool) {
	switch res.StatusCode {
	case http.StatusUnauthorized:
		w := want{challenge: bearerChallenge(res.Header)}
		switch {
		case g == nil:
			return w, true
		case g.accepted.Load(), time.Since(g.at) > youngGrant:
			w.renew = true
			return w, true
		default: // a new one is refused: one by refresh may be at fault, no other
			return w, g.renewed
		}
	case http.StatusForbidden:
		c := bearerChallenge(res.Header)
		if g == nil || c.err != "insufficient_scope" {
			return want{}, false
		}
		return want{challenge: c}, len(union(g.scopes, c.scopes)) > len(union(g.scopes))
	}
	if g != nil && res.StatusCode < http.StatusInternalServerError {
		g.accepted.Store(true)
	}
	return want{}, false
}

// obtain has a better grant than old got, by a flow that others may have begun.
func (t *Transport) obtain(ctx context.Context, old *grant, w want) error {
	t.mu.Lock()
	switch {
	case t.grant != old: // by somebody else meanwhile
		t.mu.Unlock()
		return nil
	case t.closed:
		t.mu.Unlock()
		return ErrClosed
	case t.flight == nil && t.failed != nil && time.Now().Before(t.failing):
		defer t.mu.Unlock()
		return t.failed
	case t.flight == nil:
		t.flight = &flight{done: make(chan struct{})}
		t.flows.Go(func() { t.fly(old, w) })
	}
	f := t.flight
	t.mu.Unlock()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fly runs a flow to its end.
func (t *Transport) fly(old *grant, w want) {
	ctx, cancel := context.WithTimeout(t.ctx, t.o.FlowTimeout)
	defer cancel()
	g, err := t.flow(ctx, old, w)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.grant = g
	}
	holds := failureHolds
	if network := (*url.Error)(nil); t.o.ClientCredentials || errors.As(err, &network) {
		holds = brieflyHolds
	}
	t.failed, t.failing = err, time.Now().Add(holds)
	t.flight.err = err
	close(t.flight.done)
	t.flight = nil
}
