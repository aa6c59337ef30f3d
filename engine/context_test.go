package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// derived are contexts that handlers make of theirs. Cancel functions are kept
// and not called, as a careless handler has it.
var derived = map[string]func(ctx context.Context) (context.Context, context.CancelFunc){
	"the context itself": func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
	"WithCancel":         context.WithCancel,
	"WithTimeout": func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, time.Hour)
	},
	"WithCancel of WithValue": func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithCancel(context.WithValue(ctx, derivedKey{}, 1))
	},
	"WithCancel of WithTimeout": func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, first := context.WithTimeout(ctx, time.Hour)
		ctx, second := context.WithCancel(ctx)
		return ctx, func() { first(); second() }
	},
}

type derivedKey struct{}

// TestDerivedContexts ends calls whose handlers wait for a context of their own
// making. In the bubble a goroutine that is left behind fails the test.
func TestDerivedContexts(t *testing.T) {
	for name, derive := range derived {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _ := newEngine(t, nil)
				var cancels []context.CancelFunc
				var kept []context.Context
				keep := func(ctx context.Context) context.Context {
					child, cancel := derive(ctx)
					cancels = append(cancels, cancel)
					kept = append(kept, ctx, child)
					return child
				}
				must(t, e.AddRawTool(engine.Tool{Name: "wait"}, func(ctx context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
					child := keep(ctx)
					if child.Err() != nil {
						t.Errorf("before the end: got %v, want nil", child.Err())
					}
					<-child.Done()
					return out, child.Err()
				}))
				must(t, e.AddRawTool(engine.Tool{Name: "quick"}, func(ctx context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
					keep(ctx)
					return engine.AppendTextResult(out, "done"), nil
				}))
				p := connect(t, e, engine.Rev20251125)
				check(t, "tools/call", p.call("quick", "{}"), text("done"))
				r, done := p.start(request("1", codec.MethodToolsCall, `{"name":"wait"}`))
				synctest.Wait()
				p.notify(codec.NotifyCancelled, `{"requestId":1}`)
				<-done
				checkFrames(t, "answer to a cancelled request", r.take())
				synctest.Wait()
				for _, ctx := range kept {
					if !errors.Is(ctx.Err(), context.Canceled) {
						t.Errorf("a context that was kept: got %v, want %v", ctx.Err(), context.Canceled)
					}
					<-ctx.Done()
				}
				_ = e.Shutdown(t.Context())
				time.Sleep(2 * time.Second) // for the actor library's timer of dead letters
				for _, cancel := range cancels {
					cancel()
				}
			})
		})
	}
}

// TestContextOfTransport checks what a call's context takes from the one that
// the transport gives: its values, and not its end.
func TestContextOfTransport(t *testing.T) {
	e, _ := newEngine(t, nil)
	var got []any
	must(t, e.AddRawTool(engine.Tool{Name: "look"}, func(ctx context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		_, limited := ctx.Deadline()
		got = []any{ctx.Value(derivedKey{}), ctx.Err(), context.Cause(ctx), child.Err(), context.Cause(child), limited}
		select {
		case <-child.Done():
			t.Error("the context has ended with that of the transport")
		default:
		}
		return engine.AppendTextResult(out, "done"), nil
	}))
	p := connect(t, e, engine.Rev20251125)
	base, cancel := context.WithCancelCause(context.WithValue(t.Context(), derivedKey{}, "v"))
	cancel(errors.New("the connection broke"))
	r := new(reply)
	p.receive(base, request("1", codec.MethodToolsCall, `{"name":"look"}`), r)
	checkFrames(t, "answer", r.take(), doneFrame)
	for i, want := range []any{"v", nil, nil, nil, nil, false} {
		if got[i] != want {
			t.Errorf("value, error, cause, and those of a derived context, deadline: got %v, want %v at %d", got, want, i)
		}
	}
}

// TestAfterFunc registers and withdraws functions on a call's context.
func TestAfterFunc(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(t, nil)
		var ran [3]int
		var kept context.Context
		must(t, e.AddRawTool(engine.Tool{Name: "after"}, func(ctx context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
			kept = ctx
			context.AfterFunc(ctx, func() { ran[0]++ })
			stop := context.AfterFunc(ctx, func() { ran[1]++ })
			if !stop() || stop() {
				t.Error("stop: want true once")
			}
			return engine.AppendTextResult(out, "done"), nil
		}))
		p := connect(t, e, engine.Rev20251125)
		check(t, "tools/call", p.call("after", "{}"), text("done"))
		stop := context.AfterFunc(kept, func() { ran[2]++ })
		synctest.Wait()
		if stop() {
			t.Error("stop after the end: got true")
		}
		if want := [3]int{1, 0, 1}; ran != want {
			t.Errorf("functions ran %v times, want %v", ran, want)
		}
		_ = e.Shutdown(t.Context())
		time.Sleep(2 * time.Second) // for the actor library's timer of dead letters
	})
}
