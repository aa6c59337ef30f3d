package transport_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

const (
	leakVisitors = 4
	leakWarmUp   = 1_000
	leakKeys     = 100_000
	leakSessions = 10_000
	// leakHeap is how much more of the heap may be in use afterwards: about 50
	// bytes a session, less than any one thing that a session could leave behind.
	leakHeap = 512 << 10
)

// TestNothingLeaks opens 10,000 sessions and ends them, some with an event
// stream, a subscription and a call in flight. When all is idle the goroutines
// and the heap are back where they were.
func TestNothingLeaks(t *testing.T) {
	e := engine.New(engine.Info{}, &engine.Options{Logger: slog.New(slog.DiscardHandler)})
	defer func() { _ = e.Shutdown(context.Background()) }()
	handler := transport.NewHTTPHandler(e, nil)
	visitors := make([]*visitor, leakVisitors)
	for i := range visitors {
		visitors[i] = newVisitor(t, e, handler, strconv.Itoa(i))
	}
	visit := func(sessions int) {
		var visiting sync.WaitGroup
		for _, v := range visitors {
			visiting.Go(func() {
				for n := range sessions / leakVisitors {
					v.visit(n)
				}
			})
		}
		visiting.Wait()
	}
	sessions := leakSessions
	if raceDetector { // which makes it six times slower, and the heap's size another
		sessions /= 10
	} else {
		fillRegistry(t, e)
	}
	visit(leakWarmUp)
	goroutines, heap := footprint()
	visit(sessions)
	var after int
	var grown int64
	for wait := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		n, inUse := footprint()
		if after, grown = n, inUse-heap; after <= goroutines && (grown <= leakHeap || raceDetector) || time.Now().After(wait) {
			break
		}
	}
	t.Logf("after %d sessions: %d goroutines (%d before), heap %+d bytes", sessions, after, goroutines, grown)
	if after > goroutines {
		t.Errorf("goroutines: got %d, want at most %d", after, goroutines)
	}
	if grown > leakHeap && !raceDetector {
		t.Errorf("heap in use: grew by %d bytes, want at most %d", grown, leakHeap)
	}
	if s := e.Stats(); s.Sessions != 0 || s.ActiveRequests != 0 || s.Subscriptions != 0 {
		t.Errorf("Stats: got %+v, want nothing open", s)
	}
	if s := handler.Stats(); s.Streams != 0 {
		t.Errorf("open streams: got %d, want 0", s.Streams)
	}
	runtime.KeepAlive(visitors)
}

// fillRegistry opens and closes bare sessions. The registry of the actor library
// spreads names over 32,768 maps, each of which keeps its first 300 bytes for
// good: up to 10 MB that no session is to blame for.
func fillRegistry(t *testing.T, e *engine.Engine) {
	for range leakKeys {
		session, err := e.OpenSession(rand.Text(), nil)
		if err != nil {
			t.Fatal(err)
		}
		session.Close()
	}
}

// footprint gives what is in use of goroutines and heap.
func footprint() (goroutines int, heap int64) {
	for range 3 { // pools need two to be emptied
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), int64(m.HeapAlloc)
}

// visitor is a client that calls the handler directly.
type visitor struct {
	t       *testing.T
	handler http.Handler
	name    string        // of the tools and the resource that are its own
	started chan struct{} // its call is in flight
}

// newVisitor registers what a visitor uses.
func newVisitor(t *testing.T, e *engine.Engine, handler http.Handler, name string) *visitor {
	v := &visitor{t: t, handler: handler, name: name, started: make(chan struct{})}
	for _, err := range []error{
		e.AddRawTool(engine.Tool{Name: "echo" + name}, func(ctx context.Context, c *engine.Call, args, out []byte) ([]byte, error) {
			c.Progress(ctx, 1, 2)
			return engine.AppendTextResult(out, args), nil
		}),
		e.AddRawTool(engine.Tool{Name: "wait" + name}, func(ctx context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
			v.started <- struct{}{}
			<-ctx.Done()
			return out, ctx.Err()
		}),
		e.AddResource(engine.Resource{URI: "leak:" + name, Name: name},
			func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) { return nil, nil }),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// answer is a response, which tells when its header is flushed.
type answer struct {
	*httptest.ResponseRecorder
	flushed chan struct{}
	once    sync.Once
}

func (a *answer) Flush() { a.once.Do(func() { close(a.flushed) }) }

// begin sends a request and does not wait.
func (v *visitor) begin(method, session, body string) (a *answer, done <-chan struct{}) {
	r := httptest.NewRequest(method, "http://localhost/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	a = &answer{ResponseRecorder: httptest.NewRecorder(), flushed: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		v.handler.ServeHTTP(a, r)
	}()
	return a, ended
}

// send sends a request and waits.
func (v *visitor) send(method, session, body string, want int) *answer {
	a, done := v.begin(method, session, body)
	<-done
	if a.Code != want {
		v.t.Errorf("%s %s: got %d %s, want %d", method, body, a.Code, a.Body, want)
	}
	return a
}

// visit is the whole life of a session.
func (v *visitor) visit(n int) {
	opened := v.send(http.MethodPost, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{},"clientInfo":{"name":"visitor","version":"1"}}}`, http.StatusOK)
	session := opened.Header().Get("Mcp-Session-Id")
	v.send(http.MethodPost, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, http.StatusAccepted)
	var open []<-chan struct{}
	if n%10 == 0 {
		v.send(http.MethodPost, session, `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"leak:`+v.name+`"}}`, http.StatusOK)
		stream, done := v.begin(http.MethodGet, session, "")
		<-stream.flushed
		open = append(open, done)
	}
	if n%10 == 5 {
		_, done := v.begin(http.MethodPost, session, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"wait`+v.name+`"}}`)
		<-v.started
		open = append(open, done)
	}
	meta := ""
	if n%10 == 3 {
		meta = `,"_meta":{"progressToken":"p"}`
	}
	called := v.send(http.MethodPost, session, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo`+v.name+
		`","arguments":{"a":1}`+meta+`}}`, http.StatusOK)
	if !strings.Contains(called.Body.String(), `{\"a\":1}`) || strings.Contains(called.Body.String(), "progressToken") != (meta != "") {
		v.t.Errorf("tools/call: got %s", called.Body)
	}
	v.send(http.MethodDelete, session, "", http.StatusNoContent)
	for _, done := range open {
		<-done
	}
}

// TestUnknownSessionsLeaveNothing sends requests with ids that are none of ours,
// each another one, by each method. The heap is as before: nothing is kept for
// them, and no session appears.
func TestUnknownSessionsLeaveNothing(t *testing.T) {
	o := withKey(1, 0)
	o.Logger = slog.New(slog.DiscardHandler)
	e := engine.New(engine.Info{}, o)
	defer func() { _ = e.Shutdown(context.Background()) }()
	handler := transport.NewHTTPHandler(e, &transport.HTTPOptions{Events: transport.NewMemoryEvents(0, 0)})
	v := &visitor{t: t, handler: handler}
	visit := func(requests int) {
		for i := range requests {
			method := []string{http.MethodPost, http.MethodGet, http.MethodDelete}[i%3]
			id := strconv.Itoa(i) + strings.Repeat(rand.Text(), 6)
			v.send(method, id, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, http.StatusNotFound)
		}
	}
	visit(leakWarmUp)
	goroutines, heap := footprint()
	const requests = 10_000
	visit(requests)
	after, inUse := footprint()
	if grown := inUse - heap; grown > leakHeap/4 && !raceDetector {
		t.Errorf("heap in use after %d requests: grew by %d bytes, want at most %d", requests, grown, leakHeap/4)
	}
	if after > goroutines {
		t.Errorf("goroutines: got %d, want at most %d", after, goroutines)
	}
	if s := e.Stats(); s.Sessions != 0 || s.Refusals.UnknownSessions != leakWarmUp+requests {
		t.Errorf("Stats: got %+v, want no session and %d unknown", s, leakWarmUp+requests)
	}
}
