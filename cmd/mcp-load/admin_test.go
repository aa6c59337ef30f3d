package main

import (
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// TestMetricsCountRefusals makes one refusal of each kind that needs no load, and
// finds it in /metrics.
func TestMetricsCountRefusals(t *testing.T) {
	admin := freeAddress(t)
	s := startServed(t, "", "--http", "127.0.0.1:0", "--admin", admin)
	client, url := newHTTPClient(t), s.endpoint(t)
	many := make(map[string]string)
	for i := range 150 {
		many["X-"+strings.Repeat("a", i+1)] = "y"
	}
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, c := range []struct {
		method, body string
		header       map[string]string
		status       int
		metric       string
	}{
		{"POST", ping, map[string]string{"Host": "evil.example"}, 403, `mcp_http_refusals_total{kind="forbidden"}`},
		{"POST", ping, many, 431, `mcp_http_refusals_total{kind="headers"}`},
		{"PUT", ping, nil, 405, `mcp_http_refusals_total{kind="methods"}`},
		{"POST", ping, map[string]string{"Content-Type": "text/plain"}, 415, `mcp_http_refusals_total{kind="media_types"}`},
		{"POST", strings.Repeat(" ", 5<<20), nil, 413, `mcp_http_refusals_total{kind="bodies"}`},
		{"POST", "{", nil, 400, `mcp_http_refusals_total{kind="malformed"}`},
		{"POST", ping, map[string]string{"Mcp-Session-Id": "unknown"}, 404, `mcp_events_total{kind="unknown_sessions"}`},
	} {
		r, err := http.NewRequest(c.method, url, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for name, value := range c.header {
			r.Header.Set(name, value)
		}
		r.Host = c.header["Host"]
		response, err := client.Do(r)
		if err != nil {
			t.Errorf("%s: %v", c.metric, err)
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode != c.status {
			t.Errorf("%s: got status %d, want %d", c.metric, response.StatusCode, c.status)
		}
		if got := metricsOf(t, client, admin); !strings.Contains(got, c.metric+" 1\n") {
			t.Errorf("after a %d: %s is not 1 in\n%s", c.status, c.metric, got)
		}
	}
	text := metricsOf(t, client, admin)
	for _, counts := range []any{engine.Refusals{}, transport.HTTPRefusals{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(counts)) {
			if !strings.Contains(text, `{kind="`+snake(field.Name)+`"} `) {
				t.Errorf("/metrics lacks %s", field.Name)
			}
		}
	}
}

// metricsOf reads /metrics.
func metricsOf(t *testing.T, client *http.Client, admin string) string {
	t.Helper()
	response, err := client.Get("http://" + admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestSnake is the table of names of labels.
func TestSnake(t *testing.T) {
	for name, want := range map[string]string{"Sessions": "sessions", "DuplicateIDs": "duplicate_ids", "SessionsOfPrincipal": "sessions_of_principal"} {
		if got := snake(name); got != want {
			t.Errorf("snake(%q): got %q, want %q", name, got, want)
		}
	}
}
