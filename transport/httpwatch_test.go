package transport

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/engine"
)

// slowHandler serves a tool that takes as many milliseconds as it is told.
func slowHandler(t *testing.T, o *HTTPOptions) *HTTPHandler {
	e := engine.New(engine.Info{Name: "slow", Version: "1"}, nil)
	t.Cleanup(func() { _ = e.Shutdown(context.Background()) })
	err := e.AddRawTool(engine.Tool{Name: "slow"}, func(_ context.Context, _ *engine.Call, in []byte, out []byte) ([]byte, error) {
		var arguments struct{ MS int64 }
		if err := json.Unmarshal(in, &arguments); err != nil {
			return out, err
		}
		time.Sleep(time.Duration(arguments.MS) * time.Millisecond)
		return append(out, `{"content":[]}`...), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return NewHTTPHandler(e, o)
}

// slowCall is a call of the slow tool in the stateless era.
func slowCall(d time.Duration) *http.Request {
	const era = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"ms":` +
		strconv.FormatInt(d.Milliseconds(), 10) + `},` + era + `}}`
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": usualAccept,
		headerVersion: "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "slow",
	} {
		r.Header.Set(name, value)
	}
	return r
}

// timedRecorder notes when the header was written.
type timedRecorder struct {
	*httptest.ResponseRecorder
	begun time.Time
}

func (w *timedRecorder) WriteHeader(status int) {
	w.begun = time.Now()
	w.ResponseRecorder.WriteHeader(status)
}

// TestWatchCommits: a reply that takes longer than CommitDelay becomes an event
// stream after that time and at most a tick, however many calls begin before and
// after it; comments keep it alive. Then the watch sleeps.
func TestWatchCommits(t *testing.T) {
	for _, c := range []struct {
		name  string
		takes time.Duration
		kind  string
		alive int
	}{
		{"answered at once", 0, "application/json", 0},
		{"just in time", 499 * time.Millisecond, "application/json", 0},
		{"late", 700 * time.Millisecond, "text/event-stream", 0},
		{"kept alive", 46 * time.Second, "text/event-stream", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := slowHandler(t, nil)
				var calls sync.WaitGroup
				for range 20 {
					calls.Go(func() {
						begin := time.Now()
						w := &timedRecorder{ResponseRecorder: httptest.NewRecorder()}
						h.ServeHTTP(w, slowCall(c.takes))
						kind, alive := w.Header().Get("Content-Type"), strings.Count(w.Body.String(), keepAlive)
						if kind != c.kind || alive != c.alive {
							t.Errorf("a call of %v: got %s with %d comments, want %s with %d (%s)",
								c.takes, kind, alive, c.kind, c.alive, w.Body)
						}
						after := w.begun.Sub(begin)
						if late := h.options.CommitDelay; c.takes > late && (after < late || after > late+h.watch.tick) {
							t.Errorf("header after: got %v, want %v to %v", after, late, late+h.watch.tick)
						}
					})
					time.Sleep(17 * time.Millisecond)
				}
				calls.Wait()
				time.Sleep(2 * h.watch.tick)
				synctest.Wait()
				if h.watch.awake.Load() {
					t.Error("the watch is awake with nothing in flight")
				}
			})
		})
	}
}

// pipedRecorder has a body whose reads the read deadline ends.
type pipedRecorder struct {
	*httptest.ResponseRecorder
	sends *io.PipeWriter
	calls []time.Time
}

func (w *pipedRecorder) SetReadDeadline(t time.Time) error {
	w.calls = append(w.calls, t)
	if !t.IsZero() && !t.After(time.Now()) {
		return w.sends.CloseWithError(os.ErrDeadlineExceeded)
	}
	return nil
}

// TestWatchGivesUpBodies that do not arrive in time, and touches the deadline of
// the connection of no others.
func TestWatchGivesUpBodies(t *testing.T) {
	for _, c := range []struct {
		name   string
		pause  time.Duration // between the two halves of the body
		status int
		touch  int
	}{
		{"at once", 0, http.StatusOK, 0},
		{"just in time", 29 * time.Second, http.StatusOK, 0},
		{"too late", time.Hour, http.StatusRequestTimeout, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := slowHandler(t, nil)
				r := slowCall(0)
				whole, _ := io.ReadAll(r.Body)
				in, out := io.Pipe()
				r.Body = in
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					_, _ = out.Write(whole[:40])
					time.Sleep(c.pause)
					_, _ = out.Write(whole[40:])
					_ = out.Close()
				}()
				begin := time.Now()
				w := &pipedRecorder{ResponseRecorder: httptest.NewRecorder(), sends: out}
				h.ServeHTTP(w, r)
				took := time.Since(begin)
				if w.Code != c.status || len(w.calls) != c.touch {
					t.Errorf("got status %d and deadlines %v, want %d and %d of them", w.Code, w.calls, c.status, c.touch)
				}
				if late := h.options.BodyTimeout + h.watch.tick; took > late {
					t.Errorf("it took %v, want at most %v", took, late)
				}
				<-sent
			})
		})
	}
}

// TestWatchForgetsPosts that nobody holds any more.
func TestWatchForgetsPosts(t *testing.T) {
	h := slowHandler(t, nil)
	for range 100 {
		h.newPost()
	}
	runtime.GC()
	runtime.GC()
	p := h.newPost().(*post)
	h.watch.look()
	h.watch.mu.Lock()
	defer h.watch.mu.Unlock()
	if got := len(h.watch.posts); got > 10 {
		t.Errorf("posts that the watch knows: got %d, want about one", got)
	}
	runtime.KeepAlive(p)
}
