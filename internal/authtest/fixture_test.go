package authtest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
	"github.com/mcpengine/mcpengine/transport/auth"
	"github.com/mcpengine/mcpengine/transport/client"
	"github.com/mcpengine/mcpengine/transport/client/oauth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type nothing struct{}

type answer struct {
	Who string `json:"who"`
}

// mcpServer is an engine over TLS that wants tokens of an authorization server.
type mcpServer struct {
	as       *authServer
	verifier auth.Verifier
	resource *auth.Resource
	http     *httptest.Server
	log      *leakLog

	mu   sync.Mutex // guards the following
	skew time.Duration
	last string // the newest token that was seen
}

func newMCPServer(t *testing.T, as *authServer) *mcpServer {
	t.Helper()
	s := &mcpServer{as: as, log: &leakLog{t: t}}
	var handler http.Handler
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	s.http.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.http.StartTLS()
	logger := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	s.verifier, err = auth.NewJWTVerifier(auth.JWTOptions{
		Issuer: as.http.URL, JWKSURL: as.http.URL + "/keys", Audience: []string{s.uri()}, HTTPClient: as.http.Client(),
		KeysMinInterval: time.Nanosecond, Now: s.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.resource, err = auth.NewResource(auth.ResourceOptions{
		Resource: s.uri(), AuthorizationServers: []string{as.http.URL}, Verifier: s.verifier, Logger: logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(engine.Info{Name: "guarded", Version: "1"}, &engine.Options{Logger: logger, Principal: auth.PrincipalFrom})
	engine.AddTool(e, engine.Tool{Name: "whoami"}, func(ctx context.Context, _ *engine.Call, _ nothing) (answer, error) {
		return answer{auth.PrincipalFrom(ctx)}, nil
	})
	engine.AddTool(e, engine.Tool{Name: "delete"}, func(ctx context.Context, _ *engine.Call, _ nothing) (answer, error) {
		if err := auth.Demand(ctx, "files:delete"); err != nil {
			return answer{}, err
		}
		return answer{"deleted"}, nil
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.resource.Require("tools")(transport.NewHTTPHandler(e, nil)))
	mux.Handle(s.resource.MetadataPath(), s.resource.Metadata())
	handler = s.watch(mux)
	t.Cleanup(func() {
		s.http.Close()
		if err := e.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	return s
}

func (s *mcpServer) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.skew)
}

func (s *mcpServer) uri() string { return s.http.URL + "/mcp" }

// watch remembers tokens, for the tests and so that the log can be held to them.
func (s *mcpServer) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
			s.mu.Lock()
			s.last = token
			s.mu.Unlock()
			s.log.add(token)
		}
		next.ServeHTTP(w, r)
	})
}

func (s *mcpServer) setSkew(skew time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skew = skew
}

func (s *mcpServer) token() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// leakLog fails the test where a record holds a part of a token.
type leakLog struct {
	t      *testing.T
	mu     sync.Mutex // guards tokens
	tokens []string
}

func (l *leakLog) add(token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens = append(l.tokens, token)
}

func (l *leakLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, token := range l.tokens {
		for part := range strings.SplitSeq(token, ".") {
			if len(part) > 8 && strings.Contains(string(p), part) {
				l.t.Errorf("a record holds a part of a token: %s", p)
			}
		}
	}
	return len(p), nil
}

// asUser makes a transport of a user who agrees to everything.
func (s *mcpServer) asUser(t *testing.T, user string, change func(*oauth.Options)) *oauth.Transport {
	t.Helper()
	browser := &http.Client{Transport: s.as.http.Client().Transport, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), redirectURL) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	o := oauth.Options{
		Endpoint: s.uri(), RedirectURL: redirectURL, Base: s.http.Client().Transport,
		Clients: []oauth.Registration{{Issuer: s.as.http.URL, ID: "app"}},
		Logger:  slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Authorize: func(ctx context.Context, address string) (oauth.Response, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
			if err != nil {
				return oauth.Response{}, err
			}
			r.Header.Set("X-User", user)
			res, err := browser.Do(r)
			if err != nil {
				return oauth.Response{}, err
			}
			_ = res.Body.Close()
			location, err := res.Location()
			if err != nil {
				return oauth.Response{}, err
			}
			return oauth.ParseResponse(location.Query()), nil
		},
	}
	if change != nil {
		change(&o)
	}
	tr, err := oauth.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	return tr
}

func (s *mcpServer) asMachine(t *testing.T, secret string) *oauth.Transport {
	t.Helper()
	return s.asUser(t, "", func(o *oauth.Options) {
		o.ClientCredentials = true
		o.Clients = []oauth.Registration{{Issuer: s.as.http.URL, ID: "machine", Secret: secret}}
	})
}

// connect connects a client, which fails with the error.
func (s *mcpServer) connect(t *testing.T, h *http.Client, protocol string) (*client.Client, error) {
	t.Helper()
	c, err := client.ConnectHTTP(context.Background(), s.uri(), &client.Options{Protocol: protocol, HTTPClient: h})
	if err == nil {
		t.Cleanup(func() { _ = c.Close(context.Background()) })
	}
	return c, err
}

func (s *mcpServer) mustConnect(t *testing.T, h *http.Client, protocol string) *client.Client {
	t.Helper()
	c, err := s.connect(t, h, protocol)
	if err != nil {
		t.Fatalf("ConnectHTTP: %v", err)
	}
	return c
}

// call calls a tool and gives what it answers, or the error.
func call(c *client.Client, tool string) string {
	result, err := c.CallTool(context.Background(), tool, nothing{}, nil)
	if err != nil {
		return err.Error()
	}
	return string(result.Structured)
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got  %s\n want %s", what, got, want)
	}
}

func (s *mcpServer) verify(token string) string {
	if _, err := s.verifier.Verify(context.Background(), token); err != nil {
		return err.Error()
	}
	return "ok"
}

func refused(reason string) string { return auth.ErrInvalidToken.Error() + ": " + reason }

var protocols = []string{"2025-06-18", "2025-11-25", client.ProtocolStateless}
