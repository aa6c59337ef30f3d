package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcpengine/mcpengine/transport"
)

// caseConfig is the configuration that a wire case asks for, in the environment
// variable MCP_CASE_CONFIG. It is for tests of the server.
type caseConfig struct {
	AllowedHosts         []string          `json:"allowed_hosts"`
	AllowedOrigins       []string          `json:"allowed_origins"`
	Auth                 map[string]string `json:"auth"` // bearer token to principal
	BodyReadTimeoutMS    int               `json:"body_read_timeout_ms"`
	CORS                 bool              `json:"cors"`
	EventStore           caseEventStore    `json:"event_store"`
	Eras                 []string          `json:"eras"`        // "legacy", "modern"; both unless told otherwise
	ExtraTools           []string          `json:"extra_tools"` // of caseTools
	Features             []string          `json:"features"`
	HTTPServer           caseHTTPServer    `json:"http_server"`
	MaxMessageBytes      int               `json:"max_message_bytes"`
	MaxSessions          int               `json:"max_sessions"`
	PageSize             int               `json:"page_size"`
	SessionIdleMS        int               `json:"session_idle_ms"`
	ShutdownGraceMS      int               `json:"shutdown_grace_ms"`
	SSEKeepAliveMS       int               `json:"sse_keepalive_ms"`
	StreamWriteTimeoutMS int               `json:"stream_write_timeout_ms"`
}

// caseEventStore asks for resumable streams: true, or an object with bounds.
type caseEventStore struct {
	on                 bool
	maxBytesPerSession int
}

// UnmarshalJSON reads either form.
func (s *caseEventStore) UnmarshalJSON(raw []byte) error {
	if err := json.Unmarshal(raw, &s.on); err == nil {
		return nil
	}
	var bounds struct {
		MaxBytesPerSession int `json:"max_bytes_per_session"`
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&bounds); err != nil {
		return fmt.Errorf("event_store: %w", err)
	}
	s.on, s.maxBytesPerSession = true, bounds.MaxBytesPerSession
	return nil
}

// store makes the store that is asked for, or nil.
func (s *caseEventStore) store() transport.EventStore {
	if !s.on {
		return nil
	}
	return transport.NewMemoryEvents(s.maxBytesPerSession, 0)
}

type caseHTTPServer struct {
	WriteTimeoutMS int `json:"write_timeout_ms"`
}

// readCaseConfig reads the configuration. The error names a key that this
// server cannot honour.
func readCaseConfig(text string) (*caseConfig, error) {
	c := new(caseConfig)
	if text == "" {
		return c, nil
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(c); err != nil {
		return nil, fmt.Errorf("MCP_CASE_CONFIG: %w", err)
	}
	for _, era := range c.Eras {
		if era != "legacy" && era != "modern" {
			return nil, fmt.Errorf("MCP_CASE_CONFIG: eras: %q is not offered", era)
		}
	}
	for _, tool := range c.ExtraTools {
		if caseTools[tool] == nil {
			return nil, fmt.Errorf("MCP_CASE_CONFIG: extra_tools: %q is not offered", tool)
		}
	}
	return c, nil
}

// lacks reports whether an era is left out.
func (c *caseConfig) lacks(era string) bool { return len(c.Eras) > 0 && !slices.Contains(c.Eras, era) }

// features gives what the fixture registers; everything unless told otherwise.
func (c *caseConfig) features() map[string]bool {
	names := c.Features
	if names == nil {
		names = []string{"tools", "resources", "prompts"}
	}
	set := make(map[string]bool)
	for _, name := range names {
		set[name] = true
	}
	return set
}

// authenticate stands for the authorization that a deployment has: requests
// without one of the tokens are refused.
func (c *caseConfig) authenticate(next http.Handler) http.Handler {
	if c.Auth == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		principal, known := c.Auth[token]
		if !ok || !known {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, principal)))
	})
}

// principalKey is where authenticate puts the principal in a request's context.
type principalKey struct{}

// casePrincipal gives the principal of a request.
func casePrincipal(ctx context.Context) string {
	principal, _ := ctx.Value(principalKey{}).(string)
	return principal
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }
