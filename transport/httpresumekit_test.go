package transport_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// resumeServer is a fixture behind a socket, and a client of it that sees the
// bytes of event streams.
type resumeServer struct {
	*fixture
	t       *testing.T
	handler *transport.HTTPHandler
	client  *http.Client
	url     string
	steps   chan int // what the tool steps reports; it answers when it is closed
	stepped chan int // what it has reported
}

func newResumeServer(t *testing.T, o *transport.HTTPOptions) *resumeServer {
	t.Helper()
	noLeaks(t)
	s := &resumeServer{
		t: t, fixture: newFixture(t, &engine.Options{ListChangedInterval: time.Millisecond}),
		steps: make(chan int), stepped: make(chan int),
	}
	s.add(t, "steps", s.runSteps)
	s.handler = transport.NewHTTPHandler(s.Engine, o)
	web := httptest.NewServer(s.handler)
	s.url = web.URL
	s.client = &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		web.Close()
	})
	return s
}

// runSteps reports what it is told to.
func (s *resumeServer) runSteps(ctx context.Context, c *engine.Call, _, out []byte) ([]byte, error) {
	for n := range s.steps {
		c.Progress(ctx, float64(n), 0)
		s.stepped <- n
	}
	return engine.AppendTextResult(out, "done"), nil
}

// step makes the tool steps report numbers.
func (s *resumeServer) step(numbers ...int) {
	s.t.Helper()
	for _, n := range numbers {
		select {
		case s.steps <- n:
		case <-time.After(10 * time.Second):
			s.t.Fatalf("step %d: the tool takes nothing", n)
		}
		<-s.stepped
	}
}

// finish makes the tool steps answer.
func (s *resumeServer) finish() { close(s.steps) }

// callSteps is a call of the tool steps with progress token 7.
const callSteps = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"steps","_meta":{"progressToken":7}}}`

// wireEvent is one event as it came, comments aside.
type wireEvent struct {
	id, retry, event string
	data             string
	hasData          bool
}

// brief gives the event in short: the id, where there is one, and the frame, or
// what else it is.
func (e wireEvent) brief() string {
	var words []string
	if e.id != "" {
		words = append(words, e.id)
	}
	if e.retry != "" {
		words = append(words, "retry="+e.retry)
	}
	switch {
	case e.data != "":
		words = append(words, brief([]byte(e.data)))
	case e.hasData:
		words = append(words, "empty")
	}
	return strings.Join(words, " ")
}

// eventReader reads an HTTP response, event by event.
type eventReader struct {
	t      *testing.T
	resp   *http.Response
	lines  *bufio.Reader
	cancel context.CancelFunc
	last   string // id of the last event
}

func newEventReader(t *testing.T, resp *http.Response, cancel context.CancelFunc) *eventReader {
	return &eventReader{t: t, resp: resp, lines: bufio.NewReader(resp.Body), cancel: cancel}
}

// do sends a request. Headers of the protocol are set where their value is not empty.
func (s *resumeServer) do(method, session, lastID, body string) *eventReader {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	r, err := http.NewRequestWithContext(ctx, method, s.url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream, application/json")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Fatalf("%s: %v", method, err)
	}
	reader := newEventReader(s.t, resp, cancel)
	s.t.Cleanup(reader.reset)
	return reader
}

// open begins a session.
func (s *resumeServer) open(revision string) (session string) {
	s.t.Helper()
	opened := s.do(http.MethodPost, "", "", initializeAs(revision))
	if got := opened.rest(); got != `"init" ok` {
		s.t.Fatalf("initialize as %s: got %q, want a result", revision, got)
	}
	session = opened.resp.Header.Get("Mcp-Session-Id")
	s.do(http.MethodPost, session, "", initialized).rest()
	return session
}

// post posts a message in a session.
func (s *resumeServer) post(session, body string) *eventReader {
	s.t.Helper()
	return s.do(http.MethodPost, session, "", body)
}

// get opens an event stream, or resumes one where lastID is not empty.
func (s *resumeServer) get(session, lastID string) *eventReader {
	s.t.Helper()
	return s.do(http.MethodGet, session, lastID, "")
}

// noStreams waits until the server has noticed that all responses have ended.
func (s *resumeServer) noStreams() {
	s.t.Helper()
	eventually(s.t, "no open streams", func() bool { return s.handler.Stats().Streams == 0 })
}

// reset breaks the connection.
func (r *eventReader) reset() {
	r.cancel()
	_ = r.resp.Body.Close()
}

// next reads an event. It reports false at the end of the response.
func (r *eventReader) next() (e wireEvent, ok bool) {
	r.t.Helper()
	some := false
	for {
		line, err := r.lines.ReadString('\n')
		if err == io.EOF && line == "" {
			return e, false
		}
		if err != nil {
			r.t.Fatalf("reading an event stream: %v after %q", err, line)
		}
		line = strings.TrimSuffix(line, "\n")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && some:
			if e.id != "" {
				r.last = e.id
			}
			return e, true
		case line == "" || field == "":
			continue
		case field == "id":
			e.id = value
		case field == "retry":
			e.retry = value
		case field == "event":
			e.event = value
		case field == "data":
			e.data, e.hasData = value, true
		default:
			r.t.Fatalf("reading an event stream: got the line %q", line)
		}
		some = true
	}
}

// want reads events and compares them, in short and without the stream's number.
func (r *eventReader) want(what string, events ...string) {
	r.t.Helper()
	if got := r.resp.Header.Get("Content-Type"); got != "text/event-stream" {
		r.t.Fatalf("%s: got status %d and Content-Type %q, want an event stream", what, r.resp.StatusCode, got)
	}
	for _, want := range events {
		e, ok := r.next()
		if !ok {
			r.t.Fatalf("%s: got the end of the stream, want %q", what, want)
		}
		if _, seq, found := strings.Cut(e.id, "-"); found {
			e.id = "*-" + seq
		}
		if got := e.brief(); got != want {
			r.t.Fatalf("%s: got %q, want %q", what, got, want)
		}
	}
}

// wantEnd reads the end of the response.
func (r *eventReader) wantEnd(what string) {
	r.t.Helper()
	if e, ok := r.next(); ok {
		r.t.Fatalf("%s: got %q, want the end of the stream", what, e.brief())
	}
}

// rest reads a response that has one message, in short; an empty one by its
// status. On a busy machine it may be an event stream.
func (r *eventReader) rest() string {
	r.t.Helper()
	if r.resp.Header.Get("Content-Type") == "text/event-stream" {
		list, _ := r.frames(-1)
		return strings.Join(list, ", ")
	}
	body, err := io.ReadAll(r.lines)
	if err != nil {
		r.t.Fatalf("reading a body: %v", err)
	}
	if len(body) == 0 {
		return fmt.Sprint(r.resp.StatusCode)
	}
	return brief(body)
}
