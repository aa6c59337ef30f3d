package client_test

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/mcpengine/mcpengine/transport/client"
)

// endpoint is a fake MCP endpoint that makes the handshake and leaves the rest
// to hooks.
type endpoint struct {
	t       *testing.T
	session string // given at initialize; "" for none
	// initResult replaces the usual result of initialize.
	initResult string
	post       func(w http.ResponseWriter, r *http.Request, f frame)
	get        func(w http.ResponseWriter, r *http.Request)
	del        func(w http.ResponseWriter)

	mu   sync.Mutex // guards seen
	seen []string   // "POST initialize", "GET", "DELETE" with session and revision
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var f frame
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone
		}
		if bytes.HasPrefix(body, []byte("[")) { // a batch is given to post whole
			f = frame{Method: "batch", Params: body}
		} else {
			f = parse(e.t, body)
		}
	}
	e.note(r, f)
	switch {
	case f.Method == "initialize":
		if e.session != "" {
			w.Header().Set("Mcp-Session-Id", e.session)
		}
		writeJSON(w, resultOf(f, cmp.Or(e.initResult, initResult)))
	case r.Method == http.MethodPost && (f.ID == nil || f.Method == ""):
		if e.post != nil {
			e.post(w, r, f)
		}
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodPost && e.post != nil:
		e.post(w, r, f)
	case r.Method == http.MethodGet && e.get != nil:
		e.get(w, r)
	case r.Method == http.MethodDelete && e.del != nil:
		e.del(w)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (e *endpoint) note(r *http.Request, f frame) {
	line := r.Method
	for _, part := range []string{f.Method, r.Header.Get("Mcp-Session-Id"), r.Header.Get("Mcp-Protocol-Version"), r.Header.Get("Last-Event-ID")} {
		if part != "" {
			line += " " + part
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = append(e.seen, line)
}

func (e *endpoint) log() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.seen)
}

func writeJSON(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = io.WriteString(w, body) // the client may have gone
}

// writeSSE sends text, each part flushed on its own.
func writeSSE(w http.ResponseWriter, parts ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, part := range parts {
		_, _ = io.WriteString(w, part) // the client may have gone
		w.(http.Flusher).Flush()
	}
}

func event(data string) string { return "data: " + data + "\n\n" }

// connectHTTP connects a client to an endpoint over a socket.
func connectHTTP(t *testing.T, e *endpoint, o *client.Options) *client.Client {
	t.Helper()
	noLeaks(t)
	e.t = t
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	c, err := client.ConnectHTTP(context.Background(), server.URL+"/mcp", o)
	if err != nil {
		t.Fatalf("ConnectHTTP: %v", err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) }) // tests of Close look at its error
	return c
}

// connectMemory connects a client to an endpoint without sockets, so that the
// test can run in virtual time.
func connectMemory(t *testing.T, e *endpoint, o client.Options) *client.Client {
	t.Helper()
	e.t = t
	o.HTTPClient = &http.Client{Transport: memory{e}}
	c, err := client.ConnectHTTP(t.Context(), "http://memory/mcp", &o)
	if err != nil {
		t.Fatalf("ConnectHTTP: %v", err)
	}
	t.Cleanup(func() { closeClient(t, c) })
	return c
}

// memory is a RoundTripper that runs a handler and streams what it writes.
type memory struct{ handler http.Handler }

func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	body, out := io.Pipe()
	w := &memoryWriter{header: http.Header{}, out: out, begun: make(chan struct{})}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	stop := context.AfterFunc(r.Context(), func() { _ = out.CloseWithError(r.Context().Err()) })
	go func() {
		defer stop()
		m.handler.ServeHTTP(w, r)
		w.WriteHeader(http.StatusOK)
		_ = out.Close()
	}()
	select {
	case <-w.begun:
		return &http.Response{StatusCode: w.status, Header: w.header, Body: body, Request: r}, nil
	case <-r.Context().Done():
		_ = body.Close()
		return nil, r.Context().Err()
	}
}

type memoryWriter struct {
	header http.Header
	out    *io.PipeWriter
	once   sync.Once
	status int
	begun  chan struct{}
}

func (w *memoryWriter) Header() http.Header { return w.header }

func (w *memoryWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status = status
		w.header = w.header.Clone()
		close(w.begun)
	})
}

func (w *memoryWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.out.Write(b)
}

func (w *memoryWriter) Flush() { w.WriteHeader(http.StatusOK) }
