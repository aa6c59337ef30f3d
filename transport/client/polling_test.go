package client_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/transport/client"
)

// TestPolling is what 2025-11-25 calls polling, in virtual time: the server
// closes each connection of a reply stream after a priming event, and each says
// anew how long to wait. It goes on for longer than failed connections would.
func TestPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var id string
		var asked []string
		begun := time.Now()
		prime := func(n int) string { return fmt.Sprintf("id: e%d\nretry: %d\ndata:\n\n", n, 1000*(n+1)) }
		const last = 8
		e := &endpoint{
			session: "s",
			post: func(w http.ResponseWriter, _ *http.Request, f frame) {
				if f.Method == "tools/call" {
					id = string(f.ID)
					writeSSE(w, prime(0))
				}
			},
			get: func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, fmt.Sprint(r.Header.Get("Last-Event-ID"), " ", time.Since(begun)))
				n := len(asked)
				switch {
				case n == 3: // something to say in between
					writeSSE(w, prime(n), event(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`+id+`,"progress":1}}`))
				case n < last:
					writeSSE(w, prime(n))
				default:
					writeSSE(w, prime(n), event(`{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[]}}`))
				}
			},
		}
		c := connectMemory(t, e, client.Options{NoStream: true, CallTimeout: time.Minute})
		progress := 0
		if _, err := c.CallTool(t.Context(), "t", nil, &client.CallOptions{OnProgress: func(client.Progress) { progress++ }}); err != nil || progress != 1 {
			t.Errorf("CallTool: got %v and %d of progress, want 1", err, progress)
		}
		want := []string{"e0 1s", "e1 3s", "e2 6s", "e3 10s", "e4 15s", "e5 21s", "e6 28s", "e7 36s"}
		if !reflect.DeepEqual(asked, want) {
			t.Errorf("GET: got %q, want %q", asked, want)
		}
	})
}

// TestGetStreamPolling: the same on the GET stream, which must not be given up.
func TestGetStreamPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		begun := time.Now()
		e := &endpoint{session: "s", get: func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, strings.TrimSpace(fmt.Sprint(r.Header.Get("Last-Event-ID"), " ", time.Since(begun))))
			writeSSE(w, fmt.Sprintf("id: e%d\nretry: 5000\ndata: \n\n", len(asked)))
		}}
		c := connectMemory(t, e, client.Options{})
		time.Sleep(36 * time.Second)
		closeClient(t, c)
		want := []string{"0s", "e1 5s", "e2 10s", "e3 15s", "e4 20s", "e5 25s", "e6 30s", "e7 35s"}
		if !reflect.DeepEqual(asked, want) {
			t.Errorf("GET: got %q, want %q", asked, want)
		}
	})
}

// TestStreamWait: ConnectHTTP returns once the server has the GET stream, or
// when its patience is over.
func TestStreamWait(t *testing.T) {
	for _, test := range []struct {
		name         string
		delay, limit time.Duration
		want         time.Duration
	}{
		{"at once", 0, 0, 0},
		{"soon", 300 * time.Millisecond, 0, 300 * time.Millisecond},
		{"never", time.Hour, 0, time.Second},
		{"more patience", 5 * time.Second, time.Minute, 5 * time.Second},
		{"none", 300 * time.Millisecond, -1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &endpoint{get: func(w http.ResponseWriter, r *http.Request) {
					select {
					case <-time.After(test.delay):
						writeSSE(w, ":\n\n")
					case <-r.Context().Done():
					}
					<-r.Context().Done()
				}}
				begun := time.Now()
				connectMemory(t, e, client.Options{StreamWait: test.limit})
				if got := time.Since(begun); got != test.want {
					t.Errorf("ConnectHTTP took %v, want %v", got, test.want)
				}
			})
		})
	}
}
