package transport_test

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

const toolsChanged = "notifications/tools/list_changed"

// quietWeb is a web whose own registrations are no longer announced.
func quietWeb(t *testing.T, eo *engine.Options, ho *transport.HTTPOptions) *web {
	t.Helper()
	if eo == nil {
		eo = new(engine.Options)
	}
	eo.ListChangedInterval = time.Millisecond
	w := newWeb(t, eo, ho)
	time.Sleep(20 * time.Millisecond)
	return w
}

func TestGetStream(t *testing.T) {
	noLeaks(t)
	w := quietWeb(t, nil, &transport.HTTPOptions{KeepAlive: 30 * time.Millisecond})
	session := w.session("2025-06-18")
	stream := w.get(session)
	stream.expect(": keep-alive", ": keep-alive")
	w.add(t, "another", echo)
	frame := stream.next()
	for frame == ": keep-alive" {
		frame = stream.next()
	}
	if frame != toolsChanged {
		t.Errorf("after a registration: got %q, want %q", frame, toolsChanged)
	}
	if got := w.handler.Stats().Streams; got != 1 {
		t.Errorf("open streams: got %d, want 1", got)
	}
	_ = stream.response.Body.Close()
	eventually(t, "the end of the stream", func() bool { return w.handler.Stats().Streams == 0 })
}

// TestGetStreamGivesWhatWaited while no stream was open.
func TestGetStreamGivesWhatWaited(t *testing.T) {
	noLeaks(t)
	w := quietWeb(t, nil, nil)
	session := w.session("2025-06-18")
	w.add(t, "another", echo)
	w.get(session).expect(toolsChanged)
}

func TestSecondGetTakesOver(t *testing.T) {
	noLeaks(t)
	w := quietWeb(t, nil, nil)
	session, other := w.session("2025-06-18"), w.session("2025-06-18")
	first, apart := w.get(session), w.get(other)
	second := w.get(session)
	first.expect("end")
	w.add(t, "another", echo)
	second.expect(toolsChanged)
	apart.expect(toolsChanged)
}

func TestGetStreamEnds(t *testing.T) {
	noLeaks(t)
	for name, end := range map[string]func(w *web, session string){
		"at DELETE": func(w *web, session string) {
			if got := w.do(w.request(http.MethodDelete, "", "Mcp-Session-Id: "+session)); got.status != http.StatusNoContent {
				t.Errorf("DELETE: got %d, want 204", got.status)
			}
		},
		"at Shutdown": func(w *web, _ string) {
			if err := w.Shutdown(context.Background()); err != nil {
				t.Errorf("Shutdown: got %v, want nil", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := quietWeb(t, nil, nil)
			session := w.session("2025-06-18")
			stream := w.get(session)
			end(w, session)
			stream.expect("end")
			eventually(t, "the end of the stream", func() bool { return w.handler.Stats().Streams == 0 })
			if got := w.post(session, ping("1")); got.status != 404 {
				t.Errorf("POST afterwards: got %d, want 404", got.status)
			}
		})
	}
}

// TestDeleteEndsCalls of the session without an answer.
func TestDeleteEndsCalls(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, nil, nil)
	session, other := w.session("2025-06-18"), w.session("2025-06-18")
	replies := make(chan reply, 1)
	go func() { replies <- w.post(session, call("1", "gate", text("a"))) }()
	<-w.entered
	w.do(w.request(http.MethodDelete, "", "Mcp-Session-Id: "+session))
	if got := <-replies; slices.Contains(got.frames(), "1 a") {
		t.Errorf("the call of the deleted session: got %d %q, want no result", got.status, got.frames())
	}
	if got := <-w.ended; got != "a" {
		t.Errorf("the call whose context ended: got %q, want a", got)
	}
	if got := w.post(other, ping("1")); got.status != 200 {
		t.Errorf("another session: got %d, want 200", got.status)
	}
}

// TestStreamsOutliveServerTimeout: the server's write timeout is for responses
// and not for streams.
func TestStreamsOutliveServerTimeout(t *testing.T) {
	noLeaks(t)
	const timeout = 100 * time.Millisecond
	w := newWebWith(t, &engine.Options{ListChangedInterval: time.Millisecond}, nil, func(s *http.Server) {
		s.WriteTimeout, s.ReadTimeout, s.IdleTimeout = timeout, timeout, timeout
	})
	time.Sleep(20 * time.Millisecond)
	stream := w.get(w.session("2025-06-18"))
	for i := range 4 {
		time.Sleep(timeout)
		w.add(t, "another"+strconv.Itoa(i), echo)
		stream.expect(toolsChanged)
	}
}

// littleRoom makes a server's connections hold little that is not read.
func littleRoom(s *http.Server) {
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
		return ctx
	}
}

// stuck opens a request on a connection that does not read, with little room in
// its buffers.
func (w *web) stuck(request string) net.Conn {
	w.t.Helper()
	conn := w.dial()
	if err := conn.Conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		w.t.Fatal(err)
	}
	conn.write(request)
	return conn
}

// TestSlowReaders: whoever does not read is dropped at the write deadline, be it
// a call's event stream, a plain response or the stream of a GET, and others do
// not wait.
func TestSlowReaders(t *testing.T) {
	noLeaks(t)
	const timeout = 200 * time.Millisecond
	w := newWebWith(t, &engine.Options{ListChangedInterval: time.Millisecond}, &transport.HTTPOptions{WriteTimeout: timeout}, littleRoom)
	session := w.session("2025-06-18")
	w.add(t, "flood", func(ctx context.Context, c *engine.Call, _, out []byte) ([]byte, error) {
		words := strings.Repeat("x", 200<<10)
		for i := range 10 {
			c.ProgressMessage(ctx, float64(i+1), 0, words)
		}
		return engine.AppendTextResult(out, "done"), nil
	})
	time.Sleep(20 * time.Millisecond) // the registrations' own announcements are over
	healthy := w.get(w.session("2025-06-18"))
	for _, body := range []string{
		callWithToken("1", "flood", "", "1"),
		call("2", "big", `"n":2000000,`+text("x")),
	} {
		w.stuck(head(session, "Content-Length: "+strconv.Itoa(len(body))) + body)
	}
	begin := time.Now()
	if got := w.post(session, call("3", "echo", text("quick"))); !slices.Equal(got.frames(), []string{"3 quick"}) {
		t.Errorf("a call beside the slow readers: got %q, want its answer", got.frames())
	}
	w.NotifyListChanged("tools")
	healthy.expect(toolsChanged)
	eventually(t, "the end of the calls whose clients do not read", func() bool { return w.Stats().ActiveRequests == 0 })
	if took := time.Since(begin); took > 20*timeout {
		t.Errorf("time until the slow readers were dropped: got %v, want about %v", took, timeout)
	}
	eventually(t, "the end of the slow streams", func() bool { return w.handler.Stats().Streams == 1 })
}

// TestSlowReaderOfGet is dropped at the write deadline.
func TestSlowReaderOfGet(t *testing.T) {
	noLeaks(t)
	w := newWebWith(t, nil, &transport.HTTPOptions{WriteTimeout: 200 * time.Millisecond, KeepAlive: 50 * time.Microsecond},
		littleRoom)
	session := w.session("2025-06-18")
	w.stuck("GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: " + session + "\r\n\r\n")
	eventually(t, "the begin of the stream", func() bool { return w.handler.Stats().Streams == 1 })
	eventually(t, "the end of the stream", func() bool { return w.handler.Stats().Streams == 0 })
	if got := w.post(session, ping("1")); got.status != 200 {
		t.Errorf("the session afterwards: got %d, want 200", got.status)
	}
}

// TestOverload: what admission refuses is a 503 that says when to come back.
func TestOverload(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, &engine.Options{Limits: actors.Limits{MaxSessions: 2, MaxRequestsPerSession: 1}}, nil)
	session, second := w.session("2025-06-18"), w.session("2025-06-18")
	w.get(session) // a session in use is not evicted
	w.get(second)
	expect := func(name string, got reply, status int) {
		t.Helper()
		retry := map[bool]string{true: "1"}[status == http.StatusServiceUnavailable]
		if got.status != status || got.header.Get("Retry-After") != retry {
			t.Errorf("%s: got %d, Retry-After %q; want %d, %q", name, got.status, got.header.Get("Retry-After"), status, retry)
		}
	}
	open := func() reply { return w.do(w.request(http.MethodPost, initialize, standard...)) }
	refused := open()
	expect("initialize beyond the limit", refused, 503)
	if refused.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("refused initialize: got session %q, want none", refused.header.Get("Mcp-Session-Id"))
	}
	w.do(w.request(http.MethodDelete, "", "Mcp-Session-Id: "+second))
	expect("initialize after a DELETE", open(), 200)

	replies := make(chan reply, 1)
	go func() { replies <- w.post(session, call("1", "gate", text("a"))) }()
	<-w.entered
	expect("call beyond the limit", w.post(session, call("2", "echo", text("b"))), 503)
	if got := w.post(session, call("2", "echo", text("b")), "Accept: text/event-stream"); got.status != 200 ||
		!slices.Equal(got.frames(), []string{"2 -31900"}) {
		t.Errorf("call beyond the limit, events only: got %d %q, want 200 and the error", got.status, got.frames())
	}
	expect("ping beside it", w.post(session, ping("3")), 200)

	shut := make(chan error, 1)
	go func() { shut <- w.Shutdown(context.Background()) }()
	eventually(t, "the shutdown", func() bool { return w.Accepting() != nil })
	expect("call while shutting down", w.post(session, call("4", "echo", text("c"))), 503)
	expect("initialize while shutting down", open(), 503)
	close(w.open)
	if got := <-replies; !slices.Equal(got.frames(), []string{"1 a"}) {
		t.Errorf("the call in flight: got %q, want its answer", got.frames())
	}
	if err := <-shut; err != nil {
		t.Errorf("Shutdown: got %v, want nil", err)
	}
	expect("initialize after the shutdown", open(), 503)
	expect("call after the shutdown", w.post(session, ping("5")), 404)
}

// TestStreamsOnTheWire looks at the bytes: one event for each frame, each of one
// data line.
func TestStreamsOnTheWire(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, nil, nil)
	session := w.session("2025-06-18")
	w.add(t, "lines", func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
		return append(out, "{\"content\":[],\r\n\"structuredContent\":\n{\"a\":\"b\\n\"}}"...), nil
	})
	got := w.post(session, call("1", "lines", ""), "Accept: text/event-stream")
	for line := range strings.SplitSeq(strings.TrimSuffix(got.body, "\n\n"), "\n") {
		name, _, ok := strings.Cut(line, ": ")
		if !ok || name != "event" && name != "data" {
			t.Errorf("line %q of the stream: want a field", line)
		}
	}
	if strings.Contains(got.body, "\r") || strings.Count(got.body, "data: ") != 1 || !slices.Equal(got.frames(), []string{"1"}) {
		t.Errorf("stream: got %q (%q), want one event of one line", got.body, got.frames())
	}
}
