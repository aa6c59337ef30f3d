package bench

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestConnectErrors says in one line what is wrong with a target.
func TestConnectErrors(t *testing.T) {
	f := &fakeServer{}
	url := f.start(t)
	gone := (&fakeServer{}).start(t)
	gone = strings.Replace(gone, "127.0.0.1:", "127.0.0.1:1", 1)[:len("http://127.0.0.1:1")] + "/mcp" // port 1
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("\n<!doctype html><title>Welcome</title>"))
	}))
	t.Cleanup(page.Close)
	for _, tt := range []struct {
		c    Config
		want string
	}{
		{Config{URL: page.URL}, page.URL + " answered with a web page: there is no MCP endpoint at this path"},
		{Config{URL: strings.Replace(url, "http:", "https:", 1)}, "there is no TLS at this port; write http://"},
		{Config{URL: "http://no-such-host.invalid/mcp"}, "there is no host no-such-host.invalid; check the name"},
		{Config{URL: gone}, "connection refused; is the server running"},
		{Config{URL: strings.TrimSuffix(url, "/mcp") + "/"}, "answered 404: there is no MCP endpoint at this path"},
		{Config{Command: []string{"no-such-command-anywhere"}}, "there is no such command"},
		{Config{Command: []string{"true"}}, "true did not answer initialize: the process ended (exit status 0); run it by hand"},
		{Config{Command: []string{"sh", "-c", "echo oh no >&2; exit 4"}}, "its last words: oh no; run it by hand"},
	} {
		_, err := Run(context.Background(), tt.c)
		var ce *ConnectError
		if !errors.As(err, &ce) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Run(%+v) = %v, want %q", tt.c, err, tt.want)
		}
	}
	for _, tt := range []struct {
		c    Config
		want string
	}{
		{Config{}, "one target"}, {Config{URL: "x"}, "not an http://"}, {Config{URL: url, Rate: 1, Concurrency: 1}, "exclude"},
		{Config{URL: url, Arrivals: "x"}, "choose constant or poisson"}, {Config{URL: url, Overflow: "x"}, "choose wait or skip"},
		{Config{URL: url, MaxInFlight: 1}, "needs a rate"}, {Config{URL: url, Args: json.RawMessage("[]")}, "not a JSON object"},
		{Config{URL: url, Protocol: "2026-07-27"}, "not supported"}, {Config{URL: url, Thresholds: []string{"x"}}, "not understood"},
		{Config{URL: url, Sessions: -1}, "cannot be negative"}, {Config{URL: url, Tools: []ToolChoice{{"a", 0}}}, "NAME=WEIGHT"},
		{Config{URL: url, Header: http.Header{"A": {"b\r\nc"}}}, "cannot be sent"},
	} {
		_, err := Run(context.Background(), tt.c)
		var u *UsageError
		if !errors.As(err, &u) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Run(%+v) = %v, want a usage error with %q", tt.c, err, tt.want)
		}
	}
}
