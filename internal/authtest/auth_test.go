package authtest

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/transport/auth"
	"github.com/mcpengine/mcpengine/transport/client"
	"github.com/mcpengine/mcpengine/transport/client/oauth"
)

// TestCodeFlow has two users get tokens by the code grant with PKCE, found from
// nothing but the endpoint, and call a tool that sees who they are.
func TestCodeFlow(t *testing.T) {
	as := newAuthServer(t)
	s := newMCPServer(t, as)
	for _, protocol := range protocols {
		for _, user := range []string{"alice", "bob"} {
			c := s.mustConnect(t, s.asUser(t, user, nil).HTTPClient(), protocol)
			who := (&auth.Token{Issuer: as.http.URL, Subject: user}).Principal()
			expect(t, protocol+" whoami", call(c, "whoami"), `{"who":"`+who+`"}`)
			expect(t, protocol+" flow", as.noted(), "authorize tools, authorization_code")
		}
	}
}

func TestClientCredentials(t *testing.T) {
	as := newAuthServer(t)
	s := newMCPServer(t, as)
	for _, protocol := range protocols {
		c := s.mustConnect(t, s.asMachine(t, "machine-secret").HTTPClient(), protocol)
		who := (&auth.Token{Issuer: as.http.URL, Subject: "machine"}).Principal()
		expect(t, protocol+" whoami", call(c, "whoami"), `{"who":"`+who+`"}`)
		expect(t, protocol+" flow", as.noted(), "client_credentials")
	}
	if _, err := s.connect(t, s.asMachine(t, "wrong-secret").HTTPClient(), ""); !errors.Is(err, oauth.ErrToken) || strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("a wrong secret: got %v, want %v", err, oauth.ErrToken)
	}
}

// TestStepUp calls a tool that needs a scope of its own: the call succeeds after
// a second flow for the union of the scopes, in the same session.
func TestStepUp(t *testing.T) {
	as := newAuthServer(t)
	s := newMCPServer(t, as)
	for _, protocol := range protocols {
		c := s.mustConnect(t, s.asUser(t, "alice", nil).HTTPClient(), protocol)
		as.noted()
		expect(t, protocol+" delete", call(c, "delete"), `{"who":"deleted"}`)
		expect(t, protocol+" flow", as.noted(), "authorize tools files:delete, authorization_code")
		expect(t, protocol+" delete again", call(c, "delete"), `{"who":"deleted"}`)
		expect(t, protocol+" flow", as.noted(), "")
	}
}

// TestExpiry has the server's clock pass the end of a token, and then tokens that
// are nearly over when they come: the client refreshes both.
func TestExpiry(t *testing.T) {
	as := newAuthServer(t)
	s := newMCPServer(t, as)
	offline := func(o *oauth.Options) { o.Scopes = []string{"openid", "offline_access"} }
	who := `{"who":"` + (&auth.Token{Issuer: as.http.URL, Subject: "alice"}).Principal() + `"}`
	c := s.mustConnect(t, s.asUser(t, "alice", offline).HTTPClient(), client.ProtocolStateless)
	expect(t, "flow", as.noted(), "authorize openid offline_access tools, authorization_code")
	first := s.token()
	expect(t, "the first token", s.verify(first), "ok")
	s.setSkew(61 * time.Minute)
	expect(t, "the first token after its end", s.verify(first), refused("expired"))
	as.set(func() { as.lifetime = 3 * time.Hour })
	expect(t, "whoami", call(c, "whoami"), who)
	expect(t, "after a 401", as.noted(), "refresh_token")
	expect(t, "whoami again", call(c, "whoami"), who)
	expect(t, "with the second token", as.noted(), "")

	s.setSkew(0)
	as.set(func() { as.lifetime = 5 * time.Second }) // and the client refreshes 10 s before the end
	c = s.mustConnect(t, s.asUser(t, "alice", offline).HTTPClient(), client.ProtocolStateless)
	as.noted()
	expect(t, "whoami", call(c, "whoami"), who)
	expect(t, "near the end", as.noted(), "refresh_token")
}

// TestWrongTokens presents tokens that are real and not for this server.
func TestWrongTokens(t *testing.T) {
	as, stranger := newAuthServer(t), newAuthServer(t)
	s, other := newMCPServer(t, as), newMCPServer(t, stranger)
	_ = s.mustConnect(t, s.asUser(t, "alice", nil).HTTPClient(), "")
	_ = other.mustConnect(t, other.asUser(t, "alice", nil).HTTPClient(), "")
	good := s.token()
	parts := strings.Split(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`))
	as.set(func() { as.audience = "https://other.example/mcp" })
	_, err := s.connect(t, s.asUser(t, "alice", nil).HTTPClient(), "")
	var status *client.HTTPError
	if !errors.As(err, &status) || status.Status != http.StatusUnauthorized {
		t.Errorf("a token for another audience: got %v, want 401", err)
	}
	elsewhere := s.token()
	for _, c := range []struct{ name, token, want string }{
		{"good", good, "ok"},
		{"another audience", elsewhere, refused("for another audience")},
		{"another issuer", other.token(), refused("signed with an unknown key")},
		{"alg none", none + "." + parts[1] + ".", refused("not a JWT of an allowed algorithm")},
		{"another signature", parts[0] + "." + parts[1] + "." + strings.Split(elsewhere, ".")[2], refused("no key verifies the signature")},
	} {
		expect(t, c.name, s.verify(c.token), c.want)
		r, err := http.NewRequest(http.MethodPost, s.uri(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+c.token)
		r.Header.Set("Content-Type", "application/json")
		res, err := s.http.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if let := res.StatusCode != http.StatusUnauthorized; let != (c.want == "ok") {
			t.Errorf("%s: got status %d", c.name, res.StatusCode)
		}
	}
	// The keys of both, so that only the claim tells them apart.
	as.set(func() { as.retired = append(as.retired, stranger.key) })
	as.rotate()
	expect(t, "another issuer whose key is known", s.verify(stranger.tokenFor(t, s)), refused("of another issuer"))
}

// TestRotation exchanges the signing key while a session goes on.
func TestRotation(t *testing.T) {
	as := newAuthServer(t)
	s := newMCPServer(t, as)
	c := s.mustConnect(t, s.asUser(t, "alice", nil).HTTPClient(), "2025-11-25")
	as.noted()
	who := `{"who":"` + (&auth.Token{Issuer: as.http.URL, Subject: "alice"}).Principal() + `"}`
	as.rotate()
	expect(t, "a token of the old key", call(c, "whoami"), who)
	expect(t, "flow", as.noted(), "")
	fresh := s.mustConnect(t, s.asUser(t, "alice", nil).HTTPClient(), "2025-11-25")
	expect(t, "a token of the new key", call(fresh, "whoami"), who)
	expect(t, "the old one still", call(c, "whoami"), who)
	as.noted()
	as.rotate()
	as.forget()
	third := s.mustConnect(t, s.asUser(t, "alice", nil).HTTPClient(), "2025-11-25") // has the keys fetched
	expect(t, "a token of the third key", call(third, "whoami"), who)
	as.noted()
	expect(t, "the oldest one, after another flow", call(c, "whoami"), who)
	expect(t, "flow", as.noted(), "authorize tools, authorization_code")
}
