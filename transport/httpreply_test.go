package transport_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// withLocalAddr marks a context as package http does for a connection.
func withLocalAddr(ctx context.Context, addr any) context.Context {
	return context.WithValue(ctx, http.LocalAddrContextKey, addr)
}

// TestReplyForms: a quick answer is plain JSON; progress, or a client that takes
// nothing else, makes it an event stream.
func TestReplyForms(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, nil, nil)
	session := w.session("2025-11-25")
	for _, c := range []struct {
		name, body, accept string
		events             bool
		want               []string
	}{
		{"a quick call", call("1", "echo", text("a")), "", false, []string{"1 a"}},
		{"a call that fails", call("1", "fail", ""), "", false, []string{"1 no luck"}},
		{"a call that panics", call("1", "panic", ""), "", false, []string{"1 -32603"}},
		{"a large answer", call("1", "big", `"n":300000,`+text("x")), "", false, []string{"1 " + strings.Repeat("x", 300000)}},
		{"events only", call("1", "echo", text("a")), "text/event-stream", true, []string{"1 a"}},
		{"events only, an error", call("1", "nothing", ""), "text/event-stream", true, []string{"1 -32602"}},
		{"progress", callWithToken("1", "progress", `"n":2,`+text("a"), `"t"`), "", true,
			[]string{`progress "t" 1`, `progress "t" 2`, "1 a"}},
		{"progress that nobody asked for", call("1", "progress", `"n":2,`+text("a")), "", false, []string{"1 a"}},
		{"progress, JSON only", callWithToken("1", "progress", `"n":2,`+text("a"), `"t"`), "application/json", false, []string{"1 a"}},
	} {
		header := []string{"Mcp-Protocol-Version: 2025-11-25"}
		if c.accept != "" {
			header = append(header, "Accept: "+c.accept)
		}
		got := w.post(session, c.body, header...)
		kind := map[bool]string{false: "application/json", true: "text/event-stream"}[c.events]
		if got.status != 200 || got.header.Get("Content-Type") != kind || !slices.Equal(got.frames(), c.want) {
			t.Errorf("%s: got %d %q %.80q, want 200 %q %.80q", c.name, got.status, got.header.Get("Content-Type"),
				got.frames(), kind, c.want)
		}
		if c.events && got.header.Get("Cache-Control") != "no-cache, no-transform" {
			t.Errorf("%s: Cache-Control is %q, want no-cache, no-transform", c.name, got.header.Get("Cache-Control"))
		}
	}
	if got := w.handler.Stats().Streams; got != 0 {
		t.Errorf("open streams in the end: got %d, want 0", got)
	}
}

// TestProgressComesAtOnce: a notification does not wait for the answer.
func TestProgressComesAtOnce(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, nil, nil)
	session := w.session("2025-06-18")
	w.add(t, "half", func(ctx context.Context, c *engine.Call, args, out []byte) ([]byte, error) {
		c.Progress(ctx, 1, 2)
		return w.gate(ctx, c, args, out)
	})
	body := callWithToken("1", "half", text("a"), "5")
	stream := w.stream(w.request(http.MethodPost, body, append(standard, "Mcp-Session-Id: "+session)...))
	stream.expect("progress 5 1")
	close(w.open)
	stream.expect("1 a", "end")
}

// TestCommitDelay: a call that takes long becomes an event stream that is kept
// alive, unless the client takes only JSON.
func TestCommitDelay(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, nil, &transport.HTTPOptions{CommitDelay: 20 * time.Millisecond, KeepAlive: 20 * time.Millisecond})
	session := w.session("2025-06-18")
	body := call("1", "gate", text("a"))
	stream := w.stream(w.request(http.MethodPost, body, append(standard, "Mcp-Session-Id: "+session)...))
	stream.expect(": keep-alive", ": keep-alive")
	if got := w.handler.Stats().Streams; got != 1 {
		t.Errorf("open streams: got %d, want 1", got)
	}
	go func() { time.Sleep(100 * time.Millisecond); close(w.open) }()
	got := w.post(session, call("2", "gate", text("b")), "Accept: application/json")
	if want := []string{"2 b"}; got.header.Get("Content-Type") != "application/json" || !slices.Equal(got.frames(), want) {
		t.Errorf("JSON only: got %q %q, want JSON with %q", got.header.Get("Content-Type"), got.frames(), want)
	}
	for frame := stream.next(); frame != "1 a"; frame = stream.next() {
		if frame != ": keep-alive" {
			t.Fatalf("on the stream: got %q, want keep-alives and then the answer", frame)
		}
	}
	stream.expect("end")
}

// TestCancelledCallEndsItsPost without an answer, committed or not.
func TestCancelledCallEndsItsPost(t *testing.T) {
	noLeaks(t)
	for _, c := range []struct {
		name, accept string
		delay        time.Duration
		status       int
	}{
		{"not committed", standard[1], time.Hour, 200},
		{"committed", standard[1], time.Millisecond, 200},
		{"JSON only", "Accept: application/json", time.Millisecond, 202},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWeb(t, nil, &transport.HTTPOptions{CommitDelay: c.delay})
			session := w.session("2025-06-18")
			replies := make(chan reply, 1)
			go func() { replies <- w.post(session, call("7", "gate", text("a")), c.accept) }()
			<-w.entered
			if c.delay < time.Second {
				time.Sleep(20 * c.delay)
			}
			if got := w.post(session, cancelOf("7")); got.status != 202 {
				t.Errorf("cancellation: got %d, want 202", got.status)
			}
			if got := <-replies; got.status != c.status || got.frames() != nil {
				t.Errorf("the cancelled call: got %d %q, want %d and no answer", got.status, got.frames(), c.status)
			}
			<-w.ended
			if got := w.post(session, call("7", "echo", text("again"))); !slices.Equal(got.frames(), []string{"7 again"}) {
				t.Errorf("a call under the same id: got %q, want an answer", got.frames())
			}
		})
	}
}

// TestBatchWhoseCallsAreCancelled ends as a single cancelled call does.
func TestBatchWhoseCallsAreCancelled(t *testing.T) {
	noLeaks(t)
	for _, delay := range []time.Duration{time.Millisecond, time.Hour} {
		w := newWeb(t, nil, &transport.HTTPOptions{CommitDelay: delay})
		session := w.session("2025-03-26")
		replies := make(chan reply, 1)
		go func() { replies <- w.post(session, "["+call("1", "gate", text("a"))+"]") }()
		<-w.entered
		time.Sleep(20 * time.Millisecond)
		w.post(session, cancelOf("1"))
		if got := <-replies; got.frames() != nil || got.status != map[bool]int{true: 200, false: 202}[delay < time.Second] {
			t.Errorf("with a delay of %v: got %d %q, want no answer", delay, got.status, got.frames())
		}
	}
}

// TestDisconnectIsNoCancellation in the legacy revisions.
func TestDisconnectIsNoCancellation(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, nil, nil)
	session := w.session("2025-06-18")
	ctx, cancel := context.WithCancel(context.Background())
	r := w.request(http.MethodPost, call("1", "gate", text("a")), append(standard, "Mcp-Session-Id: "+session)...)
	gone := make(chan error, 1)
	go func() { _, err := w.client.Do(r.WithContext(ctx)); gone <- err }()
	<-w.entered
	cancel()
	if err := <-gone; err == nil {
		t.Fatal("the request that was broken off: got a response")
	}
	time.Sleep(50 * time.Millisecond)
	select {
	case <-w.ended:
		t.Error("the call's context has ended, want it to go on")
	default:
	}
	if got := w.Stats().ActiveRequests; got != 1 {
		t.Errorf("requests in flight after the disconnect: got %d, want 1", got)
	}
	close(w.open)
	eventually(t, "the end of the call", func() bool { return w.Stats().ActiveRequests == 0 })
}

// TestConnectionAfterEvents: the write deadline of an event stream does not stay
// on its connection, and a server's own write timeout does not end the stream.
func TestConnectionAfterEvents(t *testing.T) {
	noLeaks(t)
	const timeout = 500 * time.Millisecond // a busy machine may keep a writer waiting for a good part of it
	w := newWebWith(t, nil, &transport.HTTPOptions{WriteTimeout: timeout, CommitDelay: 10 * time.Millisecond},
		func(s *http.Server) { s.WriteTimeout = timeout })
	session := w.session("2025-06-18")
	conn := w.dial()
	for i, body := range []string{
		callWithToken("1", "progress", fmt.Sprintf(`"n":4,"ms":%d,`, timeout.Milliseconds()/2)+text("long"), "1"),
		call("1", "wait", fmt.Sprintf(`"ms":%d,`, 2*timeout.Milliseconds())+text("long")),
		call("1", "echo", text("long")),
		call("1", "big", `"n":200000,`+text("long")),
	} {
		conn.write(head(session, "Content-Length: "+strconv.Itoa(len(body))) + body)
		got := conn.read()
		if frames := got.frames(); got.status != 200 || len(frames) == 0 || !strings.HasPrefix(frames[len(frames)-1], "1 long") {
			t.Errorf("request %d on the connection: got %d %.80q, want the answer", i, got.status, frames)
		}
		time.Sleep(2 * timeout)
	}
}

// TestPanicOutsideTheEngine is that of a middleware around the handler: the
// connection ends, the server lives.
func TestPanicOutsideTheEngine(t *testing.T) {
	noLeaks(t)
	w := newWebWith(t, nil, nil, func(s *http.Server) {
		inner := s.Handler
		s.ErrorLog = log.New(newSink(), "", 0)
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Panic") != "" {
				defer panic("on purpose")
			}
			inner.ServeHTTP(w, r)
		})
	})
	session := w.session("2025-06-18")
	r := w.request(http.MethodPost, call("1", "echo", text("a")), append(standard, "Mcp-Session-Id: "+session, "X-Panic: 1")...)
	if response, err := w.client.Do(r); err == nil {
		_ = response.Body.Close()
	}
	if got := w.post(session, call("1", "echo", text("b"))); !slices.Equal(got.frames(), []string{"1 b"}) {
		t.Errorf("a call after a panic: got %q, want its answer", got.frames())
	}
}
