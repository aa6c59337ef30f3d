package oauth_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpengine/mcpengine/transport/client/oauth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const redirectURL = "http://127.0.0.1:3000/callback"

// world is an MCP server and its authorization server, both of which do what a
// test wants. That they work with a real authorization server is for the tests
// of internal/authtest to show.
type world struct {
	t                  *testing.T
	mcp, as            *httptest.Server
	metadata, resource map[string]any // changes of the two documents, nil removes
	issuer             string
	places             map[string]bool  // where the documents are, nil means everywhere
	needed             []string         // scopes of the operation
	pointer            bool             // the challenge says where the metadata are
	lifetime           int              // of tokens, in seconds; 0 is not told
	deny               bool             // the token endpoint refuses refresh tokens
	answer             func(url.Values) // changes the authorization response
	log                bytes.Buffer

	mu       sync.Mutex        // guards the following
	requests []string          // method and path at both, in order
	forms    []url.Values      // of requests for codes and tokens
	tokens   map[string]string // to their scopes
	codes    map[string]url.Values
	secrets  []string // all that no log may hold
	received []string // bodies at the MCP server
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, pointer: true, lifetime: 3600, tokens: map[string]string{}, codes: map[string]url.Values{}}
	w.mcp, w.as = startTLS(w.serveMCP), startTLS(w.serveAS)
	w.issuer = w.as.URL
	t.Cleanup(func() {
		w.mcp.Close()
		w.as.Close()
		for _, secret := range w.secrets {
			if strings.Contains(w.log.String(), secret) {
				t.Errorf("the log holds %q: %s", secret, w.log.String())
			}
		}
	})
	return w
}

// startTLS starts a server that does not complain of clients which leave.
func startTLS(serve http.HandlerFunc) *httptest.Server {
	s := httptest.NewUnstartedServer(serve)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	return s
}

func (w *world) options() oauth.Options {
	return oauth.Options{
		Endpoint: w.mcp.URL + "/mcp", RedirectURL: redirectURL, Authorize: w.authorize,
		Clients: []oauth.Registration{{Issuer: w.issuer, ID: "app"}},
		Base:    w.mcp.Client().Transport, // which trusts all servers of httptest
		Logger:  slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

func (w *world) transport(change func(*oauth.Options)) *oauth.Transport {
	w.t.Helper()
	o := w.options()
	if change != nil {
		change(&o)
	}
	t, err := oauth.New(o)
	if err != nil {
		w.t.Fatalf("New: %v", err)
	}
	w.t.Cleanup(t.Close)
	return t
}

// authorize is a user who agrees to everything.
func (w *world) authorize(ctx context.Context, address string) (oauth.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return oauth.Response{}, err
	}
	res, err := w.as.Client().Transport.RoundTrip(req)
	if err != nil {
		return oauth.Response{}, err
	}
	_ = res.Body.Close()
	location, err := res.Location()
	if err != nil {
		return oauth.Response{}, err
	}
	return oauth.ParseResponse(location.Query()), nil
}

// post makes a request and gives the status and the error's text.
func (w *world) post(c *http.Client, path string) string {
	w.t.Helper()
	res, err := c.Post(w.mcp.URL+path, "application/json", strings.NewReader("the body"))
	if err != nil {
		w.secret(err.Error())
		return err.Error()
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return strconv.Itoa(res.StatusCode)
}

// secret fails the test where a text holds a secret.
func (w *world) secret(text string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, secret := range w.secrets {
		if strings.Contains(text, secret) {
			w.t.Errorf("an error holds %q: %s", secret, text)
		}
	}
}

func merge(base, changes map[string]any) map[string]any {
	maps.Copy(base, changes)
	maps.DeleteFunc(base, func(_ string, v any) bool { return v == nil })
	return base
}

func (w *world) note(r *http.Request) {
	w.requests = append(w.requests, r.Method+" "+r.URL.Path)
}

// serveMCP serves /mcp to those with a token, and the metadata.
func (w *world) serveMCP(out http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(r)
	if strings.HasPrefix(r.URL.Path, "/.well-known/") {
		if w.places != nil && !w.places[r.URL.Path] {
			http.NotFound(out, r)
			return
		}
		_ = json.NewEncoder(out).Encode(merge(map[string]any{
			"resource": w.mcp.URL + "/mcp", "authorization_servers": []string{w.issuer}, "scopes_supported": []string{"basic"},
		}, w.resource))
		return
	}
	w.received = append(w.received, string(body))
	scopes, known := w.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	challenge := `Bearer scope="` + strings.Join(w.needed, " ") + `"`
	if w.pointer {
		challenge += `, resource_metadata="` + w.mcp.URL + `/.well-known/oauth-protected-resource/mcp"`
	}
	lacks := slices.ContainsFunc(w.needed, func(s string) bool { return !slices.Contains(strings.Fields(scopes), s) })
	switch {
	case !known:
		out.Header().Set("WWW-Authenticate", challenge)
		out.WriteHeader(http.StatusUnauthorized)
	case lacks:
		out.Header().Set("WWW-Authenticate", challenge+`, error="insufficient_scope"`)
		out.WriteHeader(http.StatusForbidden)
	}
}

func (w *world) serveAS(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(r)
	_ = r.ParseForm()
	switch {
	case strings.Contains(r.URL.Path, "/.well-known/"):
		if w.places != nil && !w.places[r.URL.Path] {
			http.NotFound(out, r)
			return
		}
		_ = json.NewEncoder(out).Encode(merge(map[string]any{
			"issuer": w.issuer, "authorization_endpoint": w.as.URL + "/authorize", "token_endpoint": w.as.URL + "/token",
			"code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true,
		}, w.metadata))
	case r.URL.Path == "/authorize":
		w.forms = append(w.forms, r.Form)
		code := w.fresh("code")
		w.codes[code] = r.Form
		answer := url.Values{"code": {code}, "state": {r.Form.Get("state")}, "iss": {w.issuer}}
		if w.answer != nil {
			w.answer(answer)
		}
		http.Redirect(out, r, r.Form.Get("redirect_uri")+"?"+answer.Encode(), http.StatusFound)
	case r.URL.Path == "/token":
		w.serveToken(out, r)
	case r.URL.Path == "/register":
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		if body["application_type"] != "native" {
			out.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(out, `{"error":"invalid_redirect_uri"}`)
			return
		}
		out.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(out, `{"client_id":"dynamic"}`)
	default:
		http.NotFound(out, r)
	}
}

// fresh makes a secret.
func (w *world) fresh(kind string) string {
	_, port, _ := strings.Cut(strings.TrimPrefix(w.as.URL, "https://"), ":")
	secret := kind + "-secret-" + port + "-" + strconv.Itoa(len(w.secrets))
	w.secrets = append(w.secrets, secret)
	return secret
}

func (w *world) serveToken(out http.ResponseWriter, r *http.Request) {
	w.forms = append(w.forms, r.PostForm)
	fail := func(code string) {
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(out).Encode(map[string]string{"error": code, "error_description": strings.Join(w.secrets, " ")})
	}
	scope := r.PostForm.Get("scope")
	switch r.PostForm.Get("grant_type") {
	case "authorization_code":
		asked, known := w.codes[r.PostForm.Get("code")]
		delete(w.codes, r.PostForm.Get("code"))
		verifier := r.PostForm.Get("code_verifier")
		w.secrets = append(w.secrets, verifier)
		sum := sha256.Sum256([]byte(verifier))
		if !known || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) ||
			asked.Get("code_challenge_method") != "S256" || asked.Get("client_id") != r.PostForm.Get("client_id") {
			fail("invalid_grant")
			return
		}
		scope = asked.Get("scope")
	case "refresh_token":
		if w.deny {
			fail("invalid_grant")
			return
		}
		scope = w.tokens[r.PostForm.Get("refresh_token")]
	case "client_credentials":
		if id, secret, _ := r.BasicAuth(); id != "machine" || secret != "client-secret" {
			fail("invalid_client")
			return
		}
	}
	access, refresh := w.fresh("access"), w.fresh("refresh")
	w.tokens[access], w.tokens[refresh] = scope, scope
	answer := map[string]any{"access_token": access, "token_type": "bearer", "refresh_token": refresh}
	if w.lifetime > 0 {
		answer["expires_in"] = w.lifetime
	}
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(answer)
}

// seen gives what was requested since the last time.
func (w *world) seen() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := strings.Join(w.requests, ", ")
	w.requests = nil
	return s
}

// revoke forgets all tokens.
func (w *world) revoke() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.tokens)
}

func (w *world) expect(what, got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("%s:\n got  %s\n want %s", what, got, want)
	}
}
