package transport_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/engine/store/bolt"
	"github.com/mcpengine/mcpengine/transport"
)

// fakeLog is an engine.EventLog in memory, which may be slow and may fail.
type fakeLog struct {
	delay time.Duration

	mu     sync.Mutex // guards what follows
	events []engine.LoggedEvent
	writes int
	fail   error
}

func (l *fakeLog) wait(ctx context.Context) error {
	select {
	case <-time.After(l.delay):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *fakeLog) setFail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = err
}

func (l *fakeLog) AppendEvents(ctx context.Context, events []engine.LoggedEvent) error {
	if err := l.wait(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	if l.fail == nil {
		l.events = append(l.events, events...)
	}
	return l.fail
}

func (l *fakeLog) EventsAfter(_ context.Context, session string, stream, seq uint64) (found []engine.LoggedEvent, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if e.Session == session && e.Stream == stream && e.Seq > seq {
			found = append(found, e)
		}
	}
	return found, nil
}

func (l *fakeLog) DropEvents(ctx context.Context, session string) error {
	if err := l.wait(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = slices.DeleteFunc(l.events, func(e engine.LoggedEvent) bool { return e.Session == session })
	return l.fail
}

// storedEvents makes a store over a log.
func storedEvents(log engine.EventLog, maxWaiting int) *transport.StoredEvents {
	return transport.NewStoredEvents(log, &transport.StoredEventsOptions{
		MaxWaiting: maxWaiting, Logger: slog.New(slog.DiscardHandler),
	})
}

// seqsAfter gives the numbers of the events that a store has after one.
func seqsAfter(t *testing.T, s transport.EventStore, session string, stream, seq uint64) string {
	t.Helper()
	events, err := s.After(t.Context(), session, stream, seq)
	if err != nil {
		return "error"
	}
	var b strings.Builder
	for _, e := range events {
		if want := fmt.Sprint("frame ", e.Seq); string(e.Frame) != want {
			t.Errorf("frame: got %q, want %q", e.Frame, want)
		}
		fmt.Fprintf(&b, "%d ", e.Seq)
	}
	return strings.TrimSpace(b.String())
}

// appendSeqs appends events whose frames are changed afterwards.
func appendSeqs(s transport.EventStore, session string, from, to uint64) {
	for seq := from; seq <= to; seq++ {
		frame := fmt.Appendf(nil, "frame %d", seq)
		s.Append(session, transport.Event{Stream: 1, Seq: seq, Frame: frame})
		copy(frame, "XXXXX")
	}
}

// TestStoredEvents has a log that takes a second for each write. Appending does
// not wait; reading waits for what was appended before; what waits is written
// together; and no goroutine is left.
func TestStoredEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeLog{delay: time.Second}
		s := storedEvents(log, 0)
		begun := time.Now()
		appendSeqs(s, "a secret id", 1, 100)
		appendSeqs(s, "b", 1, 2)
		if took := time.Since(begun); took != 0 {
			t.Errorf("Append: took %v, want no time", took)
		}
		if got := seqsAfter(t, s, "a secret id", 1, 97); got != "98 99 100" {
			t.Errorf("After: got %q, want 98 99 100", got)
		}
		if log.writes > 2 {
			t.Errorf("writes: got %d, want at most 2", log.writes)
		}
		for _, e := range log.events {
			if strings.Contains(e.Session, "secret") || len(e.Session) != 32 {
				t.Fatalf("the log knows the session as %q, want a digest", e.Session)
			}
		}
		s.Drop("a secret id")
		appendSeqs(s, "a secret id", 101, 101)
		if got := seqsAfter(t, s, "a secret id", 1, 0); got != "101" {
			t.Errorf("After a drop: got %q, want 101", got)
		}
		if got := seqsAfter(t, s, "b", 1, 0); got != "1 2" {
			t.Errorf("After, another session: got %q, want 1 2", got)
		}
		if got := s.Lost(); got != 0 {
			t.Errorf("Lost: got %d, want 0", got)
		}
	})
}

// TestStoredEventsBound appends faster than the log writes: what has no room is
// not kept, and is counted; a drop still has room.
func TestStoredEventsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeLog{delay: time.Second}
		s := storedEvents(log, 2000)
		appendSeqs(s, "other", 1, 1)
		synctest.Wait() // the writer has it, and is busy for a second
		appendSeqs(s, "a", 1, 100)
		s.Drop("other")
		if got := seqsAfter(t, s, "a", 1, 0); !strings.HasPrefix(got, "1 2 3") || strings.HasSuffix(got, " 100") {
			t.Errorf("After: got %q, want the first ones and not the last", got)
		}
		if got := seqsAfter(t, s, "other", 1, 0); got != "" {
			t.Errorf("After of a session that was dropped: got %q, want nothing", got)
		}
		if got := s.Lost(); got < 80 || got >= 100 {
			t.Errorf("Lost: got %d, want those that had no room", got)
		}
	})
}

// TestStoredEventsFail has a log that fails for a while, and one that hangs: what
// was to be written meanwhile is lost and counted, and the store goes on.
func TestStoredEventsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeLog{}
		s := storedEvents(log, 0)
		log.setFail(errors.New("disk full"))
		appendSeqs(s, "a", 1, 3)
		if err := s.Flush(t.Context()); err != nil {
			t.Errorf("Flush: got %v, want nil", err)
		}
		log.setFail(nil)
		appendSeqs(s, "a", 4, 5)
		if got := seqsAfter(t, s, "a", 1, 0); got != "4 5" {
			t.Errorf("After: got %q, want 4 5", got)
		}
		if got := s.Lost(); got != 3 {
			t.Errorf("Lost: got %d, want 3", got)
		}
		hanging := storedEvents(&fakeLog{delay: time.Hour}, 0)
		appendSeqs(hanging, "a", 1, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := hanging.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush of a log that hangs: got %v, want the end of the context", err)
		}
		if err := hanging.Flush(t.Context()); err != nil { // the write is given up after 5 s
			t.Errorf("Flush: got %v, want nil", err)
		}
		if got := hanging.Lost(); got != 1 {
			t.Errorf("Lost: got %d, want 1", got)
		}
	})
}

// TestResumeFromFile resumes streams at a server that began with nothing but the
// keys and the file of the one before: the rest of a reply, and what the server
// said by itself. A session that was deleted has nothing.
func TestResumeFromFile(t *testing.T) {
	noLeaks(t)
	path := filepath.Join(t.TempDir(), "sessions.db")
	var session, deleted, reply, notice string
	serve := func(use func(w *web)) {
		store, err := bolt.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = store.Close() }()
		events := transport.NewStoredEvents(store, nil)
		o := withKey(1, 0)
		o.Sessions = store
		use(newWeb(t, o, &transport.HTTPOptions{Events: events}))
		if err := events.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	}
	firstID := func(body string) string {
		_, rest, _ := strings.Cut(body, "id: ")
		id, _, _ := strings.Cut(rest, "\n")
		return id
	}
	serve(func(w *web) {
		session, deleted = w.session("2025-11-25"), w.session("2025-11-25")
		for _, s := range []string{session, deleted} {
			reply = firstID(w.post(s, callWithToken("1", "progress", `"n":2,`+text("word"), "1"), "Accept: text/event-stream").body)
		}
		if got := w.do(w.request(http.MethodDelete, "", "Mcp-Session-Id: "+deleted)); got.status != http.StatusNoContent {
			t.Errorf("DELETE: got %d, want 204", got.status)
		}
		reply = firstID(w.post(session, callWithToken("2", "progress", `"n":2,`+text("word"), "1"), "Accept: text/event-stream").body)
		stream := w.get(session)
		e, err := readEvent(stream.r)
		if err != nil || e.id == "" {
			t.Fatalf("the first event of a GET: got %+v, %v; want one with an id", e, err)
		}
		notice = e.id
		w.NotifyListChanged("tools")
		stream.expect("notifications/tools/list_changed") // which the client forgets
	})
	serve(func(w *web) {
		for _, c := range []struct {
			what, session, id string
			status            int
			frames            []string
		}{
			{"a reply", session, reply, 200, []string{"progress 1 1", "progress 1 2", "2 word"}},
			{"a notice", session, notice, 200, []string{"notifications/tools/list_changed"}},
			{"a stream that never was", session, "1-1", 400, nil},
			{"a deleted session", deleted, reply, 404, nil},
		} {
			got := w.do(w.request(http.MethodGet, "", "Accept: text/event-stream", "Mcp-Session-Id: "+c.session, "Last-Event-Id: "+c.id))
			if got.status != c.status || c.frames != nil && !slices.Equal(got.frames(), c.frames) {
				t.Errorf("%s: resuming after %s: got %d %q, want %d %q", c.what, c.id, got.status, got.frames(), c.status, c.frames)
			}
		}
	})
}
