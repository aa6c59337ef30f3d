package transport_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// TestCloseStream has a handler that closes the connection of its call.
func TestCloseStream(t *testing.T) {
	s := newResumeServer(t, withEvents())
	closed := make(chan error, 1)
	s.add(t, "poll", func(ctx context.Context, c *engine.Call, args, out []byte) ([]byte, error) {
		c.Progress(ctx, 1, 0)
		closed <- c.CloseStream(70 * time.Millisecond)
		c.Progress(ctx, 2, 0)
		return s.gate(ctx, c, args, out)
	})
	session := s.open("2025-11-25")
	post := s.post(session, callWithToken("1", "poll", text("late"), "7"))
	post.want("POST", "*-0 retry=40 empty", "*-1 progress 7 1", "*-1 retry=70 empty")
	post.wantEnd("POST")
	if err := <-closed; err != nil {
		t.Errorf("CloseStream: got %v, want nil", err)
	}
	get := s.get(session, post.last)
	get.want("GET", "*-2 progress 7 2")
	close(s.fixture.open)
	get.want("GET", "*-3 1 late")
	get.wantEnd("GET")
}

// TestCloseStreamAtOnce closes the connection before anything was sent: the
// priming event carries the time to wait.
func TestCloseStreamAtOnce(t *testing.T) {
	o := withEvents()
	o.CommitDelay = 5 * time.Second
	s := newResumeServer(t, o)
	s.add(t, "poll", func(_ context.Context, c *engine.Call, _, out []byte) ([]byte, error) {
		if err := errors.Join(c.CloseStream(70*time.Millisecond), c.CloseStream(time.Second)); err != nil {
			return nil, err
		}
		return engine.AppendTextResult(out, "late"), nil
	})
	session := s.open("2025-11-25")
	post := s.post(session, call("1", "poll", ""))
	post.want("POST", "*-0 retry=70 empty")
	post.wantEnd("POST")
	eventually(t, "the call has ended", func() bool { return s.Engine.Stats().ActiveRequests == 0 })
	get := s.get(session, post.last)
	get.want("GET", "*-1 1 late")
	get.wantEnd("GET")
}

// TestCloseStreamRefused has it where the connection must stay open.
func TestCloseStreamRefused(t *testing.T) {
	for _, c := range []struct {
		name, revision string
		options        *transport.HTTPOptions
		want           error
	}{
		{"an older revision", "2025-06-18", withEvents(), engine.ErrNotDetachable},
		{"no store", "2025-11-25", nil, engine.ErrNotDetachable},
	} {
		s := newResumeServer(t, c.options)
		closed := make(chan error, 1)
		s.add(t, "poll", func(_ context.Context, c *engine.Call, _, out []byte) ([]byte, error) {
			closed <- c.CloseStream(time.Second)
			return engine.AppendTextResult(out, "here"), nil
		})
		if got := s.post(s.open(c.revision), call("1", "poll", "")).rest(); got != "1 here" {
			t.Errorf("%s: POST: got %q, want the answer", c.name, got)
		}
		if err := <-closed; !errors.Is(err, c.want) {
			t.Errorf("%s: CloseStream: got %v, want %v", c.name, err, c.want)
		}
	}
	s := newResumeServer(t, withEvents())
	calls := make(chan *engine.Call, 1)
	s.add(t, "quick", func(_ context.Context, c *engine.Call, _, out []byte) ([]byte, error) {
		calls <- c
		return engine.AppendTextResult(out, "x"), nil
	})
	s.post(s.open("2025-11-25"), call("1", "quick", "")).rest()
	if err := (<-calls).CloseStream(time.Second); !errors.Is(err, engine.ErrStreamClosed) {
		t.Errorf("CloseStream after the end: got %v, want %v", err, engine.ErrStreamClosed)
	}
}
