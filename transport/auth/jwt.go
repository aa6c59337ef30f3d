package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	josejson "github.com/go-jose/go-jose/v4/json"
	"github.com/go-jose/go-jose/v4/jwt"
)

// JWTOptions configures NewJWTVerifier. Issuer, JWKSURL and Audience are
// required; zero elsewhere means the default. They are copied once.
type JWTOptions struct {
	// Issuer is what the claim iss must be, character by character.
	Issuer string
	// JWKSURL is where the issuer publishes its keys (jwks_uri of its metadata):
	// https, or http on the loopback interface.
	JWKSURL string
	// Audience are the names of this server of which the claim aud must hold
	// one: its canonical URI, as clients give it in the parameter resource
	// (RFC 8707), and where the issuer does not know that parameter, the name
	// under which it knows the server.
	Audience []string
	// Algorithms are the signature algorithms to accept. Only asymmetric ones
	// are possible. Default: RS256, PS256, ES256, ES384, EdDSA.
	Algorithms []string
	// RequireType accepts only tokens whose header says at+jwt (RFC 9068
	// section 2.1). Many authorization servers do not say it.
	RequireType bool
	// Leeway is how far the clocks may be apart for exp, nbf and iat. Default
	// 30 s; below zero there is none.
	Leeway time.Duration

	// HTTPClient fetches the keys. The default has a time limit of 10 s and
	// follows no redirects.
	HTTPClient *http.Client
	// KeysMaxAge is how old keys may be before they are fetched again, which
	// happens on the side. Default 10 min.
	KeysMaxAge time.Duration
	// KeysMaxStale is how old keys may be when they cannot be fetched again,
	// after which nothing is accepted. Default 1 h, and at least KeysMaxAge.
	KeysMaxStale time.Duration
	// KeysMinInterval is the least time between two fetches, however many
	// tokens name keys that are not known. Default 10 s.
	KeysMinInterval time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// signatures are the algorithms that can be allowed, the default ones first.
var signatures = []jose.SignatureAlgorithm{
	jose.RS256, jose.PS256, jose.ES256, jose.ES384, jose.EdDSA, // by default
	jose.RS384, jose.RS512, jose.PS384, jose.PS512, jose.ES512,
}

const defaultSignatures = 5

// jwtVerifier is a Verifier of JSON Web Tokens.
type jwtVerifier struct {
	options    JWTOptions
	algorithms []jose.SignatureAlgorithm
	keys       *keySet
}

// NewJWTVerifier makes a Verifier of access tokens that are JSON Web Tokens
// (RFC 7519, RFC 9068), signed by one issuer with keys that it publishes
// (RFC 7517). Errors tell which option is wrong; nothing is fetched yet.
func NewJWTVerifier(o JWTOptions) (Verifier, error) {
	if _, err := secureURL(o.Issuer); err != nil {
		return nil, fmt.Errorf("auth: Issuer: %w", err)
	}
	if _, err := secureURL(o.JWKSURL); err != nil {
		return nil, fmt.Errorf("auth: JWKSURL: %w", err)
	}
	if len(o.Audience) == 0 || slices.Contains(o.Audience, "") {
		return nil, errors.New("auth: Audience is missing")
	}
	v := &jwtVerifier{}
	for _, name := range o.Algorithms {
		if !slices.Contains(signatures, jose.SignatureAlgorithm(name)) {
			return nil, fmt.Errorf("auth: Algorithms: %q cannot be allowed", name)
		}
		v.algorithms = append(v.algorithms, jose.SignatureAlgorithm(name))
	}
	if len(v.algorithms) == 0 {
		v.algorithms = signatures[:defaultSignatures]
	}
	o.Audience = slices.Clone(o.Audience)
	switch {
	case o.Leeway == 0:
		o.Leeway = 30 * time.Second
	case o.Leeway < 0:
		o.Leeway = 0
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	v.options = o
	v.keys = newKeySet(&v.options)
	return v, nil
}

// refusal makes the error of a token that is no good. The text is a constant of
// ours: the errors of libraries may quote the token.
func refusal(reason string) error { return fmt.Errorf("%w: %s", ErrInvalidToken, reason) }

// claims are those that matter here.
type claims struct {
	jwt.Claims
	ClientID string `json:"client_id"`
	Party    string `json:"azp"` // the client, as OpenID Connect has it
	Scope    words  `json:"scope"`
	Scp      words  `json:"scp"` // scope, as some servers have it
}

// words is a list that some servers write as a string with spaces.
type words []string

// UnmarshalJSON takes both forms.
func (w *words) UnmarshalJSON(data []byte) error {
	var text string
	if josejson.Unmarshal(data, &text) == nil {
		*w = strings.Fields(text)
		return nil
	}
	var list []string
	err := josejson.Unmarshal(data, &list)
	*w = list
	return err
}

// Verify checks the signature first, and then what is signed.
func (v *jwtVerifier) Verify(ctx context.Context, token string) (*Token, error) {
	parsed, err := jwt.ParseSigned(token, v.algorithms)
	if err != nil || len(parsed.Headers) != 1 {
		return nil, refusal("not a JWT of an allowed algorithm")
	}
	header := parsed.Headers[0]
	if v.options.RequireType && !isAccessTokenType(header.ExtraHeaders[jose.HeaderType]) {
		return nil, refusal("the type is not at+jwt")
	}
	keys, err := v.keys.find(ctx, header.KeyID, header.Algorithm)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		var c claims
		if parsed.Claims(key.Key, &c) == nil {
			return v.check(&c)
		}
	}
	return nil, refusal("no key verifies the signature")
}

// isAccessTokenType compares a typ header, which is a media type whose
// application/ may be left out.
func isAccessTokenType(typ any) bool {
	text, _ := typ.(string)
	text = strings.ToLower(text)
	return text == "at+jwt" || text == "application/at+jwt"
}

// check holds the claims to the options.
func (v *jwtVerifier) check(c *claims) (*Token, error) {
	if c.Expiry == nil {
		return nil, refusal("exp is missing")
	}
	if c.Subject == "" {
		return nil, refusal("sub is missing")
	}
	err := c.ValidateWithLeeway(jwt.Expected{
		Issuer: v.options.Issuer, AnyAudience: v.options.Audience, Time: v.options.Now(),
	}, v.options.Leeway)
	switch {
	case err == nil:
	case errors.Is(err, jwt.ErrExpired):
		return nil, refusal("expired")
	case errors.Is(err, jwt.ErrNotValidYet), errors.Is(err, jwt.ErrIssuedInTheFuture):
		return nil, refusal("not valid yet")
	case errors.Is(err, jwt.ErrInvalidIssuer):
		return nil, refusal("of another issuer")
	case errors.Is(err, jwt.ErrInvalidAudience):
		return nil, refusal("for another audience")
	default:
		return nil, refusal("the claims are not in order")
	}
	t := &Token{
		Subject: c.Subject, Issuer: c.Issuer, ClientID: c.ClientID,
		Scopes: c.Scope, Audience: c.Audience, Expiry: c.Expiry.Time(),
	}
	if t.ClientID == "" {
		t.ClientID = c.Party
	}
	if len(t.Scopes) == 0 {
		t.Scopes = c.Scp
	}
	return t, nil
}
