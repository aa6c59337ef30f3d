package transport_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// withKey gives options for sealed ids, with a cap on sessions where it is not 0.
func withKey(key byte, sessions int) *engine.Options {
	return &engine.Options{
		SessionKeys: [][]byte{bytes.Repeat([]byte{key}, 32)}, Limits: actors.Limits{MaxSessions: sessions},
	}
}

// TestSealedSessions takes sessions from one server to another that has its key:
// they go on, as they were negotiated. One that lacks the key knows none.
func TestSealedSessions(t *testing.T) {
	noLeaks(t)
	first, second, stranger := newWeb(t, withKey(1, 0), nil), newWeb(t, withKey(1, 0), nil), newWeb(t, withKey(2, 0), nil)
	plain := newWeb(t, nil, nil)
	batch := "[" + ping("1") + "," + ping("2") + "]"
	for revision, batches := range map[string]int{"2025-03-26": 200, "2025-06-18": 400, "2025-11-25": 400} {
		session := first.session(revision)
		for range 2 {
			if got := second.post(session, call("1", "echo", text("x"))); !slices.Equal(got.frames(), []string{"1 x"}) {
				t.Errorf("%s: a call elsewhere: got %d %q, want its answer", revision, got.status, got.body)
			}
		}
		if got := second.post(session, batch); got.status != batches {
			t.Errorf("%s: a batch elsewhere: got %d, want %d", revision, got.status, batches)
		}
		for name, w := range map[string]*web{"another key": stranger, "no key": plain} {
			if got := w.post(session, ping("1")); got.status != http.StatusNotFound || got.code() != "-32001" {
				t.Errorf("%s: %s: got %d %s, want 404 and -32001", revision, name, got.status, got.body)
			}
		}
	}
	if got := second.Stats(); got.Sessions != 3 || got.Refusals.Revived != 3 {
		t.Errorf("Stats of the second: got %+v, want three sessions that came back", got)
	}
	if got := stranger.Stats().Sessions + plain.Stats().Sessions; got != 0 {
		t.Errorf("sessions of those without the key: got %d, want 0", got)
	}
}

// TestForgedSessions posts ids that are almost right, by each method: each is
// a 404, and no session appears.
func TestForgedSessions(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, withKey(1, 0), nil)
	session := w.session("2025-11-25")
	forged := []string{session[:len(session)-1], session + "A", strings.ToLower(session), strings.Repeat("A", 5000)}
	for i := 0; i < len(session); i += 7 {
		b := []byte(session)
		if b[i]++; b[i] > 'y' {
			b[i] = '0'
		}
		forged = append(forged, string(b))
	}
	for _, id := range forged {
		for _, r := range []*http.Request{
			w.request(http.MethodPost, ping("1"), append(slices.Clone(standard), "Mcp-Session-Id: "+id)...),
			w.request(http.MethodGet, "", "Accept: text/event-stream", "Mcp-Session-Id: "+id),
			w.request(http.MethodDelete, "", "Mcp-Session-Id: "+id),
		} {
			if got := w.do(r); got.status != http.StatusNotFound {
				t.Errorf("%s with a forged id: got %d, want 404", r.Method, got.status)
			}
		}
	}
	if got := w.Stats(); got.Sessions != 1 || got.Refusals.UnknownSessions != int64(3*len(forged)) {
		t.Errorf("Stats: got %+v, want one session and %d unknown", got, 3*len(forged))
	}
	if got := w.post(session, ping("1")); got.status != http.StatusOK {
		t.Errorf("the true id: got %d, want 200", got.status)
	}
}

// TestDeleteSealed deletes a session that is not here: it never comes back. Nor
// are its events kept.
func TestDeleteSealed(t *testing.T) {
	noLeaks(t)
	events := transport.NewMemoryEvents(0, 0)
	w := newWeb(t, withKey(1, 1), &transport.HTTPOptions{Events: events})
	session := w.session("2025-11-25")
	if got := w.post(session, callWithToken("1", "progress", `"n":1`, "1"), "Accept: text/event-stream"); got.status != 200 {
		t.Fatalf("a call: got %d %s", got.status, got.body)
	}
	other := w.session("2025-11-25") // evicts it
	eventually(t, "the eviction", func() bool { return w.Stats().Sessions == 1 })
	if events.LargestSession() == 0 {
		t.Error("the events of an evicted session are gone")
	}
	remove := func() int { return w.do(w.request(http.MethodDelete, "", "Mcp-Session-Id: "+session)).status }
	if got := remove(); got != http.StatusNoContent {
		t.Errorf("DELETE: got %d, want 204", got)
	}
	if got := events.LargestSession(); got != 0 {
		t.Errorf("events after the DELETE: got %d bytes, want 0", got)
	}
	if got := remove(); got != http.StatusNotFound {
		t.Errorf("a second DELETE: got %d, want 404", got)
	}
	if got := w.post(session, ping("1")); got.status != http.StatusNotFound {
		t.Errorf("after the DELETE: got %d, want 404", got.status)
	}
	if got := w.post(other, ping("1")); got.status != http.StatusOK {
		t.Errorf("the other session: got %d, want 200: nothing had to make room", got.status)
	}
}

// TestResumeAfterEviction resumes a stream of a session that was evicted
// meanwhile. Its events are those of before, and ids are not used again.
func TestResumeAfterEviction(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, withKey(1, 1), &transport.HTTPOptions{Events: transport.NewMemoryEvents(0, 0)})
	session := w.session("2025-11-25")
	answer := w.post(session, callWithToken("1", "progress", `"n":2`, "1"), "Accept: text/event-stream")
	_, rest, _ := strings.Cut(answer.body, "id: ")
	id, _, _ := strings.Cut(rest, "\n")
	w.session("2025-11-25")
	eventually(t, "the eviction", func() bool { return w.Stats().Sessions == 1 })
	got := w.do(w.request(http.MethodGet, "", "Accept: text/event-stream", "Mcp-Session-Id: "+session, "Last-Event-Id: "+id))
	if got.status != http.StatusOK || len(got.frames()) != 3 {
		t.Errorf("resuming after %s: got %d %q, want two notifications and the answer", id, got.status, got.frames())
	}
	number, _, _ := strings.Cut(id, "-")
	if n, err := strconv.ParseUint(number, 10, 64); err != nil || n < uint64(time.Now().Add(-time.Hour).UnixMilli())<<16 {
		t.Errorf("the number of a stream: got %s, want one that no earlier process used", number)
	}
}

// TestRateLimitOverHTTP checks the status and headers of a call that comes too
// soon, in both eras and on both kinds of replies.
func TestRateLimitOverHTTP(t *testing.T) {
	noLeaks(t)
	o := &engine.Options{RateLimit: func(_, tool string) engine.Rate {
		return engine.Rate{PerSecond: map[string]float64{"echo": 0.25}[tool], Burst: 1}
	}}
	for name, ho := range map[string]*transport.HTTPOptions{"plain": nil, "resumable": {Events: transport.NewMemoryEvents(0, 0)}} {
		w := newWeb(t, o, ho)
		session := w.session("2025-11-25")
		if got := w.post(session, call("1", "echo", text("x"))); got.status != http.StatusOK {
			t.Errorf("%s: first call: got %d, want 200", name, got.status)
		}
		got := w.post(session, call("2", "echo", text("x")))
		if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "4" || got.code() != "-31900" {
			t.Errorf("%s: second call: got %d, Retry-After %q, %s; want 429, 4, -31900",
				name, got.status, got.header.Get("Retry-After"), got.body)
		}
		if got := w.post(session, call("3", "quick", "")); got.status != http.StatusOK {
			t.Errorf("%s: another tool: got %d, want 200", name, got.status)
		}
		if got := w.Stats().Refusals.RateLimited; got != 1 {
			t.Errorf("%s: RateLimited: got %d, want 1", name, got)
		}
	}
}

// TestMaxHeaders checks the limit on the number of headers.
func TestMaxHeaders(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, nil, &transport.HTTPOptions{MaxHeaders: 10})
	for n, want := range map[int]int{2: http.StatusOK, 20: http.StatusRequestHeaderFieldsTooLarge} {
		header := slices.Clone(standard)
		for i := range n {
			header = append(header, "X-"+strconv.Itoa(i)+": y")
		}
		if got := w.do(w.request(http.MethodPost, initialize, header...)); got.status != want {
			t.Errorf("%d more headers: got %d, want %d", n, got.status, want)
		}
	}
}

// TestAbandonedSessions opens far more sessions than there is room for. Memory
// does not grow; the newest answer; of the others each is a 404, or goes on where
// there are keys.
func TestAbandonedSessions(t *testing.T) {
	const opened, limit = 5000, 500
	for _, sealed := range []bool{false, true} {
		o := &engine.Options{Limits: actors.Limits{MaxSessions: limit}, Logger: slog.New(slog.DiscardHandler)}
		if sealed {
			o.SessionKeys = withKey(1, 0).SessionKeys
		}
		e := engine.New(engine.Info{}, o)
		h := transport.NewHTTPHandler(e, nil)
		post := func(session, body string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			if session != "" {
				r.Header.Set("Mcp-Session-Id", session)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		var ids []string
		var heap [2]uint64
		for half := range heap {
			for range opened / 2 {
				ids = append(ids, post("", initialize).Header().Get("Mcp-Session-Id"))
			}
			heap[half] = liveHeap()
		}
		// What is kept to look at is no part of it: the ids of the second half.
		kept := uint64(opened / 2 * (len(ids[0]) + 16))
		if grown := int64(heap[1]) - int64(heap[0]) - int64(kept); grown > 512<<10 {
			t.Errorf("sealed %t: the heap grew by %d bytes in the second half", sealed, grown)
		}
		for i, id := range ids {
			want := http.StatusOK
			if i < opened-limit && !sealed {
				want = http.StatusNotFound
			}
			if i < opened-limit && i%50 != 0 {
				continue
			}
			if got := post(id, ping("1")).Code; got != want {
				t.Fatalf("sealed %t: session %d of %d: got %d, want %d", sealed, i, opened, got, want)
			}
		}
		if got := e.Stats().Sessions; got != limit {
			t.Errorf("sealed %t: sessions: got %d, want %d", sealed, got, limit)
		}
		_ = e.Shutdown(t.Context())
	}
}

// liveHeap gives the bytes of what is reachable.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestStalledGetBesideOthers lets one client not read its stream, far beyond
// what is queued for it. The others get theirs, and their calls are as quick as
// without it.
func TestStalledGetBesideOthers(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, nil, &transport.HTTPOptions{MaxQueueBytes: 64 << 10, WriteTimeout: 30 * time.Second})
	const healthy, rounds = 20, 40
	stalled := w.get(w.session("2025-06-18"))
	sessions := make([]string, healthy)
	streams := make([]*events, healthy)
	for i := range sessions {
		sessions[i] = w.session("2025-06-18")
		streams[i] = w.get(sessions[i])
	}
	notice := strings.Repeat("x", 32<<10)
	for round := range rounds {
		if err := w.Log(engine.LevelError, "", notice); err != nil {
			t.Fatal(err)
		}
		for i, s := range streams {
			if got := s.next(); got != "notifications/message" {
				t.Fatalf("round %d, stream %d: got %q", round, i, got)
			}
		}
		begun := time.Now()
		if got := w.post(sessions[round%healthy], call("1", "echo", text("x"))); got.status != http.StatusOK {
			t.Errorf("round %d: a call: got %d", round, got.status)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("round %d: a call beside a stalled stream took %v", round, took)
		}
	}
	_ = stalled.response.Body.Close()
}

// TestHalfClosedAndReset checks that connections which end oddly leave nothing
// behind: the request goes on, as a disconnect is no cancellation, and then the
// session is idle.
func TestHalfClosedAndReset(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, nil, nil)
	session := w.session("2025-11-25")
	for _, name := range []string{"half-closed", "closed", "reset"} {
		c := w.dial()
		body := call("1", "gate", text(name))
		c.write(head(session, "Content-Length: "+strconv.Itoa(len(body))) + body)
		if got := <-w.entered; got != name {
			t.Fatalf("entered: got %q, want %q", got, name)
		}
		switch tcp := c.Conn.(*net.TCPConn); name {
		case "half-closed":
			_ = tcp.CloseWrite()
		case "reset":
			_ = tcp.SetLinger(0)
			fallthrough
		default:
			_ = tcp.Close()
		}
		if got := w.post(session, ping("2")); got.status != http.StatusOK {
			t.Errorf("%s: a ping beside it: got %d, want 200", name, got.status)
		}
		w.post(session, cancelOf("1"))
		if got := <-w.ended; got != name {
			t.Errorf("ended: got %q, want %q", got, name)
		}
		_ = c.Close()
		eventually(t, "the end of the request", func() bool { return w.Stats().ActiveRequests == 0 })
	}
}

// failingStore cannot be reached.
type failingStore struct{ *engine.MemorySessions }

func (failingStore) Revoked(context.Context, engine.SessionRef) (bool, error) {
	return false, errors.New("out of reach")
}

func (failingStore) Revoke(context.Context, engine.SessionRef) error {
	return errors.New("out of reach")
}

// TestStoreOutOfReach checks that clients are told to try again, and not that
// their sessions are gone.
func TestStoreOutOfReach(t *testing.T) {
	noLeaks(t)
	session := newWeb(t, withKey(1, 0), nil).session("2025-11-25")
	o := withKey(1, 0)
	o.Sessions = failingStore{engine.NewMemorySessions(0)}
	w := newWeb(t, o, nil)
	for _, r := range []*http.Request{
		w.request(http.MethodPost, ping("1"), append(slices.Clone(standard), "Mcp-Session-Id: "+session)...),
		w.request(http.MethodDelete, "", "Mcp-Session-Id: "+session),
	} {
		got := w.do(r)
		if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
			t.Errorf("%s: got %d, Retry-After %q; want 503 and a time", r.Method, got.status, got.header.Get("Retry-After"))
		}
	}
	if got := w.Stats().Sessions; got != 0 {
		t.Errorf("sessions: got %d, want 0", got)
	}
}

// TestSSEPrincipal checks that nobody posts into another's session.
func TestSSEPrincipal(t *testing.T) {
	var who atomic.Value
	who.Store("ann")
	s := newSSEServer(t, nil, &engine.Options{Principal: func(context.Context) string { return who.Load().(string) }})
	stream, path := s.open("2024-11-05")
	who.Store("bob")
	if got := s.request(http.MethodPost, path, ping("1")).resp; got.StatusCode != http.StatusNotFound {
		t.Errorf("a message of another principal: got %d, want 404", got.StatusCode)
	}
	who.Store("ann")
	s.send(path, ping("2"))
	stream.want("after it", "2 ok")
}
