package transport_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/transport"
)

// TestSlowToolsDelayNothing: while five handlers wait, a ping, a quick call and
// the cancellation of one of the five take no longer than the relay's patience.
func TestSlowToolsDelayNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		l := serve(t, f, nil)
		begin := time.Now()
		var input []string
		for i := range 5 {
			input = append(input, call(quote(i), "gate", text(fmt.Sprint(i))))
		}
		l.send(append(input, ping("1"), call("2", "echo", text("quick")), cancelOf(quote(3)), ping("4"))...)
		if got := <-f.ended; got != "3" {
			t.Errorf("the cancelled call: got %s, want 3", got)
		}
		synctest.Wait()
		if took := time.Since(begin); took > 20*time.Millisecond {
			t.Errorf("time until the cancellation took effect: got %v, want at most 20 ms", took)
		}
		if got, want := l.answers(), []string{"1 ok", "2 quick", "4 ok"}; !slices.Equal(got, want) {
			t.Errorf("answers while five calls wait: got %q, want %q", got, want)
		}
		close(f.open)
		if _, err := l.end(); err != nil {
			t.Errorf("ServeStdio: got %v, want nil", err)
		}
		got := l.answers()[3:]
		slices.Sort(got)
		if want := []string{`"0" 0`, `"1" 1`, `"2" 2`, `"4" 4`}; !slices.Equal(got, want) {
			t.Errorf("answers of those that waited: got %q, want %q (none for the cancelled one)", got, want)
		}
	})
}

func TestManyInFlightAnsweredOnceEach(t *testing.T) {
	noLeaks(t)
	f := newFixture(t, nil)
	const calls = 256
	in, feed := io.Pipe()
	out := newSink()
	served := make(chan error, 1)
	go func() { served <- transport.ServeStdio(context.Background(), f.Engine, in, out) }()
	var want []string
	input := handshake
	for i := range calls {
		input += call(quote(i), "gate", text(fmt.Sprint("call ", i))) + "\n"
		want = append(want, fmt.Sprintf("%q call %d", fmt.Sprint(i), i))
	}
	if _, err := io.WriteString(feed, input); err != nil {
		t.Fatal(err)
	}
	for range calls {
		<-f.entered
	}
	if got := f.Stats().ActiveRequests; got != calls {
		t.Errorf("requests in flight: got %d, want %d", got, calls)
	}
	close(f.open)
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Errorf("ServeStdio: got %v, want nil", err)
	}
	got := out.frames()[1:]
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("answers: got %d, want each of %d once", len(got), len(want))
	}
}

func TestProgressComesBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		l := serve(t, f, nil)
		l.send(callWithToken("1", "progress", `"n":3,"ms":100,`+text("done"), `"p"`))
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		if got, want := l.answers(), []string{`progress "p" 1`, `progress "p" 2`}; !slices.Equal(got, want) {
			t.Errorf("frames after 250 ms: got %q, want %q", got, want)
		}
		l.send(callWithToken("2", "progress", `"n":2,"ms":0,`+text("quick"), `7`))
		if _, err := l.end(); err != nil {
			t.Errorf("ServeStdio: got %v, want nil", err)
		}
		want := []string{`progress "p" 1`, `progress "p" 2`, "progress 7 1", "progress 7 2", "2 quick", `progress "p" 3`, "1 done"}
		if !slices.Equal(l.answers(), want) {
			t.Errorf("frames: got %q, want %q", l.answers(), want)
		}
	})
}

// endless is an input that makes a frame for each read, up to a number.
type endless struct {
	frame func(n int) string
	count int
	taken atomic.Int64
}

func (e *endless) Read(b []byte) (int, error) {
	n := int(e.taken.Load())
	if n == e.count {
		return 0, io.EOF
	}
	e.taken.Add(1)
	return copy(b, e.frame(n)+"\n"), nil
}

// TestOutputNeverRead: a peer that sends and does not read is not read from
// for long; when it reads again, everything arrives.
func TestOutputNeverRead(t *testing.T) {
	for _, c := range []struct {
		name  string
		frame func(n int) string
		per   int // bytes of output for each frame
		slack int // frames that may be in flight besides
	}{
		{"large answers", func(n int) string { return call(quote(n), "big", `"n":16384,`+text("x")) }, 16 << 10, 4},
		{"small answers", func(n int) string { return call(quote(n), "echo", text(strings.Repeat("x", 900))) }, 1 << 10, 4},
		{"slow tools with large answers", func(n int) string {
			return call(quote(n), "wait", `"ms":5,`+text(strings.Repeat("x", 15<<10)))
		}, 15 << 10, 16},
		{"progress", func(n int) string { return callWithToken(quote(n), "progress", `"n":10,"ms":0,`+text("x"), quote(n)) }, 1 << 10, 1024},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, nil)
				const queue = 256 << 10
				input := &endless{count: 4 * queue / c.per, frame: c.frame}
				out := newSink()
				out.hold(true)
				served := make(chan error, 1)
				go func() {
					in := io.MultiReader(strings.NewReader(handshake), input)
					served <- transport.ServeStdio(context.Background(), f.Engine, in, out,
						&transport.LineOptions{MaxQueueBytes: queue, MaxMessageBytes: 1 << 20})
				}()
				time.Sleep(time.Minute)
				if got, want := int(input.taken.Load()), queue/c.per+c.slack; got > want {
					t.Errorf("frames read in a minute without a reader: got %d of %d, want at most %d", got, input.count, want)
				}
				if got, want := runtime.NumGoroutine(), c.slack+32; got > want {
					t.Errorf("goroutines meanwhile: got %d, want at most %d", got, want)
				}
				out.hold(false)
				if err := <-served; err != nil {
					t.Errorf("ServeStdio: got %v, want nil", err)
				}
				answers := 0
				for _, frame := range out.frames() {
					if strings.HasPrefix(frame, `"`) {
						answers++
					}
				}
				if answers != input.count+1 {
					t.Errorf("answers in the end: got %d, want %d", answers, input.count+1)
				}
			})
		})
	}
}

// TestCancellationsUnderLoad: calls are cancelled while others begin and end, on
// several sessions. What a cancellation still has to do must not touch the call
// that comes next, which the race detector would tell.
func TestCancellationsUnderLoad(t *testing.T) {
	noLeaks(t)
	f := newFixture(t, nil)
	const rounds = 60
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			input := handshake
			var want []string
			for i := range rounds {
				input += call(quote(i), "gate", text("never")) + "\n" + ping(quote(1000+i)) + "\n" + cancelOf(quote(i)) + "\n"
				want = append(want, quote(1000+i)+" ok")
			}
			want = append(want, `"init" ok`)
			slices.Sort(want)
			if got := exchange(t, f, strings.NewReader(input), nil); !slices.Equal(got, want) {
				t.Errorf("answers: got %d, want the %d of the pings and none of a cancelled call", len(got), len(want))
			}
		})
	}
	running.Wait()
}
