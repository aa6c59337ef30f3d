package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
	"github.com/mcpengine/mcpengine/transport/client"
)

// realServer is the engine itself, as the server of these tests.
type realServer struct {
	*engine.Engine
	requests  atomic.Int64 // HTTP requests
	began     chan struct{}
	cancelled chan struct{}
}

type messageIn struct {
	Text string `json:"text,omitempty"`
}

func newRealServer(t *testing.T, o engine.Options) *realServer {
	t.Helper()
	o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	o.ListCache.TTL = time.Minute
	s := &realServer{Engine: engine.New(engine.Info{Name: "real", Version: "1"}, &o), began: make(chan struct{}, 1), cancelled: make(chan struct{}, 1)}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = s.Shutdown(ctx) // some tests have done so already
	})
	tool := func(name, support string, h func(context.Context, *engine.Call, messageIn) (string, error)) {
		if err := engine.AddTool(s.Engine, engine.Tool{Name: name, TaskSupport: support}, h); err != nil {
			t.Fatal(err)
		}
	}
	tool("echo", "", func(_ context.Context, _ *engine.Call, in messageIn) (string, error) { return in.Text, nil })
	tool("ask", "optional", askAll)
	tool("need", "", func(_ context.Context, c *engine.Call, _ messageIn) (string, error) { return "", c.Require("sampling") })
	tool("talk", "", func(ctx context.Context, c *engine.Call, _ messageIn) (string, error) {
		c.Progress(ctx, 1, 2)
		return "said", c.Log(ctx, engine.LevelInfo, "here", "word")
	})
	tool("wait", "optional", func(ctx context.Context, _ *engine.Call, _ messageIn) (string, error) {
		s.began <- struct{}{}
		<-ctx.Done()
		s.cancelled <- struct{}{}
		return "", ctx.Err()
	})
	tool("slow", "required", func(context.Context, *engine.Call, messageIn) (string, error) {
		time.Sleep(50 * time.Millisecond)
		return "slowly", nil
	})
	tool("break", "optional", func(context.Context, *engine.Call, messageIn) (string, error) {
		return "", codec.NewError(-32603, "broken")
	})
	mirrored := engine.Tool{Name: "mirror", InputSchema: json.RawMessage(
		`{"type":"object","properties":{"text":{"type":"string","x-mcp-header":"Text"},"n":{"type":"integer","x-mcp-header":"N"}}}`)}
	resource := func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) {
		return []engine.ResourceContents{{URI: "test://r", Text: "contents"}}, nil
	}
	err := errors.Join(
		s.AddRawTool(mirrored, func(_ context.Context, _ *engine.Call, args, out []byte) ([]byte, error) {
			return engine.AppendTextResult(out, args), nil
		}),
		s.AddResource(engine.Resource{URI: "test://r", Name: "r", Cache: engine.Cache{TTL: time.Minute}}, resource))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// askAll asks all that there is to ask, in two rounds.
func askAll(ctx context.Context, c *engine.Call, _ messageIn) (string, error) {
	answers, err := c.AskAll(ctx,
		&engine.ElicitRequest{Key: "form", Message: "who?", Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","default":"Ada"}}}`)},
		&engine.SampleRequest{Key: "model", MaxTokens: 10, Messages: []engine.SampleMessage{{Role: "user", Content: []engine.Content{engine.Text{Text: "hi"}}}}},
		engine.RootsRequest{Key: "roots"})
	if err != nil {
		return "", err
	}
	again, err := c.Elicit(ctx, &engine.ElicitRequest{Key: "again", Message: "sure?", Schema: json.RawMessage(`{"type":"object","properties":{"yes":{"type":"boolean","default":true}}}`)})
	if err != nil {
		return "", err
	}
	return fmt.Sprint(string(answers[0].Elicit.Content), answers[1].Sample.Text(), answers[2].Roots[0].URI, string(again.Content)), nil
}

// connect connects a client over HTTP or over a pipe.
func (s *realServer) connect(t *testing.T, over string, o client.Options) *client.Client {
	t.Helper()
	if o.Protocol == "" {
		o.Protocol = client.ProtocolStateless
	}
	var c *client.Client
	var err error
	if over == "http" {
		handler := transport.NewHTTPHandler(s.Engine, nil)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.requests.Add(1)
			handler.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		c, err = client.ConnectHTTP(t.Context(), server.URL, &o)
	} else {
		ctx, cancel := context.WithCancel(context.Background())
		pipe, served := transport.Pipe(ctx, s.Engine)
		t.Cleanup(func() { cancel(); <-served })
		c, err = client.ConnectPipe(t.Context(), pipe, &o)
	}
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { closeClient(t, c) })
	return c
}

// both runs a test over both kinds of transport.
func both(t *testing.T, f func(t *testing.T, over string)) {
	for _, over := range []string{"http", "pipe"} {
		t.Run(over, func(t *testing.T) { noLeaks(t); f(t, over) })
	}
}

// answering are the options of a client that can answer what askAll asks.
func answering() client.Options {
	return client.Options{
		OnElicit: onElicit,
		OnSample: func(context.Context, *client.SampleRequest) (*client.SampleResult, error) {
			return &client.SampleResult{Model: "m", Content: []client.Content{client.TextContent("model")}}, nil
		},
		RootList: []client.Root{{URI: "file:///x"}},
	}
}

const allAnswers = `{"name":"Ada"}modelfile:///x{"yes":true}`

// TestRealEngine: calls, questions, notifications, errors and lists.
func TestRealEngine(t *testing.T) {
	both(t, func(t *testing.T, over string) {
		s := newRealServer(t, engine.Options{})
		o := answering()
		o.Protocol = client.ProtocolAuto
		var logged []string
		o.OnLog = func(m client.LogMessage) { logged = append(logged, string(m.Level)+string(m.Data)) }
		c := s.connect(t, over, o)
		if got := c.Server(); got.Protocol != "2026-07-28" || got.Name != "real" {
			t.Errorf("Server: got %+v", got)
		}
		for _, test := range []struct{ tool, arguments, want string }{
			{"echo", `{"text":"hi"}`, "hi"}, {"ask", `{}`, allAnswers}, {"talk", `{}`, "said"}, {"slow", `{}`, "error"}, {"none", `{}`, "error"},
			{"mirror", `{"text":" é ","n":42}`, `{"text":" é ","n":42}`}, {"mirror", `{"text":null}`, "tool error"},
		} {
			r, err := c.CallTool(t.Context(), test.tool, []byte(test.arguments), nil)
			got := "error"
			if err == nil {
				if got = r.Text(); r.IsError {
					got = "tool error"
				}
			}
			if got != test.want {
				t.Errorf("%s(%s): got %s (%v), want %s", test.tool, test.arguments, got, err, test.want)
			}
		}
		var required *client.RequiredCapabilityError
		if _, err := s.connect(t, over, client.Options{}).CallTool(t.Context(), "need", nil, nil); !errors.As(err, &required) || string(required.Required) != `{"sampling":{}}` {
			t.Errorf("need: got %v, want a *RequiredCapabilityError for sampling", err)
		}
		if len(logged) != 0 {
			t.Errorf("log without a level: got %v", logged)
		}
		if err := c.Ping(t.Context()); err != nil {
			t.Errorf("Ping: %v", err)
		}
		checkTalk(t, c)
	})
}

// checkTalk wants progress where it is asked for, and log messages over HTTP, where they come on the call's own stream.
func checkTalk(t *testing.T, c *client.Client) {
	var progress []float64
	_, err := c.CallTool(t.Context(), "talk", []byte(`{}`), &client.CallOptions{OnProgress: func(p client.Progress) { progress = append(progress, p.Progress) }})
	if err != nil || !slices.Equal(progress, []float64{1}) {
		t.Errorf("progress: got %v, %v; want 1", progress, err)
	}
}

// TestRealLog: log messages come from the level on that was asked for.
func TestRealLog(t *testing.T) {
	both(t, func(t *testing.T, over string) {
		s := newRealServer(t, engine.Options{})
		if err := s.Log(engine.LevelInfo, "", "declares logging"); err != nil {
			t.Fatal(err)
		}
		logged := make(chan string, 9)
		c := s.connect(t, over, client.Options{OnLog: func(m client.LogMessage) { logged <- string(m.Level) + string(m.Data) }})
		for _, test := range []struct {
			level client.LogLevel
			want  string
		}{{"", ""}, {client.LevelDebug, `info"word"`}, {client.LevelError, ""}, {client.LevelInfo, `info"word"`}} {
			if err := c.SetLevel(t.Context(), test.level); err != nil {
				t.Fatalf("SetLevel: %v", err)
			}
			if _, err := c.CallTool(t.Context(), "talk", []byte(`{}`), nil); err != nil {
				t.Fatal(err)
			}
			got := ""
			select { // it comes before the answer
			case got = <-logged:
			default:
			}
			if got != test.want {
				t.Errorf("level %q: got %q, want %q", test.level, got, test.want)
			}
		}
	})
}

// TestRealCache: fresh lists and resources are not asked for again, until the server says that they have changed.
func TestRealCache(t *testing.T) {
	noLeaks(t)
	s := newRealServer(t, engine.Options{})
	c := s.connect(t, "http", client.Options{})
	changes := make(chan client.Change, 9)
	sub, err := c.Listen(t.Context(), client.ListenFilter{Tools: true, URIs: []string{"test://r"}}, func(change client.Change) {
		change.Params = nil
		changes <- change
	})
	if err != nil {
		t.Fatalf("Listen: %v", err)
	}
	look := func(want int64) {
		t.Helper()
		before := s.requests.Load()
		for range 3 {
			_, err1 := c.ListTools(t.Context())
			_, err2 := c.ReadResource(t.Context(), "test://r")
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.requests.Load() - before; got != want {
			t.Errorf("requests: got %d, want %d", got, want)
		}
	}
	look(2)
	look(0)
	s.RemoveTool("echo")
	if got := <-changes; got.Kind != client.ListTools {
		t.Errorf("change: got %+v, want the tools", got)
	}
	look(1)
	s.ResourceUpdated("test://r")
	if got := <-changes; got.URI != "test://r" || got.Method != codec.NotifyResourceUpdated {
		t.Errorf("change: got %+v, want the resource", got)
	}
	look(1)
	sub.Close()
	if err := sub.Err(); !errors.Is(err, client.ErrClosed) {
		t.Errorf("Err after Close: got %v, want ErrClosed", err)
	}
}

// TestRealListen: several subscriptions at once, what they accept, and how they end.
func TestRealListen(t *testing.T) {
	both(t, func(t *testing.T, over string) {
		s := newRealServer(t, engine.Options{})
		updated, kinds := make(chan string, 9), make(chan client.ListKind, 9)
		c := s.connect(t, over, client.Options{OnResourceUpdated: func(uri string) { updated <- uri }, OnListChanged: func(k client.ListKind) { kinds <- k }})
		all, err := c.Listen(t.Context(), client.ListenFilter{Tools: true, Prompts: true, URIs: []string{"test://other"}}, nil)
		if err != nil {
			t.Fatalf("Listen: %v", err)
		}
		if got := fmt.Sprint(all.Accepted()); got != "{true false false [test://other] []}" {
			t.Errorf("Accepted: got %s, want tools and the resource", got)
		}
		for range 2 {
			if err := c.Subscribe(t.Context(), "test://r"); err != nil {
				t.Fatalf("Subscribe: %v", err)
			}
		}
		s.ResourceUpdated("test://r")
		s.RemoveTool("echo")
		if got := <-updated; got != "test://r" {
			t.Errorf("OnResourceUpdated: got %s, want test://r", got)
		}
		if got := <-kinds; got != client.ListTools {
			t.Errorf("OnListChanged: got %s, want tools", got)
		}
		if err := c.Unsubscribe(t.Context(), "test://r"); err != nil {
			t.Errorf("Unsubscribe: %v", err)
		}
		if _, err := c.Listen(t.Context(), client.ListenFilter{Tasks: []string{"t"}}, nil); err == nil || !strings.Contains(err.Error(), "-32021") {
			t.Errorf("Listen to tasks that were not declared: got %v, want -32021", err)
		}
		_ = s.Shutdown(t.Context()) // the subscription's end is what matters
		<-all.Done()
		if err := all.Err(); !errors.Is(err, client.ErrSubscriptionEnded) {
			t.Errorf("Err after the server's end: got %v, want ErrSubscriptionEnded", err)
		}
	})
}

// TestRealCancel: a caller who gives up ends the handler, within a second.
func TestRealCancel(t *testing.T) {
	both(t, func(t *testing.T, over string) {
		s := newRealServer(t, engine.Options{})
		c := s.connect(t, over, client.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-s.began; cancel() }()
		if _, err := c.CallTool(ctx, "wait", nil, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("CallTool: got %v, want context.Canceled", err)
		}
		select {
		case <-s.cancelled:
		case <-time.After(time.Second):
			t.Error("the handler still runs")
		}
	})
}

// TestRealEras: against a server of the older era the client makes the handshake, and one that serves nothing else is
// not talked into it.
func TestRealEras(t *testing.T) {
	both(t, func(t *testing.T, over string) {
		c := newRealServer(t, engine.Options{LegacyOnly: true}).connect(t, over, client.Options{Protocol: client.ProtocolAuto})
		if got := c.Server().Protocol; got != "2025-11-25" {
			t.Errorf("legacy only: got %s, want 2025-11-25", got)
		}
		if r, err := c.CallTool(t.Context(), "echo", []byte(`{"text":"x"}`), nil); err != nil || r.Text() != "x" {
			t.Errorf("echo: got %v, %v", r, err)
		}
		if _, err := c.Listen(t.Context(), client.ListenFilter{Tools: true}, nil); err == nil {
			t.Error("Listen in a session: got no error")
		}
		c = newRealServer(t, engine.Options{ModernOnly: true}).connect(t, over, client.Options{Protocol: client.ProtocolAuto})
		if got := c.Server().Protocol; got != "2026-07-28" {
			t.Errorf("modern only: got %s, want 2026-07-28", got)
		}
	})
}
