package transport_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/transport"
)

// TestRepliesBelongToTheirRequests sends requests of all kinds at once, many of
// them over the same connections, and holds each reply to what its own request
// asks for: ids and texts occur once.
func TestRepliesBelongToTheirRequests(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, nil, &transport.HTTPOptions{CommitDelay: 2 * time.Millisecond, KeepAlive: time.Millisecond, MaxMessageBytes: 4 << 10})
	const workers, rounds = 8, 12
	sessions := []string{w.session("2025-03-26"), w.session("2025-03-26"), w.session("2025-03-26")}
	var running sync.WaitGroup
	for n := range workers {
		running.Go(func() {
			for round := range rounds {
				unique := fmt.Sprintf("%d-%d", n, round)
				id := `"id ` + unique + `"`
				for _, c := range []struct {
					name, body string
					header     []string
					status     int
					want       []string
				}{
					{"echo", call(id, "echo", text(unique)), nil, 200, []string{id + " " + unique}},
					{"ping", ping(id), nil, 200, []string{id + " ok"}},
					{"unknown tool", call(id, "nothing", ""), nil, 200, []string{id + " -32602"}},
					{"panic", call(id, "panic", ""), nil, 200, []string{id + " -32603"}},
					{"large", call(id, "big", `"n":9000,`+text("."+unique)), nil, 200,
						[]string{id + " " + strings.Repeat("."+unique, 9000/len("."+unique))}},
					{"slow", call(id, "wait", `"ms":5,`+text(unique)), nil, 200, []string{id + " " + unique}},
					{"slow, JSON only", call(id, "wait", `"ms":3,`+text(unique)), []string{"Accept: application/json"}, 200,
						[]string{id + " " + unique}},
					{"events only", call(id, "echo", text(unique)), []string{"Accept: text/event-stream"}, 200, []string{id + " " + unique}},
					{"progress", callWithToken(id, "progress", `"n":2,"ms":1,`+text(unique), id), nil, 200,
						[]string{"progress " + id + " 1", "progress " + id + " 2", id + " " + unique}},
					{"notification", initialized, nil, 202, nil},
					{"no JSON", "{" + unique, nil, 400, []string{"- -32700"}},
					{"too large", padded(id, 5<<10), nil, 413, []string{"- -32600"}},
					{"no session", ping(id), []string{"Mcp-Session-Id:"}, 400, []string{id + " -32600"}},
					{"unknown session", call(id, "echo", text(unique)), []string{"Mcp-Session-Id: " + unique}, 404, []string{id + " -32001"}},
					{"batch without session", "[" + ping(id) + "]", []string{"Mcp-Session-Id:"}, 400, []string{"- -32600"}},
					{"batch of an unknown session", "[" + ping(id) + "]", []string{"Mcp-Session-Id: x"}, 404, []string{"- -32001"}},
				} {
					got := w.post(sessions[(n+round)%len(sessions)], c.body, c.header...)
					if got.status != c.status || !slices.Equal(got.frames(), c.want) {
						t.Errorf("%s %s: got %d %.100q, want %d %.100q", c.name, unique, got.status, got.frames(), c.status, c.want)
					}
				}
				if t.Failed() {
					return
				}
			}
		})
	}
	// Sessions come and go meanwhile, with calls that end with them.
	running.Go(func() {
		for range rounds {
			session := w.session("2025-06-18")
			replies := make(chan reply, 1)
			go func() { replies <- w.post(session, call("1", "gate", text("never"))) }()
			<-w.entered
			w.do(w.request(http.MethodDelete, "", "Mcp-Session-Id: "+session))
			if got := <-replies; got.frames() != nil {
				t.Errorf("a call of a deleted session: got %d %q, want no answer", got.status, got.frames())
			}
		}
	})
	running.Wait()
	eventually(t, "the end of all streams", func() bool { return w.handler.Stats().Streams == 0 })
	if got := w.Stats(); got.ActiveRequests != 0 || got.Sessions != len(sessions) {
		t.Errorf("engine afterwards: got %d requests and %d sessions, want 0 and %d", got.ActiveRequests, got.Sessions, len(sessions))
	}
}
