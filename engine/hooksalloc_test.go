//go:build !race

package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// hookOptions are an engine's hooks, one kind after another.
var hookOptions = []struct {
	name string
	o    engine.Options
	// extra is how many more allocations a call may cost than without hooks.
	extra float64
}{
	{"none", engine.Options{}, 0},
	{"visible", engine.Options{Visible: notFor}, 0},
	{"before and after", engine.Options{
		Before: []before{func(context.Context, *engine.Call) error { return nil }},
		After:  []after{func(context.Context, *engine.Call, *engine.Outcome) {}},
	}, 1},
	{"audit", engine.Options{Audit: func(engine.Record) {}}, 3},
}

// hookedCall gives a function that calls a raw tool in one era.
func hookedCall(t testing.TB, o engine.Options, rev engine.Revision) func() {
	e := engine.New(engine.Info{Name: "test", Version: "1"}, &o)
	t.Cleanup(func() { _ = e.Shutdown(context.Background()) })
	err := e.AddRawTool(engine.Tool{Name: "echo"}, func(_ context.Context, _ *engine.Call, args, out []byte) ([]byte, error) {
		return engine.AppendTextResult(out, args), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var m codec.Message
	ctx := context.Background()
	const params = `{"name":"echo","arguments":{"text":"hello"}}`
	if rev.IsModern() {
		frame := []byte((&modern{caps: "{}"}).frame("1", codec.MethodToolsCall, params))
		var headers http.Header = headersFor(string(frame))
		return func() {
			_ = codec.Decode(frame, &m)
			e.ReceiveModern(ctx, nil, &m, headers, discard{})
		}
	}
	s, err := e.OpenSession("one", nil)
	if err != nil {
		t.Fatal(err)
	}
	handle := func(frame []byte) {
		fault := codec.Decode(frame, &m)
		s.Receive(ctx, &m, fault, discard{})
	}
	handle([]byte(request("0", codec.MethodInitialize, `{"protocolVersion":"`+rev.String()+`","capabilities":{}}`)))
	frame := []byte(request("1", codec.MethodToolsCall, params))
	return func() { handle(frame) }
}

// TestHooksCostNothingUnused holds a call without hooks to what it cost before
// there were any, in allocations and in bytes, and one with hooks to a budget.
func TestHooksCostNothingUnused(t *testing.T) {
	const callClass = 240 // bytes: the allocator's size class of a Call, with and without its hooks
	if engine.CallSize > callClass {
		t.Errorf("a Call takes %d bytes, want at most %d", engine.CallSize, callClass)
	}
	for _, rev := range bothEras {
		for _, h := range hookOptions {
			call := hookedCall(t, h.o, rev)
			const budget = 1 // the Call
			if got := testing.AllocsPerRun(500, call); got > budget+h.extra {
				t.Errorf("%v with hooks %q: got %g allocations, want at most %g", rev, h.name, got, budget+h.extra)
			}
		}
	}
}

// BenchmarkHooks calls a tool with each kind of hook in place.
func BenchmarkHooks(b *testing.B) {
	for _, rev := range bothEras {
		for _, h := range hookOptions {
			b.Run(fmt.Sprint(rev, "/", h.name), func(b *testing.B) {
				call := hookedCall(b, h.o, rev)
				b.ReportAllocs()
				for b.Loop() {
					call()
				}
			})
		}
	}
}
