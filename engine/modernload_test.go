package engine_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// TestModernLeavesNothing sends 10,000 requests of the stateless era over HTTP,
// of every kind and with every outcome, the client's disconnect included. One
// legacy session takes all the room that there is for sessions, so that opening
// another would be refused and counted. At the end nothing is left of them: no
// session, no request, no subscription, no actor but those of the pool, no
// goroutine, no memory.
func TestModernLeavesNothing(t *testing.T) {
	const (
		workers = 16
		pool    = 8
	)
	e, _ := newEngine(t, &engine.Options{Limits: actors.Limits{MaxSessions: 1, PooledRequests: pool}})
	addTwoRounds(t, e)
	echo(t, e, "echo")
	must(t, addTool(e, engine.Tool{Name: "wait"}, func(ctx context.Context, _ *engine.Call) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}))
	must(t, addTool(e, engine.Tool{Name: "progress"}, func(ctx context.Context, c *engine.Call) (string, error) {
		c.Progress(ctx, 1, 2)
		return "t", nil
	}))
	only := connect(t, e, engine.Rev20251125)
	server := httptest.NewServer(transport.NewHTTPHandler(e, nil))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: workers}}
	t.Cleanup(func() { client.CloseIdleConnections(); server.Close() })

	c := newModern(t, e).with(everything)
	c.meta = `"progressToken":1`
	kinds := []struct {
		method, params string
		leave          bool // the client does not wait for the answer
		status         int
	}{
		{codec.MethodDiscover, ``, false, 200}, {codec.MethodToolsList, ``, false, 200},
		{codec.MethodToolsCall, `{"name":"echo","arguments":{"a":1}}`, false, 200}, {codec.MethodToolsCall, `{"name":"progress"}`, false, 200},
		{codec.MethodToolsCall, callAsk, false, 200}, {codec.MethodToolsCall, retry(callAsk, annAnswer, ""), false, 200},
		{codec.MethodToolsCall, retry(callAsk, annAnswer, "forged"), false, 400}, {codec.MethodPromptsGet, `{"name":"ask"}`, false, 200},
		{codec.MethodResourcesRead, `{"uri":"no:"}`, false, 400}, {codec.MethodToolsCall, `{"name":"no"}`, false, 400},
		{codec.MethodInitialize, ``, false, 404}, {"no/such", ``, false, 404}, {codec.MethodListen, `{}`, false, 400},
		{codec.MethodToolsCall, `{"name":"wait"}`, true, 0},
		{codec.MethodListen, `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["ask:"]}}`, true, 0},
	}
	do := func(i int) {
		k := kinds[i%len(kinds)]
		frame := c.frame("1", k.method, k.params) // the same id always: other clients have it too
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if k.leave {
			ctx, cancel = context.WithTimeout(t.Context(), time.Duration(1+i%5)*ms)
			defer cancel()
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(frame))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header = headersFor(frame)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Mcp-Session-Id", only.session.Key()) // means nothing here
		response, err := client.Do(r)
		if err != nil {
			if !k.leave {
				t.Errorf("%s %s: %v", k.method, k.params, err)
			}
			return
		}
		_, _ = io.Copy(io.Discard, response.Body) // broken off where the client leaves
		_ = response.Body.Close()
		if got := response.StatusCode; !k.leave && got != k.status || response.Header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s %s: got status %d and session %q, want %d and none", k.method, k.params, got, response.Header.Get("Mcp-Session-Id"), k.status)
		}
	}
	run := func(n int) {
		var next atomic.Int64
		var working sync.WaitGroup
		for range workers {
			working.Go(func() {
				for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
					do(i)
				}
			})
		}
		working.Wait()
		waitFor(t, "the end of what was left alone", func() bool { s := e.Stats(); return s.ActiveRequests == 0 && s.Subscriptions == 0 })
		client.CloseIdleConnections()
	}
	run(500) // warm pools
	heap := settledHeap()
	goroutines := runtime.NumGoroutine()
	run(modernRequests)

	if got := e.Stats(); got.Refused != 0 || got.Sessions != 1 {
		t.Errorf("Stats: got %+v, want the one session, and nothing refused", got)
	}
	if got := registeredNames(e, "session/"); len(got) != 1 {
		t.Errorf("registered sessions: got %v, want one", got)
	}
	if got := registeredNames(e, "request/"); len(got) > pool {
		t.Errorf("registered requests: got %d, want at most the pool's %d", len(got), pool)
	}
	if got := registeredNames(e, "listener/"); len(got) != 0 {
		t.Errorf("registered subscriptions: got %v, want none", got)
	}
	check(t, "the session that was there", only.call("echo", "{}"), text("{}"))
	only.session.Close()
	<-only.session.Done()
	if got := e.Stats(); got.Sessions != 0 || got.ActiveRequests != 0 || got.Subscriptions != 0 {
		t.Errorf("Stats at the end: got %+v, want nothing", got)
	}
	waitFor(t, fmt.Sprint("at most ", goroutines+2, " goroutines"), func() bool { return runtime.NumGoroutine() <= goroutines+2 })
	if got := settledHeap(); got > heap+4<<20 {
		t.Errorf("heap: got %d KiB, before %d KiB", got>>10, heap>>10)
	}
}

// settledHeap gives the bytes in use after what is unused was found.
func settledHeap() uint64 {
	for range 3 { // pools are emptied in steps
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
