package oauth_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/transport/client/oauth"
)

// TestDiscoveryOrder looks at where metadata are looked for.
func TestDiscoveryOrder(t *testing.T) {
	const (
		prm   = "/.well-known/oauth-protected-resource"
		oauth = "/.well-known/oauth-authorization-server"
		oidc  = "/.well-known/openid-configuration"
		rest  = ", GET /authorize, POST /token, POST /mcp"
	)
	for _, c := range []struct {
		name, tenant string
		pointer      bool
		places       []string
		want         string
	}{
		{"pointer", "", true, []string{prm + "/mcp", oauth}, "GET " + prm + "/mcp, GET " + oauth + rest},
		{"path", "", false, []string{prm + "/mcp", oauth}, "GET " + prm + "/mcp, GET " + oauth + rest},
		{"root", "", false, []string{prm, oidc}, "GET " + prm + "/mcp, GET " + prm + ", GET " + oauth + ", GET " + oidc + rest},
		{"tenant, OAuth", "/t/1", true, []string{prm + "/mcp", oauth + "/t/1"}, "GET " + prm + "/mcp, GET " + oauth + "/t/1" + rest},
		{"tenant, OIDC inserted", "/t/1", true, []string{prm + "/mcp", oidc + "/t/1"}, "GET " + prm + "/mcp, GET " + oauth + "/t/1, GET " + oidc + "/t/1" + rest},
		{"tenant, OIDC appended", "/t/1", true, []string{prm + "/mcp", "/t/1" + oidc},
			"GET " + prm + "/mcp, GET " + oauth + "/t/1, GET " + oidc + "/t/1, GET /t/1" + oidc + rest},
	} {
		w := newWorld(t)
		w.pointer = c.pointer
		w.issuer += c.tenant
		w.places = map[string]bool{}
		for _, place := range c.places {
			w.places[place] = true
		}
		w.expect(c.name, w.post(w.transport(nil).HTTPClient(), "/mcp"), "200")
		w.expect(c.name, w.seen(), "POST /mcp, "+c.want)
	}
}

// TestBadMetadata has documents that must not be used. No code and no token is
// asked for then.
func TestBadMetadata(t *testing.T) {
	for _, c := range []struct {
		name               string
		resource, metadata map[string]any
		change             func(*world, *oauth.Options)
		want               error
		text               string
	}{
		{name: "another resource", resource: map[string]any{"resource": "https://other.example/mcp"}, text: "it is about the resource"},
		{name: "a resource below", resource: map[string]any{"resource": "SELF/mcp/below"}, text: "it is about the resource"},
		{name: "a resource beside", resource: map[string]any{"resource": "SELF/mc"}, text: "it is about the resource"},
		{name: "no resource", resource: map[string]any{"resource": nil}, text: "it is about the resource"},
		{name: "the resource in other case", resource: map[string]any{"resource": nil, "Resource": "SELF/mcp"}, text: "it is about the resource"},
		{name: "no servers", resource: map[string]any{"authorization_servers": nil}, text: "it names no authorization server"},
		{name: "an issuer without TLS", resource: map[string]any{"authorization_servers": []string{"http://as.example"}}, text: "must be https"},
		{name: "another issuer", metadata: map[string]any{"issuer": "https://honest.example"}, text: `it is of the issuer "https://honest.example"`},
		{name: "the issuer with a slash", metadata: map[string]any{"issuer": "ISSUER/"}, text: "it is of the issuer"},
		{name: "no PKCE", metadata: map[string]any{"code_challenge_methods_supported": nil}, text: "PKCE"},
		{name: "plain PKCE", metadata: map[string]any{"code_challenge_methods_supported": []string{"plain"}}, text: "PKCE"},
		{name: "a token endpoint without TLS", metadata: map[string]any{"token_endpoint": "http://as.example/token"}, text: "must be https"},
		{name: "no token endpoint", metadata: map[string]any{"token_endpoint": nil}, text: "must have a host"},
		{name: "a script for an authorization endpoint", metadata: map[string]any{"authorization_endpoint": "javascript:alert(1)"}, text: "must have a host"},
		{name: "too long", metadata: map[string]any{"filler": strings.Repeat("x", 256<<10)}, text: "more than 262144 bytes"},
		{name: "the chosen issuer is not named", change: func(_ *world, o *oauth.Options) { o.AuthorizationServer = "https://as.example" }, text: "does not name"},
		{name: "no metadata", change: func(w *world, _ *oauth.Options) { w.places, w.pointer = map[string]bool{}, false }, text: "has no resource metadata"},
		{name: "no metadata where the challenge says", change: func(w *world, _ *oauth.Options) { w.places = map[string]bool{} }, text: "status 404"},
		{name: "a client of another issuer", want: oauth.ErrNoClient, text: "the given one is of https://as.example",
			change: func(_ *world, o *oauth.Options) { o.Clients[0].Issuer = "https://as.example" }},
		{name: "no client", want: oauth.ErrNoClient, change: func(_ *world, o *oauth.Options) { o.Clients = nil }},
	} {
		w := newWorld(t)
		for _, changes := range []map[string]any{c.resource, c.metadata} {
			for name, value := range changes {
				if s, ok := value.(string); ok {
					changes[name] = strings.NewReplacer("SELF", w.mcp.URL, "ISSUER", w.issuer).Replace(s)
				}
			}
		}
		w.resource, w.metadata = c.resource, c.metadata
		o := w.options()
		if c.change != nil {
			c.change(w, &o)
		}
		if c.want == nil {
			c.want = oauth.ErrDiscovery
		}
		tr := w.transport(func(other *oauth.Options) { *other = o })
		got := make([]error, 0, 2)
		_, err := tr.RoundTrip(w.request("/mcp"))
		got = append(got, err, tr.Authorize(context.Background()))
		for _, err := range got {
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				if c.name == "no metadata where the challenge says" && strings.Contains(err.Error(), "has no resource metadata") {
					continue // Authorize knows of no challenge
				}
				t.Errorf("%s: got %v, want %v with %q", c.name, err, c.want, c.text)
			}
		}
		if seen := w.seen(); strings.Contains(seen, "/authorize") || strings.Contains(seen, "/token") {
			t.Errorf("%s: got %s, want no flow", c.name, seen)
		}
	}
}

func (w *world) request(path string) *http.Request {
	w.t.Helper()
	req, err := http.NewRequest(http.MethodPost, w.mcp.URL+path, http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	return req
}

// TestPreconfiguredServer needs no metadata of the resource.
func TestPreconfiguredServer(t *testing.T) {
	w := newWorld(t)
	w.pointer, w.places = false, map[string]bool{"/.well-known/oauth-authorization-server": true}
	tr := w.transport(func(o *oauth.Options) { o.AuthorizationServer = w.issuer })
	w.expect("a request", w.post(tr.HTTPClient(), "/mcp"), "200")
	w.expect("resource", w.last(1, "resource"), w.mcp.URL+"/mcp")
}

// TestRegistration looks at which client is used.
func TestRegistration(t *testing.T) {
	const document = "https://app.example/client.json"
	all := func(w *world) map[string]any {
		return map[string]any{"client_id_metadata_document_supported": true, "registration_endpoint": w.as.URL + "/register"}
	}
	for _, c := range []struct {
		name     string
		metadata func(*world) map[string]any
		change   func(*oauth.Options)
		client   string
		want     error
	}{
		{"all", all, func(*oauth.Options) {}, "app", nil},
		{"not registered", all, func(o *oauth.Options) { o.Clients = nil }, document, nil},
		{"registered elsewhere", all, func(o *oauth.Options) { o.Clients[0].Issuer = "https://as.example" }, document, nil},
		{"no document", all, func(o *oauth.Options) { o.Clients, o.MetadataURL = nil, "" }, "dynamic", nil},
		{"documents are unknown", func(w *world) map[string]any {
			return map[string]any{"registration_endpoint": w.as.URL + "/register"}
		}, func(o *oauth.Options) { o.Clients = nil }, "dynamic", nil},
		{"not allowed to register", all, func(o *oauth.Options) { o.Clients, o.MetadataURL, o.Register = nil, "", false }, "", oauth.ErrNoClient},
		{"a redirect on the web", all, func(o *oauth.Options) {
			o.Clients, o.MetadataURL, o.RedirectURL = nil, "", "https://app.example/callback"
		}, "", oauth.ErrRegistration},
	} {
		w := newWorld(t)
		w.metadata = c.metadata(w)
		tr := w.transport(func(o *oauth.Options) {
			o.MetadataURL, o.Register = document, true
			c.change(o)
		})
		err := tr.Authorize(context.Background())
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		if err == nil {
			w.expect(c.name, w.last(2, "client_id"), c.client+" | "+c.client)
		}
	}
}

// TestServerChanges has the resource move to another authorization server:
// nothing of the old one is used there.
func TestServerChanges(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	w.needed = []string{"a"}
	for _, each := range []*world{w, other} {
		each.metadata = map[string]any{"registration_endpoint": each.as.URL + "/register"}
	}
	tr := w.transport(func(o *oauth.Options) { o.Clients, o.Register = nil, true })
	w.expect("the first request", w.post(tr.HTTPClient(), "/mcp"), "200")
	w.deny, w.needed = true, []string{"b"}
	w.revoke()
	w.resource = map[string]any{"authorization_servers": []string{other.issuer}}
	got := w.post(tr.HTTPClient(), "/mcp")
	w.expect("with a token of the other server", got, "401") // which this MCP server does not know
	w.expect("at the other server", other.seen(), serverPlace+", POST /register, GET /authorize, POST /token")
	w.expect("scope", other.last(2, "scope"), "b | ")
	for _, form := range other.forms {
		for _, values := range form {
			for _, secret := range w.secrets {
				if strings.Contains(strings.Join(values, " "), secret) {
					t.Errorf("the other server got %q", values)
				}
			}
		}
	}
}

func TestMetadataDocument(t *testing.T) {
	got, err := oauth.MetadataDocument("https://app.example/client.json", "App", redirectURL)
	const want = `{"client_id":"https://app.example/client.json","client_name":"App","redirect_uris":["http://127.0.0.1:3000/callback"],` +
		`"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none","application_type":"native"}`
	if err != nil || string(got) != want {
		t.Errorf("MetadataDocument: got %s, %v, want %s", got, err, want)
	}
	if _, err := oauth.MetadataDocument("https://app.example/client.json", "App"); err == nil {
		t.Error("MetadataDocument without a redirect URL: got nil, want an error")
	}
}
