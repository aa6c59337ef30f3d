package transport_test

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// TestLinesTakeEffectInOrder has a notification whose effect takes longer than
// the relay waits, and a call right behind it that must find the effect done.
// With the handshake in place of the notification, the call would be refused.
func TestLinesTakeEffectInOrder(t *testing.T) {
	var told atomic.Bool
	e := engine.New(engine.Info{Name: "order", Version: "1"}, &engine.Options{
		OnRootsChanged: func(*engine.Session) {
			time.Sleep(30 * time.Millisecond)
			told.Store(true)
		},
	})
	defer func() { _ = e.Shutdown(context.Background()) }()
	err := e.AddRawTool(engine.Tool{Name: "told"}, func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
		return engine.AppendTextResult(out, fmt.Sprint("told: ", told.Load())), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	pipe, served := transport.Pipe(context.Background(), e)
	defer func() { _ = pipe.Close(); <-served }()
	go func() {
		_, _ = fmt.Fprint(pipe, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true}},"clientInfo":{"name":"c","version":"1"}}}`+"\n"+
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+
			`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`+"\n"+
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"told"}}`+"\n")
	}()
	answers := bufio.NewScanner(pipe)
	for answers.Scan() {
		if strings.Contains(answers.Text(), `"id":1`) {
			if !strings.Contains(answers.Text(), "told: true") {
				t.Errorf("the call behind the notification: got %s, want told: true", answers.Text())
			}
			return
		}
	}
	t.Fatalf("no answer to the call: %v", answers.Err())
}
