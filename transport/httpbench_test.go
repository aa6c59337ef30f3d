package transport_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// nullResponse is a response that goes nowhere.
type nullResponse struct {
	header http.Header
	status int
	n      int
}

func (w *nullResponse) Header() http.Header { return w.header }

func (w *nullResponse) WriteHeader(status int) { w.status = status }

func (w *nullResponse) Write(b []byte) (int, error) {
	w.n += len(b)
	return len(b), nil
}

// quickPoster posts one call over and over, without a socket.
type quickPoster struct {
	handler http.Handler
	request *http.Request
	body    []byte
	w       nullResponse
}

func newQuickPoster(tb testing.TB, o *transport.HTTPOptions) *quickPoster {
	tb.Helper()
	e := engine.New(engine.Info{Name: "bench", Version: "1"}, nil)
	tb.Cleanup(func() { _ = e.Shutdown(context.Background()) })
	err := e.AddRawTool(engine.Tool{Name: "quick"}, func(_ context.Context, _ *engine.Call, _ []byte, out []byte) ([]byte, error) {
		return append(out, `{"content":[]}`...), nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	p := &quickPoster{handler: transport.NewHTTPHandler(e, o)}
	open := httptest.NewRequest(http.MethodPost, "/mcp", bytes.NewReader([]byte(
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}`)))
	open.Header.Set("Content-Type", "application/json")
	opened := httptest.NewRecorder()
	p.handler.ServeHTTP(opened, open)
	p.body = []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"quick","arguments":{"x":1,"y":2}}}`)
	p.request = httptest.NewRequest(http.MethodPost, "/mcp", nil)
	p.request.Header.Set("Content-Type", "application/json")
	p.request.Header.Set("Accept", "application/json, text/event-stream")
	p.request.Header.Set("Mcp-Session-Id", opened.Header().Get("Mcp-Session-Id"))
	p.request.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	p.w.header = make(http.Header)
	return p
}

// post posts the call once.
func (p *quickPoster) post(tb testing.TB) {
	p.request.Body = io.NopCloser(bytes.NewReader(p.body))
	p.request.ContentLength = int64(len(p.body))
	clear(p.w.header)
	p.w.status, p.w.n = 0, 0
	p.handler.ServeHTTP(&p.w, p.request)
	if p.w.status != http.StatusOK || p.w.n == 0 {
		tb.Fatalf("POST: got status %d and %d bytes, want 200 and a response", p.w.status, p.w.n)
	}
}

func BenchmarkQuickPost(b *testing.B) {
	p := newQuickPoster(b, nil)
	b.ReportAllocs()
	for b.Loop() {
		p.post(b)
	}
}

// BenchmarkQuickPostResumable is the same with a store.
func BenchmarkQuickPostResumable(b *testing.B) {
	p := newQuickPoster(b, &transport.HTTPOptions{Events: transport.NewMemoryEvents(0, 0)})
	b.ReportAllocs()
	for b.Loop() {
		p.post(b)
	}
}
