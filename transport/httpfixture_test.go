package transport_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// web is a fixture behind a real socket.
type web struct {
	*fixture
	t       testing.TB
	handler *transport.HTTPHandler
	server  *httptest.Server
	client  *http.Client
}

// newWeb makes a web that ends with the test.
func newWeb(tb testing.TB, eo *engine.Options, ho *transport.HTTPOptions) *web {
	tb.Helper()
	return newWebWith(tb, eo, ho, func(*http.Server) {})
}

// newWebWith is newWeb for a server that is configured before it starts.
func newWebWith(tb testing.TB, eo *engine.Options, ho *transport.HTTPOptions, configure func(*http.Server)) *web {
	tb.Helper()
	f := newFixture(tb, eo)
	w := &web{fixture: f, t: tb, handler: transport.NewHTTPHandler(f.Engine, ho)}
	w.server = httptest.NewUnstartedServer(w.handler)
	configure(w.server.Config)
	w.server.Start()
	w.client = &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}}
	tb.Cleanup(func() {
		w.client.CloseIdleConnections()
		w.server.CloseClientConnections()
		w.server.Close()
	})
	return w
}

// reply is a response that was read to its end.
type reply struct {
	status int
	header http.Header
	body   string
}

// frames gives the frames of a JSON or an event-stream reply, in short.
func (r reply) frames() (list []string) {
	if !strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream") {
		if r.body == "" {
			return nil
		}
		return []string{brief([]byte(r.body))}
	}
	in := bufio.NewReader(strings.NewReader(r.body))
	for {
		e, err := readEvent(in)
		if err != nil {
			return list
		}
		if e.data != "" {
			list = append(list, brief([]byte(e.data)))
		}
	}
}

// code gives the code of a reply that is an error.
func (r reply) code() string { return string(codec.Member([]byte(r.body), "error", "code")) }

// event is an event of a stream, or a comment.
type event struct{ comment, data, id string }

// readEvent reads the next event. An event stream's lines end in \n here.
func readEvent(r *bufio.Reader) (e event, err error) {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return e, err
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			return e, nil
		case name == "":
			e.comment = value
		case name == "data":
			e.data += value
		case name == "id":
			e.id = value
		}
	}
}

// standard are the header lines that a client sends with a message.
var standard = []string{"Content-Type: application/json", "Accept: application/json, text/event-stream"}

// request makes a request. Later header lines replace earlier ones; one without
// a value takes the header out; one that begins with + is added.
func (w *web) request(method, body string, header ...string) *http.Request {
	w.t.Helper()
	r, err := http.NewRequest(method, w.server.URL, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case strings.HasPrefix(name, "+"):
			r.Header.Add(name[1:], value)
		case value == "":
			r.Header.Del(name)
		case name == "Host":
			r.Host = value
		default:
			r.Header.Set(name, value)
		}
	}
	return r
}

// do sends a request and reads the response to its end.
func (w *web) do(r *http.Request) reply {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	response, err := w.client.Do(r.WithContext(ctx))
	if err != nil {
		w.t.Errorf("%s: %v", r.Method, err)
		return reply{header: http.Header{}}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Errorf("%s: the body of a %d: %v", r.Method, response.StatusCode, err)
	}
	return reply{response.StatusCode, response.Header, string(body)}
}

// post sends a message of a session with the standard header.
func (w *web) post(session, body string, header ...string) reply {
	w.t.Helper()
	return w.do(w.request(http.MethodPost, body, append(append(standard, "Mcp-Session-Id: "+session), header...)...))
}

// session opens a session in a revision.
func (w *web) session(revision string) string {
	w.t.Helper()
	r := w.do(w.request(http.MethodPost, initializeAs(revision), standard...))
	key := r.header.Get("Mcp-Session-Id")
	if r.status != http.StatusOK || key == "" {
		w.t.Fatalf("initialize: got %d and session %q, want 200 and a session", r.status, key)
	}
	if r := w.post(key, initialized); r.status != http.StatusAccepted {
		w.t.Fatalf("initialized: got %d, want 202", r.status)
	}
	return key
}

// events is a stream that is being read.
type events struct {
	t        testing.TB
	response *http.Response
	r        *bufio.Reader
}

// stream sends a request whose response is an event stream.
func (w *web) stream(r *http.Request) *events {
	w.t.Helper()
	response, err := w.client.Do(r)
	if err != nil {
		w.t.Fatalf("%s: %v", r.Method, err)
	}
	if got := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || got != "text/event-stream" {
		w.t.Fatalf("%s: got %d %q, want 200 text/event-stream", r.Method, response.StatusCode, got)
	}
	w.t.Cleanup(func() { _ = response.Body.Close() })
	return &events{w.t, response, bufio.NewReader(response.Body)}
}

// get opens a session's event stream.
func (w *web) get(session string) *events {
	w.t.Helper()
	return w.stream(w.request(http.MethodGet, "", "Accept: text/event-stream", "Mcp-Session-Id: "+session))
}

// next gives the next frame in short, a comment as ": WORDS", and "end" at the
// end of the stream.
func (e *events) next() string {
	for {
		ev, err := readEvent(e.r)
		switch {
		case err == io.EOF:
			return "end"
		case err != nil:
			return "broken: " + err.Error()
		case ev.comment != "":
			return ": " + ev.comment
		case ev.data != "":
			return brief([]byte(ev.data))
		}
	}
}

// expect reads frames and compares them.
func (e *events) expect(want ...string) {
	e.t.Helper()
	for _, w := range want {
		if got := e.next(); got != w {
			e.t.Errorf("on the stream: got %q, want %q", got, w)
			return
		}
	}
}

// raw is a connection whose bytes the test writes itself.
type raw struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

// dial opens a connection that ends with the test.
func (w *web) dial() *raw {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return &raw{w.t, conn, bufio.NewReader(conn)}
}

// head is the head of a POST with the standard header lines and others.
func head(session string, more ...string) string {
	lines := append([]string{"POST /mcp HTTP/1.1", "Host: 127.0.0.1"}, standard...)
	if session != "" {
		lines = append(lines, "Mcp-Session-Id: "+session)
	}
	return strings.Join(append(lines, more...), "\r\n") + "\r\n\r\n"
}

func (c *raw) write(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Errorf("write: %v", err)
	}
}

// read reads a response to its end.
func (c *raw) read() reply {
	c.t.Helper()
	response, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Errorf("response: %v", err)
		return reply{header: http.Header{}}
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Errorf("the body of a %d: %v", response.StatusCode, err)
	}
	return reply{response.StatusCode, response.Header, string(body)}
}
