//go:build !race

package transport_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// TestStalledSubscriber has one subscriber that reads nothing, in each era, until
// what it was sent fills every buffer on the way. The others get each update at
// once, and whoever publishes does not wait.
func TestStalledSubscriber(t *testing.T) {
	const (
		updates = 1_500
		most    = 10 * time.Second // from an update to its notification, on a machine that has other work too
	)
	w := newWeb(t, &engine.Options{Limits: actors.Limits{SubscriptionMinInterval: 1}}, nil)
	uri := "a:" + strings.Repeat("a", 8<<10)
	err := w.AddResource(engine.Resource{URI: uri, Name: "a"},
		func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	legacy := func() *http.Request {
		session := w.session("2025-11-25")
		if r := w.post(session, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"`+uri+`"}}`); r.code() != "" {
			t.Fatalf("subscribe: got %s", r.body)
		}
		return w.request(http.MethodGet, "", "Accept: text/event-stream", "Mcp-Session-Id: "+session)
	}
	modern := func() *http.Request {
		return w.request(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{`+
			`"notifications":{"resourceSubscriptions":["`+uri+`"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientCapabilities":{}}}}`,
			append(standard, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: subscriptions/listen")...)
	}
	for _, r := range []*http.Request{legacy(), modern()} {
		conn := w.dial()
		_ = conn.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		if err := r.Write(conn); err != nil {
			t.Fatal(err)
		}
	}
	readers := []*events{w.stream(legacy()), w.stream(modern())}
	readers[1].expect(codec.NotifySubscriptionsStarted)
	eventually(t, "four subscriptions", func() bool { return w.Stats().Subscriptions == 4 })
	for i := range updates {
		began := time.Now()
		w.ResourceUpdated(uri)
		for _, r := range readers {
			got := r.next()
			for strings.HasPrefix(got, ": ") { // a comment
				got = r.next()
			}
			if got != codec.NotifyResourceUpdated {
				t.Fatalf("update %d: got %q on the stream, want %q", i, got, codec.NotifyResourceUpdated)
			}
		}
		if took := time.Since(began); took > most {
			t.Fatalf("update %d reached the others after %v, want at most %v", i, took, most)
		}
	}
}
