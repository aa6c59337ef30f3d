package transport_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// lines is a session over pipes, in the bubble of a synctest.
type lines struct {
	t      *testing.T
	feed   *io.PipeWriter
	out    *sink
	served chan error
	cancel context.CancelCauseFunc
}

// serve begins a session whose handshake is done.
func serve(t *testing.T, f *fixture, o *transport.LineOptions) *lines {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	in, feed := io.Pipe()
	l := &lines{t: t, feed: feed, out: newSink(), served: make(chan error, 1), cancel: cancel}
	go func() { l.served <- transport.ServeStdio(ctx, f.Engine, in, l.out, o) }()
	// Whatever the test does, nothing of its session is left at its end.
	t.Cleanup(func() { l.out.hold(false); _ = in.Close(); cancel(nil) })
	l.send(initialize, initialized)
	synctest.Wait()
	return l
}

func (l *lines) send(frames ...string) {
	l.t.Helper()
	if _, err := io.WriteString(l.feed, strings.Join(frames, "\n")+"\n"); err != nil {
		l.t.Errorf("send: %v", err)
	}
}

// answers gives what has come after the handshake.
func (l *lines) answers() []string { return l.out.frames()[1:] }

// end closes the input and gives how long the session went on, and its error.
func (l *lines) end() (time.Duration, error) {
	l.t.Helper()
	begin := time.Now()
	if err := l.feed.Close(); err != nil {
		l.t.Errorf("close: %v", err)
	}
	err := <-l.served
	return time.Since(begin), err
}

func TestEndAnswersWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		l := serve(t, f, nil)
		l.send(call("1", "wait", `"ms":3000,`+text("a")), call("2", "wait", `"ms":1000,`+text("b")), call("3", "echo", text("c")))
		took, err := l.end()
		if err != nil {
			t.Errorf("ServeStdio: got %v, want nil", err)
		}
		if want := []string{"3 c", "2 b", "1 a"}; !slices.Equal(l.answers(), want) {
			t.Errorf("answers: got %q, want %q", l.answers(), want)
		}
		if took < 2900*time.Millisecond || took > 3100*time.Millisecond {
			t.Errorf("time from the end of the input: got %v, want about 3 s", took)
		}
	})
}

func TestDrainTimeoutCutsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		l := serve(t, f, &transport.LineOptions{DrainTimeout: 2 * time.Second})
		l.send(call("1", "gate", text("a")), call("2", "echo", text("b")))
		time.Sleep(time.Second) // by now the reader waits for more
		took, err := l.end()
		if err != nil {
			t.Errorf("ServeStdio: got %v, want nil", err)
		}
		if took != 2*time.Second {
			t.Errorf("time from the end of the input: got %v, want 2 s", took)
		}
		if got := <-f.ended; got != "a" {
			t.Errorf("the call whose context ended: got %q, want a", got)
		}
		if want := []string{"2 b"}; !slices.Equal(l.answers(), want) {
			t.Errorf("answers: got %q, want %q", l.answers(), want)
		}
	})
}

// TestSlowLastLine: the last line has no end, and its handler outlasts the
// relay's patience.
func TestSlowLastLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		out := newSink()
		input := handshake + call("1", "wait", `"ms":50,`+text("a"))
		if err := transport.ServeStdio(context.Background(), f.Engine, strings.NewReader(input), out); err != nil {
			t.Errorf("ServeStdio: got %v, want nil", err)
		}
		if got, want := out.frames(), []string{"\"init\" ok", "1 a"}; !slices.Equal(got, want) {
			t.Errorf("answers: got %q, want %q", got, want)
		}
	})
}

func TestEndWhileOutputIsBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		l := serve(t, f, &transport.LineOptions{DrainTimeout: time.Second})
		l.out.hold(true)
		for range 20 {
			l.send(ping("1"))
		}
		took, err := l.end()
		if took != time.Second || err != nil {
			t.Errorf("end: got %v after %v, want nil after 1 s", err, took)
		}
	})
}

// TestEndWaitsForTheWriter: what is queued while a notification is being
// written is written before the session ends.
func TestEndWaitsForTheWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		l := serve(t, f, nil)
		time.Sleep(time.Second) // the registrations' own announcements are over
		l.out.hold(true)
		f.NotifyListChanged("tools")
		synctest.Wait() // its write is held up
		l.send(ping("1"))
		synctest.Wait()
		go func() {
			time.Sleep(time.Second)
			l.out.hold(false)
		}()
		took, err := l.end()
		if took != time.Second || err != nil {
			t.Errorf("end: got %v after %v, want nil after 1 s", err, took)
		}
		if want := []string{"notifications/tools/list_changed", "1 ok"}; !slices.Equal(l.answers(), want) {
			t.Errorf("frames: got %q, want %q", l.answers(), want)
		}
	})
}

func TestContextEndsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		l := serve(t, f, nil)
		l.send(call("1", "gate", text("a")))
		<-f.entered
		why := errors.New("enough")
		l.cancel(why)
		if err := <-l.served; !errors.Is(err, why) {
			t.Errorf("ServeStdio: got %v, want %v", err, why)
		}
		if got := <-f.ended; got != "a" {
			t.Errorf("the call whose context ended: got %q, want a", got)
		}
		synctest.Wait()
		if got := f.Stats().Sessions; got != 0 {
			t.Errorf("sessions afterwards: got %d, want 0", got)
		}
	})
}

func TestOutputErrorEndsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		l := serve(t, f, nil)
		l.send(call("1", "gate", text("a")))
		<-f.entered
		why := errors.New("nobody there")
		l.out.fail(why)
		l.send(ping("2")) // the input stays open
		synctest.Wait()
		select {
		case err := <-l.served:
			if !errors.Is(err, why) {
				t.Errorf("ServeStdio: got %v, want %v", err, why)
			}
		default:
			t.Error("ServeStdio: still running, want the output's error")
			_ = l.feed.Close()
			<-l.served
		}
	})
}

func TestInputErrorEndsSession(t *testing.T) {
	noLeaks(t)
	f := newFixture(t, nil)
	why := errors.New("cable cut")
	out := newSink()
	in := io.MultiReader(strings.NewReader(ping("1")+"\n"), iotest.ErrReader(why))
	if err := transport.ServeStdio(context.Background(), f.Engine, in, out); !errors.Is(err, why) {
		t.Errorf("ServeStdio: got %v, want %v", err, why)
	}
	if got, want := out.frames(), []string{"1 ok"}; !slices.Equal(got, want) {
		t.Errorf("answers: got %q, want %q", got, want)
	}
}

func TestShutdownEndsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		l := serve(t, f, nil)
		if err := f.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: got %v, want nil", err)
		}
		if err := <-l.served; err == nil {
			t.Error("ServeStdio: got nil, want an error that tells of the session's end")
		}
		out := newSink()
		err := transport.ServeStdio(t.Context(), f.Engine, strings.NewReader(handshake), out)
		if err == nil || len(out.frames()) != 0 {
			t.Errorf("ServeStdio after Shutdown: got %v and %q, want an error and nothing written", err, out.frames())
		}
	})
}

func TestPipeEndsWithItsClient(t *testing.T) {
	noLeaks(t)
	f := newFixture(t, nil)
	client, served := transport.Pipe(context.Background(), f.Engine)
	if _, err := io.WriteString(client, ping("1")+"\n"); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 256)
	n, err := client.Read(answer)
	if got := brief(answer[:n]); err != nil || got != "1 ok" {
		t.Errorf("answer: got %q and %v, want 1 ok", got, err)
	}
	if err := client.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	<-served
	if got := f.Stats(); got != (engine.Stats{SchemaCompilations: got.SchemaCompilations, ToolRegistrations: got.ToolRegistrations}) {
		t.Errorf("engine afterwards: got %+v, want it to hold nothing", got)
	}
}
