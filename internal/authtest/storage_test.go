package authtest

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// storage is what the library asks of an embedder (op.Storage and
// op.ClientCredentialsStorage).
type storage struct{ *authServer }

var (
	_ op.Storage                  = storage{}
	_ op.ClientCredentialsStorage = storage{}
)

func (s storage) CreateAuthRequest(ctx context.Context, r *oidc.AuthRequest, _ string) (op.AuthRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	request := &authRequest{AuthRequest: r, id: rand.Text(), audience: s.audienceOf(ctx)}
	s.requests[request.id] = request
	return request, nil
}

func (s storage) find(f func(*authRequest) bool) (op.AuthRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if f(r) {
			return r, nil
		}
	}
	return nil, errUnknown
}

func (s storage) AuthRequestByID(_ context.Context, id string) (op.AuthRequest, error) {
	return s.find(func(r *authRequest) bool { return r.id == id })
}

func (s storage) AuthRequestByCode(_ context.Context, code string) (op.AuthRequest, error) {
	return s.find(func(r *authRequest) bool { return r.code == code })
}

func (s storage) SaveAuthCode(_ context.Context, id, code string) error {
	s.set(func() { s.requests[id].code = code })
	return nil
}

func (s storage) DeleteAuthRequest(_ context.Context, id string) error {
	s.set(func() { delete(s.requests, id) })
	return nil
}

func (s storage) CreateAccessToken(context.Context, op.TokenRequest) (string, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return rand.Text(), time.Now().Add(s.lifetime), nil
}

func (s storage) CreateAccessAndRefreshTokens(_ context.Context, r op.TokenRequest, current string) (string, string, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	request, ok := r.(*authRequest)
	if again, is := r.(refreshRequest); is {
		request, ok = again.authRequest, true
		delete(s.refresh, current) // it is good once
	}
	if !ok {
		return "", "", time.Time{}, errUnknown
	}
	token := rand.Text()
	s.refresh[token] = request
	return rand.Text(), token, time.Now().Add(s.lifetime), nil
}

func (s storage) TokenRequestByRefreshToken(_ context.Context, token string) (op.RefreshTokenRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.refresh[token]; r != nil {
		return refreshRequest{r}, nil
	}
	return nil, op.ErrInvalidRefreshToken
}

func (s storage) SigningKey(context.Context) (op.SigningKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key, nil
}

func (storage) SignatureAlgorithms(context.Context) ([]jose.SignatureAlgorithm, error) {
	return []jose.SignatureAlgorithm{jose.ES256}, nil
}

func (s storage) KeySet(context.Context) ([]op.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := []op.Key{publicKey{s.key}}
	for _, key := range s.retired {
		keys = append(keys, publicKey{key})
	}
	return keys, nil
}

func (storage) GetClientByClientID(_ context.Context, id string) (op.Client, error) {
	if id != "app" && id != "machine" {
		return nil, errUnknown
	}
	return oauthClient{id}, nil
}

func (storage) AuthorizeClientIDSecret(_ context.Context, id, secret string) error {
	if id != "machine" || secret != "machine-secret" {
		return errUnknown
	}
	return nil
}

func (s storage) ClientCredentials(ctx context.Context, id, secret string) (op.Client, error) {
	return oauthClient{id}, s.AuthorizeClientIDSecret(ctx, id, secret)
}

func (s storage) ClientCredentialsTokenRequest(ctx context.Context, _ string, scopes []string) (op.TokenRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return machineRequest{scopes, s.audienceOf(ctx)}, nil
}

// GetPrivateClaimsFromScopes puts the scopes into access tokens (RFC 9068
// section 2.2.3).
func (storage) GetPrivateClaimsFromScopes(_ context.Context, _, _ string, scopes []string) (map[string]any, error) {
	return map[string]any{"scope": strings.Join(scopes, " ")}, nil
}

// What follows belongs to parts of OpenID Connect that no test uses.

func (storage) TerminateSession(context.Context, string, string) error { return errUnknown }

func (storage) RevokeToken(context.Context, string, string, string) *oidc.Error {
	return oidc.ErrInvalidRequest()
}

func (storage) GetRefreshTokenInfo(context.Context, string, string) (string, string, error) {
	return "", "", op.ErrInvalidRefreshToken
}

func (storage) SetUserinfoFromScopes(context.Context, *oidc.UserInfo, string, string, []string) error {
	return nil
}

func (storage) SetUserinfoFromToken(context.Context, *oidc.UserInfo, string, string, string) error {
	return errUnknown
}

func (storage) SetIntrospectionFromToken(context.Context, *oidc.IntrospectionResponse, string, string, string) error {
	return errUnknown
}

func (storage) GetKeyByIDAndClientID(context.Context, string, string) (*jose.JSONWebKey, error) {
	return nil, errUnknown
}

func (storage) ValidateJWTProfileScopes(context.Context, string, []string) ([]string, error) {
	return nil, errUnknown
}

func (storage) Health(context.Context) error { return nil }
