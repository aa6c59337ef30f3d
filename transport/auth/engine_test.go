package auth_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
	"github.com/mcpengine/mcpengine/transport/auth"
	"github.com/mcpengine/mcpengine/transport/client"
)

type nothing struct{}

type answer struct {
	Who string `json:"who"`
}

// serveEngine serves an engine with two tools behind a resource: whoami, and
// delete, which needs a scope of its own.
func serveEngine(t *testing.T, s *auth.Resource) string {
	t.Helper()
	e := engine.New(engine.Info{Name: "guarded", Version: "1"}, &engine.Options{
		Logger: slog.New(slog.DiscardHandler), Principal: auth.PrincipalFrom,
	})
	engine.AddTool(e, engine.Tool{Name: "whoami"}, func(ctx context.Context, _ *engine.Call, _ nothing) (answer, error) {
		return answer{auth.PrincipalFrom(ctx)}, nil
	})
	engine.AddTool(e, engine.Tool{Name: "delete"}, func(ctx context.Context, _ *engine.Call, _ nothing) (answer, error) {
		if err := auth.Demand(ctx, "read", "files:delete"); err != nil {
			return answer{}, err
		}
		return answer{"deleted"}, nil
	})
	server := httptest.NewServer(s.Require("read")(transport.NewHTTPHandler(e, nil)))
	t.Cleanup(func() {
		server.Close()
		if err := e.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	return server.URL
}

func connect(t *testing.T, endpoint, token, protocol string) *client.Client {
	t.Helper()
	c, err := client.ConnectHTTP(context.Background(), endpoint, &client.Options{
		Protocol: protocol, Header: http.Header{"Authorization": {"Bearer " + token}}, NoStream: true,
	})
	if err != nil {
		t.Fatalf("ConnectHTTP as %s: %v", token, err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// TestEngineBehindRequire has two principals call tools of one engine, in both
// eras. Each handler sees its own caller, and a missing scope that only the
// handler knows of is answered 403 with all that the operation needs.
func TestEngineBehindRequire(t *testing.T) {
	endpoint := serveEngine(t, newResource(t, nil))
	for _, protocol := range []string{"2025-06-18", "2025-11-25", client.ProtocolStateless} {
		for _, name := range []string{"alice", "bob"} {
			c := connect(t, endpoint, name, protocol)
			result, err := c.CallTool(context.Background(), "whoami", nothing{}, nil)
			want := known[name].Principal()
			if err != nil || !strings.Contains(string(result.Structured), want) {
				t.Errorf("%s, whoami as %s: got %+v, %v, want %s", protocol, name, result, err, want)
			}
			_, err = c.CallTool(context.Background(), "delete", nothing{}, nil)
			var refused *client.HTTPError
			if !errors.As(err, &refused) || refused.Status != http.StatusForbidden ||
				!strings.Contains(refused.Header.Get("WWW-Authenticate"), `error="insufficient_scope"`) ||
				!strings.Contains(refused.Header.Get("WWW-Authenticate"), `scope="read files:delete"`) {
				t.Errorf("%s, delete as %s: got %v, want a 403 with a challenge", protocol, name, err)
			}
		}
	}
}

// TestSessionIsNoCredential sends requests with the session id of alice: without
// a token, with one that is no good, and with one that lacks the scope. None of
// them reaches the engine, and the session is as it was.
func TestSessionIsNoCredential(t *testing.T) {
	endpoint := serveEngine(t, newResource(t, nil))
	c := connect(t, endpoint, "alice", "2025-11-25")
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		for token, want := range map[string]int{"": 401, "Bearer mallory": 401, "Bearer admin": 403} {
			r, err := http.NewRequest(method, endpoint, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Mcp-Session-Id", c.SessionID())
			r.Header.Set("Authorization", token)
			if token == "" {
				r.Header.Del("Authorization")
			}
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.StatusCode != want || strings.Contains(string(body), "jsonrpc") {
				t.Errorf("%s with the session of alice and %q: got %d %s, want %d", method, token, res.StatusCode, body, want)
			}
		}
	}
	if _, err := c.CallTool(context.Background(), "whoami", nothing{}, nil); err != nil {
		t.Errorf("the session of alice afterwards: got %v, want nil", err)
	}
	http.DefaultClient.CloseIdleConnections()
}
