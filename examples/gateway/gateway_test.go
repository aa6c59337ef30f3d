package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
	"github.com/mcpengine/mcpengine/transport/client"
)

// serveAsChild makes the test binary an upstream over stdio.
const serveAsChild = "GATEWAY_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(serveAsChild) != "" {
		e, err := upstreamEngine("child", false, nil)
		if err == nil {
			err = transport.ServeStdio(context.Background(), e, os.Stdin, os.Stdout, nil)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// upstreamEngine makes a server with a tool that tells its process, one that waits until it is cancelled, a prompt and
// a resource.
func upstreamEngine(name string, legacy bool, cancelled chan<- struct{}) (*engine.Engine, error) {
	e := engine.New(engine.Info{Name: name, Version: "1"}, &engine.Options{
		Logger: slog.New(slog.DiscardHandler), LegacyOnly: legacy,
	})
	return e, errors.Join(
		e.AddRawTool(engine.Tool{Name: "pid", Annotations: &engine.ToolAnnotations{ReadOnlyHint: engine.Hint(true)}},
			func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
				return engine.AppendTextResult(out, fmt.Sprint(os.Getpid())), nil
			}),
		e.AddRawTool(engine.Tool{Name: "echo"}, func(_ context.Context, _ *engine.Call, args, out []byte) ([]byte, error) {
			return engine.AppendTextResult(out, name+" "+string(args)), nil
		}),
		e.AddRawTool(engine.Tool{Name: "wait"}, func(ctx context.Context, c *engine.Call, _, _ []byte) ([]byte, error) {
			c.Progress(ctx, 1, 2)
			<-ctx.Done()
			cancelled <- struct{}{}
			return nil, ctx.Err()
		}),
		e.AddRawTool(engine.Tool{Name: "refuse"}, func(context.Context, *engine.Call, []byte, []byte) ([]byte, error) {
			return nil, codec.NewError(codec.CodeInvalidParams, "not like this")
		}),
		e.AddPrompt(engine.Prompt{Name: "greet", Arguments: []engine.PromptArgument{{Name: "who", Required: true}}},
			func(_ context.Context, _ *engine.Call, args map[string]string) (*engine.PromptResult, error) {
				return &engine.PromptResult{Messages: []engine.PromptMessage{
					{Role: "user", Content: &engine.Text{Text: "hello " + args["who"]}},
					{Role: "assistant", Content: &engine.Image{Data: []byte{1, 2}, MIMEType: "image/png"}},
				}}, nil
			}),
		e.AddResource(engine.Resource{URI: name + "://blob", Name: "blob"},
			func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) {
				return []engine.ResourceContents{{Blob: []byte("bytes")}}, nil
			}),
	)
}

// upstreamServer is an upstream over HTTP that counts the handshakes and can be stopped and started again.
type upstreamServer struct {
	url        string
	engine     *engine.Engine
	legacy     bool // only the era with sessions
	cancelled  chan struct{}
	handshakes atomic.Int64
	handler    atomic.Pointer[transport.HTTPHandler]
}

func startUpstream(t *testing.T, name string, legacy bool) *upstreamServer {
	t.Helper()
	s := &upstreamServer{legacy: legacy, cancelled: make(chan struct{}, 1)}
	s.restart(t, name)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" {
			s.handshakes.Add(1)
		}
		s.handler.Load().ServeHTTP(w, r)
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	s.url = web.URL
	return s
}

// restart replaces the server by one that knows no session.
func (s *upstreamServer) restart(t *testing.T, name string) {
	t.Helper()
	e, err := upstreamEngine(name, s.legacy, s.cancelled)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shutdown(t, e) })
	s.engine = e
	s.handler.Store(transport.NewHTTPHandler(e, nil))
}

func shutdown(t *testing.T, e *engine.Engine) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := e.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

// startGateway starts a gateway and waits until its upstreams are there.
func startGateway(t *testing.T, c Config) (g *Gateway, url string) {
	t.Helper()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(g.Handler())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
		web.Close()
	})
	ready, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	g.Ready(ready)
	eventually(t, "the gateway is healthy", func() bool { return healthStatus(t, web.URL) == http.StatusOK })
	return g, web.URL
}

func healthStatus(t *testing.T, url string) int {
	t.Helper()
	r, err := http.Get(url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var states map[string]State
	if err := json.NewDecoder(r.Body).Decode(&states); err != nil {
		t.Fatal(err)
	}
	return r.StatusCode
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

func connect(t *testing.T, url, protocol, token string) *client.Client {
	t.Helper()
	o := &client.Options{Protocol: protocol, NoCache: true}
	if token != "" {
		o.Header = http.Header{"Authorization": {"Bearer " + token}}
	}
	c, err := client.ConnectHTTP(t.Context(), url+"/mcp", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	return c
}

func toolNames(t *testing.T, c *client.Client) []string {
	t.Helper()
	tools, err := c.ListTools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

func callText(t *testing.T, c *client.Client, tool string, args any) string {
	t.Helper()
	r, err := c.CallTool(t.Context(), tool, args, nil)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return r.Text()
}

func child() Upstream {
	return Upstream{Name: "child", Command: []string{"env", serveAsChild + "=1", os.Args[0]}}
}

// TestJoin finds the offers of two upstreams, one over HTTP and one over stdio, behind one endpoint in both eras.
func TestJoin(t *testing.T) {
	docs := startUpstream(t, "docs", false)
	_, url := startGateway(t, Config{Upstreams: []Upstream{{Name: "docs", URL: docs.url}, child()}})
	for _, protocol := range []string{"2025-11-25", client.ProtocolStateless} {
		c := connect(t, url, protocol, "")
		want := []string{
			"child_echo", "child_pid", "child_refuse", "child_wait", "docs_echo", "docs_pid", "docs_refuse", "docs_wait",
			"gateway_status",
		}
		if got := toolNames(t, c); !slices.Equal(got, want) {
			t.Errorf("%s: tools = %v, want %v", protocol, got, want)
		}
		for tool, want := range map[string]string{"docs_echo": `docs {"a":1.0}`, "child_echo": `child {"a":1.0}`} {
			if got := callText(t, c, tool, json.RawMessage(`{"a":1.0}`)); got != want {
				t.Errorf("%s: %s = %q, want %q", protocol, tool, got, want)
			}
		}
		if got := callText(t, c, "gateway_status", nil); !strings.Contains(got, `"docs":{"up":true`) {
			t.Errorf("%s: gateway_status = %s, want docs up", protocol, got)
		}
		if got := callText(t, c, "docs_pid", nil); got != fmt.Sprint(os.Getpid()) {
			t.Errorf("%s: docs_pid = %s, want %d", protocol, got, os.Getpid())
		}
		var wire *codec.Error
		if _, err := c.CallTool(t.Context(), "docs_refuse", nil, nil); !errors.As(err, &wire) || wire.Message != "not like this" {
			t.Errorf("%s: docs_refuse = %v, want the upstream's own error", protocol, err)
		}
		prompt, err := c.GetPrompt(t.Context(), "child_greet", map[string]string{"who": "you"})
		if err != nil || len(prompt.Messages) != 2 || prompt.Messages[0].Content.Text != "hello you" || prompt.Messages[1].Content.Data != "AQI=" {
			t.Errorf("%s: child_greet = %+v, %v", protocol, prompt, err)
		}
		read, err := c.ReadResource(t.Context(), "docs://blob")
		if err != nil || len(read.Contents) != 1 || read.Contents[0].Blob != "Ynl0ZXM=" {
			t.Errorf("%s: docs://blob = %+v, %v", protocol, read, err)
		}
	}
}

// TestPool makes calls from many clients: the upstream sees as many sessions as the pool holds, and no more.
func TestPool(t *testing.T) {
	docs := startUpstream(t, "docs", true)
	g, url := startGateway(t, Config{Upstreams: []Upstream{{Name: "docs", URL: docs.url}}, Sessions: 3})
	var all sync.WaitGroup
	for range 10 {
		c := connect(t, url, "2025-11-25", "")
		all.Go(func() {
			for range 10 {
				if r, err := c.CallTool(context.Background(), "docs_echo", nil, nil); err != nil || r.IsError {
					t.Errorf("docs_echo: %+v, %v", r, err)
				}
			}
		})
	}
	all.Wait()
	if s := g.upstreams[0].state(); s.Opened != 3 || s.InFlight != 0 || docs.handshakes.Load() > 4 {
		t.Errorf("state = %+v, %d handshakes; want 3 opened, at most one handshake more, none in flight", s, docs.handshakes.Load())
	}
}

// TestCancelAndProgress passes both on.
func TestCancelAndProgress(t *testing.T) {
	docs := startUpstream(t, "docs", true)
	_, url := startGateway(t, Config{Upstreams: []Upstream{{Name: "docs", URL: docs.url}}})
	c := connect(t, url, "2025-11-25", "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan struct{})
	go func() {
		<-seen
		cancel()
	}()
	_, err := c.CallTool(ctx, "docs_wait", nil, &client.CallOptions{OnProgress: func(p client.Progress) {
		if p.Progress == 1 && p.Total == 2 {
			close(seen)
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("docs_wait = %v, want canceled", err)
	}
	select {
	case <-docs.cancelled:
	case <-time.After(5 * time.Second):
		t.Error("the upstream was not told of the cancellation within 5 s")
	}
}

// TestRestart loses no call to an upstream that forgot its sessions, and starts a process that died again.
func TestRestart(t *testing.T) {
	docs := startUpstream(t, "docs", true)
	g, url := startGateway(t, Config{Upstreams: []Upstream{{Name: "docs", URL: docs.url}, child()}, Sessions: 2})
	c := connect(t, url, "2025-11-25", "")
	docs.restart(t, "docs2")
	for range 5 {
		if got := callText(t, c, "docs_echo", nil); !strings.HasPrefix(got, "docs2") {
			t.Errorf("docs_echo = %q, want an answer of docs2", got)
		}
	}
	first := callText(t, c, "child_pid", nil)
	var pid int
	if _, err := fmt.Sscan(first, &pid); err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "another process serves", func() bool {
		r, err := c.CallTool(t.Context(), "child_pid", nil, nil)
		return err == nil && !r.IsError && r.Text() != first
	})
	if s := g.upstreams[1].state(); s.Opened != 2 {
		t.Errorf("state = %+v, want 2 opened", s)
	}
}

// TestAway answers at once, with an error that says who is away, and tells so at /healthz.
func TestAway(t *testing.T) {
	g, err := New(Config{Upstreams: []Upstream{{Name: "gone", Command: []string{"/does/not/exist"}}}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close(context.Background())
	web := httptest.NewServer(g.Handler())
	defer web.Close()
	if got := healthStatus(t, web.URL); got != http.StatusServiceUnavailable {
		t.Errorf("/healthz = %d, want 503", got)
	}
	eventually(t, "the state tells why", func() bool { return strings.Contains(g.upstreams[0].state().Error, "exist") })
	start := time.Now()
	_, err = g.upstreams[0].take(t.Context())
	if !errors.Is(err, errUnavailable) || !strings.Contains(err.Error(), "gone") || time.Since(start) > 5*time.Second {
		t.Errorf("take = %v after %s, want unavailable, named, in about %s", err, time.Since(start), patience)
	}
}

// TestListChanged follows what the upstream offers.
func TestListChanged(t *testing.T) {
	docs := startUpstream(t, "docs", true)
	_, url := startGateway(t, Config{Upstreams: []Upstream{{Name: "docs", URL: docs.url}}})
	c := connect(t, url, "2025-11-25", "")
	docs.engine.RemoveTool("wait")
	err := docs.engine.AddRawTool(engine.Tool{Name: "fresh"}, func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
		return engine.AppendTextResult(out, "new"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the change has come through", func() bool {
		return slices.Equal(toolNames(t, c), []string{"docs_echo", "docs_fresh", "docs_pid", "docs_refuse", "gateway_status"})
	})
	if got := callText(t, c, "docs_fresh", nil); got != "new" {
		t.Errorf("docs_fresh = %q, want new", got)
	}
}

// TestPolicy shows each caller what it may see, and asks before what has to be allowed.
func TestPolicy(t *testing.T) {
	docs := startUpstream(t, "docs", false)
	p := &Policy{Callers: []Caller{
		{Name: "reader", TokenEnv: "R", See: []string{"docs_[ep]*"}, Confirm: []string{"docs_echo"}},
		{Name: "admin", TokenEnv: "A", See: []string{"*"}},
	}}
	if err := p.index(func(name string) string { return "token-" + name }); err != nil {
		t.Fatal(err)
	}
	_, url := startGateway(t, Config{Upstreams: []Upstream{{Name: "docs", URL: docs.url}}, Policy: p})
	if _, err := client.ConnectHTTP(t.Context(), url+"/mcp", &client.Options{Header: http.Header{"Authorization": {"Bearer x"}}}); err == nil {
		t.Error("a wrong token was let in")
	}
	reader, admin := connect(t, url, "2025-11-25", "token-R"), connect(t, url, "2025-11-25", "token-A")
	if got, want := toolNames(t, reader), []string{"docs_echo", "docs_pid"}; !slices.Equal(got, want) {
		t.Errorf("the reader sees %v, want %v", got, want)
	}
	if got := len(toolNames(t, admin)); got != 5 {
		t.Errorf("the admin sees %d tools, want 5", got)
	}
	if _, err := reader.CallTool(t.Context(), "docs_refuse", nil, nil); err == nil || strings.Contains(err.Error(), "not like this") {
		t.Errorf("docs_refuse by the reader = %v, want unknown", err)
	}
	r, err := reader.CallTool(t.Context(), "docs_echo", nil, nil)
	if err != nil || !r.IsError || !strings.Contains(r.Text(), "confirmed") {
		t.Errorf("docs_echo by a client that cannot ask = %+v, %v; want a refusal", r, err)
	}
	for action, want := range map[string]string{"accept": "docs {}", "decline": "the user did not allow docs_echo"} {
		asking, err := client.ConnectHTTP(t.Context(), url+"/mcp", &client.Options{
			Header: http.Header{"Authorization": {"Bearer token-R"}},
			OnElicit: func(context.Context, *client.ElicitRequest) (*client.ElicitResult, error) {
				return &client.ElicitResult{Action: client.ElicitAction(action)}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := callText(t, asking, "docs_echo", json.RawMessage(`{}`)); got != want {
			t.Errorf("docs_echo after %s = %q, want %q", action, got, want)
		}
		_ = asking.Close(t.Context())
	}
}

func TestParse(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"docs=http://host/mcp", "{docs http://host/mcp []}"},
		{"files=mcp-files --root /srv", "{files  [mcp-files --root /srv]}"},
		{"docs", `"docs": write NAME=URL or NAME=COMMAND ARGS`},
		{"docs= ", `"docs= ": write NAME=URL or NAME=COMMAND ARGS`},
		{"gateway=http://host/mcp", "the name gateway is the gateway's own"},
		{"My_Docs=http://host/mcp", `"My_Docs": a name is 1 to 32 lower-case letters, digits and hyphens`},
	} {
		u, err := parseUpstream(tt.in)
		got := fmt.Sprint(u)
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("parseUpstream(%q) = %s, want %s", tt.in, got, tt.want)
		}
	}
	for text, want := range map[string]string{
		`{"callers":[]}`: "no callers",
		`{"callers":[{"name":"a","token_env":"NONE"}]}`:                                                     "holds no token",
		`{"callers":[{"name":"a","token_env":"A","see":["[" ]}]}`:                                           "pattern",
		`{"callers":[{"name":"a","token_env":"A"},{"name":"a","token_env":"B"}]}`:                           "taken",
		`{"callers":[{"name":"a","token_env":"A"},{"name":"b","token_env":"A"}]}`:                           "same token",
		`{"callers":[{"name":"a","token_env":"A","sees":["*"]}]}`:                                           "unknown field",
		`{"callers":[{"name":"a","token_env":"A","see":["docs_*"],"confirm":["docs_delete"]}], "other": 1}`: "unknown field",
	} {
		file := t.TempDir() + "/policy.json"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("A", "one")
		t.Setenv("B", "two")
		if _, err := readPolicy(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("readPolicy(%s) = %v, want %q", text, err, want)
		}
	}
}
