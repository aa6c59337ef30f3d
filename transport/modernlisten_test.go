package transport_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

const acknowledged = "notifications/subscriptions/acknowledged"

// withResource gives a fixture a resource to subscribe to.
func withResource(t *testing.T, e *engine.Engine) {
	t.Helper()
	if err := e.AddResource(engine.Resource{URI: "a:", Name: "a"}, nil); err != nil {
		t.Fatal(err)
	}
}

// TestListenOverHTTP follows a subscription over a real connection.
func TestListenOverHTTP(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, &engine.Options{ListChangedInterval: time.Millisecond}, &transport.HTTPOptions{KeepAlive: 300 * time.Millisecond})
	withResource(t, w.Engine)
	time.Sleep(20 * time.Millisecond) // past the interval that the registrations began
	begin := time.Now()
	frame := modern(`"s"`, "subscriptions/listen", `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:"]}`)
	r := w.request(http.MethodPost, frame, marks(frame)...)
	ctx, cancel := context.WithCancel(t.Context())
	s := w.stream(r.WithContext(ctx))
	s.expect(acknowledged)
	if took := time.Since(begin); took > 400*time.Millisecond {
		t.Errorf("the acknowledgement came after %v, want at once", took)
	}
	if got := s.response.Header.Get("X-Accel-Buffering"); got != "no" {
		t.Errorf("X-Accel-Buffering: got %q, want no", got)
	}
	s.expect(": keep-alive", ": keep-alive")
	w.ResourceUpdated("a:")
	s.expect("notifications/resources/updated")
	w.add(t, "new", echo)
	s.expect("notifications/tools/list_changed")
	if got := w.Stats(); got.Subscriptions != 1 || got.Sessions != 0 || w.handler.Stats().Streams != 1 {
		t.Errorf("Stats: got %+v and %+v, want one subscription and one stream", got, w.handler.Stats())
	}
	cancel()
	eventually(t, "the end of the subscription", func() bool {
		return w.Stats().Subscriptions == 0 && w.Stats().ActiveRequests == 0 && w.handler.Stats().Streams == 0
	})
}

// TestListenEndsWithTheServer shuts the engine down under 50 subscriptions.
func TestListenEndsWithTheServer(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, nil, nil)
	withResource(t, w.Engine)
	var streams []*events
	for i := range 50 {
		frame := listen(fmt.Sprint(i))
		s := w.stream(w.request(http.MethodPost, frame, marks(frame)...))
		s.expect(acknowledged)
		streams = append(streams, s)
	}
	if err := w.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	for i, s := range streams {
		s.expect("notifications/cancelled", fmt.Sprint(i)+" ok", "end")
	}
	if got := w.stateless(listen("1")); got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("listen after the shutdown: got %d, Retry-After %q, want 503 and a time", got.status, got.header.Get("Retry-After"))
	}
}

// TestManyListensOverHTTP opens and breaks off subscriptions.
func TestManyListensOverHTTP(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, nil, nil)
	withResource(t, w.Engine)
	const n = 200
	ctx, cancel := context.WithCancel(t.Context())
	for range n {
		frame := listen(`1`) // the same id
		w.stream(w.request(http.MethodPost, frame, marks(frame)...).WithContext(ctx)).expect(acknowledged)
	}
	if got := w.Stats(); got.Subscriptions != n || got.ActiveRequests != n {
		t.Errorf("Stats: got %+v, want %d subscriptions", got, n)
	}
	cancel()
	eventually(t, "the end of all", func() bool { s := w.Stats(); return s.Subscriptions == 0 && s.ActiveRequests == 0 })
}

// TestBothErasOnAPipe mixes the eras on one pipe, and cancels by notification.
func TestBothErasOnAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		withResource(t, f.Engine)
		time.Sleep(time.Minute)
		l := serve(t, f, nil)
		expect := func(what string, want ...string) {
			t.Helper()
			time.Sleep(time.Second) // the reader's role moves on after a moment
			got := l.answers()
			l.out.mu.Lock()
			first, _, _ := strings.Cut(string(l.out.data), "\n")
			l.out.data = []byte(first + "\n")
			l.out.mu.Unlock()
			if !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", what, got, want)
			}
		}
		l.send(modernCall("1", "echo", text("a")), call("1", "echo", text("b")), ping("2"), modern("3", "ping", ""))
		expect("both eras", "1 a", "1 b", "2 ok", "3 -32601")
		l.send(modernCall("4", "gate", text("modern")), call("5", "gate", text("legacy")))
		time.Sleep(time.Second)
		l.send(modernCall("4", "echo", text("again")))
		expect("an id in flight", "4 -32600")
		l.send(cancelOf("4"))
		if got := <-f.ended; got != "modern" {
			t.Errorf("the cancelled call: got %s", got)
		}
		time.Sleep(time.Second)
		expect("a cancelled call")
		l.send(modernCall("4", "echo", text("again")), cancelOf("4"), cancelOf(`"4"`), cancelOf("99"))
		expect("its id, later", "4 again")

		l.send(listen(`"s"`), listen(`7`))
		expect("subscriptions", acknowledged, acknowledged)
		f.ResourceUpdated("a:")
		expect("an update", "notifications/resources/updated", "notifications/resources/updated")
		l.send(cancelOf(`"s"`))
		synctest.Wait() // it has been read
		f.ResourceUpdated("a:")
		expect("an update after a cancellation", "notifications/resources/updated")
		if got := f.Stats(); got.Subscriptions != 1 || got.Sessions != 1 {
			t.Errorf("Stats: got %+v, want one subscription and the session of the pipe", got)
		}
		// The end of the input ends what would never end by itself, and no more.
		go func() { time.Sleep(time.Second); close(f.open) }()
		synctest.Wait()
		took, err := l.end()
		if err != nil || took != time.Second {
			t.Errorf("ServeStdio: went on for %v, got %v, want 1 s and nil", took, err)
		}
		expect("at the end", "5 legacy")
		if got := f.Stats(); got.Subscriptions != 0 || got.ActiveRequests != 0 || got.Sessions != 0 {
			t.Errorf("Stats: got %+v, want nothing left", got)
		}
	})
}

// TestListenOnASlowPipe changes a resource 1,000 times while nobody reads.
func TestListenOnASlowPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		withResource(t, f.Engine)
		time.Sleep(time.Minute)
		l := serve(t, f, &transport.LineOptions{MaxQueueBytes: 1000})
		l.send(listen(`"s"`))
		synctest.Wait()
		l.out.hold(true)
		for range 1000 {
			f.ResourceUpdated("a:")
			time.Sleep(time.Millisecond)
		}
		l.out.hold(false)
		time.Sleep(time.Second)
		if got := len(l.answers()); got < 2 || got > 20 {
			t.Errorf("frames: got %d, want the acknowledgement and a few updates", got)
		}
		before := len(l.answers())
		f.ResourceUpdated("a:")
		synctest.Wait()
		if got := l.answers(); len(got) != before+1 || slices.Contains(got, `"s" -31902`) {
			t.Errorf("an update afterwards: got %q", got)
		}
		if err := f.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		synctest.Wait()
		got := l.answers()
		if want := []string{"notifications/cancelled", `"s" ok`}; !slices.Equal(got[len(got)-2:], want) {
			t.Errorf("at the shutdown: got %q, want %q", got[len(got)-2:], want)
		}
		<-l.served
	})
}

// TestManyListensOnAPipe opens 1,000 subscriptions on one pipe.
func TestManyListensOnAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		withResource(t, f.Engine)
		time.Sleep(time.Minute)
		l := serve(t, f, nil)
		const n = 1000
		for i := range n {
			l.send(listen(fmt.Sprint(i)))
		}
		time.Sleep(10 * time.Second)
		f.ResourceUpdated("a:")
		synctest.Wait()
		count := make(map[string]int)
		l.out.mu.Lock()
		for line := range strings.Lines(string(l.out.data)) {
			count[codec.Text([]byte(line), "method")]++
		}
		l.out.mu.Unlock()
		if count[acknowledged] != n || count["notifications/resources/updated"] != n || f.Stats().Subscriptions != n {
			t.Errorf("got %v, %d subscriptions, want %d of each", count, f.Stats().Subscriptions, n)
		}
		if took, err := l.end(); err != nil || took > time.Second {
			t.Errorf("ServeStdio: went on for %v, got %v", took, err)
		}
		if got := f.Stats(); got.Subscriptions != 0 || got.ActiveRequests != 0 {
			t.Errorf("Stats: got %+v, want nothing left", got)
		}
	})
}
