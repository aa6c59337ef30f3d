package auth

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync/atomic"
	"time"
)

// Token is what is known of an access token once it has been verified. It does
// not hold the token's text, so it may be logged.
type Token struct {
	// Subject is the user, or the client where it acts for itself. It is unique
	// within the Issuer only.
	Subject string
	// Issuer is the authorization server that issued the token.
	Issuer string
	// ClientID is the OAuth client, where the token tells.
	ClientID string
	// Scopes are those that were granted.
	Scopes []string
	// Audience are the resources that the token is for.
	Audience []string
	// Expiry is when the token ends.
	Expiry time.Time
}

// Verifier tells what an access token stands for. Verify is called with the text
// of the token, by many goroutines at once.
//
// An error that is ErrInvalidToken (by errors.Is) means that the token is no
// good, and the request is answered 401. Any other error means that it could not
// be found out, and is answered 503. The text of an error is logged, so it must
// not hold any part of the token. A Verifier must check that the token was
// issued for this server (RFC 8707 section 2) and has not expired.
type Verifier interface {
	Verify(ctx context.Context, token string) (*Token, error)
}

// ErrInvalidToken is what the errors of a Verifier are when the token is
// malformed, forged, expired, or for somebody else.
var ErrInvalidToken = errors.New("auth: invalid token")

// Principal names who the token stands for: issuer and subject, escaped as in a
// query and joined by "|", which neither can then contain. Two principals are
// the same if and only if issuer and subject are. It is printable ASCII.
func (t *Token) Principal() string {
	return url.QueryEscape(t.Issuer) + "|" + url.QueryEscape(t.Subject)
}

// identity is what Require puts into the context of a request.
type identity struct {
	token     *Token
	principal string
	covers    func(held, needed string) bool
	// lacking is set by whoever finds a scope missing while the request runs.
	lacking atomic.Pointer[ScopeError]
}

func newIdentity(token *Token, covers func(held, needed string) bool) *identity {
	return &identity{token: token, principal: token.Principal(), covers: covers}
}

// holds tells whether the token has all of some scopes.
func (i *identity) holds(scopes []string) bool {
	for _, needed := range scopes {
		if !slices.ContainsFunc(i.token.Scopes, func(held string) bool {
			return held == needed || i.covers != nil && i.covers(held, needed)
		}) {
			return false
		}
	}
	return true
}

type identityKey struct{}

func identityFrom(ctx context.Context) *identity {
	i, _ := ctx.Value(identityKey{}).(*identity)
	return i
}

// WithToken gives a context of which PrincipalFrom, TokenFrom and Demand know
// the token. Require does so for each request; on stdio, where the user is
// whoever started the process, the embedder may do it once.
func WithToken(ctx context.Context, token *Token) context.Context {
	return context.WithValue(ctx, identityKey{}, newIdentity(token, nil))
}

// TokenFrom gives the token of the request that a context belongs to, or nil. It
// must not be changed.
func TokenFrom(ctx context.Context) *Token {
	if i := identityFrom(ctx); i != nil {
		return i.token
	}
	return nil
}

// PrincipalFrom gives Token.Principal of the request that a context belongs to,
// or "" where nobody was authenticated. It is made for engine.Options.Principal.
func PrincipalFrom(ctx context.Context) string {
	if i := identityFrom(ctx); i != nil {
		return i.principal
	}
	return ""
}
