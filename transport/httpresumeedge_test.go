package transport_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// hookedEvents is a store that calls a function, once, while it is being read.
type hookedEvents struct {
	*transport.MemoryEvents

	mu   sync.Mutex // guards hook
	hook func()
}

func (h *hookedEvents) After(ctx context.Context, session string, stream, seq uint64) ([]transport.Event, error) {
	events, err := h.MemoryEvents.After(ctx, session, stream, seq)
	h.mu.Lock()
	hook := h.hook
	h.hook = nil
	h.mu.Unlock()
	if hook != nil {
		hook()
	}
	return events, err
}

// set sets what is called when the store is read next.
func (h *hookedEvents) set(hook func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hook = hook
}

// TestResumeMeetsNewEvents has events, and then the end, that come between the
// look into the store and the takeover of the stream.
func TestResumeMeetsNewEvents(t *testing.T) {
	o := withEvents()
	store := &hookedEvents{MemoryEvents: transport.NewMemoryEvents(0, 0)}
	o.Events = store
	s := newResumeServer(t, o)
	session := s.open("2025-11-25")
	post := s.post(session, callSteps)
	s.step(1, 2)
	post.want("POST", "*-0 retry=40 empty", "*-1 progress 7 1")
	first := post.last
	post.reset()
	s.noStreams()
	store.set(func() { s.step(3, 4) })
	get := s.get(session, first)
	get.want("GET", "*-2 progress 7 2", "*-3 progress 7 3", "*-4 progress 7 4")
	s.step(5)
	get.want("GET", "*-5 progress 7 5")
	get.reset()
	s.noStreams()
	store.set(func() {
		s.finish()
		eventually(t, "the call has ended", func() bool { return s.Engine.Stats().ActiveRequests == 0 })
	})
	get = s.get(session, first)
	get.want("second GET", "*-2 progress 7 2", "*-3 progress 7 3", "*-4 progress 7 4", "*-5 progress 7 5", "*-6 1 done")
	get.wantEnd("second GET")
}

// TestNothingIsKeptForNobody breaks the connection of a call before the client
// has any id: nobody could ask for what follows.
func TestNothingIsKeptForNobody(t *testing.T) {
	o := withEvents()
	o.CommitDelay = 10 * time.Second
	s := newResumeServer(t, o)
	session := s.open("2025-11-25")
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(callSteps))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Mcp-Session-Id", session)
	gone := make(chan error, 1)
	go func() {
		_, err := s.client.Do(r)
		gone <- err
	}()
	eventually(t, "the call has begun", func() bool { return s.Engine.Stats().ActiveRequests == 1 })
	cancel()
	if err := <-gone; err == nil {
		t.Fatal("POST: got a response, want a broken connection")
	}
	time.Sleep(50 * time.Millisecond) // the server learns of the end by itself
	s.step(1, 2)
	if got := s.handler.Stats().ReplayBytes; got != 0 {
		t.Errorf("ReplayBytes: got %d, want 0", got)
	}
	s.finish()
}

// TestAbandonedNotices leaves a stream for a new one: it has ended for whoever
// comes back to it, and the new one goes on.
func TestAbandonedNotices(t *testing.T) {
	s := newResumeServer(t, withEvents())
	session := s.open("2025-11-25")
	first := s.get(session, "")
	first.want("first GET", "*-0 retry=40 empty")
	first.reset()
	s.noStreams()
	second := s.get(session, "")
	second.want("second GET", "*-0 retry=40 empty")
	s.get(session, first.last).wantEnd("GET of the abandoned stream")
	s.NotifyListChanged("tools")
	second.want("second GET", "*-1 notifications/tools/list_changed")
}

// TestResumeAfterRestart finds events in the store of a stream that ended with
// the process that served it: what there is comes, and then a clear error.
func TestResumeAfterRestart(t *testing.T) {
	o := withEvents()
	store := transport.NewMemoryEvents(0, 0)
	o.Events = store
	s := newResumeServer(t, o)
	session := s.open("2025-11-25")
	store.Append(session, transport.Event{Stream: 50, Seq: 1, Frame: []byte(ping("1"))})
	store.Append(session, transport.Event{Stream: 50, Seq: 2, Frame: []byte(ping("2"))})
	get := s.get(session, "50-1")
	get.want("GET", "*-2 ping")
	get.wantEnd("GET")
	if got := s.get(session, get.last).resp.StatusCode; got != http.StatusBadRequest {
		t.Errorf("GET with nothing left: got status %d, want 400", got)
	}
}

// TestConcurrentGets opens and resumes streams at the same time. At the end one
// of them, and only one, is told what happens.
func TestConcurrentGets(t *testing.T) {
	s := newResumeServer(t, withEvents())
	session := s.open("2025-11-25")
	first := s.get(session, "")
	first.want("GET", "*-0 retry=40 empty")
	var running sync.WaitGroup
	for client := range 8 {
		running.Go(func() {
			for i := range 10 {
				id := ""
				if (client+i)%2 == 0 {
					id = first.last
				}
				s.get(session, id).reset()
			}
		})
	}
	running.Wait()
	s.noStreams()
	last := s.get(session, "")
	last.want("last GET", "*-0 retry=40 empty")
	s.NotifyListChanged("tools")
	last.want("last GET", "*-1 notifications/tools/list_changed")
}

// TestSSEFarBehind has a client that asks much and reads late: it gets what was
// queued, and the end of its session instead of a gap.
func TestSSEFarBehind(t *testing.T) {
	s := newSSEServer(t, nil, nil)
	answer := strings.Repeat("x", 300_000) // more in all than sockets and the queue hold
	s.add(t, "late", func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
		<-s.fixture.open
		return engine.AppendTextResult(out, answer), nil
	})
	stream, path := s.open("2024-11-05")
	const calls = 100
	for i := range calls {
		s.send(path, call(fmt.Sprint(i), "late", ""))
	}
	eventually(t, "all calls have begun", func() bool { return s.Engine.Stats().ActiveRequests == calls })
	close(s.fixture.open)
	eventually(t, "all calls have ended", func() bool { return s.Engine.Stats().ActiveRequests == 0 })
	if got, ended := stream.frames(calls); !ended || len(got) == 0 {
		t.Errorf("event stream: got %d answers and ended = %v, want some and the end", len(got), ended)
	}
	s.sessions(0)
}

// TestResumeMeetsTheEndOfTheSession ends the session while a GET looks into the
// store: the GET ends, and nothing is kept of the session.
func TestResumeMeetsTheEndOfTheSession(t *testing.T) {
	o := withEvents()
	store := &hookedEvents{MemoryEvents: transport.NewMemoryEvents(0, 0)}
	o.Events = store
	s := newResumeServer(t, o)
	session := s.open("2025-11-25")
	first := s.get(session, "")
	first.want("GET", "*-0 retry=40 empty")
	s.NotifyListChanged("tools")
	first.want("GET", "*-1 notifications/tools/list_changed")
	first.reset()
	s.noStreams()
	stream, _, _ := strings.Cut(first.last, "-")
	store.set(func() {
		s.Session(session).Close()
		eventually(t, "nothing is kept", func() bool { return s.handler.Stats().ReplayBytes == 0 })
	})
	get := s.get(session, stream+"-0")
	get.want("second GET", "*-1 notifications/tools/list_changed", "*-1 retry=40 empty")
	get.wantEnd("second GET")
	if got := s.handler.Stats().ReplayBytes; got != 0 {
		t.Errorf("ReplayBytes: got %d, want 0", got)
	}
}
