package transport_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/transport"
)

// TestHostAndOrigin is the table of who may call a server on loopback.
func TestHostAndOrigin(t *testing.T) {
	noLeaks(t)
	hosts := &transport.HTTPOptions{AllowedHosts: []string{"mcp.Example.com", "proxy.example:8443"}}
	origins := &transport.HTTPOptions{AllowedOrigins: []string{"https://App.example", "http://localhost:3000/"}}
	for _, c := range []struct {
		name         string
		options      *transport.HTTPOptions
		host, origin string
		allowed      bool
	}{
		{"loopback address", nil, "127.0.0.1:8080", "", true},
		{"another loopback address", nil, "127.8.9.1", "", true},
		{"localhost", nil, "localhost:8080", "", true},
		{"localhost in capitals", nil, "LOCALHOST", "", true},
		{"loopback address of IPv6", nil, "[::1]:8080", "", true},
		{"loopback address of IPv6 without port", nil, "[::1]", "", true},
		{"rebound name", nil, "evil.example", "", false},
		{"name that begins like localhost", nil, "localhost.evil.example", "", false},
		{"name that looks like an address", nil, "127.0.0.1.evil.example:8080", "", false},
		{"another address", nil, "10.0.0.1", "", false},

		{"listed host", hosts, "mcp.example.com", "", true},
		{"listed host with a port", hosts, "MCP.example.com:9000", "", true},
		{"host listed with its port", hosts, "proxy.example:8443", "", true},
		{"host listed with another port", hosts, "proxy.example:8444", "", false},
		{"host that is not listed", hosts, "evil.example", "", false},
		{"localhost besides a list", hosts, "localhost", "", true},

		{"own origin", nil, "127.0.0.1:8080", "http://127.0.0.1:8080", true},
		{"own origin by name", nil, "localhost:8080", "http://LocalHost:8080", true},
		{"origin on another port", nil, "localhost:8080", "http://localhost:3000", false},
		{"foreign origin", nil, "localhost:8080", "https://evil.example", false},
		{"origin null", nil, "localhost:8080", "null", false},
		{"origin that is no URL", nil, "localhost:8080", "http://%zz", false},
		{"listed origin", origins, "localhost:8080", "https://app.example", true},
		{"listed origin, listed with a slash", origins, "localhost:8080", "http://localhost:3000", true},
		{"listed origin with another scheme", origins, "localhost:8080", "http://app.example", false},
		{"origin that begins like a listed one", origins, "localhost:8080", "https://app.example.evil.example", false},
		{"own origin besides a list", origins, "localhost:8080", "http://localhost:8080", true},
		{"any origin", &transport.HTTPOptions{AllowedOrigins: []string{"*"}}, "localhost:8080", "https://any.example", true},
		{"any origin, rebound name", &transport.HTTPOptions{AllowedOrigins: []string{"*"}}, "evil.example", "http://evil.example", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWeb(t, nil, c.options)
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
				body := ""
				if method == http.MethodPost {
					body = initialize
				}
				header := append(standard, "Host: "+c.host, "Origin: "+c.origin)
				got := w.do(w.request(method, body, header...))
				if allowed := got.status != http.StatusForbidden; allowed != c.allowed {
					t.Errorf("%s with Host %q, Origin %q: got %d, want allowed %v", method, c.host, c.origin, got.status, c.allowed)
				}
				if !c.allowed && strings.Contains(got.body, `"id"`) {
					t.Errorf("body: got %s, want an error without id", got.body)
				}
			}
			if got, want := w.Stats().Sessions, map[bool]int{true: 1}[c.allowed]; got != want {
				t.Errorf("sessions that were opened: got %d, want %d", got, want)
			}
		})
	}
}

// TestHostOffLoopback: on other addresses hosts are judged only by a list.
func TestHostOffLoopback(t *testing.T) {
	noLeaks(t)
	f := newFixture(t, nil)
	outside := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}
	for _, c := range []struct {
		name    string
		allowed []string
		host    string
		status  int
	}{
		{"no list", nil, "mcp.example", 200},
		{"listed", []string{"mcp.example"}, "mcp.example:80", 200},
		{"not listed", []string{"mcp.example"}, "other.example", 403},
		{"localhost is not listed", []string{"mcp.example"}, "localhost", 403},
	} {
		h := transport.NewHTTPHandler(f.Engine, &transport.HTTPOptions{AllowedHosts: c.allowed})
		r := httptest.NewRequestWithContext(withLocalAddr(t.Context(), outside), http.MethodPost, "/mcp", strings.NewReader(initialize))
		r.Host = c.host
		r.Header.Set("Content-Type", "application/json")
		got := httptest.NewRecorder()
		h.ServeHTTP(got, r)
		if got.Code != c.status {
			t.Errorf("%s: Host %q with the list %q: got %d, want %d", c.name, c.host, c.allowed, got.Code, c.status)
		}
	}
}

func TestCORS(t *testing.T) {
	noLeaks(t)
	const page = "https://app.example"
	w := newWeb(t, nil, &transport.HTTPOptions{CORS: true, AllowedOrigins: []string{page}})
	preflight := []string{"Access-Control-Request-Method: POST", "Access-Control-Request-Headers: mcp-session-id"}

	got := w.do(w.request(http.MethodOptions, "", append(preflight, "Origin: "+page)...))
	if got.status != http.StatusNoContent {
		t.Errorf("preflight: got %d, want 204", got.status)
	}
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin":  page,
		"Access-Control-Allow-Methods": "DELETE",
		"Access-Control-Allow-Headers": "Mcp-Session-Id",
		"Access-Control-Max-Age":       "600",
		"Vary":                         "Origin",
	} {
		if !strings.Contains(got.header.Get(name), want) {
			t.Errorf("preflight: %s is %q, want it to hold %q", name, got.header.Get(name), want)
		}
	}

	got = w.do(w.request(http.MethodOptions, "", append(preflight, "Origin: https://evil.example")...))
	if got.status != http.StatusForbidden || got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("preflight of a foreign origin: got %d and %q, want 403 and no permission", got.status,
			got.header.Get("Access-Control-Allow-Origin"))
	}
	got = w.do(w.request(http.MethodPost, initialize, append(standard, "Origin: "+page)...))
	if got.status != 200 || got.header.Get("Access-Control-Allow-Origin") != page ||
		!strings.Contains(got.header.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id") {
		t.Errorf("POST of an allowed origin: got %d and %v, want 200, marked for the origin", got.status, got.header)
	}
	got = w.do(w.request(http.MethodPost, initialize, standard...))
	if got.status != 200 || got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("POST without origin: got %d and %v, want 200, not marked", got.status, got.header)
	}
}
