package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/bench/mock"
)

// guarded serves a mock to those who show a token, and an authorization server that gives it to one client.
func guarded(t *testing.T) (endpoint, issuer string, calls *atomic.Int64) {
	t.Helper()
	const token = "the-token"
	peer, err := mock.New(mock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(peer.Close)
	calls = &atomic.Int64{}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	reply := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		calls.Add(1)
		peer.Handler().ServeHTTP(w, r)
	})
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"resource": server.URL + "/mcp", "authorization_servers": []string{server.URL}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{
			"issuer": server.URL, "token_endpoint": server.URL + "/token", "authorization_endpoint": server.URL + "/authorize",
			"grant_types_supported": []string{"client_credentials"}, "response_types_supported": []string{"code"},
		})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		if id != "me" || secret != "hush" || r.FormValue("resource") != server.URL+"/mcp" {
			w.WriteHeader(http.StatusUnauthorized)
			reply(w, map[string]any{"error": "invalid_client"})
			return
		}
		reply(w, map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3600})
	})
	return server.URL + "/mcp", server.URL, calls
}

// TestAuthFlags loads a server that wants a token, with one from the environment and with one that it gets.
func TestAuthFlags(t *testing.T) {
	endpoint, issuer, calls := guarded(t)
	t.Setenv("TOKEN", "the-token")
	t.Setenv("WRONG", "another")
	t.Setenv("ID", "me")
	t.Setenv("SECRET", "hush")
	oauth := []string{"--oauth-client-id-env", "ID", "--oauth-issuer", issuer, "--oauth-client-secret-env"}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--bearer-env", "TOKEN"}, 0, ""},
		{append(oauth, "SECRET"), 0, ""},
		{[]string{"--bearer-env", "WRONG"}, exitRuntime, "401"},
		{append(oauth, "WRONG"), exitRuntime, "no token from " + issuer},
		{[]string{"--bearer-env", "MISSING"}, exitUsage, "MISSING is not set"},
		{[]string{"--bearer-env", "TOKEN", "--oauth-issuer", issuer}, exitUsage, "exclude each other"},
		{[]string{"--bearer-env", "TOKEN", "-H", "Authorization: x"}, exitUsage, "exclude each other"},
		{[]string{"--oauth-client-id-env", "ID"}, exitUsage, "give all three"},
	} {
		before := calls.Load()
		var stdout, stderr strings.Builder
		argv := append([]string{"mcp-load", "run", endpoint, "-n", "5", "-c", "1", "--live", "off"}, tt.args...)
		code := execute(t.Context(), argv, &stdout, &stderr)
		if code != tt.code || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("run %v = %d, %q; want %d with %q", tt.args, code, stderr.String(), tt.code, tt.want)
		}
		if served := calls.Load() > before; served != (tt.code == 0) {
			t.Errorf("run %v: calls were served: %v", tt.args, served)
		}
		for _, secret := range []string{"the-token", "hush", "another"} {
			if strings.Contains(stdout.String()+stderr.String(), secret) {
				t.Errorf("run %v shows the secret %q", tt.args, secret)
			}
		}
	}
	c := bench.Config{Command: []string{"x"}}
	if err := (&authFlags{bearer: "TOKEN"}).apply(t.Context(), &c); err == nil || !strings.Contains(err.Error(), "stdio") {
		t.Errorf("a token for a process: %v, want a refusal", err)
	}
}
