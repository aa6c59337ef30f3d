package transport_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// sseServer is a fixture behind the deprecated transport, and a client of it.
type sseServer struct {
	*resumeServer
	sse *transport.SSEHandler
}

func newSSEServer(t *testing.T, o *transport.SSEOptions, eo *engine.Options) *sseServer {
	t.Helper()
	noLeaks(t)
	r := &resumeServer{t: t, fixture: newFixture(t, eo), steps: make(chan int), stepped: make(chan int)}
	r.add(t, "steps", r.runSteps)
	s := &sseServer{resumeServer: r, sse: transport.NewSSEHandler(r.Engine, o)}
	web := httptest.NewServer(s.sse)
	s.url = web.URL
	s.client = &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		web.Close()
	})
	return s
}

// request sends a request to a path and its query.
func (s *sseServer) request(method, path, body string, header ...string) *eventReader {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	reader := newEventReader(s.t, resp, cancel)
	s.t.Cleanup(reader.reset)
	return reader
}

// connect opens an event stream and gives the path to post to.
func (s *sseServer) connect() (stream *eventReader, path string) {
	s.t.Helper()
	stream = s.request(http.MethodGet, "/sse", "", "Accept", "text/event-stream")
	e, ok := stream.next()
	if !ok || e.event != "endpoint" || e.id != "" || e.retry != "" {
		s.t.Fatalf("first event: got %+v, want that of the endpoint alone", e)
	}
	return stream, e.data
}

// open connects and shakes hands.
func (s *sseServer) open(revision string) (stream *eventReader, path string) {
	s.t.Helper()
	stream, path = s.connect()
	s.send(path, initializeAs(revision))
	stream.want("initialize", `"init" ok`)
	s.send(path, initialized)
	return stream, path
}

// send posts a message that must be accepted.
func (s *sseServer) send(path, body string) {
	s.t.Helper()
	r := s.request(http.MethodPost, path, body)
	if r.resp.StatusCode != http.StatusAccepted {
		s.t.Fatalf("POST %s: got status %d, want 202", body, r.resp.StatusCode)
	}
	r.rest()
}

// sessions waits until the engine has n sessions.
func (s *sseServer) sessions(n int) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("%d sessions", n), func() bool { return s.Engine.Stats().Sessions == n })
}

func TestSSEConversation(t *testing.T) {
	for _, revision := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		s := newSSEServer(t, nil, nil)
		stream, path := s.open(revision)
		if !strings.HasPrefix(path, "/messages?sessionId=") {
			t.Errorf("endpoint: got %q, want a path with the session's id", path)
		}
		s.send(path, call("1", "echo", text("hello")))
		stream.want(revision, "1 hello")
		s.send(path, callSteps)
		s.send(path, ping("2")) // a call that runs holds up nothing
		stream.want(revision, "2 ok")
		s.step(1)
		stream.want(revision, "progress 7 1")
		s.NotifyListChanged("tools")
		stream.want(revision, "notifications/tools/list_changed")
		s.finish()
		stream.want(revision, "1 done")
		s.send(path, call(`"c"`, "gate", text("c")))
		<-s.entered
		s.send(path, cancelOf(`"c"`))
		<-s.ended
		s.send(path, call("3", "panic", ""))
		stream.want(revision, "3 -32603")
		if got := s.sse.Stats().Streams; got != 1 {
			t.Errorf("%s: Streams: got %d, want 1", revision, got)
		}
		stream.reset()
		s.sessions(0)
		if got := s.request(http.MethodPost, path, ping("4")).resp.StatusCode; got != http.StatusNotFound {
			t.Errorf("%s: POST after the stream's end: got status %d, want 404", revision, got)
		}
	}
}

// TestSSEEventBytes has the exact form of the events.
func TestSSEEventBytes(t *testing.T) {
	s := newSSEServer(t, &transport.SSEOptions{MessagePath: "/m", SSEPath: "/s", Endpoint: "/prefix/m"}, nil)
	stream := s.request(http.MethodGet, "/s", "")
	for i, want := range []string{"event: endpoint\n", "data: /prefix/m?sessionId=", "\n"} {
		line, err := stream.lines.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, want) {
			t.Fatalf("line %d: got %q, %v, want %q", i, line, err, want)
		}
		if _, key, found := strings.Cut(line, "="); found {
			s.send("/m?sessionId="+strings.TrimSpace(key), ping("1"))
		}
	}
	for i, want := range []string{"event: message\n", `data: {"jsonrpc":"2.0","id":1,"result":{}}` + "\n", "\n"} {
		if line, err := stream.lines.ReadString('\n'); err != nil || line != want {
			t.Errorf("line %d: got %q, %v, want %q", i, line, err, want)
		}
	}
}

func TestSSERefusals(t *testing.T) {
	s := newSSEServer(t, &transport.SSEOptions{HTTP: transport.HTTPOptions{MaxMessageBytes: 1000}}, nil)
	stream, path := s.open("2024-11-05")
	_, other := s.open("2024-11-05")
	for _, c := range []struct {
		name, method, path, body string
		header                   []string
		want                     int
	}{
		{"no session", "POST", "/messages", ping("1"), nil, 400},
		{"empty session", "POST", "/messages?sessionId=", ping("1"), nil, 400},
		{"unknown session", "POST", "/messages?sessionId=none", ping("1"), nil, 404},
		{"no JSON", "POST", path, "hello", nil, 400},
		{"no message", "POST", path, `{"jsonrpc":"2.0"}`, nil, 400},
		{"a batch", "POST", path, "[" + ping("1") + "]", nil, 400},
		{"too long", "POST", path, call("1", "echo", text(strings.Repeat("x", 1000))), nil, 413},
		{"no JSON type", "POST", path, ping("1"), []string{"Content-Type", "text/plain"}, 415},
		{"foreign origin", "POST", path, ping("1"), []string{"Origin", "http://evil.example"}, 403},
		{"foreign host", "POST", path, ping("1"), []string{"Host", "evil.example"}, 403},
		{"foreign origin on GET", "GET", "/sse", "", []string{"Origin", "http://evil.example"}, 403},
		{"Accept without events", "GET", "/sse", "", []string{"Accept", "text/html"}, 406},
		{"GET of messages", "GET", path, "", nil, 405},
		{"POST to the stream", "POST", "/sse", initialize, nil, 405},
		{"DELETE", "DELETE", path, "", nil, 405},
		{"another path", "GET", "/", "", nil, 404},
	} {
		got := s.request(c.method, c.path, c.body, c.header...)
		if got.resp.StatusCode != c.want {
			t.Errorf("%s: got status %d, want %d", c.name, got.resp.StatusCode, c.want)
		}
		if allow := got.resp.Header.Get("Allow"); (allow != "") != (c.want == 405) {
			t.Errorf("%s: got Allow %q", c.name, allow)
		}
	}
	s.send(other, ping("8"))
	s.send(path, ping("9"))
	stream.want("the session goes on", "9 ok")
	s.sessions(2)
}

// TestSSEBatch has the one revision with batches, which may be negotiated here.
func TestSSEBatch(t *testing.T) {
	s := newSSEServer(t, nil, nil)
	stream, path := s.open("2025-03-26")
	s.send(path, "["+initialized+"]")
	s.send(path, "["+ping("1")+","+initialized+"]")
	if e, _ := stream.next(); e.data != `[{"jsonrpc":"2.0","id":1,"result":{}}]` {
		t.Errorf("batch: got %q, want an array of one response", e.data)
	}
}

func TestSSELimitOnSessions(t *testing.T) {
	s := newSSEServer(t, nil, &engine.Options{Limits: actors.Limits{MaxSessions: 1}})
	stream, path := s.open("2024-11-05")
	refused := s.request(http.MethodGet, "/sse", "")
	if got := refused.resp; got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" {
		t.Errorf("second GET: got status %d, Retry-After %q, want 503 and a time", got.StatusCode, got.Header.Get("Retry-After"))
	}
	s.send(path, ping("1"))
	stream.want("the first session", "1 ok")
	stream.reset()
	s.sessions(0)
	s.open("2024-11-05")
}

// TestSSEKeepAlive waits for comments on an idle stream, and lets a session
// live that does nothing but listen.
func TestSSEKeepAlive(t *testing.T) {
	o := &transport.SSEOptions{HTTP: transport.HTTPOptions{KeepAlive: 5 * time.Millisecond}}
	s := newSSEServer(t, o, &engine.Options{Limits: actors.Limits{SessionIdle: 20 * time.Millisecond}})
	stream, path := s.open("2024-11-05")
	for comments := 0; comments < 20; {
		line, err := stream.lines.ReadString('\n')
		if err != nil {
			t.Fatalf("after %d comments: %v", comments, err)
		}
		if strings.HasPrefix(line, ":") {
			comments++
		}
	}
	s.send(path, ping("1"))
	stream.want("afterwards", "1 ok")
}

// TestSSEShutdown ends the streams.
func TestSSEShutdown(t *testing.T) {
	s := newSSEServer(t, nil, nil)
	stream, _ := s.open("2024-11-05")
	if err := s.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: got %v, want nil", err)
	}
	stream.wantEnd("at shutdown")
	if got := s.request(http.MethodGet, "/sse", "").resp.StatusCode; got != http.StatusServiceUnavailable {
		t.Errorf("GET after Shutdown: got status %d, want 503", got)
	}
}

// TestSSEStalledReader has a client that asks and does not read. It is told to
// come again later, or has lost its session by then, and what waits for it is
// bounded; another is not held up.
func TestSSEStalledReader(t *testing.T) {
	o := &transport.SSEOptions{HTTP: transport.HTTPOptions{MaxQueueBytes: 1 << 20, WriteTimeout: time.Second}}
	s := newSSEServer(t, o, nil)
	_, path := s.open("2024-11-05")
	statuses := map[int]bool{}
	for i := range 200 {
		r := s.request(http.MethodPost, path, call(fmt.Sprint(i), "big", `"n":200000,`+text("x")))
		statuses[r.resp.StatusCode] = true
		r.rest()
		if r.resp.StatusCode != http.StatusAccepted {
			break
		}
	}
	if !statuses[http.StatusServiceUnavailable] && !statuses[http.StatusNotFound] {
		t.Errorf("POSTs: got the statuses %v, want 503 or 404 at last", statuses)
	}
	other, otherPath := s.open("2024-11-05")
	s.send(otherPath, ping("1"))
	other.want("another client", "1 ok")
	s.sessions(1) // the stalled one is given up after the time for a write
}

// TestSSELosesNoAnswer reads slowly what comes fast.
func TestSSELosesNoAnswer(t *testing.T) {
	s := newSSEServer(t, nil, nil)
	stream, path := s.open("2024-11-05")
	const calls = 50
	for i := range calls {
		s.send(path, call(fmt.Sprint(100+i), "echo", text("x")))
	}
	got, _ := stream.frames(calls)
	slices.Sort(got)
	for i, frame := range got {
		if want := fmt.Sprintf("%d x", 100+i); frame != want {
			t.Fatalf("answer %d: got %q, want %q", i, frame, want)
		}
	}
}
