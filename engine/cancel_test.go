package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

func TestCancel(t *testing.T) {
	for _, id := range []string{`7`, `"7"`, `"\u0061"`, `-0`} {
		e, _ := newEngine(t, nil)
		b := addBlocker(t, e)
		p := connect(t, e, engine.Rev20251125)
		r, done := p.start(block(id))
		<-b.started
		for _, params := range []string{`{"requestId":8}`, `{"requestId":"8"}`, `{}`, `{"requestId":null}`, `{"requestId":{}}`,
			`{"requestID":` + id + `}`} {
			p.notify(codec.NotifyCancelled, params)
		}
		other := map[string]string{`7`: `"7"`, `"7"`: `7`}[id]
		if other != "" {
			p.notify(codec.NotifyCancelled, `{"requestId":`+other+`}`)
		}
		select {
		case err := <-b.ended:
			t.Fatalf("request %s was ended by the cancellation of another: %v", id, err)
		default:
		}
		p.notify(codec.NotifyCancelled, `{"requestId":`+id+`,"reason":"enough"}`)
		if err := <-b.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the context's error: got %v, want %v", err, context.Canceled)
		}
		<-done
		checkFrames(t, "answer to the cancelled request "+id, r.take())
		if r.finished() != 1 {
			t.Errorf("reply: finished %d times, want once", r.finished())
		}
		p.notify(codec.NotifyCancelled, `{"requestId":`+id+`}`)
		check(t, "ping", p.result(codec.MethodPing, ""), "{}")
	}
}

// TestCancelInitialize cancels what must not be cancelled.
func TestCancelInitialize(t *testing.T) {
	e, _ := newEngine(t, nil)
	echo(t, e, "echo")
	p := open(t, e)
	p.notify(codec.NotifyCancelled, `{"requestId":1}`)
	p.result(codec.MethodInitialize, `{"protocolVersion":"2025-11-25"}`)
	p.notify(codec.NotifyCancelled, `{"requestId":1}`)
	check(t, "tools/call", p.call("echo", "{}"), text("{}"))
}

// TestCancelIgnored reuses the id of a cancelled request whose handler
// does not heed its context, which is still in flight.
func TestCancelIgnored(t *testing.T) {
	e, _ := newEngine(t, nil)
	release := make(chan struct{})
	started := make(chan struct{})
	must(t, e.AddRawTool(engine.Tool{Name: "deaf"}, func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
		started <- struct{}{}
		<-release
		return engine.AppendTextResult(out, "late"), nil
	}))
	p := connect(t, e, engine.Rev20251125)
	r, done := p.start(request("1", codec.MethodToolsCall, `{"name":"deaf"}`))
	<-started
	p.notify(codec.NotifyCancelled, `{"requestId":1}`)
	check(t, "the id of a cancelled request whose handler runs", p.call("deaf", "{}"),
		"-32600 Invalid Request: a request with this id is in flight")
	close(release)
	<-done
	checkFrames(t, "late answer", r.take())
	go func() { <-started }()
	check(t, "the id again", p.call("deaf", "{}"), text("late"))
}

// TestStopByPID sends a Stop to the actor of a request in flight, which is
// found in the registry by its PID.
func TestStopByPID(t *testing.T) {
	for _, rev := range legacy {
		e, _ := newEngine(t, nil)
		b := addBlocker(t, e)
		echo(t, e, "echo")
		p := connect(t, e, rev)
		system := e.System().ActorSystem()
		r, done := p.start(block("1"))
		<-b.started
		other, otherDone := p.start(block("2"))
		<-b.started
		pid := system.NewLocalPID("request/1")
		if process, found := system.ProcessRegistry.Get(pid); !found {
			t.Fatal("ProcessRegistry.Get: the request in flight is not found")
		} else if _, ok := process.(*actors.Request); !ok {
			t.Fatalf("ProcessRegistry.Get: got a %T, want a request", process)
		}
		system.Root.Stop(pid)
		if err := <-b.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the context's error: got %v, want %v", err, context.Canceled)
		}
		<-done
		system.Root.Stop(pid)
		checkFrames(t, "answers to the stopped request", r.take(),
			`{"jsonrpc":"2.0","id":1,"error":{"code":-31902,"message":"The request was stopped"}}`)
		if r.finished() != 1 || other.finished() != 0 {
			t.Errorf("replies: finished %d and %d times, want 1 and 0", r.finished(), other.finished())
		}
		check(t, "the session goes on", p.call("echo", "{}"), text("{}"))
		close(b.release)
		<-otherDone
		checkFrames(t, "the other request", other.take(), strings.Replace(doneFrame, `"id":1`, `"id":2`, 1))
	}
}

// TestCloseWhileCalling ends sessions in each way while a request is in flight.
func TestCloseWhileCalling(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(e *engine.Engine, s *engine.Session)
		want []string
	}{
		"Close": {func(_ *engine.Engine, s *engine.Session) { s.Close() }, nil},
		"Stop of the session's actor": {func(e *engine.Engine, s *engine.Session) {
			e.System().ActorSystem().Root.Stop(actor.NewPID("nonhost", "session/"+s.Key()))
		}, []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-31902,"message":"The request was stopped"}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := newEngine(t, nil)
			b := addBlocker(t, e)
			p := connect(t, e, engine.Rev20251125)
			r, done := p.start(block("1"))
			<-b.started
			c.end(e, p.session)
			if err := <-b.ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the context's error: got %v, want %v", err, context.Canceled)
			}
			<-done
			<-p.session.Done()
			checkFrames(t, "answers", r.take(), c.want...)
			if r.finished() != 1 {
				t.Errorf("reply: finished %d times, want once", r.finished())
			}
			if p.notes.finished() != 1 {
				t.Errorf("the session's stream: finished %d times, want once", p.notes.finished())
			}
		})
	}
}

func TestHandlerTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(t, &engine.Options{HandlerTimeout: time.Second})
		b := addBlocker(t, e)
		must(t, e.AddRawTool(engine.Tool{Name: "sleep"}, func(_ context.Context, c *engine.Call, args, out []byte) ([]byte, error) {
			ms, _ := codec.Int(args, "ms")
			time.Sleep(time.Duration(ms) * time.Millisecond)
			return engine.AppendTextResult(out, "done"), nil
		}))
		p := connect(t, e, engine.Rev20251125)
		timeout := `{"jsonrpc":"2.0","id":1,"error":{"code":-31901,"message":"The time limit for this request has passed"}}`

		begin := time.Now()
		r, done := p.start(block("1"))
		if err := <-b.ended; !errors.Is(err, context.Canceled) || time.Since(begin) != time.Second {
			t.Errorf("the context's end: got %v after %v, want %v after 1s", err, time.Since(begin), context.Canceled)
		}
		<-done
		checkFrames(t, "a handler that heeds its context", r.take(), timeout)

		begin = time.Now()
		r, done = p.start(request("1", codec.MethodToolsCall, `{"name":"sleep","arguments":{"ms":5000}}`))
		time.Sleep(time.Second)
		synctest.Wait()
		checkFrames(t, "a handler that does not, at the limit", r.take(), timeout)
		<-done
		checkFrames(t, "a handler that does not, when it returns", r.take())
		if got := time.Since(begin); got != 5*time.Second || r.finished() != 1 {
			t.Errorf("handler: took %v, finished %d times, want 5s, once", got, r.finished())
		}
		check(t, "just within the limit", p.call("sleep", `{"ms":999}`), text("done"))
		time.Sleep(time.Minute)
		check(t, "long after", p.call("sleep", `{"ms":0}`), text("done"))
		_ = e.Shutdown(t.Context())
		time.Sleep(2 * time.Second) // for the actor library's timer of dead letters
	})
}
