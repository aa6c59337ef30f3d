package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/transport/client"
)

func TestHTTPClose(t *testing.T) {
	for _, test := range []struct {
		status int
		want   bool // an error
	}{{200, false}, {202, false}, {405, false}, {404, false}, {500, true}} {
		t.Run(fmt.Sprint(test.status), func(t *testing.T) {
			streaming, calling := make(chan struct{}), make(chan struct{})
			e := &endpoint{
				session: "s",
				post: func(_ http.ResponseWriter, r *http.Request, f frame) {
					if f.Method == "slow" {
						close(calling)
						<-r.Context().Done()
					}
				},
				get: func(w http.ResponseWriter, r *http.Request) {
					writeSSE(w, ":\n\n")
					close(streaming)
					<-r.Context().Done()
				},
				del: func(w http.ResponseWriter) { w.WriteHeader(test.status) },
			}
			c := connectHTTP(t, e, nil)
			<-streaming
			done := make(chan error)
			go func() {
				_, err := c.Request(context.Background(), "slow", nil, nil)
				done <- err
			}()
			<-calling
			err := c.Close(context.Background())
			var status *client.HTTPError
			if errors.As(err, &status) != test.want || (err != nil) != test.want {
				t.Errorf("Close: got %v, want an error: %v", err, test.want)
			}
			if again := c.Close(context.Background()); !errors.Is(again, err) {
				t.Errorf("second Close: got %v, want %v", again, err)
			}
			if err := <-done; !errors.Is(err, client.ErrClosed) {
				t.Errorf("Request: got %v, want ErrClosed", err)
			}
		})
	}
}

// TestConnectionReuse: calls with streamed replies must not each cost a
// connection.
func TestConnectionReuse(t *testing.T) {
	noLeaks(t)
	e := &endpoint{t: t, post: func(w http.ResponseWriter, _ *http.Request, f frame) {
		if f.Method == "m" {
			writeSSE(w, event(resultOf(f, `1`)))
		}
	}}
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(e)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	c, err := client.ConnectHTTP(context.Background(), server.URL, &client.Options{NoStream: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if _, err := c.Request(context.Background(), "m", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	closeClient(t, c)
	if got := opened.Load(); got > 10 {
		t.Errorf("connections for 50 calls: got %d, want a few", got)
	}
}

func TestConnectHTTPFails(t *testing.T) {
	noLeaks(t)
	handle := func(f http.HandlerFunc) string {
		server := httptest.NewServer(f)
		t.Cleanup(server.Close)
		return server.URL
	}
	elsewhere := handle(func(w http.ResponseWriter, _ *http.Request) {
		t.Error("a redirect to another host was followed")
		w.WriteHeader(500)
	})
	for _, test := range []struct{ name, url, want string }{
		{"scheme", "ftp://x/", "not an http or https URL"},
		{"no host", "http:///mcp", "not an http or https URL"},
		{"nobody there", "http://127.0.0.1:1/mcp", "refused"},
		{"404", handle(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }), "404"},
		{"redirect to another host", handle(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		}), "refused to follow"},
		{"redirect that makes it a GET", handle(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/other", http.StatusFound)
		}), "refused to follow"},
		{"session id", handle(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Mcp-Session-Id", "a b")
			writeJSON(w, `{"jsonrpc":"2.0","id":1,"result":`+initResult+`}`)
		}), "visible ASCII"},
		{"long session id", handle(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Mcp-Session-Id", strings.Repeat("x", 5000))
			writeJSON(w, `{"jsonrpc":"2.0","id":1,"result":`+initResult+`}`)
		}), "5000 bytes"},
	} {
		_, err := client.ConnectHTTP(context.Background(), test.url, nil)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}

// TestRedirect: a redirect within the host keeps the method and the body.
func TestRedirect(t *testing.T) {
	noLeaks(t)
	e := &endpoint{t: t, session: "s"}
	mux := http.NewServeMux()
	mux.Handle("/mcp/", e)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/mcp/", http.StatusPermanentRedirect)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	c, err := client.ConnectHTTP(context.Background(), server.URL+"/mcp", &client.Options{NoStream: true})
	if err != nil {
		t.Fatal(err)
	}
	closeClient(t, c)
	want := []string{"POST initialize", "POST notifications/initialized s 2025-11-25", "DELETE s 2025-11-25"}
	if got := e.log(); !reflect.DeepEqual(got, want) {
		t.Errorf("requests: got %q, want %q", got, want)
	}
}

// TestHTTPStress mixes answers by JSON and by SSE, cancelled calls and requests
// of the server, and closes while calls are in flight.
func TestHTTPStress(t *testing.T) {
	e := &endpoint{session: "s", post: func(w http.ResponseWriter, r *http.Request, f frame) {
		switch f.Method {
		case "json":
			writeJSON(w, resultOf(f, string(f.Params)))
		case "sse":
			writeSSE(w, event(`{"jsonrpc":"2.0","id":"q`+string(f.ID)+`","method":"ping"}`), event(resultOf(f, string(f.Params))))
		case "never":
			<-r.Context().Done()
		}
	}}
	c := connectHTTP(t, e, nil)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for j := range 20 {
				ctx, cancel := context.WithCancel(context.Background())
				method := []string{"json", "sse", "never"}[(i+j)%3]
				if method == "never" {
					time.AfterFunc(time.Duration(j)*time.Millisecond, cancel)
				}
				want := fmt.Sprintf(`{"n":%d}`, i*100+j)
				got, err := c.Request(ctx, method, []byte(want), nil)
				if method == "never" != errors.Is(err, context.Canceled) || err == nil && string(got) != want {
					t.Errorf("Request %s %s: got %s, %v", method, want, got, err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	for range 20 {
		wg.Go(func() {
			if _, err := c.Request(context.Background(), "never", nil, nil); !errors.Is(err, client.ErrClosed) {
				t.Errorf("Request: got %v, want ErrClosed", err)
			}
		})
	}
	time.Sleep(20 * time.Millisecond) // most of them are in flight now; it is the same for the others
	closeClient(t, c)
	wg.Wait()
}
