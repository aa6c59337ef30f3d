package auth_test

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/transport/auth"
)

const pointer = `resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"`

// tokens is a Verifier of fixed texts.
type tokens map[string]*auth.Token

var errDown = errors.New("the verifier is down")

func (k tokens) Verify(_ context.Context, text string) (*auth.Token, error) {
	token, known := k[text]
	switch {
	case !known:
		return nil, auth.ErrInvalidToken
	case token == nil:
		return nil, errDown
	}
	return token, nil
}

// known are the tokens of the tests that need no JWT.
var known = tokens{
	"alice": {Issuer: "https://as.example", Subject: "alice", Scopes: []string{"read", "call"}},
	"bob":   {Issuer: "https://as.example", Subject: "bob", Scopes: []string{"read"}},
	"admin": {Issuer: "https://as.example", Subject: "admin", Scopes: []string{"files"}},
	"down":  nil,
}

func newResource(t *testing.T, change func(*auth.ResourceOptions)) *auth.Resource {
	t.Helper()
	o := auth.ResourceOptions{
		Resource: resourceURI, AuthorizationServers: []string{"https://as.example"}, Verifier: known,
		Logger: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&o)
	}
	r, err := auth.NewResource(o)
	if err != nil {
		t.Fatalf("NewResource: %v", err)
	}
	return r
}

// whoami answers with the principal of its request.
var whoami = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, auth.PrincipalFrom(r.Context())+r.Header.Get("Authorization"))
})

func TestRequire(t *testing.T) {
	s := newResource(t, func(o *auth.ResourceOptions) { o.Scopes = []string{"read"} })
	const (
		wrong  = `error="invalid_token", error_description="The access token is malformed, expired, or not for this resource.", `
		lacks  = `error="insufficient_scope", error_description="The access token lacks a scope that this operation needs.", `
		query  = `error="invalid_request", error_description="An access token must not be in the query.", `
		twice  = `error="invalid_request", error_description="There must be one Authorization header.", `
		aScope = `scope="read call", `
	)
	for _, c := range []struct {
		name, target string
		scopes       []string
		header       []string
		status       int
		challenge    string
		body         string
	}{
		{"good", "/mcp", []string{"read", "call"}, []string{"Bearer alice"}, 200, "", "https%3A%2F%2Fas.example|alice"},
		{"the scheme in other case", "/mcp", nil, []string{"bearer  alice"}, 200, "", "https%3A%2F%2Fas.example|alice"},
		{"no token", "/mcp", []string{"read", "call"}, nil, 401, "Bearer " + aScope + pointer, ""},
		{"no token, no scope needed", "/mcp", nil, nil, 401, `Bearer scope="read", ` + pointer, ""},
		{"another scheme", "/mcp", nil, []string{"Basic YWxpY2U6eA=="}, 401, `Bearer scope="read", ` + pointer, ""},
		{"unknown", "/mcp", []string{"read", "call"}, []string{"Bearer mallory"}, 401, "Bearer " + wrong + aScope + pointer, ""},
		{"empty", "/mcp", []string{"read", "call"}, []string{"Bearer "}, 401, "Bearer " + wrong + aScope + pointer, ""},
		{"no form of a token", "/mcp", []string{"read", "call"}, []string{"Bearer a b"}, 401, "Bearer " + wrong + aScope + pointer, ""},
		{"too long", "/mcp", []string{"read", "call"}, []string{"Bearer " + strings.Repeat("a", 16<<10+1)}, 401, "Bearer " + wrong + aScope + pointer, ""},
		{"a scope is missing", "/mcp", []string{"read", "call"}, []string{"Bearer bob"}, 403, "Bearer " + lacks + aScope + pointer, ""},
		{"in the query only", "/mcp?access_token=alice", nil, nil, 400, "Bearer " + query + `scope="read", ` + pointer, ""},
		{"in the query too", "/mcp?access_token=alice", nil, []string{"Bearer alice"}, 400, "Bearer " + query + `scope="read", ` + pointer, ""},
		{"two headers", "/mcp", nil, []string{"Bearer alice", "Bearer bob"}, 400, "Bearer " + twice + `scope="read", ` + pointer, ""},
		{"cannot be verified", "/mcp", nil, []string{"Bearer down"}, 503, "", ""},
	} {
		r := httptest.NewRequest(http.MethodPost, c.target, http.NoBody)
		r.Header["Authorization"] = c.header
		w := httptest.NewRecorder()
		s.Require(c.scopes...)(whoami).ServeHTTP(w, r)
		if w.Code != c.status || w.Header().Get("WWW-Authenticate") != c.challenge {
			t.Errorf("%s: got %d %q, want %d %q", c.name, w.Code, w.Header().Get("WWW-Authenticate"), c.status, c.challenge)
		}
		if got := w.Body.String(); c.status == 200 && got != c.body {
			t.Errorf("%s: got body %q, want %q", c.name, got, c.body)
		}
		if !slices.Equal(r.Header["Authorization"], c.header) {
			t.Errorf("%s: the caller's header is now %q", c.name, r.Header["Authorization"])
		}
	}
	if got, want := s.Stats(), (auth.Stats{Unauthorized: 7, Forbidden: 1, Malformed: 3, Unavailable: 1}); got != want {
		t.Errorf("Stats: got %+v, want %+v", got, want)
	}
}

// TestPrincipal checks that no two pairs of issuer and subject give one name.
func TestPrincipal(t *testing.T) {
	seen := map[string]auth.Token{}
	for _, token := range []auth.Token{
		{Issuer: "https://a", Subject: "b"}, {Issuer: "https://a|b"}, {Issuer: "https://a", Subject: "|b"},
		{Issuer: "https://a|", Subject: "b"}, {Issuer: "https://a%7C", Subject: "b"}, {Subject: "https://a|b"},
		{Issuer: "https://a b", Subject: "c"}, {Issuer: "https://a+b", Subject: "c"}, {Issuer: "https://a", Subject: "b c"},
	} {
		name := token.Principal()
		if other, taken := seen[name]; taken {
			t.Errorf("Principal: got %q for %+v and for %+v", name, token, other)
		}
		seen[name] = token
	}
	if got := auth.PrincipalFrom(context.Background()); got != "" {
		t.Errorf("PrincipalFrom of nobody: got %q, want nothing", got)
	}
}

func TestScopeHierarchy(t *testing.T) {
	s := newResource(t, func(o *auth.ResourceOptions) {
		o.Covers = func(held, needed string) bool { return strings.HasPrefix(needed, held+":") }
	})
	for _, c := range []struct {
		token string
		want  int
	}{{"admin", 200}, {"alice", 403}} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+c.token)
		w := httptest.NewRecorder()
		s.Require("files:write")(whoami).ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("files:write with the token %s: got %d, want %d", c.token, w.Code, c.want)
		}
	}
}

func TestByTool(t *testing.T) {
	s := newResource(t, func(o *auth.ResourceOptions) {
		o.Needed = auth.ByTool(map[string][]string{"write": {"call", "files:write"}, "größe": {"files:stat"}})
	})
	encoded := "=?base64?" + base64.StdEncoding.EncodeToString([]byte("größe")) + "?="
	for _, c := range []struct {
		method, name string
		want         int
		scope        string
	}{
		{"tools/call", "echo", 200, ""},
		{"tools/call", "write", 403, `scope="read call files:write"`},
		{"tools/call", encoded, 403, `scope="read files:stat"`},
		{"tools/call", "=?base64?!?=", 200, ""},
		{"prompts/get", "write", 200, ""},
		{"", "", 200, ""},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
		r.Header.Set("Authorization", "Bearer alice")
		r.Header.Set("Mcp-Method", c.method)
		r.Header.Set("Mcp-Name", c.name)
		w := httptest.NewRecorder()
		s.Require("read")(whoami).ServeHTTP(w, r)
		if w.Code != c.want || !strings.Contains(w.Header().Get("WWW-Authenticate"), c.scope) {
			t.Errorf("%s %s: got %d %q, want %d %q", c.method, c.name, w.Code, w.Header().Get("WWW-Authenticate"), c.want, c.scope)
		}
	}
}

// TestDemand has a handler find out that a scope is missing, before and after
// its response has begun.
func TestDemand(t *testing.T) {
	s := newResource(t, nil)
	for _, c := range []struct {
		name, token string
		begin       func(w http.ResponseWriter)
		status      int
		body        string
	}{
		{"enough", "alice", func(http.ResponseWriter) {}, 202, "<nil>"},
		{"lacking", "bob", func(http.ResponseWriter) {}, 403, `{"error":"insufficient_scope","error_description":"The access token lacks a scope that this operation needs."}`},
		{"too late", "bob", func(w http.ResponseWriter) { w.(http.Flusher).Flush() }, 200, "auth: insufficient scope: this needs read call"},
	} {
		handler := s.Require("read")(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c.begin(w)
			err := auth.Demand(r.Context(), "read", "call")
			w.Header().Set("Content-Length", "5")
			w.WriteHeader(202)
			if err == nil {
				_, _ = io.WriteString(w, "<nil>")
				return
			}
			_, _ = io.WriteString(w, err.Error())
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Errorf("%s: Flush: got %v, want nil", c.name, err)
			}
		}))
		r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+c.token)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		challenged := strings.Contains(w.Header().Get("WWW-Authenticate"), `scope="read call", `+pointer)
		if w.Code != c.status || w.Body.String() != c.body || challenged != (c.status == 403) {
			t.Errorf("%s: got %d %q %v, want %d %q", c.name, w.Code, w.Body, w.Header(), c.status, c.body)
		}
	}
	var lacking *auth.ScopeError
	if err := auth.Demand(context.Background(), "x"); !errors.As(err, &lacking) || !slices.Equal(lacking.Scopes, []string{"x"}) {
		t.Errorf("Demand of nobody: got %v, want a ScopeError", err)
	}
	if err := auth.Demand(auth.WithToken(context.Background(), known["bob"]), "read"); err != nil {
		t.Errorf("Demand with WithToken: got %v, want nil", err)
	}
}

// TestNoTokenLeaks sends good and bad tokens and looks for them in the log, in
// the responses and in the header that the handler sees.
func TestNoTokenLeaks(t *testing.T) {
	key := ecKey(t, "k1")
	i := newIssuer(t, key)
	secrets := []string{
		i.token(key, nil), i.token(ecKey(t, "k2"), nil), i.token(key, map[string]any{"aud": "another"}),
		i.token(key, map[string]any{"scope": "nothing"}), strings.Repeat("opaque", 6), "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9.",
	}
	log := &leakLog{t: t, secrets: secrets}
	down := false
	s := i.resource(func(o *auth.ResourceOptions) {
		o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		jwts := o.Verifier
		o.Verifier = verifierFunc(func(ctx context.Context, token string) (*auth.Token, error) {
			if down {
				return nil, errDown
			}
			return jwts.Verify(ctx, token)
		})
	})
	handler := s.Require("tools:read")(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		slog.New(slog.NewTextHandler(log, nil)).Info("a request", "header", r.Header, "token", auth.TokenFrom(r.Context()))
	}))
	var codes []int
	for _, down = range []bool{false, true} {
		for _, secret := range secrets {
			for _, target := range []string{"/mcp", "/mcp?access_token=" + secret} {
				r := httptest.NewRequest(http.MethodPost, target, http.NoBody)
				r.Header.Set("Authorization", "Bearer "+secret)
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				var text strings.Builder
				_ = w.Header().Write(&text)
				log.judge("a response", text.String()+w.Body.String())
				codes = append(codes, w.Code)
			}
		}
	}
	want := []int{200, 400, 401, 400, 401, 400, 403, 400, 401, 400, 401, 400, 503, 400, 503, 400, 503, 400, 503, 400, 503, 400, 503, 400}
	if !slices.Equal(codes, want) {
		t.Errorf("statuses: got %v, want %v", codes, want)
	}
	if want := 1 + 4 + 6; log.records != want {
		t.Errorf("records: got %d, want %d", log.records, want)
	}
}

type verifierFunc func(context.Context, string) (*auth.Token, error)

func (f verifierFunc) Verify(ctx context.Context, token string) (*auth.Token, error) {
	return f(ctx, token)
}
