//go:build !race

package engine_test

import (
	"context"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// discard is a Stream that drops all.
type discard struct{}

func (discard) Send([]byte) error  { return nil }
func (discard) Finish([]byte, int) {}
func (discard) Flush()             {}

// TestAllocs holds the requests of the hot path to a budget.
func TestAllocs(t *testing.T) {
	e, _ := newEngine(t, nil)
	echo(t, e, "echo")
	must(t, engine.AddTool(e, engine.Tool{Name: "add"}, add))
	tools := addTools(t, e)
	p := connect(t, e, engine.Rev20251125)
	for _, c := range []struct {
		frame  string
		budget float64
	}{
		{request("1", codec.MethodPing, ""), 0},
		{request("1", codec.MethodToolsCall, `{"name":"echo","arguments":{"text":"hello"}}`), 2},
		{request("1", codec.MethodToolsCall, `{"name":"echo"}`), 2},
		{request("1", codec.MethodToolsCall, `{"name":"echo","arguments":{"a":1},"_meta":{"progressToken":7}}`), 2},
		{request("1", codec.MethodToolsList, ""), 2},
		{request("1", codec.MethodToolsCall, `{"name":"no such"}`), 4},
		{request("1", codec.MethodToolsCall, `{"name":"`+tools[0]+`","arguments":{"x":1,"y":2}}`), 10},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, 0},
	} {
		var m codec.Message
		frame, ctx := []byte(c.frame), context.Background()
		got := testing.AllocsPerRun(500, func() {
			fault := codec.Decode(frame, &m)
			p.session.Receive(ctx, &m, fault, discard{})
		})
		if got > c.budget {
			t.Errorf("%s: got %g allocations, want at most %g", c.frame, got, c.budget)
		}
	}
}
