package auth_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"go.uber.org/goleak"

	"github.com/mcpengine/mcpengine/transport/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const resourceURI = "https://mcp.example.com/mcp"

// issuer publishes keys and signs whatever a test wants.
type issuer struct {
	t      *testing.T
	server *httptest.Server

	mu      sync.Mutex // guards the following
	keys    []jose.JSONWebKey
	body    string // served instead of the keys
	status  int
	fetches int
}

func newIssuer(t *testing.T, keys ...jose.JSONWebKey) *issuer {
	t.Helper()
	i := &issuer{t: t, keys: keys, status: http.StatusOK}
	i.server = httptest.NewTLSServer(http.HandlerFunc(i.serve))
	t.Cleanup(i.server.Close)
	return i
}

func (i *issuer) serve(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fetches++
	body := []byte(i.body)
	if i.body == "" {
		public := make([]jose.JSONWebKey, len(i.keys))
		for n, key := range i.keys {
			public[n] = key.Public()
		}
		body, _ = json.Marshal(jose.JSONWebKeySet{Keys: public})
	}
	w.WriteHeader(i.status)
	_, _ = w.Write(body)
}

func (i *issuer) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

func (i *issuer) fetched() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetches
}

// options are those of a verifier of this issuer.
func (i *issuer) options() auth.JWTOptions {
	return auth.JWTOptions{
		Issuer: i.server.URL, JWKSURL: i.server.URL + "/keys", Audience: []string{resourceURI},
		HTTPClient: i.server.Client(),
	}
}

func (i *issuer) verifier(change ...func(*auth.JWTOptions)) auth.Verifier {
	i.t.Helper()
	o := i.options()
	for _, f := range change {
		f(&o)
	}
	v, err := auth.NewJWTVerifier(o)
	if err != nil {
		i.t.Fatalf("NewJWTVerifier: %v", err)
	}
	return v
}

// resource makes a resource that trusts this issuer.
func (i *issuer) resource(change ...func(*auth.ResourceOptions)) *auth.Resource {
	i.t.Helper()
	o := auth.ResourceOptions{
		Resource: resourceURI, AuthorizationServers: []string{i.server.URL}, Verifier: i.verifier(),
		Logger: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&o)
	}
	r, err := auth.NewResource(o)
	if err != nil {
		i.t.Fatalf("NewResource: %v", err)
	}
	return r
}

// token signs the claims of a good token, with changes; a nil value takes a
// claim out.
func (i *issuer) token(key jose.JSONWebKey, changes map[string]any) string {
	i.t.Helper()
	now := time.Now()
	c := map[string]any{
		"iss": i.server.URL, "sub": "alice", "aud": resourceURI, "client_id": "app", "scope": "tools:read tools:call",
		"exp": now.Add(time.Hour).Unix(), "iat": now.Unix(),
	}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return sign(i.t, key, c, "at+jwt")
}

func sign(t *testing.T, key jose.JSONWebKey, claims any, typ jose.ContentType) string {
	t.Helper()
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key},
		(&jose.SignerOptions{}).WithType(typ))
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func ecKey(t *testing.T, id string) jose.JSONWebKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return jwk(id, jose.ES256, key)
}

func rsaKey(t *testing.T, id string, bits int) jose.JSONWebKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return jwk(id, jose.RS256, key)
}

func jwk(id string, algorithm jose.SignatureAlgorithm, key crypto.PrivateKey) jose.JSONWebKey {
	return jose.JSONWebKey{Key: key, KeyID: id, Algorithm: string(algorithm), Use: "sig"}
}

// verify gives what Verify says: "ok", or the error's text.
func verify(v auth.Verifier, token string) string {
	if _, err := v.Verify(context.Background(), token); err != nil {
		return err.Error()
	}
	return "ok"
}

func invalid(reason string) string { return auth.ErrInvalidToken.Error() + ": " + reason }

// leakLog fails a test when a record holds a secret.
type leakLog struct {
	t       *testing.T
	mu      sync.Mutex
	secrets []string
	records int
}

func (l *leakLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records++
	l.judge("a log record", string(p))
	return len(p), nil
}

// judge looks for the secrets and for each of their parts.
func (l *leakLog) judge(where, text string) {
	for _, secret := range l.secrets {
		for part := range strings.SplitSeq(secret, ".") {
			if len(part) > 8 && strings.Contains(text, part) {
				l.t.Errorf("%s holds a part of a token: %s", where, text)
			}
		}
	}
}
