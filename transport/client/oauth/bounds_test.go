package oauth_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/transport/client/oauth"
)

// TestTokenStaysHome makes requests to other places with the same client.
func TestTokenStaysHome(t *testing.T) {
	w := newWorld(t)
	var leaked []string
	stranger := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			leaked = append(leaked, r.URL.Path)
		}
		out.Header().Set("WWW-Authenticate", "Bearer")
		out.WriteHeader(http.StatusUnauthorized)
	}))
	defer stranger.Close()
	t.Setenv("OAUTH_TEST_TOKEN", "access-of-the-environment")
	w.tokens["access-of-the-environment"] = ""
	fixed, err := oauth.FromEnv(w.mcp.URL+"/mcp", "OAUTH_TEST_TOKEN", w.mcp.Client().Transport)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*http.Client{"Transport": w.transport(nil).HTTPClient(), "FromEnv": fixed} {
		for path, want := range map[string]string{
			"/mcp": "200", "/mcp/below": "200", "/mcp?session=1": "200",
			"/": "401", "/mcpx": "401", "/other": "401", "/mcp/../other": "401",
		} {
			if path != "/mcp" {
				w.expect(name+" before "+path, w.post(c, "/mcp"), "200")
			}
			w.expect(name+" "+path, w.post(c, path), want)
		}
		res, err := c.Get(stranger.URL + "/mcp")
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != 401 || len(leaked) > 0 {
			t.Errorf("%s at another host: got %d and tokens at %q, want 401 and none", name, res.StatusCode, leaked)
		}
	}
}

func TestFromEnv(t *testing.T) {
	for _, c := range []struct{ endpoint, value, want string }{
		{"https://h/mcp", "good", "nil"},
		{"http://localhost:1/mcp", " good\n", "nil"},
		{"http://h/mcp", "good", "oauth: endpoint: the URL must be https"},
		{"https://h/mcp", "", "oauth: the environment variable OAUTH_TEST_TOKEN is empty"},
		{"https://h/mcp", "very secret", "oauth: the environment variable OAUTH_TEST_TOKEN holds no bearer token"},
	} {
		t.Setenv("OAUTH_TEST_TOKEN", c.value)
		got := "nil"
		client, err := oauth.FromEnv(c.endpoint, "OAUTH_TEST_TOKEN", nil)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("FromEnv(%s, %q): got %s, want %s", c.endpoint, c.value, got, c.want)
		}
		if client != nil && strings.Contains(fmt.Sprintf("%+v %#v", client.Transport, client.Transport), "good") {
			t.Errorf("%%+v of the client holds the token")
		}
	}
}

// TestRedirects refuses redirects that could take a secret elsewhere.
func TestRedirects(t *testing.T) {
	hits := 0
	stranger := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits++ }))
	defer stranger.Close()
	for path, want := range map[string]string{
		"/mcp":   "refused to follow a redirect",
		"/token": "oauth: no token: refused: status 307",
		"/.well-known/oauth-protected-resource/mcp": "status 307",
		"/.well-known/oauth-authorization-server":   "200", // there is another place for these metadata
	} {
		w := newWorld(t)
		tr := w.transport(func(o *oauth.Options) {
			base := o.Base
			o.Base = roundTrip(func(r *http.Request) (*http.Response, error) {
				res, err := base.RoundTrip(r)
				if err == nil && r.URL.Path == path && res.StatusCode == http.StatusOK {
					res.StatusCode = http.StatusTemporaryRedirect
					res.Header.Set("Location", stranger.URL+path)
				}
				return res, err
			})
		})
		if got := w.post(tr.HTTPClient(), "/mcp"); !strings.Contains(got, want) || hits > 0 {
			t.Errorf("%s leads elsewhere: got %s and %d requests there, want %s and none", path, got, hits, want)
		}
	}
}

// TestPostIsNotRedirected refuses redirects of a request with secrets within the
// origin as well.
func TestPostIsNotRedirected(t *testing.T) {
	w := newWorld(t)
	tr := w.transport(func(o *oauth.Options) {
		base := o.Base
		o.Base = roundTrip(func(r *http.Request) (*http.Response, error) {
			res, err := base.RoundTrip(r)
			if err == nil && r.URL.Path == "/token" {
				res.StatusCode = http.StatusTemporaryRedirect
				res.Header.Set("Location", "/elsewhere")
			}
			return res, err
		})
	})
	w.expect("a request", w.post(tr.HTTPClient(), "/mcp"), `Post "`+w.mcp.URL+`/mcp": oauth: no token: refused: status 307, error "unknown"`)
	if seen := w.seen(); strings.Contains(seen, "/elsewhere") {
		t.Errorf("the token request was redirected: %s", seen)
	}
}

// roundTrip makes a function an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestLoopback keeps a server elsewhere from sending the client to itself.
func TestLoopback(t *testing.T) {
	var asked []string
	base := roundTrip(func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.URL.String())
		rec := httptest.NewRecorder()
		rec.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://127.0.0.1:9/admin"`)
		rec.WriteHeader(http.StatusUnauthorized)
		return rec.Result(), nil
	})
	w := newWorld(t)
	tr := w.transport(func(o *oauth.Options) { o.Endpoint, o.Base = "https://mcp.example.com/mcp", base })
	req := httptest.NewRequest(http.MethodGet, "https://mcp.example.com/mcp", nil)
	_, err := tr.RoundTrip(req)
	if err == nil || !strings.Contains(err.Error(), "loopback") || len(asked) != 1 {
		t.Errorf("a challenge that points at the client: got %v after %q, want an error after one request", err, asked)
	}
}

func TestOptions(t *testing.T) {
	good := oauth.Options{Endpoint: "https://h/mcp", RedirectURL: redirectURL, Authorize: newWorld(t).authorize}
	for _, c := range []struct {
		change func(*oauth.Options)
		want   string
	}{
		{func(*oauth.Options) {}, "nil"},
		{func(o *oauth.Options) { o.Endpoint = "http://h/mcp" }, "oauth: Endpoint: the URL must be https"},
		{func(o *oauth.Options) { o.Endpoint = "https://u:p@h/mcp" }, "oauth: Endpoint: the URL must have a host, and no user and no fragment"},
		{func(o *oauth.Options) { o.Authorize = nil }, "oauth: Authorize is missing"},
		{func(o *oauth.Options) { o.RedirectURL = "http://h/callback" }, "oauth: RedirectURL: the URL must be https"},
		{func(o *oauth.Options) { o.MetadataURL = "https://h/" }, "oauth: MetadataURL must be an https URL with a path"},
		{func(o *oauth.Options) { o.MetadataURL = "http://h/client.json" }, "oauth: MetadataURL must be an https URL with a path"},
		{func(o *oauth.Options) { o.Clients = []oauth.Registration{{ID: "x"}} }, "oauth: Clients: Issuer or ID is missing"},
		{func(o *oauth.Options) {
			o.Clients = []oauth.Registration{{Issuer: "i", ID: "x"}, {Issuer: "i", ID: "y"}}
		}, "oauth: Clients: two of i"},
		{func(o *oauth.Options) { o.ClientCredentials = true }, "oauth: ClientCredentials needs one of Clients with a secret"},
	} {
		o, got := good, "nil"
		c.change(&o)
		if tr, err := oauth.New(o); err != nil {
			got = err.Error()
		} else {
			tr.Close()
		}
		if got != c.want {
			t.Errorf("New: got %s, want %s", got, c.want)
		}
	}
	text := fmt.Sprintf("%v %+v %#v", oauth.Registration{Issuer: "i", ID: "x", Secret: "hidden"},
		[]oauth.Registration{{Secret: "hidden"}}, &oauth.Registration{Secret: "hidden"})
	if strings.Contains(text, "hidden") {
		t.Errorf("a registration in print: got %s, want no secret", text)
	}
}
