package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/transport"
	"github.com/mcpengine/mcpengine/transport/client"
)

// newHooks makes the hooks of a server of this process.
func newHooks(t *testing.T, config string) *debugHooks {
	t.Helper()
	t.Setenv("MCP_CASE_CONFIG", config)
	s := newTestServer(t, &serveFlags{debugCases: "127.0.0.1:0"})
	ctx, cancel := context.WithCancel(context.Background())
	h := &debugHooks{server: s, ctx: ctx}
	t.Cleanup(func() {
		h.background.stop()
		cancel()
	})
	return h
}

// call calls a hook and gives the status and the answer.
func (h *debugHooks) call(step string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/debug/cases", strings.NewReader(step)))
	return w.Code, strings.TrimSpace(w.Body.String())
}

// want calls a hook and decodes the answer.
func (h *debugHooks) want(t *testing.T, step string, answer any) {
	t.Helper()
	code, body := h.call(step)
	if code != http.StatusOK {
		t.Fatalf("%s: got %d %s", step, code, body)
	}
	if err := json.Unmarshal([]byte(body), answer); err != nil {
		t.Fatalf("%s: got %s: %v", step, body, err)
	}
}

// eventually waits until a condition holds, within five seconds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for begin := time.Now(); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > 5*time.Second {
			t.Fatalf("not within five seconds: %s", what)
		}
	}
}

// TestHookAnswers is the table of hooks whose answer depends on their step alone.
func TestHookAnswers(t *testing.T) {
	h := newHooks(t, "")
	for _, tt := range []struct {
		step string
		code int
		want string // the answer, or a part of the error
	}{
		{`{"action":"none"}`, 404, "no such action"},
		{`{"action":"emit","what":"nothing"}`, 404, "no such action: emit nothing"},
		{`{"action":"emit_background","what":"log"}`, 400, "rate_per_s"},
		{`{"action":"emit_stop"}`, 200, `{}`},
		{`{`, 400, "unexpected end"},
		{`{"action":"add_tools","count":"x"}`, 400, "cannot unmarshal"},
		{`{"action":"fill_socket","session":"none"}`, 400, `no session "none"`},
		{`{"action":"server_request","method":"ping"}`, 400, "there are 0 sessions"},
		{
			`{"action":"decode_call","input":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":` +
				`{\"name\":\"t\",\"arguments\":{\"n\":9223372036854775807,\"d\":0.1000000000000000055}}}"}`,
			200, `{"raw_arguments":"{\"n\":9223372036854775807,\"d\":0.1000000000000000055}"}`,
		},
		{`{"action":"decode_call","input":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"}`, 400, "no tools/call"},
		{`{"action":"decode_call","input":"["}`, 400, "Parse error"},
		{
			`{"action":"encode_result","structured_content_raw":"{\"n\":12345678901234567890,\"f\":1.0}"}`,
			200, `\"structuredContent\":{\"n\":12345678901234567890,\"f\":1.0}}"}`,
		},
		{`{"action":"encode_result","structured_content_raw":"{"}`, 400, "nternal error"},
		{`{"action":"histogram_add"}`, 400, "give workers"},
		{
			`{"action":"histogram_add","value_ms":2,"count":3,"values_ms":[2,2]}`,
			200, `{"count":5,"max_ms":2,"mean_ms":2,"min_ms":2,"p50_ms":2,"p90_ms":2,"p95_ms":2,"p99_ms":2}`,
		},
		{`{"action":"loadgen","mode":"open","rate":-1,"url":"http://127.0.0.1:1/mcp"}`, 400, "the rate must lie between"},
	} {
		code, body := h.call(tt.step)
		if code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%s: got %d %s, want %d %s", tt.step, code, body, tt.code, tt.want)
		}
	}
}

// counters is a part of what inspect answers.
type counters struct {
	Sessions      int                 `json:"sessions"`
	Subscriptions int                 `json:"subscriptions"`
	Active        int                 `json:"active_requests"`
	Pending       map[string]int      `json:"pending_server_requests"`
	ToolCalls     map[string]int      `json:"tool_calls"`
	ToolOutcomes  map[string]outcomes `json:"tool_outcomes"`
	Registrations int                 `json:"tool_registrations"`
	Goroutines    int                 `json:"goroutines"`
	Heap          int                 `json:"heap_bytes"`
}

func (h *debugHooks) counters(t *testing.T) (c counters) {
	t.Helper()
	h.want(t, `{"action":"inspect","gc":true}`, &c)
	return c
}

// TestHookCounters follows the counters through calls that end in each way.
func TestHookCounters(t *testing.T) {
	h := newHooks(t, "")
	asking, answer := make(chan struct{}), make(chan struct{})
	c := connectPipe(t, h.server.engine, &client.Options{
		Capabilities: []byte(`{"roots":{}}`),
		OnRequest: func(context.Context, string, []byte) ([]byte, error) {
			close(asking)
			<-answer
			return []byte(`{"roots":[]}`), nil
		},
	})
	for range 3 {
		if _, err := c.CallTool(t.Context(), "echo", map[string]string{"message": "x"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	calling, cancel := context.WithCancel(t.Context())
	var call sync.WaitGroup
	call.Go(func() { _, _ = c.CallTool(calling, "sleep", sleepIn{MS: 60_000}, nil) })
	eventually(t, "the call is in flight", func() bool { return h.counters(t).Active == 1 })
	cancel()
	call.Wait()
	eventually(t, "the call is cancelled", func() bool { return h.counters(t).Active == 0 })
	if err := c.Subscribe(t.Context(), "test://static/text"); err != nil {
		t.Fatal(err)
	}
	h.want(t, `{"action":"server_request","method":"roots/list","wait":false}`, &struct{}{})
	<-asking
	got := h.counters(t)
	if got.Sessions != 1 || got.Subscriptions != 1 || len(got.Pending) != 1 || got.Goroutines == 0 || got.Heap == 0 {
		t.Errorf("inspect: got %+v, want one session, subscription and pending request", got)
	}
	if want := map[string]int{"echo": 3, "sleep": 1}; fmt.Sprint(got.ToolCalls) != fmt.Sprint(want) {
		t.Errorf("tool_calls: got %v, want %v", got.ToolCalls, want)
	}
	if want := map[string]outcomes{"echo": {Completed: 3}, "sleep": {Cancelled: 1}}; fmt.Sprint(got.ToolOutcomes) != fmt.Sprint(want) {
		t.Errorf("tool_outcomes: got %v, want %v", got.ToolOutcomes, want)
	}
	close(answer)
	eventually(t, "the client has answered", func() bool { return len(h.counters(t).Pending) == 0 })
}

// TestHookServerRequests sends many requests to a client at once.
func TestHookServerRequests(t *testing.T) {
	h := newHooks(t, "")
	connectPipe(t, h.server.engine, nil)
	for _, step := range []string{
		`{"action":"server_request","method":"ping","count":50,"concurrent":true,"wait":true}`,
		`{"action":"server_request","method":"ping","count":50,"wait":true}`,
	} {
		var got struct{ Resolved int }
		if h.want(t, step, &got); got.Resolved != 50 {
			t.Errorf("%s: got %d resolved, want 50", step, got.Resolved)
		}
	}
}

// TestHookEvents makes events happen that a client can see.
func TestHookEvents(t *testing.T) {
	h := newHooks(t, "")
	var logs, lists, bytesLogged atomic.Int64
	c := connectPipe(t, h.server.engine, &client.Options{OnNotification: func(method string, params []byte) {
		switch method {
		case "notifications/message":
			logs.Add(1)
			bytesLogged.Add(int64(bytes.Count(params, []byte("x"))))
		case "notifications/tools/list_changed":
			lists.Add(1)
		}
	}})
	h.want(t, `{"action":"emit","what":"log","count":20,"bytes":100}`, &struct{}{})
	eventually(t, "20 log messages", func() bool { return logs.Load() == 20 && bytesLogged.Load() == 2000 })
	h.want(t, `{"action":"emit","what":"tools_list_changed"}`, &struct{}{})
	eventually(t, "a list change", func() bool { return lists.Load() > 0 })

	h.want(t, `{"action":"emit_background","what":"log","rate_per_s":500}`, &struct{}{})
	eventually(t, "log messages in the background", func() bool { return logs.Load() > 25 })
	h.want(t, `{"action":"emit_stop"}`, &struct{}{})
	if _, err := c.ListTools(t.Context()); err != nil { // what was sent before has arrived
		t.Fatal(err)
	}
	before := logs.Load()
	time.Sleep(20 * time.Millisecond)
	if got := logs.Load(); got != before {
		t.Errorf("after emit_stop %d more messages arrived", got-before)
	}

	registered := h.counters(t).Registrations
	var added struct {
		At int64 `json:"last_change_unix_ms"`
	}
	for range 2 {
		h.want(t, `{"action":"add_tools","count":3}`, &added)
	}
	tools, err := c.ListTools(t.Context())
	if err != nil || len(tools) != 12 || h.counters(t).Registrations != registered+6 {
		t.Errorf("add_tools: %d tools, %v; want 6 more than 6", len(tools), err)
	}
	if age := time.Since(time.UnixMilli(added.At)); age < 0 || age > time.Minute {
		t.Errorf("last_change_unix_ms is %d, %v ago", added.At, age)
	}
}

// TestHookFillSocket fills a stream that nobody reads: the hook returns.
func TestHookFillSocket(t *testing.T) {
	h := newHooks(t, "")
	pipe, served := transport.Pipe(t.Context(), h.server.engine)
	if _, err := pipe.Write([]byte(strings.SplitAfter(handshake, "\n")[0])); err != nil {
		t.Fatal(err)
	}
	one := make([]byte, 1)
	if _, err := pipe.Read(one); err != nil { // of the answer; nothing is read after it
		t.Fatal(err)
	}
	h.want(t, `{"action":"fill_socket"}`, &struct{}{})
	if err := pipe.Close(); err != nil {
		t.Fatal(err)
	}
	<-served
}

// TestHookExtraTools calls the tools that misbehave.
func TestHookExtraTools(t *testing.T) {
	h := newHooks(t, `{"extra_tools":["case_progress","case_elicit"],"eras":["legacy"]}`)
	c := connectPipe(t, h.server.engine, nil)
	var got []float64
	_, err := c.CallTool(t.Context(), "case_progress", caseProgressIn{Values: []float64{1, 1, 0.5, 2}}, &client.CallOptions{
		OnProgress: func(p client.Progress) { got = append(got, p.Progress) },
	})
	if err != nil || fmt.Sprint(got) != "[1 2]" {
		t.Errorf("case_progress: got %v, %v, want what increases", got, err)
	}
	if r, err := c.CallTool(t.Context(), "case_elicit", nil, nil); err != nil || !r.IsError {
		t.Errorf("case_elicit: got %+v, %v, want a tool error", r, err)
	}
	tools, err := c.ListTools(t.Context())
	if err != nil || len(tools) != 8 {
		t.Errorf("%d tools are listed, %v, want 6 and 2", len(tools), err)
	}
}

// TestHookShutdown shuts down over the real listeners: the answer comes, the
// endpoint is closed, and the hooks go on.
func TestHookShutdown(t *testing.T) {
	s := newTestServer(t, &serveFlags{debugCases: "127.0.0.1:0"})
	h := &debugHooks{server: s, ctx: t.Context()}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.serveHTTP(serving, listener) }()
	c, err := client.ConnectHTTP(t.Context(), "http://"+listener.Addr().String()+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	if code, body := h.call(`{"action":"shutdown","grace_ms":2000}`); code != 200 || body != `{"error":null}` {
		t.Errorf("shutdown: got %d %s", code, body)
	}
	if conn, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		_ = conn.Close()
		t.Error("the listener is open after shutdown")
	}
	if n := h.counters(t).Sessions; n != 0 {
		t.Errorf("%d sessions after shutdown", n)
	}
	select {
	case err := <-done:
		t.Errorf("the process would have ended: %v", err)
	default:
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("serveHTTP: %v", err)
	}
	_ = c.Close(t.Context()) // the server is gone
}
