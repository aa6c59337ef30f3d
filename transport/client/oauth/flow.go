package oauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

const scopeOffline = "offline_access"

// flow gets a grant.
func (t *Transport) flow(ctx context.Context, old *grant, w want) (*grant, error) {
	if w.renew && old != nil && old.token.RefreshToken != "" {
		g, err := t.refresh(ctx, old)
		if !errors.Is(err, errRefused) {
			return g, err
		}
		t.o.Logger.DebugContext(ctx, "oauth: the refresh token is no longer good", "issuer", old.server.issuer)
	}
	r, err := t.findResource(ctx, w.challenge)
	if err != nil {
		return nil, err
	}
	s, err := t.findServer(ctx, r.issuer)
	if err != nil {
		return nil, err
	}
	client, err := t.clientFor(ctx, s)
	if err != nil {
		return nil, err
	}
	g := &grant{resource: r, server: s, client: client, scopes: t.scopesFor(old, w.challenge, r, s), at: time.Now()}
	t.o.Logger.DebugContext(ctx, "oauth: asking for a token",
		"resource", r.uri, "issuer", s.issuer, "client", client.ID, "scopes", g.scopes)
	if t.o.ClientCredentials {
		g.token, err = t.request(ctx, g, url.Values{"grant_type": {"client_credentials"}}, g.scopes)
	} else {
		g.token, err = t.byCode(ctx, g)
	}
	if err != nil {
		t.dynamic = nil // it may have been forgotten; the next flow makes a new one
		return nil, err
	}
	return g, nil
}

// scopesFor gives the scopes to ask for (MCP 2026-07-28, Scope Selection
// Strategy and Step-Up Authorization Flow): those of the challenge, else those
// of the resource, besides what was asked for before.
func (t *Transport) scopesFor(old *grant, c challenge, r *resource, s *server) []string {
	var before []string
	if old != nil && old.server.issuer == s.issuer && old.resource.uri == r.uri {
		before = old.scopes
	}
	needed := c.scopes
	if len(needed) == 0 {
		needed = r.scopes
	}
	scopes := union(before, t.o.Scopes, needed)
	if t.o.Offline && !t.o.ClientCredentials && slices.Contains(s.scopes, scopeOffline) {
		scopes = union(scopes, []string{scopeOffline})
	}
	return scopes
}

// byCode gets a token by the authorization code grant with PKCE (OAuth 2.1
// section 4.1).
func (t *Transport) byCode(ctx context.Context, g *grant) (*oauth2.Token, error) {
	config := oauth2.Config{
		ClientID: g.client.ID, ClientSecret: g.client.Secret, RedirectURL: t.o.RedirectURL, Scopes: g.scopes,
		Endpoint: oauth2.Endpoint{
			AuthURL: g.server.authorizationURL, TokenURL: g.server.tokenURL, AuthStyle: g.client.style(g.server),
		},
	}
	verifier, state := oauth2.GenerateVerifier(), rand.Text()
	resource := oauth2.SetAuthURLParam("resource", g.resource.uri)
	response, err := t.o.Authorize(ctx, config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier), resource))
	if err != nil {
		return nil, fmt.Errorf("oauth: Authorize: %w", err)
	}
	if err := checkResponse(response, state, g.server); err != nil {
		return nil, err
	}
	token, err := config.Exchange(t.withClient(ctx), response.Code, oauth2.VerifierOption(verifier), resource)
	return checkToken(token, err)
}

// checkResponse holds an authorization response to the request. Until state and
// issuer are known to be right nothing else of it is used, its error included
// (RFC 9207 section 2.4).
func checkResponse(r Response, state string, s *server) error {
	switch {
	case subtle.ConstantTimeCompare([]byte(r.State), []byte(state)) != 1:
		return fmt.Errorf("%w: the state is not the one of the request", ErrResponse)
	case r.HasIssuer && r.Issuer != s.issuer:
		return fmt.Errorf("%w: it is not of the issuer %s", ErrResponse, s.issuer)
	case !r.HasIssuer && s.givesIssuer:
		return fmt.Errorf("%w: it has no issuer, and %s promises one", ErrResponse, s.issuer)
	case r.Error != "":
		return fmt.Errorf("%w: error %q", ErrDenied, errorCode(r.Error))
	case r.Code == "":
		return fmt.Errorf("%w: it has no code", ErrResponse)
	}
	return nil
}

// refresh gets a token by the refresh token, at the server and for the resource
// that this one belongs to.
func (t *Transport) refresh(ctx context.Context, old *grant) (*grant, error) {
	token, err := t.request(ctx, old, url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {old.token.RefreshToken},
	}, nil)
	if err != nil {
		return nil, err
	}
	t.o.Logger.DebugContext(ctx, "oauth: the token was refreshed", "issuer", old.server.issuer)
	return &grant{
		token: token, resource: old.resource, server: old.server, client: old.client, scopes: old.scopes,
		renewed: true, at: time.Now(),
	}, nil
}

// request makes a request to the token endpoint that has the parameter resource,
// which oauth2.Config leaves out of a refresh.
func (t *Transport) request(ctx context.Context, g *grant, params url.Values, scopes []string) (*oauth2.Token, error) {
	params.Set("resource", g.resource.uri)
	config := clientcredentials.Config{
		ClientID: g.client.ID, ClientSecret: g.client.Secret, TokenURL: g.server.tokenURL,
		Scopes: scopes, EndpointParams: params, AuthStyle: g.client.style(g.server),
	}
	return checkToken(config.Token(t.withClient(ctx)))
}

// withClient makes package oauth2 use our HTTP client.
func (t *Transport) withClient(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, t.side)
}

// errRefused means that the token endpoint refused what was presented, as it does
// with a refresh token that is used up or revoked.
var errRefused = errors.New("refused")

// checkToken looks at the answer of a token endpoint. Nothing of its body gets
// into an error but an error code.
func checkToken(token *oauth2.Token, err error) (*oauth2.Token, error) {
	var refused *oauth2.RetrieveError
	var sent *url.Error
	switch {
	case errors.As(err, &refused):
		return nil, fmt.Errorf("%w: %w: status %d, error %q", ErrToken, errRefused, refused.Response.StatusCode, errorCode(refused.ErrorCode))
	case errors.As(err, &sent):
		return nil, fmt.Errorf("%w: %w", ErrToken, sent)
	case err != nil:
		return nil, fmt.Errorf("%w: the answer is malformed", ErrToken)
	case !strings.EqualFold(token.Type(), "Bearer"):
		return nil, fmt.Errorf("%w: it is no bearer token", ErrToken)
	case strings.ContainsFunc(token.AccessToken, func(c rune) bool { return c <= ' ' || c > '~' }):
		return nil, fmt.Errorf("%w: it has characters that no header can hold", ErrToken)
	}
	return token, nil
}
