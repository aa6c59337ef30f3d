package auth_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpengine/mcpengine/transport/auth"
)

func TestVerify(t *testing.T) {
	key, weak := ecKey(t, "k1"), rsaKey(t, "weak", 1024)
	i := newIssuer(t, key, weak)
	v := i.verifier()
	now := time.Now()
	stranger := ecKey(t, "k1")
	parts := strings.Split(i.token(key, nil), ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"k1"}`))
	hmac := jwk("k1", jose.HS256, []byte(strings.Repeat("0123456789", 4)))
	unnamed := key
	unnamed.KeyID = ""
	for _, c := range []struct {
		name, token, want string
	}{
		{"good", i.token(key, nil), "ok"},
		{"audience in a list", i.token(key, map[string]any{"aud": []string{"x", resourceURI}}), "ok"},
		{"within the leeway", i.token(key, map[string]any{"exp": now.Add(-20 * time.Second).Unix()}), "ok"},
		{"a claim in other case does not count", i.token(key, map[string]any{"aud": nil, "AUD": resourceURI}), invalid("for another audience")},
		{"expired", i.token(key, map[string]any{"exp": now.Add(-time.Minute).Unix()}), invalid("expired")},
		{"without an end", i.token(key, map[string]any{"exp": nil}), invalid("exp is missing")},
		{"not yet", i.token(key, map[string]any{"nbf": now.Add(time.Minute).Unix()}), invalid("not valid yet")},
		{"issued later", i.token(key, map[string]any{"iat": now.Add(time.Minute).Unix()}), invalid("not valid yet")},
		{"another audience", i.token(key, map[string]any{"aud": "https://mcp.example.com/other"}), invalid("for another audience")},
		{"a prefix of the audience", i.token(key, map[string]any{"aud": "https://mcp.example.com"}), invalid("for another audience")},
		{"no audience", i.token(key, map[string]any{"aud": nil}), invalid("for another audience")},
		{"another issuer", i.token(key, map[string]any{"iss": "https://evil.example"}), invalid("of another issuer")},
		{"the issuer with a slash", i.token(key, map[string]any{"iss": i.server.URL + "/"}), invalid("of another issuer")},
		{"no subject", i.token(key, map[string]any{"sub": nil}), invalid("sub is missing")},
		{"another key of that name", i.token(stranger, nil), invalid("no key verifies the signature")},
		{"an unknown key", i.token(ecKey(t, "k2"), nil), invalid("signed with an unknown key")},
		{"a weak key", i.token(weak, nil), invalid("signed with an unknown key")},
		{"no key id, two keys of which one is usable", i.token(unnamed, nil), "ok"},
		{"a symmetric key", i.token(hmac, nil), invalid("not a JWT of an allowed algorithm")},
		{"alg none", none + "." + parts[1] + ".", invalid("not a JWT of an allowed algorithm")},
		{"alg none with a signature", none + "." + parts[1] + "." + parts[2], invalid("not a JWT of an allowed algorithm")},
		{"a signature cut off", parts[0] + "." + parts[1] + ".", invalid("no key verifies the signature")},
		{"a payload exchanged", parts[0] + "." + strings.Split(i.token(key, map[string]any{"sub": "eve"}), ".")[1] + "." + parts[2], invalid("no key verifies the signature")},
		{"opaque", "abcdef", invalid("not a JWT of an allowed algorithm")},
		{"empty", "", invalid("not a JWT of an allowed algorithm")},
	} {
		if got := verify(v, c.token); got != c.want {
			t.Errorf("Verify(%s): got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestUnnamedKey has a token that does not say which of two keys it is signed
// with.
func TestUnnamedKey(t *testing.T) {
	one, two := ecKey(t, "k1"), ecKey(t, "k2")
	i := newIssuer(t, one, two)
	one.KeyID = ""
	if got, want := verify(i.verifier(), i.token(one, nil)), invalid("signed with an unknown key"); got != want {
		t.Errorf("Verify(no key id): got %q, want %q", got, want)
	}
}

func TestVerifyGives(t *testing.T) {
	key := rsaKey(t, "r", 2048)
	i := newIssuer(t, key)
	v := i.verifier()
	end := time.Now().Add(time.Minute).Truncate(time.Second)
	for _, c := range []struct {
		changes map[string]any
		want    auth.Token
	}{
		{nil, auth.Token{ClientID: "app", Scopes: []string{"tools:read", "tools:call"}}},
		{map[string]any{"client_id": nil, "azp": "web", "scope": []string{"a", "b"}}, auth.Token{ClientID: "web", Scopes: []string{"a", "b"}}},
		{map[string]any{"scope": nil, "scp": "c d"}, auth.Token{ClientID: "app", Scopes: []string{"c", "d"}}},
	} {
		c.want.Subject, c.want.Issuer, c.want.Audience, c.want.Expiry = "alice", i.server.URL, []string{resourceURI}, end
		changes := map[string]any{"exp": end.Unix()}
		for name, value := range c.changes {
			changes[name] = value
		}
		got, err := v.Verify(context.Background(), i.token(key, changes))
		if err != nil || !got.Expiry.Equal(end) {
			t.Errorf("Verify(%v): got %+v, %v, want an expiry of %v", c.changes, got, err, end)
			continue
		}
		got.Expiry = end // in this location
		if !reflect.DeepEqual(*got, c.want) {
			t.Errorf("Verify(%v): got %+v, want %+v", c.changes, *got, c.want)
		}
	}
}

func TestRequireType(t *testing.T) {
	key := ecKey(t, "k")
	i := newIssuer(t, key)
	v := i.verifier(func(o *auth.JWTOptions) { o.RequireType = true })
	good := map[string]any{"iss": i.server.URL, "sub": "a", "aud": resourceURI, "exp": time.Now().Add(time.Hour).Unix()}
	for typ, want := range map[jose.ContentType]string{
		"at+jwt": "ok", "application/AT+JWT": "ok",
		"JWT": invalid("the type is not at+jwt"), "": invalid("the type is not at+jwt"),
	} {
		if got := verify(v, sign(t, key, good, typ)); got != want {
			t.Errorf("Verify(typ %q): got %q, want %q", typ, got, want)
		}
	}
}

func TestJWTOptions(t *testing.T) {
	good := auth.JWTOptions{Issuer: "https://as.example", JWKSURL: "https://as.example/keys", Audience: []string{"x"}}
	for _, c := range []struct {
		change func(*auth.JWTOptions)
		want   string
	}{
		{func(*auth.JWTOptions) {}, ""},
		{func(o *auth.JWTOptions) { o.JWKSURL = "http://127.0.0.1:1/keys" }, ""},
		{func(o *auth.JWTOptions) { o.Algorithms = []string{"RS512"} }, ""},
		{func(o *auth.JWTOptions) { o.Algorithms = []string{"none"} }, `auth: Algorithms: "none" cannot be allowed`},
		{func(o *auth.JWTOptions) { o.Algorithms = []string{"RS256", "HS256"} }, `auth: Algorithms: "HS256" cannot be allowed`},
		{func(o *auth.JWTOptions) { o.Audience = nil }, "auth: Audience is missing"},
		{func(o *auth.JWTOptions) { o.Audience = []string{""} }, "auth: Audience is missing"},
		{func(o *auth.JWTOptions) { o.Issuer = "" }, `auth: Issuer: "" must have a host, and no user and no fragment`},
		{func(o *auth.JWTOptions) { o.JWKSURL = "http://as.example/keys" }, `auth: JWKSURL: "http://as.example/keys" must be https`},
	} {
		o, got := good, ""
		c.change(&o)
		if _, err := auth.NewJWTVerifier(o); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("NewJWTVerifier(%+v): got %q, want %q", o, got, c.want)
		}
	}
}

// TestRotation exchanges the key: tokens of the new one are good at once, those
// of the old one until the keys are fetched, and fetches are few.
func TestRotation(t *testing.T) {
	first, second := ecKey(t, "k1"), ecKey(t, "k2")
	i := newIssuer(t, first)
	now := time.Now()
	v := i.verifier(func(o *auth.JWTOptions) { o.Now = func() time.Time { return now } })
	old, fresh := i.token(first, nil), i.token(second, nil)
	expect := func(what, token, want string, fetches int) {
		t.Helper()
		if got := verify(v, token); got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
		if got := i.fetched(); got != fetches {
			t.Errorf("%s: got %d fetches, want %d", what, got, fetches)
		}
	}
	expect("the first token", old, "ok", 1)
	expect("again", old, "ok", 1)
	i.set(func() { i.keys = []jose.JSONWebKey{second} })
	expect("a new key, too soon after the last fetch", fresh, invalid("signed with an unknown key"), 1)
	now = now.Add(11 * time.Second)
	expect("a new key", fresh, "ok", 2)
	expect("the old key is gone", old, invalid("signed with an unknown key"), 2)
	for range 100 {
		expect("many tokens with unknown keys", i.token(ecKey(t, "x"), nil), invalid("signed with an unknown key"), 2)
	}
}

// TestStaleKeys has the issuer fail: the keys that are known last for a time.
func TestStaleKeys(t *testing.T) {
	key := ecKey(t, "k1")
	i := newIssuer(t, key)
	now := time.Now()
	clock := func() time.Time { return now }
	v := i.verifier(func(o *auth.JWTOptions) { o.Now = clock })
	token := i.token(key, map[string]any{"exp": now.Add(10 * time.Hour).Unix()})
	for _, c := range []struct {
		after  time.Duration
		status int
		body   string
		want   string
	}{
		{0, 500, "", "auth: the keys of the issuer are not available: status 500"},
		{time.Minute, 200, `{"keys":[]}`, "auth: the keys of the issuer are not available: no usable key"},
		{time.Minute, 200, strings.Repeat(" ", 512<<10) + " ", "auth: the keys of the issuer are not available: more than 524288 bytes"},
		{time.Minute, 200, "", "ok"},
		{59 * time.Minute, 500, "", "ok"},
		{2 * time.Minute, 500, "", "auth: the keys of the issuer are not available: status 500"},
		{time.Minute, 200, "", "ok"},
	} {
		now = now.Add(c.after)
		i.set(func() { i.status, i.body = c.status, c.body })
		before := i.fetched()
		if got := verify(v, token); got != c.want {
			t.Errorf("Verify with status %d, %v later: got %q, want %q", c.status, c.after, got, c.want)
		}
		for deadline := time.Now().Add(5 * time.Second); i.fetched() == before && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond) // a fetch on the side has to begin
		}
		_ = verify(v, i.token(ecKey(t, "x"), nil)) // waits until it is over
	}
}

// roundTrip makes a function an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestHangingKeys has the issuer not answer at all: the fetch is one for all,
// it ends by itself, and a caller who leaves does not wait for it.
func TestHangingKeys(t *testing.T) {
	key := ecKey(t, "k")
	i := newIssuer(t, key)
	token := i.token(key, nil)
	synctest.Test(t, func(t *testing.T) {
		fetches := 0
		v := i.verifier(func(o *auth.JWTOptions) {
			o.HTTPClient = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				fetches++
				<-r.Context().Done()
				return nil, r.Context().Err()
			})}
		})
		begin := time.Now()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if _, err := v.Verify(context.Background(), token); err == nil || errors.Is(err, auth.ErrInvalidToken) {
					t.Errorf("Verify without keys: got %v, want an error of the issuer", err)
				}
			})
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := v.Verify(ctx, token); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 2*time.Second {
			t.Errorf("Verify with 1 s: got %v after %v, want %v", err, time.Since(begin), context.DeadlineExceeded)
		}
		all.Wait()
		if got := time.Since(begin); got != 10*time.Second || fetches != 1 {
			t.Errorf("20 verifications: got %v and %d fetches, want 10s and 1", got, fetches)
		}
	})
}
