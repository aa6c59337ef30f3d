package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/mcpengine/mcpengine/transport/client/oauth"
)

const (
	resourcePlace = "GET /.well-known/oauth-protected-resource/mcp"
	serverPlace   = "GET /.well-known/oauth-authorization-server"
	wholeFlow     = resourcePlace + ", " + serverPlace + ", GET /authorize, POST /token"
)

// last gives a parameter of the last requests, for a code or a token.
func (w *world) last(n int, name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var values []string
	for _, form := range w.forms[max(0, len(w.forms)-n):] {
		values = append(values, form.Get(name))
	}
	return strings.Join(values, " | ")
}

func TestCodeFlow(t *testing.T) {
	w := newWorld(t)
	w.needed = []string{"a", "b"}
	c := w.transport(nil).HTTPClient()
	w.expect("a request", w.post(c, "/mcp"), "200")
	w.expect("what it took", w.seen(), "POST /mcp, "+wholeFlow+", POST /mcp")
	uri := w.mcp.URL + "/mcp"
	w.expect("resource", w.last(2, "resource"), uri+" | "+uri)
	w.expect("scope", w.last(2, "scope"), "a b | ")
	w.expect("client_id", w.last(2, "client_id"), "app | app")
	w.expect("redirect_uri", w.last(2, "redirect_uri"), redirectURL+" | "+redirectURL)
	w.expect("the bodies", strings.Join(w.received, ", "), "the body, the body")
	w.expect("another request", w.post(c, "/mcp"), "200")
	w.expect("what it took", w.seen(), "POST /mcp")
}

// TestAuthorize gets a token beforehand, with the scopes of the metadata.
func TestAuthorize(t *testing.T) {
	w := newWorld(t)
	w.metadata = map[string]any{"scopes_supported": []string{"offline_access"}}
	tr := w.transport(func(o *oauth.Options) { o.Offline = true; o.Scopes = []string{"mine"} })
	for range 2 {
		if err := tr.Authorize(context.Background()); err != nil {
			t.Fatalf("Authorize: got %v, want nil", err)
		}
	}
	w.expect("what it took", w.seen(), wholeFlow)
	w.expect("scope", w.last(2, "scope"), "mine basic offline_access | ")
	w.expect("a request", w.post(tr.HTTPClient(), "/mcp"), "200")
	w.expect("what it took", w.seen(), "POST /mcp")
}

// TestStepUp asks for the union of scopes, and takes a second no for an answer.
func TestStepUp(t *testing.T) {
	w := newWorld(t)
	w.needed = []string{"read"}
	c := w.transport(nil).HTTPClient()
	w.expect("the first operation", w.post(c, "/mcp"), "200")
	w.seen()
	w.needed = []string{"write"}
	w.expect("the second one", w.post(c, "/mcp"), "200")
	w.expect("what it took", w.seen(), "POST /mcp, "+wholeFlow+", POST /mcp")
	w.expect("scope", w.last(2, "scope"), "read write | ")
	w.answer = func(url.Values) { // granted, but not what was asked for
		for _, asked := range w.codes {
			asked.Set("scope", "read")
		}
	}
	w.needed = []string{"admin"}
	w.expect("one that is not granted", w.post(c, "/mcp"), "403")
	w.expect("what it took", w.seen(), "POST /mcp, "+wholeFlow+", POST /mcp")
	w.expect("again", w.post(c, "/mcp"), "403")
	w.expect("what it took", w.seen(), "POST /mcp")
}

// TestChangingChallenges has a server ask for one more scope each time.
func TestChangingChallenges(t *testing.T) {
	w := newWorld(t)
	flows := 0
	w.answer = func(url.Values) { flows++; w.needed = append(w.needed, fmt.Sprint("s", flows)) }
	w.expect("a request", w.post(w.transport(nil).HTTPClient(), "/mcp"), "403")
	if flows != 3 {
		t.Errorf("flows of one request: got %d, want 3", flows)
	}
}

func TestRefresh(t *testing.T) {
	w := newWorld(t)
	w.lifetime = 5 // which is as good as over
	c := w.transport(nil).HTTPClient()
	w.expect("the first request", w.post(c, "/mcp"), "200")
	w.seen()
	w.expect("with an expired token", w.post(c, "/mcp"), "200")
	w.expect("what it took", w.seen(), "POST /token, POST /mcp")
	w.expect("the form", w.last(1, "grant_type")+" "+w.last(1, "resource")+" "+w.last(1, "client_id"), "refresh_token "+w.mcp.URL+"/mcp app")
	w.deny, w.lifetime = true, 3600
	w.expect("with a refresh token that is no good", w.post(c, "/mcp"), "200")
	w.expect("what it took", w.seen(), "POST /token, "+wholeFlow+", POST /mcp")
	w.deny = false
	w.revoke()
	w.expect("with a revoked token", w.post(c, "/mcp"), "200")
	w.expect("what it took", w.seen(), "POST /mcp, POST /token, POST /mcp")
}

// TestRefusedAnyway has a server refuse each token.
func TestRefusedAnyway(t *testing.T) {
	w := newWorld(t)
	w.lifetime = 0
	tr := w.transport(nil)
	if err := tr.Authorize(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.seen()
	w.revoke()
	for range 3 {
		w.expect("a request", w.post(tr.HTTPClient(), "/mcp"), "401")
	}
	w.expect("what it took", w.seen(), "POST /mcp, POST /mcp, POST /mcp")
}

func TestClientCredentials(t *testing.T) {
	w := newWorld(t)
	w.needed = []string{"a"}
	w.metadata = map[string]any{"code_challenge_methods_supported": nil, "authorization_endpoint": nil}
	use := func(secret string) func(o *oauth.Options) {
		return func(o *oauth.Options) {
			o.ClientCredentials, o.Authorize, o.RedirectURL = true, nil, ""
			o.Clients = []oauth.Registration{{Issuer: w.issuer, ID: "machine", Secret: secret}}
		}
	}
	w.expect("a request", w.post(w.transport(use("client-secret")).HTTPClient(), "/mcp"), "200")
	w.expect("the form", w.last(1, "grant_type")+" "+w.last(1, "resource")+" "+w.last(1, "scope"), "client_credentials "+w.mcp.URL+"/mcp a")
	w.secrets = append(w.secrets, "wrong-secret")
	got := w.post(w.transport(use("wrong-secret")).HTTPClient(), "/mcp")
	w.expect("a wrong secret", got, `Post "`+w.mcp.URL+`/mcp": oauth: no token: refused: status 400, error "invalid_client"`)
}

// TestOneFlow has many requests refused at once.
func TestOneFlow(t *testing.T) {
	w := newWorld(t)
	c := w.transport(nil).HTTPClient()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { w.expect("a request", w.post(c, "/mcp"), "200") })
	}
	all.Wait()
	if got := strings.Count(w.seen(), "/authorize"); got != 1 {
		t.Errorf("flows: got %d, want 1", got)
	}
}

// TestImpatientRequest leaves before the user has agreed; the flow goes on.
func TestImpatientRequest(t *testing.T) {
	w := newWorld(t)
	begun, agree := make(chan struct{}), make(chan struct{})
	tr := w.transport(func(o *oauth.Options) {
		o.Authorize = func(ctx context.Context, address string) (oauth.Response, error) {
			close(begun)
			<-agree
			return w.authorize(ctx, address)
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-begun; cancel() }()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.mcp.URL+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.RoundTrip(req); !errors.Is(err, context.Canceled) {
		t.Errorf("RoundTrip: got %v, want %v", err, context.Canceled)
	}
	close(agree)
	w.expect("the next request", w.post(tr.HTTPClient(), "/mcp"), "200")
	if got := strings.Count(w.seen(), "/authorize"); got != 1 {
		t.Errorf("flows: got %d, want 1", got)
	}
}

// TestClose ends a flow that waits for the user.
func TestClose(t *testing.T) {
	w := newWorld(t)
	begun := make(chan struct{})
	tr := w.transport(func(o *oauth.Options) {
		o.Authorize = func(ctx context.Context, _ string) (oauth.Response, error) {
			close(begun)
			<-ctx.Done()
			return oauth.Response{}, ctx.Err()
		}
	})
	done := make(chan error, 1)
	go func() { done <- tr.Authorize(context.Background()) }()
	<-begun
	tr.Close()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Authorize: got %v, want %v", err, context.Canceled)
	}
	if err := tr.Authorize(context.Background()); !errors.Is(err, oauth.ErrClosed) {
		t.Errorf("Authorize after Close: got %v, want %v", err, oauth.ErrClosed)
	}
}

// TestResponse changes what comes back through the browser.
func TestResponse(t *testing.T) {
	for _, c := range []struct {
		name     string
		promised bool // that iss will be there
		answer   func(url.Values)
		want     error
		text     string
	}{
		{"good", true, func(url.Values) {}, nil, ""},
		{"no iss, none promised", false, func(v url.Values) { v.Del("iss") }, nil, ""},
		{"no iss, though promised", true, func(v url.Values) { v.Del("iss") }, oauth.ErrResponse, "it has no issuer"},
		{"an empty iss, none promised", false, func(v url.Values) { v.Set("iss", "") }, oauth.ErrResponse, "not of the issuer"},
		{"another iss", true, func(v url.Values) { v.Set("iss", "https://evil.example") }, oauth.ErrResponse, "not of the issuer"},
		{"another iss, none promised", false, func(v url.Values) { v.Set("iss", "https://evil.example") }, oauth.ErrResponse, "not of the issuer"},
		{"iss with a slash", true, func(v url.Values) { v.Set("iss", v.Get("iss")+"/") }, oauth.ErrResponse, "not of the issuer"},
		{"another state", true, func(v url.Values) { v.Set("state", "x") }, oauth.ErrResponse, "the state"},
		{"no state", true, func(v url.Values) { v.Del("state") }, oauth.ErrResponse, "the state"},
		{"no code", true, func(v url.Values) { v.Del("code") }, oauth.ErrResponse, "no code"},
		{"denied", true, func(v url.Values) { v.Set("error", "access_denied") }, oauth.ErrDenied, `error "access_denied"`},
		{"denied with other text", true, func(v url.Values) { v.Set("error", "Click here!") }, oauth.ErrDenied, `error "unknown"`},
		{"denied by another issuer", true, func(v url.Values) { v.Set("error", "phishing"); v.Set("iss", "x") }, oauth.ErrResponse, "not of the issuer"},
		{"a code that is unknown", true, func(v url.Values) { v.Set("code", "another") }, oauth.ErrToken, `error "invalid_grant"`},
	} {
		w := newWorld(t)
		w.answer = c.answer
		w.metadata = map[string]any{"authorization_response_iss_parameter_supported": c.promised}
		tr := w.transport(nil)
		err := tr.Authorize(context.Background())
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %v with %q", c.name, err, c.want, c.text)
		}
		if err != nil {
			w.secret(err.Error())
		}
		if seen := w.seen(); errors.Is(c.want, oauth.ErrResponse) && strings.Contains(seen, "/token") {
			t.Errorf("%s: the code was sent: %s", c.name, seen)
		}
	}
}

// TestFailureHolds has the user say no: the next requests do not ask again.
func TestFailureHolds(t *testing.T) {
	w := newWorld(t)
	w.answer = func(v url.Values) { v.Set("error", "access_denied") }
	tr := w.transport(nil)
	for range 5 {
		w.expect("a request", w.post(tr.HTTPClient(), "/mcp"), `Post "`+w.mcp.URL+`/mcp": oauth: authorization denied: error "access_denied"`)
	}
	if got := strings.Count(w.seen(), "/authorize"); got != 1 {
		t.Errorf("flows: got %d, want 1", got)
	}
	w.answer = nil
	if err := tr.Authorize(context.Background()); err != nil {
		t.Errorf("Authorize afterwards: got %v, want nil", err)
	}
}
