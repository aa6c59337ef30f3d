//go:build !race

package engine_test

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// repeatedly hands one frame to a session over and over.
func repeatedly(s *engine.Session, frame string) func() {
	var m codec.Message
	data, ctx := []byte(frame), context.Background()
	return func() {
		fault := codec.Decode(data, &m)
		s.Receive(ctx, &m, fault, discard{})
	}
}

// TestTypedBudget holds a typed tool to 12 allocations more than a raw one that
// answers the same.
func TestTypedBudget(t *testing.T) {
	e, _ := newEngine(t, nil)
	must(t, engine.AddTool(e, engine.Tool{Name: "typed"}, add))
	must(t, e.AddRawTool(engine.Tool{Name: "raw"}, func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
		return append(out, `{"content":[{"type":"text","text":"{\"sum\":3}"}],"structuredContent":{"sum":3}}`...), nil
	}))
	p := connect(t, e, engine.Rev20251125)
	check(t, "typed against raw", p.call("typed", `{"x":1,"y":2}`), p.call("raw", `{"x":1,"y":2}`))
	allocs := func(tool string) float64 {
		return testing.AllocsPerRun(500, repeatedly(p.session,
			request("1", codec.MethodToolsCall, `{"name":"`+tool+`","arguments":{"x":1,"y":2}}`)))
	}
	raw, typed := allocs("raw"), allocs("typed")
	if raw > 1 || typed > raw+12 {
		t.Errorf("allocations: got %g raw and %g typed, want at most 1, and 12 more", raw, typed)
	}
}

// TestProgressBudget holds a progress notification to no allocation.
func TestProgressBudget(t *testing.T) {
	e, _ := newEngine(t, nil)
	const steps = 1_000
	must(t, e.AddRawTool(engine.Tool{Name: "steps"}, func(ctx context.Context, c *engine.Call, _, out []byte) ([]byte, error) {
		for i := range steps {
			c.ProgressMessage(ctx, float64(i+1), steps, "on the way")
		}
		return engine.AppendTextResult(out, "done"), nil
	}))
	p := connect(t, e, engine.Rev20251125)
	for name, meta := range map[string]string{"asked for": `"_meta":{"progressToken":"p"}`, "not asked for": `"_meta":{}`} {
		call := repeatedly(p.session, request("1", codec.MethodToolsCall, `{"name":"steps",`+meta+`}`))
		if got := testing.AllocsPerRun(20, call); got > 1 {
			t.Errorf("a call with %d steps of progress, %s: got %g allocations, want at most that of the call", steps, name, got)
		}
	}
}

// processes counts what is in the registry of actors.
func processes(e *engine.Engine) (n int) {
	for _, bucket := range e.System().ActorSystem().ProcessRegistry.LocalPIDs.LocalPIDs {
		n += bucket.Count()
	}
	return n
}

// TestCancelledBudget cancels requests and looks for what is left of
// them: nothing in a table, and no goroutine.
func TestCancelledBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(t, nil)
		b := addBlocker(t, e)
		p := connect(t, e, engine.Rev20251125)
		cancel := func(n int) {
			for i := range n {
				id := strconv.Itoa(i + 10)
				r, done := p.start(block(id))
				<-b.started
				p.notify(codec.NotifyCancelled, `{"requestId":`+id+`}`)
				<-done
				<-b.ended
				checkFrames(t, "a cancelled request", r.take())
			}
			synctest.Wait()
		}
		cancel(3) // what is kept for the next ones
		goroutines, before := runtime.NumGoroutine(), processes(e)
		cancel(100)
		if got := e.Stats(); got.ActiveRequests != 0 {
			t.Errorf("requests in flight: got %d, want 0", got.ActiveRequests)
		}
		if got := runtime.NumGoroutine(); got > goroutines {
			t.Errorf("goroutines: got %d, want at most %d", got, goroutines)
		}
		if got := processes(e); got != before {
			t.Errorf("processes in the registry: got %d, want %d", got, before)
		}
		p.session.Close()
		synctest.Wait()
	})
}
