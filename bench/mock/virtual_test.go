package mock

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// The tests of this file call the handler without a socket, in virtual time, so that instants are exact.

// virtual is a server in a bubble of virtual time.
type virtual struct {
	*Server
	t *testing.T
}

func inVirtualTime(t *testing.T, c Config, f func(v *virtual)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := newServer(c, newTimerAlarm())
		if err != nil {
			t.Fatal(err)
		}
		f(&virtual{s, t})
		s.Close()
	})
}

// do sends one request and gives its answer.
func (v *virtual) do(method, session, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, Path, strings.NewReader(body))
	if session != "" {
		r.Header.Set(headerSession, session)
	}
	w := httptest.NewRecorder()
	v.ServeHTTP(w, r)
	return w
}

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`
	callEcho   = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}`
	callTouch  = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"touch"}}`
	listTools  = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	subscribe  = `{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"` + ResourceURI + `"}}`
)

// open opens a session.
func (v *virtual) open() string {
	w := v.do("POST", "", initialize)
	if w.Code != 200 {
		v.t.Fatalf("initialize: got status %d %s", w.Code, w.Body)
	}
	return w.Header().Get(headerSession)
}

// timedWriter notes when each event was written.
type timedWriter struct {
	header http.Header
	start  time.Time
	mu     sync.Mutex
	lines  []string // "at data", the time since the start
}

func (w *timedWriter) Header() http.Header { return w.header }
func (w *timedWriter) WriteHeader(int)     {}
func (w *timedWriter) Flush()              {}
func (w *timedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, fmt.Sprintf("%v %s", time.Since(w.start), strings.ReplaceAll(strings.TrimSpace(string(b)), "\n", " ")))
	return len(b), nil
}

func (w *timedWriter) read() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines
}

// stream opens the GET stream of a session, which ends with the server.
func (v *virtual) stream(session, lastID string) *timedWriter {
	r := httptest.NewRequestWithContext(v.t.Context(), "GET", Path, nil)
	r.Header.Set(headerSession, session)
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	w := &timedWriter{header: http.Header{}, start: time.Now()}
	go v.ServeHTTP(w, r)
	synctest.Wait()
	return w
}

// TestCallsTakeTheirTime: what the queue computes is when the handler answers.
func TestCallsTakeTheirTime(t *testing.T) {
	inVirtualTime(t, Config{Model: Model{Service: Service{Mean: ms(10)}, Servers: 2}}, func(v *virtual) {
		id := v.open()
		start := time.Now()
		took := make([]time.Duration, 5)
		var wg sync.WaitGroup
		for i := range took {
			wg.Go(func() {
				if w := v.do("POST", id, callEcho); w.Code != 200 || !strings.Contains(w.Body.String(), `"text":"hi"`) {
					t.Errorf("call: got %d %s, want 200 and the message", w.Code, w.Body)
				}
				took[i] = time.Since(start)
			})
		}
		wg.Wait()
		counts := map[time.Duration]int{}
		for _, d := range took {
			counts[d]++
		}
		if got, want := fmt.Sprint(counts), "map[10ms:2 20ms:2 30ms:1]"; got != want {
			t.Errorf("5 calls at once, 2 servers of 10 ms: got times %s, want %s", got, want)
		}
		before := time.Now()
		if v.do("POST", id, listTools); time.Since(before) != 0 {
			t.Errorf("tools/list took %v, want nothing: only calls are served by the model", time.Since(before))
		}
		if c := v.Stats().Calls; c != (Level{0, 5}) {
			t.Errorf("Stats().Calls: got %+v, want 0 open and a peak of 5", c)
		}
	})
}

// TestEvents: numbers, instants and the one left out.
func TestEvents(t *testing.T) {
	c := Config{Stream: Stream{Events: 5, First: ms(50), Gap: ms(10), Drop: []int{3}}}
	event := func(at string, n int) string {
		return fmt.Sprintf(`%s id: %d data: {"jsonrpc":"2.0","method":"notifications/message","params":`+
			`{"level":"info","logger":"mock","data":{"seq":%d}}}`, at, n, n)
	}
	for _, tt := range []struct {
		last string
		want []string
	}{
		{"", []string{event("50ms", 1), event("60ms", 2), event("80ms", 4), event("90ms", 5)}},
		{"3", []string{event("50ms", 4), event("60ms", 5)}},
		{"5", nil},
		{"x", []string{event("50ms", 1), event("60ms", 2), event("80ms", 4), event("90ms", 5)}},
	} {
		inVirtualTime(t, c, func(v *virtual) {
			w := v.stream(v.open(), tt.last)
			time.Sleep(time.Minute)
			if got := w.read(); fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("Last-Event-ID %q: got %q, want %q", tt.last, got, tt.want)
			}
			s := v.Stats()
			if dropped := b2i(tt.last != "3" && tt.last != "5"); s.Events.Sent != int64(len(tt.want)) ||
				s.Events.Dropped != dropped || s.Streams != (Level{1, 1}) {
				t.Errorf("Stats: got %+v %+v, want %d sent, %d dropped, 1 stream", s.Events, s.Streams, len(tt.want), dropped)
			}
		})
	}
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// TestFanOut: one change reaches every subscriber with a stream, once.
func TestFanOut(t *testing.T) {
	inVirtualTime(t, Config{}, func(v *virtual) {
		var streams []*timedWriter
		for i := range 20 {
			id := v.open()
			if i < 15 {
				v.do("POST", id, subscribe)
			}
			if i < 12 || i > 17 {
				streams = append(streams, v.stream(id, ""))
			}
		}
		w := v.do("POST", v.open(), callTouch)
		if want := `"structuredContent":{"change":1,"subscribers":15,"sent":12}`; !strings.Contains(w.Body.String(), want) {
			t.Errorf("touch: got %s, want %s", w.Body, want)
		}
		synctest.Wait()
		for i, stream := range streams {
			want := "[]"
			if i < 12 {
				want = `[0s data: {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + ResourceURI +
					`","_meta":{"change":1}}}]`
			}
			if got := fmt.Sprint(stream.read()); got != want {
				t.Errorf("stream %d: got %s, want %s", i, got, want)
			}
		}
		if got := v.Stats().Events; got.Updates != 12 || got.Missed != 3 {
			t.Errorf("Stats().Events: got %+v, want 12 updates, 3 missed", got)
		}
	})
}

// TestNewerStream: a second stream of a session takes the place of the first.
func TestNewerStream(t *testing.T) {
	inVirtualTime(t, Config{}, func(v *virtual) {
		id := v.open()
		v.do("POST", id, subscribe)
		first, second := v.stream(id, ""), v.stream(id, "")
		v.do("POST", id, callTouch)
		synctest.Wait()
		if len(first.read()) != 0 || len(second.read()) != 1 {
			t.Errorf("updates: got %d on the older stream and %d on the newer, want 0 and 1", len(first.read()), len(second.read()))
		}
		if got := v.Stats().Streams; got != (Level{1, 2}) {
			t.Errorf("Stats().Streams: got %+v, want 1 open and a peak of 2", got)
		}
	})
}

// TestIdleExpiry: a session ends exactly its time after its last use.
func TestIdleExpiry(t *testing.T) {
	c := Config{Sessions: Sessions{IdleTTL: 20 * time.Second}, Model: Model{Service: Service{Mean: time.Minute}}}
	const s = time.Second
	for _, tt := range []struct {
		name  string
		use   func(v *virtual, id string)
		after time.Duration // the time of the session, counted from its opening
	}{
		{"no use", func(*virtual, string) {}, 20 * s},
		{"a request", func(v *virtual, id string) { time.Sleep(15 * s); v.do("POST", id, listTools) }, 35 * s},
		{"two requests", func(v *virtual, id string) {
			for range 2 {
				time.Sleep(12 * s)
				v.do("POST", id, listTools)
			}
		}, 44 * s},
		{"a notification", func(v *virtual, id string) {
			time.Sleep(5 * s)
			v.do("POST", id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		}, 25 * s},
		{"a call longer than the limit", func(v *virtual, id string) { v.do("POST", id, callEcho) }, 80 * s},
		{"overlapping uses", func(v *virtual, id string) {
			go v.do("POST", id, callEcho)
			time.Sleep(30 * s)
			v.do("POST", id, callEcho)
		}, 110 * s},
	} {
		inVirtualTime(t, c, func(v *virtual) {
			opened := time.Now()
			id := v.open()
			tt.use(v, id)
			time.Sleep(tt.after - time.Since(opened) - time.Nanosecond)
			synctest.Wait()
			if got := v.Stats().Sessions; got.Open != 1 || got.Expired != 0 {
				t.Errorf("%s: just before %v: got %+v, want it open", tt.name, tt.after, got)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if got := v.Stats().Sessions; got.Open != 0 || got.Expired != 1 {
				t.Errorf("%s: at %v: got %+v, want it expired", tt.name, tt.after, got)
			}
			if w := v.do("POST", id, listTools); w.Code != 404 || !strings.Contains(w.Body.String(), "-32001") {
				t.Errorf("%s: after that: got %d %s, want 404 with -32001", tt.name, w.Code, w.Body)
			}
		})
	}
}

// TestStreamKeepsSession: an open stream is a use, and DELETE ends it.
func TestStreamKeepsSession(t *testing.T) {
	inVirtualTime(t, Config{Sessions: Sessions{IdleTTL: 20 * time.Second}}, func(v *virtual) {
		id := v.open()
		v.stream(id, "")
		time.Sleep(time.Hour)
		if got := v.Stats(); got.Sessions.Open != 1 || got.Streams.Open != 1 {
			t.Errorf("after an hour: got %+v %+v, want the session and its stream open", got.Sessions, got.Streams)
		}
		if w := v.do("DELETE", id, ""); w.Code != 204 {
			t.Errorf("DELETE: got %d, want 204", w.Code)
		}
		synctest.Wait()
		if got := v.Stats(); got.Sessions.Open != 0 || got.Sessions.Deleted != 1 || got.Streams.Open != 0 {
			t.Errorf("after DELETE: got %+v %+v, want nothing open", got.Sessions, got.Streams)
		}
	})
}

// TestClock: waiters are let go at their instants, in whatever order they came, and one that has left is forgotten.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock(newTimerAlarm())
		start := time.Now()
		var wg sync.WaitGroup
		for _, d := range []time.Duration{30, 10, 20, 10, 40, 5} {
			wg.Go(func() {
				if err := c.wait(t.Context(), start.Add(d)); err != nil || time.Since(start) != d {
					t.Errorf("wait(%v): got %v at %v, want nil at %v", d, err, time.Since(start), d)
				}
			})
		}
		w := c.start(start.Add(time.Hour))
		c.drop(w)
		wg.Wait()
		if len(c.queue) != 0 {
			t.Errorf("waiters left: got %d, want 0", len(c.queue))
		}
		c.close()
	})
}

// TestStdio: answers come when they are due and not in the order of the requests, and the end of the input waits for
// them.
func TestStdio(t *testing.T) {
	inVirtualTime(t, Config{Model: Model{Service: Service{Mean: ms(100)}}}, func(v *virtual) {
		in := strings.Join([]string{listTools, initialize, initialize, callEcho, listTools, subscribe, callTouch, "{", `{"jsonrpc":"2.0","id":9,"method":"nothing"}`}, "\n")
		var out strings.Builder
		start := time.Now()
		if err := v.ServeStdio(v.t.Context(), strings.NewReader(in), &out); err != nil {
			t.Errorf("ServeStdio: got %v, want nil", err)
		}
		if took := time.Since(start); took != ms(100) {
			t.Errorf("ServeStdio took %v, want 100ms", took)
		}
		for _, want := range []string{
			`"message":"begin with initialize"`, `"protocolVersion":"2025-11-25"`, `already`, `"text":"hi"`, `"tools":[`,
			`"subscribers":1,"sent":1`, "-32700", "-32601",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("output lacks %s: %s", want, out.String())
			}
		}
		for line := range strings.Lines(out.String()) {
			if !codec.Valid([]byte(line)) {
				t.Errorf("not JSON: %q", line)
			}
		}
		if got := v.Stats().Sessions; got.Opened != 1 || got.Open != 0 {
			t.Errorf("sessions: got %+v, want 1 opened and none open", got)
		}
	})
}

// TestStdioUpdates: updates reach the subscriber while the session is open.
func TestStdioUpdates(t *testing.T) {
	inVirtualTime(t, Config{}, func(v *virtual) {
		r, w := io.Pipe()
		out := &timedWriter{start: time.Now()}
		done := make(chan error, 1)
		go func() { done <- v.ServeStdio(v.t.Context(), r, out) }()
		fmt.Fprintln(w, initialize)
		fmt.Fprintln(w, subscribe)
		synctest.Wait()
		fmt.Fprintln(w, callTouch)
		synctest.Wait()
		if got := strings.Count(strings.Join(out.read(), "\n"), "notifications/resources/updated"); got != 1 {
			t.Errorf("updates: got %d in %q, want 1", got, out.read())
		}
		w.Close()
		if err := <-done; err != nil {
			t.Errorf("ServeStdio: got %v, want nil", err)
		}
	})
}
