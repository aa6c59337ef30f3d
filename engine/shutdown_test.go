package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

const overloaded = "-31900 Server is overloaded, try again later"

func TestLimits(t *testing.T) {
	e, _ := newEngine(t, &engine.Options{Limits: actors.Limits{MaxSessions: 3, MaxRequests: 3, MaxRequestsPerSession: 2}})
	b := addBlocker(t, e)
	echo(t, e, "echo")
	a, c := connect(t, e, engine.Rev20251125), connect(t, e, engine.Rev20251125)
	open(t, e)
	if _, err := e.OpenSession("one too many", nil); err == nil {
		t.Error("OpenSession beyond the limit: no error")
	} else if got := e.WireError(err); got.Code != codec.CodeOverloaded {
		t.Errorf("OpenSession beyond the limit: got code %d, want %d", got.Code, codec.CodeOverloaded)
	}
	if _, err := e.OpenSession(a.session.Key(), nil); err == nil {
		t.Error("OpenSession of a taken key: no error")
	}
	var done []<-chan struct{}
	hold := func(p *peer, id string) {
		_, ended := p.start(block(id))
		<-b.started
		done = append(done, ended)
	}
	hold(a, `10`)
	check(t, "id in flight", a.result(codec.MethodToolsList, "")[:12], `{"tools":[{"`)
	r := a.send(block(`10`))
	checkFrames(t, "id in flight", r.take(),
		`{"jsonrpc":"2.0","id":10,"error":{"code":-32600,"message":"Invalid Request: a request with this id is in flight"}}`)
	hold(a, `"10"`) // another id
	check(t, "beyond the session's limit", a.call("echo", "{}"), overloaded)
	check(t, "ping beyond the session's limit", a.result(codec.MethodPing, ""), "{}")
	check(t, "another session", c.call("echo", "{}"), text("{}"))
	hold(c, `1`)
	check(t, "beyond the limit on all", c.call("echo", "{}"), overloaded)
	r = c.send(request("2", codec.MethodToolsCall, `{"name":"echo"}`))
	r.take()
	if r.code != codec.CodeOverloaded {
		t.Errorf("code of the reply: got %d, want %d", r.code, codec.CodeOverloaded)
	}
	if got, want := e.Stats(), 5; got.Refused != want || got.ActiveRequests != 3 || got.Sessions != 3 {
		t.Errorf("Stats: got %+v, want 3 sessions, 3 requests, %d refused", got, want)
	}
	close(b.release)
	for _, ended := range done {
		<-ended
	}
	check(t, "when there is room again", a.call("echo", "{}"), text("{}"))
}

func TestShutdown(t *testing.T) {
	for _, c := range []struct {
		name    string
		handler time.Duration // how long it runs
		limit   time.Duration // of Shutdown
		want    time.Duration // how long Shutdown takes
		err     error
		answer  string
	}{
		{"idle", 0, 10 * time.Second, 0, nil, doneFrame},
		{"waits", 3 * time.Second, 10 * time.Second, 3 * time.Second, nil, doneFrame},
		{"cuts off", time.Minute, 10 * time.Second, 10 * time.Second, context.DeadlineExceeded,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-31902,"message":"The request was stopped"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _ := newEngine(t, nil)
				must(t, e.AddRawTool(engine.Tool{Name: "sleep"}, func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
					time.Sleep(c.handler)
					return engine.AppendTextResult(out, "done"), nil
				}))
				p := connect(t, e, engine.Rev20251125)
				begin := time.Now()
				r, done := p.start(request("1", codec.MethodToolsCall, `{"name":"sleep"}`))
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), c.limit)
				defer cancel()
				result := make(chan error)
				go func() { result <- e.Shutdown(ctx) }()
				synctest.Wait()
				if c.handler > 0 {
					check(t, "tools/call meanwhile", p.call("sleep", "{}"), overloaded)
				}
				if _, err := e.OpenSession("new", nil); err == nil || !errors.Is(e.Accepting(), engine.ErrShuttingDown) {
					t.Errorf("OpenSession meanwhile: got %v, and Accepting %v", err, e.Accepting())
				}
				err := <-result
				if took := time.Since(begin); took < c.want || took > c.want+10*ms {
					t.Errorf("Shutdown took %v, want %v", took, c.want)
				}
				if !errors.Is(err, c.err) || c.err == nil && err != nil {
					t.Errorf("Shutdown: got %v, want %v", err, c.err)
				}
				<-p.session.Done()
				checkFrames(t, "answers", r.take(), c.answer)
				<-done
				checkFrames(t, "answers when the handler has returned", r.take())
				if r.finished() != 1 || p.notes.finished() != 1 {
					t.Errorf("streams: finished %d and %d times, want once each", r.finished(), p.notes.finished())
				}
				if got := e.Stats(); got.Sessions != 0 || got.ActiveRequests != 0 {
					t.Errorf("Stats: got %+v, want nothing left", got)
				}
				if err := e.Shutdown(t.Context()); err != nil {
					t.Errorf("second Shutdown: %v", err)
				}
				time.Sleep(2 * time.Second) // for the actor library's timer of dead letters
			})
		})
	}
}

// TestIdleSession checks that the engine's sessions expire, and what keeps them.
func TestIdleSession(t *testing.T) {
	bubble(t, engine.Options{Limits: actors.Limits{SessionIdle: 10 * time.Minute}}, func(t *testing.T, e *engine.Engine) {
		idle, held, used := connect(t, e, engine.Rev20251125), connect(t, e, engine.Rev20251125), connect(t, e, engine.Rev20251125)
		release := held.session.Hold()
		for range 4 {
			time.Sleep(5 * time.Minute)
			used.session.Touch()
		}
		for name, c := range map[string]struct {
			p    *peer
			want bool
		}{"idle": {idle, false}, "held": {held, true}, "touched": {used, true}} {
			if got := e.Session(c.p.session.Key()) == c.p.session; got != c.want {
				t.Errorf("%s session: found %t, want %t", name, got, c.want)
			}
		}
		release()
		time.Sleep(20 * time.Minute)
		if got := e.Stats().Sessions; got != 0 {
			t.Errorf("Stats().Sessions: got %d, want 0", got)
		}
	})
}

// TestOnClose checks that it is called once, with the cause.
func TestOnClose(t *testing.T) {
	for name, c := range map[string]struct {
		close func(e *engine.Engine, s *engine.Session)
		want  error
	}{
		"Close":    {func(_ *engine.Engine, s *engine.Session) { s.Close(); s.Close() }, actors.ErrCancelled},
		"Shutdown": {func(e *engine.Engine, _ *engine.Session) { _ = e.Shutdown(context.Background()) }, actors.ErrShutdown},
	} {
		e, _ := newEngine(t, nil)
		causes := make(chan error, 10)
		s, err := e.OpenSession("a", func(cause error) { causes <- cause })
		must(t, err)
		c.close(e, s)
		<-s.Done()
		if got := fmt.Sprint(<-causes, len(causes)); got != fmt.Sprint(c.want, 0) {
			t.Errorf("%s: onClose got %s, want %v once", name, got, c.want)
		}
	}
}
