package authtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

const redirectURL = "http://127.0.0.1:3000/callback"

// authServer is an authorization server of zitadel/oidc whose storage is in
// memory. It has one public client, app, and one that acts for itself, machine.
type authServer struct {
	t    *testing.T
	http *httptest.Server

	mu       sync.Mutex // guards the following
	key      signingKey
	retired  []signingKey // still published
	lifetime time.Duration
	audience string // of tokens, instead of the resource that was asked for
	requests map[string]*authRequest
	refresh  map[string]*authRequest
	grants   []string // what was asked of the token endpoint and the authorization endpoint
}

func newAuthServer(t *testing.T) *authServer {
	t.Helper()
	s := &authServer{t: t, lifetime: time.Hour, requests: map[string]*authRequest{}, refresh: map[string]*authRequest{}}
	s.key = newKey(t)
	var handler http.Handler
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	s.http.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.http.StartTLS()
	t.Cleanup(s.http.Close)
	config := &op.Config{CodeMethodS256: true, AuthMethodPost: true, GrantTypeRefreshToken: true}
	provider, err := op.NewProvider(config, storage{s}, op.StaticIssuer(s.http.URL))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", withResource(s, provider))
	mux.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		id := r.URL.Query().Get("id")
		s.mu.Lock()
		s.requests[id].user = r.Header.Get("X-User")
		s.mu.Unlock()
		http.Redirect(w, r, op.AuthCallbackURL(provider)(op.ContextWithIssuer(r.Context(), s.http.URL), id), http.StatusFound)
	})
	handler = mux
	return s
}

type resourceKey struct{}

// withResource gives the parameter resource (RFC 8707) to the storage, since the
// library does not know it, and notes what is asked for.
func withResource(s *authServer, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/authorize":
			s.note("authorize " + r.FormValue("scope"))
		case "/oauth/token":
			s.note(r.FormValue("grant_type"))
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), resourceKey{}, r.FormValue("resource"))))
	})
}

func (s *authServer) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grants = append(s.grants, what)
}

// noted gives what was asked for since the last time.
func (s *authServer) noted() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Join(s.grants, ", ")
	s.grants = nil
	return text
}

func (s *authServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// rotate signs with a new key; the old one stays published until forget.
func (s *authServer) rotate() {
	key := newKey(s.t)
	s.set(func() { s.key, s.retired = key, append(s.retired, s.key) })
}

func (s *authServer) forget() { s.set(func() { s.retired = nil }) }

// audienceOf gives the audience of a token. s.mu is held.
func (s *authServer) audienceOf(ctx context.Context) []string {
	if s.audience != "" {
		return []string{s.audience}
	}
	resource, _ := ctx.Value(resourceKey{}).(string)
	return []string{resource}
}

// signingKey is a key in the forms that the library wants.
type signingKey struct {
	id  string
	key *ecdsa.PrivateKey
}

func newKey(t *testing.T) signingKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signingKey{rand.Text(), key}
}

func (k signingKey) ID() string                                  { return k.id }
func (k signingKey) Key() any                                    { return k.key }
func (k signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.ES256 }

type publicKey struct{ signingKey }

func (k publicKey) Key() any                           { return &k.key.PublicKey }
func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.ES256 }
func (k publicKey) Use() string                        { return "sig" }

// authRequest is an authorization request, and what a code or a refresh token
// stands for.
type authRequest struct {
	*oidc.AuthRequest
	id, code, user string
	audience       []string
}

func (r *authRequest) GetID() string          { return r.id }
func (r *authRequest) GetACR() string         { return "" }
func (r *authRequest) GetAMR() []string       { return nil }
func (r *authRequest) GetAudience() []string  { return r.audience }
func (r *authRequest) GetAuthTime() time.Time { return time.Time{} }
func (r *authRequest) GetClientID() string    { return r.ClientID }
func (r *authRequest) GetCodeChallenge() *oidc.CodeChallenge {
	return &oidc.CodeChallenge{Challenge: r.CodeChallenge, Method: r.CodeChallengeMethod}
}
func (r *authRequest) GetNonce() string                   { return r.Nonce }
func (r *authRequest) GetRedirectURI() string             { return r.RedirectURI }
func (r *authRequest) GetResponseType() oidc.ResponseType { return r.ResponseType }
func (r *authRequest) GetResponseMode() oidc.ResponseMode { return r.ResponseMode }
func (r *authRequest) GetScopes() []string                { return r.Scopes }
func (r *authRequest) GetState() string                   { return r.State }
func (r *authRequest) GetSubject() string                 { return r.user }
func (r *authRequest) Done() bool                         { return r.user != "" }

// refreshRequest is a request with a refresh token.
type refreshRequest struct{ *authRequest }

func (refreshRequest) SetCurrentScopes([]string) {}

// machineRequest is a client that asks for itself.
type machineRequest struct{ scopes, audience []string }

func (machineRequest) GetSubject() string      { return "machine" }
func (m machineRequest) GetAudience() []string { return m.audience }
func (m machineRequest) GetScopes() []string   { return m.scopes }

// oauthClient is a client as the library wants it.
type oauthClient struct{ id string }

func (c oauthClient) GetID() string                     { return c.id }
func (oauthClient) RedirectURIs() []string              { return []string{redirectURL} }
func (oauthClient) PostLogoutRedirectURIs() []string    { return nil }
func (oauthClient) ApplicationType() op.ApplicationType { return op.ApplicationTypeNative }
func (c oauthClient) AuthMethod() oidc.AuthMethod {
	if c.id == "machine" {
		return oidc.AuthMethodBasic
	}
	return oidc.AuthMethodNone
}
func (oauthClient) ResponseTypes() []oidc.ResponseType {
	return []oidc.ResponseType{oidc.ResponseTypeCode}
}
func (c oauthClient) GrantTypes() []oidc.GrantType {
	if c.id == "machine" {
		return []oidc.GrantType{oidc.GrantTypeClientCredentials}
	}
	return []oidc.GrantType{oidc.GrantTypeCode, oidc.GrantTypeRefreshToken}
}
func (oauthClient) LoginURL(id string) string           { return "/login?id=" + id }
func (oauthClient) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }
func (oauthClient) IDTokenLifetime() time.Duration      { return time.Hour }
func (oauthClient) DevMode() bool                       { return false }

//lint:ignore ST1003 The library gives the name.
func (oauthClient) RestrictAdditionalIdTokenScopes() func([]string) []string {
	return slices.Clone[[]string]
}
func (oauthClient) RestrictAdditionalAccessTokenScopes() func([]string) []string {
	return slices.Clone[[]string]
}
func (oauthClient) IsScopeAllowed(string) bool           { return true }
func (oauthClient) IDTokenUserinfoClaimsAssertion() bool { return false }
func (oauthClient) ClockSkew() time.Duration             { return 0 }

var errUnknown = errors.New("unknown")

// tokenFor gets a token for an MCP server that trusts another authorization
// server.
func (s *authServer) tokenFor(t *testing.T, target *mcpServer) string {
	t.Helper()
	s.set(func() { s.audience = target.uri() })
	other := newMCPServer(t, s)
	if _, err := other.connect(t, other.asUser(t, "alice", nil).HTTPClient(), ""); err == nil {
		t.Errorf("a token for %s was accepted by %s", target.uri(), other.uri())
	}
	return other.token()
}
