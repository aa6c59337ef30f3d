package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// TestBareTools joins an upstream that has tools and refuses to list anything else, and one whose sessions end at once.
func TestBareTools(t *testing.T) {
	bare := engine.New(engine.Info{Name: "bare", Version: "1"}, &engine.Options{Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { shutdown(t, bare) })
	err := bare.AddRawTool(engine.Tool{Name: "only"}, func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
		return engine.AppendTextResult(out, "here"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(transport.NewHTTPHandler(bare, nil))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var m codec.Message
		if codec.Decode(body, &m) != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if string(m.Method) == codec.MethodInitialize {
			_, _ = w.Write(codec.AppendResult(nil, m.ID, []byte(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"b","version":"1"}}`)))
			return
		}
		_, _ = w.Write(codec.AppendError(nil, m.ID, codec.NewError(codec.CodeInternalError, "broken")))
	}))
	t.Cleanup(func() { broken.CloseClientConnections(); broken.Close() })
	g, err := New(Config{
		Upstreams: []Upstream{{Name: "bare", URL: web.URL}, {Name: "broken", URL: broken.URL}}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close(context.Background()) })
	front := httptest.NewServer(g.Handler())
	t.Cleanup(front.Close)
	eventually(t, "the tools of bare are known", func() bool {
		select {
		case <-g.upstreams[0].catalog.known:
			return true
		default:
			return false
		}
	})
	c := connect(t, front.URL, "2025-11-25", "")
	if got := callText(t, c, "bare_only", nil); got != "here" {
		t.Errorf("bare_only = %q, want here", got)
	}
	time.Sleep(500 * time.Millisecond)
	if s := g.upstreams[1].state(); s.Opened == 0 || s.Opened > 20 {
		t.Errorf("the broken upstream was connected %d times in about half a second, want a few", s.Opened)
	}
}
