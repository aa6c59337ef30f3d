package interop

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/internal/interop/fixture"
)

// pingWithSession sends a ping that names a session, without any client, and returns the HTTP status.
func pingWithSession(t *testing.T, endpoint, session string) int {
	t.Helper()
	body := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	r, err := http.NewRequestWithContext(within(t), http.MethodPost, endpoint, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Session-Id", session)
	response := send(t, r)
	response.Body.Close()
	return response.StatusCode
}

// readCounts asks a counting server what it saw.
func readCounts(t *testing.T, endpoint string) fixture.Counts {
	t.Helper()
	r, err := http.NewRequestWithContext(within(t), http.MethodGet, strings.TrimSuffix(endpoint, "/mcp")+"/counts", nil)
	if err != nil {
		t.Fatal(err)
	}
	response := send(t, r)
	defer response.Body.Close()
	var counts fixture.Counts
	if err := json.NewDecoder(response.Body).Decode(&counts); err != nil {
		t.Fatalf("reading the counts: %v", err)
	}
	return counts
}

// send uses a connection of its own, so that nothing is left behind.
func send(t *testing.T, r *http.Request) *http.Response {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return response
}
