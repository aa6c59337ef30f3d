package auth_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcpengine/mcpengine/transport/auth"
)

func TestBrowser(t *testing.T) {
	s := newResource(t, nil)
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	for _, c := range []struct {
		method, origin, asks string
		status               int
		allowed              string
	}{
		{"OPTIONS", "https://app.example", "POST", 204, ""},
		{"OPTIONS", "", "POST", 401, ""},
		{"OPTIONS", "https://app.example", "", 401, "*"},
		{"POST", "https://app.example", "POST", 401, "*"},
		{"POST", "", "", 401, ""},
	} {
		r := httptest.NewRequest(c.method, "/", http.NoBody)
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if c.asks != "" {
			r.Header.Set("Access-Control-Request-Method", c.asks)
		}
		w := httptest.NewRecorder()
		s.Require()(next).ServeHTTP(w, r)
		if got := w.Header().Get("Access-Control-Allow-Origin"); w.Code != c.status || got != c.allowed {
			t.Errorf("%s from %q asking %q: got %d %q, want %d %q", c.method, c.origin, c.asks, w.Code, got, c.status, c.allowed)
		}
	}
}

func TestMetadata(t *testing.T) {
	const rest = `,"authorization_servers":["https://as.example"],"scopes_supported":["read"],"bearer_methods_supported":["header"],"resource_name":"Files"}`
	for _, c := range []struct{ resource, path string }{
		{"https://mcp.example.com", "/.well-known/oauth-protected-resource"},
		{"https://mcp.example.com/", "/.well-known/oauth-protected-resource"},
		{"https://mcp.example.com:8443/a/mcp", "/.well-known/oauth-protected-resource/a/mcp"},
		{"http://127.0.0.1:8080/mcp", "/.well-known/oauth-protected-resource/mcp"},
	} {
		s := newResource(t, func(o *auth.ResourceOptions) {
			o.Resource, o.Scopes, o.Name = c.resource, []string{"read"}, "Files"
		})
		mux := http.NewServeMux()
		mux.Handle(s.MetadataPath(), s.Metadata())
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.path, http.NoBody))
		want := `{"resource":"` + c.resource + `"` + rest
		if got := w.Body.String(); w.Code != 200 || got != want || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("GET %s: got %d %s, want %s", c.path, w.Code, got, want)
		}
		w = httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, c.path, http.NoBody))
		if w.Code != 405 {
			t.Errorf("POST %s: got %d, want 405", c.path, w.Code)
		}
	}
}

func TestResourceOptions(t *testing.T) {
	for _, c := range []struct {
		change func(*auth.ResourceOptions)
		want   string
	}{
		{func(o *auth.ResourceOptions) { o.Resource = "mcp.example.com" }, `auth: Resource: "mcp.example.com" must have a host, and no user and no fragment`},
		{func(o *auth.ResourceOptions) { o.Resource = "https://h/#f" }, `auth: Resource: "https://h/#f" must have a host, and no user and no fragment`},
		{func(o *auth.ResourceOptions) { o.Resource = "https://h/?q" }, `auth: Resource: "https://h/?q" has a query`},
		{func(o *auth.ResourceOptions) { o.Resource = "http://h/mcp" }, `auth: Resource: "http://h/mcp" must be https`},
		{func(o *auth.ResourceOptions) { o.Verifier = nil }, "auth: Verifier is missing"},
		{func(o *auth.ResourceOptions) { o.AuthorizationServers = nil }, "auth: AuthorizationServers is empty"},
		{func(o *auth.ResourceOptions) { o.AuthorizationServers = []string{"http://as.example"} }, `auth: AuthorizationServers: "http://as.example" must be https`},
		{func(o *auth.ResourceOptions) { o.Scopes = []string{"offline_access"} }, "auth: Scopes: offline_access is not a need of a resource"},
		{func(o *auth.ResourceOptions) { o.Scopes = []string{`a"b`} }, `auth: Scopes: "a\"b" is not a scope`},
	} {
		o := auth.ResourceOptions{Resource: resourceURI, AuthorizationServers: []string{"https://as.example"}, Verifier: known}
		c.change(&o)
		got := "nil"
		if _, err := auth.NewResource(o); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("NewResource: got %s, want %s", got, c.want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error(`Require("a b"): got no panic`)
		}
	}()
	newResource(t, nil).Require("a b")
}
