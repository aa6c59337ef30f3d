package transport_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// frames reads up to n events with data, in short, or all of them where n is
// negative. ended tells that the response is over.
func (r *eventReader) frames(n int) (list []string, ended bool) {
	r.t.Helper()
	for n < 0 || len(list) < n {
		e, ok := r.next()
		if !ok {
			return list, true
		}
		if e.data != "" {
			list = append(list, brief([]byte(e.data)))
		}
	}
	return list, false
}

// TestResumeUnderLoad has many clients whose connections break again and again.
// Each gets every frame of its own call exactly once and in order.
func TestResumeUnderLoad(t *testing.T) {
	o := withEvents()
	o.CommitDelay = time.Millisecond
	s := newResumeServer(t, o)
	const clients, steps = 12, 40
	sessions := []string{s.open("2025-11-25"), s.open("2025-11-25"), s.open("2025-11-25")}
	var running sync.WaitGroup
	for client := range clients {
		session := sessions[client%len(sessions)]
		running.Go(func() {
			random := rand.New(rand.NewPCG(uint64(client), 1))
			id := quote(client)
			r := s.post(session, callWithToken(id, "progress", fmt.Sprintf(`"n":%d,"ms":1,`, steps)+text("end"), id))
			got, ended := r.frames(random.IntN(4))
			for len(got) <= steps && !ended {
				if r.last == "" {
					r.want("priming", "*-0 retry=40 empty")
				}
				r.reset()
				r = s.get(session, r.last)
				if r.resp.StatusCode != http.StatusOK {
					t.Errorf("client %d: GET: got status %d, want 200", client, r.resp.StatusCode)
					return
				}
				last := r.last
				var more []string
				more, ended = r.frames(1 + random.IntN(4))
				if r.last == "" {
					r.last = last
				}
				got = append(got, more...)
			}
			var want []string
			for i := range steps {
				want = append(want, fmt.Sprintf("progress %s %d", id, i+1))
			}
			if want = append(want, id+" end"); !slices.Equal(got, want) {
				t.Errorf("client %d: got %q, want %q", client, got, want)
			}
		})
	}
	running.Wait()
}

// TestStalledReaderLosesNothing has a client that does not read: the handler is
// not held up, what waits is bounded, and the client gets the rest by resuming.
func TestStalledReaderLosesNothing(t *testing.T) {
	o := withEvents()
	o.MaxQueueBytes = 64 << 10
	o.Events = transport.NewMemoryEvents(64<<20, 0)
	s := newResumeServer(t, o)
	const steps = 3000
	padding := strings.Repeat("x", 4000)
	s.add(t, "loud", func(ctx context.Context, c *engine.Call, _, out []byte) ([]byte, error) {
		for i := range steps {
			c.ProgressMessage(ctx, float64(i+1), 0, padding)
		}
		return engine.AppendTextResult(out, "end"), nil
	})
	session := s.open("2025-11-25")
	r := s.post(session, callWithToken("1", "loud", "", "7"))
	eventually(t, "the call has ended", func() bool { return s.Engine.Stats().ActiveRequests == 0 })
	got, _ := r.frames(-1)
	if len(got) > steps {
		t.Fatal("the first response held everything: the client was never too far behind")
	}
	for rounds := 0; len(got) <= steps; rounds++ {
		if rounds > 20 {
			t.Fatalf("after %d rounds: got %d frames, want %d", rounds, len(got), steps+1)
		}
		r = s.get(session, r.last)
		more, _ := r.frames(-1)
		got = append(got, more...)
	}
	for i, frame := range got {
		want := fmt.Sprintf("progress 7 %d", i+1)
		if i == steps {
			want = "1 end"
		}
		if frame != want {
			t.Fatalf("frame %d: got %q, want %q", i, frame, want)
		}
	}
}

// TestEndedSessionKeepsNothing ends sessions in each way there is.
func TestEndedSessionKeepsNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(s *resumeServer, session string)
	}{
		{"DELETE", func(s *resumeServer, session string) { s.do(http.MethodDelete, session, "", "").rest() }},
		{"Close", func(s *resumeServer, session string) { s.Session(session).Close() }},
		{"Shutdown", func(s *resumeServer, _ string) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			if s.Shutdown(ctx) == nil {
				s.t.Error("Shutdown with a call in flight: got nil, want an error")
			}
		}},
	} {
		s := newResumeServer(t, withEvents())
		session := s.open("2025-11-25")
		get := s.get(session, "")
		get.want(c.name, "*-0 retry=40 empty")
		post := s.post(session, callSteps)
		s.step(1)
		post.want(c.name, "*-0 retry=40 empty", "*-1 progress 7 1")
		post.reset()
		if got := s.handler.Stats().ReplayBytes; got < 128 {
			t.Errorf("%s: ReplayBytes before: got %d, want at least 128", c.name, got)
		}
		c.end(s, session)
		eventually(t, c.name+": nothing is kept", func() bool { return s.handler.Stats().ReplayBytes == 0 })
		if c.name != "Shutdown" {
			if got := s.get(session, post.last).resp.StatusCode; got != http.StatusNotFound {
				t.Errorf("%s: GET: got status %d, want 404", c.name, got)
			}
		}
		s.step(2)
		s.finish()
		s.noStreams()
		if got := s.handler.Stats().ReplayBytes; got != 0 {
			t.Errorf("%s: ReplayBytes after the handler went on: got %d, want 0", c.name, got)
		}
	}
}

// TestCancelledStreamEnds cancels a call whose connection is broken: the client
// that comes back learns that nothing follows.
func TestCancelledStreamEnds(t *testing.T) {
	s := newResumeServer(t, withEvents())
	session := s.open("2025-11-25")
	post := s.post(session, call(`"a"`, "gate", text("a")))
	post.want("POST", "*-0 retry=40 empty")
	post.reset()
	s.noStreams()
	get := s.get(session, post.last)
	s.post(session, cancelOf(`"a"`)).rest()
	get.wantEnd("GET while it was cancelled")
	s.get(session, post.last).wantEnd("GET afterwards")
}

// TestLargeAnswerIsNotKept has an answer for which the store has no room: it
// reaches a client that is there, and one that comes back is not left waiting.
func TestLargeAnswerIsNotKept(t *testing.T) {
	o := withEvents()
	o.Events = transport.NewMemoryEvents(10_000, 0)
	o.MaxQueueBytes = 10_000
	s := newResumeServer(t, o)
	session := s.open("2025-06-18")
	for i, stays := range []bool{true, false} {
		began := make(chan struct{})
		s.add(t, "large", func(ctx context.Context, c *engine.Call, _, out []byte) ([]byte, error) {
			c.Progress(ctx, 1, 0)
			<-began
			return engine.AppendTextResult(out, strings.Repeat("x", 50_000)), nil
		})
		post := s.post(session, callWithToken(quote(i), "large", "", "7"))
		post.want("POST", "*-1 progress 7 1")
		if !stays {
			post.reset()
			s.noStreams()
		}
		close(began)
		if stays {
			e, ok := post.next()
			if !ok || len(codec.Member([]byte(e.data), "result")) < 50_000 {
				t.Errorf("POST: got %d bytes, want the whole answer", len(e.data))
			}
			continue
		}
		eventually(t, "the call has ended", func() bool { return s.Engine.Stats().ActiveRequests == 0 })
		if got := s.get(session, post.last).resp.StatusCode; got != http.StatusBadRequest {
			t.Errorf("GET: got status %d, want 400", got)
		}
	}
}
