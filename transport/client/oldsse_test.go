package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/transport/client"
)

// oldServer is a fake of the transport of 2024-11-05.
type oldServer struct {
	t      *testing.T
	first  string // the first event; "" for the usual one
	events chan string
	posted chan frame // what is no request

	mu   sync.Mutex // guards seen
	seen []string
}

func newOldServer(t *testing.T) *oldServer {
	return &oldServer{t: t, events: make(chan string, 10), posted: make(chan frame, 10)}
}

func (s *oldServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.seen = append(s.seen, r.Method+" "+r.URL.String()+" "+r.Header.Get("Mcp-Session-Id")+r.Header.Get("Mcp-Protocol-Version"))
	s.mu.Unlock()
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/sse":
		first := s.first
		if first == "" {
			first = "event: endpoint\ndata: /messages?sessionId=7\n\n"
		}
		writeSSE(w, ": hello\n\n", first)
		for {
			select {
			case e := <-s.events:
				if e == "end" {
					return
				}
				writeSSE(w, "event: message\n"+event(e))
			case <-r.Context().Done():
				return
			}
		}
	case r.Method == http.MethodPost && r.URL.String() == "/messages?sessionId=7":
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s.take(w, parse(s.t, body))
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (s *oldServer) take(w http.ResponseWriter, f frame) {
	switch f.Method {
	case "initialize":
		s.events <- resultOf(f, initResultOf("2024-11-05", `{}`))
	case "echo":
		s.events <- resultOf(f, string(f.Params))
	case "refused":
		w.WriteHeader(http.StatusBadRequest)
		return
	case "late":
		s.events <- resultOf(f, `"late"`)
		time.Sleep(100 * time.Millisecond)
	case "end":
		s.events <- "end"
	default:
		s.posted <- f
	}
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, "Accepted")
}

func (s *oldServer) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func TestConnectSSE(t *testing.T) {
	noLeaks(t)
	ctx := context.Background()
	for _, connect := range []func(context.Context, string, *client.Options) (*client.Client, error){client.ConnectSSE, client.ConnectHTTP} {
		s := newOldServer(t)
		server := httptest.NewServer(s)
		c, err := connect(ctx, server.URL+"/sse", &client.Options{Header: http.Header{"Mcp-Session-Id": {"forged"}}, RootList: []client.Root{}})
		if err != nil {
			t.Fatal(err)
		}
		if f := <-s.posted; f.Method != "notifications/initialized" {
			t.Errorf("posted %+v, want notifications/initialized", f)
		}
		if got, err := c.Request(ctx, "echo", []byte(`{"a":1}`), nil); err != nil || string(got) != `{"a":1}` {
			t.Errorf("echo: got %s, %v", got, err)
		}
		begun := time.Now()
		if got, err := c.Request(ctx, "late", nil, nil); err != nil || string(got) != `"late"` || time.Since(begun) > 90*time.Millisecond {
			t.Errorf("late: got %s, %v after %v, want an answer before the status of the POST", got, err, time.Since(begun))
		}
		var status *client.HTTPError
		if _, err := c.Request(ctx, "refused", nil, nil); !errors.As(err, &status) || status.Status != 400 {
			t.Errorf("refused: got %v, want status 400", err)
		}
		s.events <- `{"jsonrpc":"2.0","id":"s","method":"roots/list"}`
		if f := <-s.posted; string(f.ID)+string(f.Result) != `"s"{"roots":[]}` {
			t.Errorf("answer: got %+v", f)
		}
		if c.Server().Protocol != "2024-11-05" || c.SessionID() != "" {
			t.Errorf("Server: got %+v, session %q", c.Server(), c.SessionID())
		}
		if _, err := c.Request(ctx, "end", nil, nil); !errors.Is(err, client.ErrDisconnected) {
			t.Errorf("a call as the stream ends: got %v, want ErrDisconnected", err)
		}
		<-c.Done()
		if err := c.Err(); !errors.Is(err, client.ErrDisconnected) {
			t.Errorf("Err: got %v, want ErrDisconnected", err)
		}
		closeClient(t, c)
		server.Close()
		for _, line := range s.log() {
			if line != "GET /sse " && line != "POST /messages?sessionId=7 " && line != "POST /sse " {
				t.Errorf("request %q: want neither another address nor a header of later transports", line)
			}
		}
	}
}

// TestConnectSSECloses: Close ends the stream and the calls on it.
func TestConnectSSECloses(t *testing.T) {
	noLeaks(t)
	s := newOldServer(t)
	server := httptest.NewServer(s)
	defer server.Close()
	c, err := client.ConnectSSE(context.Background(), server.URL+"/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	<-s.posted
	done := make(chan error)
	go func() {
		_, err := c.Request(context.Background(), "never", nil, nil)
		done <- err
	}()
	<-s.posted
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-s.posted; cancel() }()
	if _, err := c.Request(ctx, "never", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Request: got %v, want context.Canceled", err)
	}
	if f := <-s.posted; f.Method != "notifications/cancelled" {
		t.Errorf("posted %+v, want notifications/cancelled", f)
	}
	closeClient(t, c)
	if err := <-done; !errors.Is(err, client.ErrClosed) {
		t.Errorf("Request: got %v, want ErrClosed", err)
	}
}

func TestConnectSSEFails(t *testing.T) {
	noLeaks(t)
	for _, test := range []struct{ first, want string }{
		{"event: endpoint\ndata: http://127.0.0.1:1/messages\n\n", "another origin"},
		{"event: endpoint\ndata: //127.0.0.1:1/messages\n\n", "another origin"},
		{"event: endpoint\ndata: https:/messages\n\n", "another origin"},
		{"event: endpoint\ndata: http://[x\n\n", "endpoint event"},
		{"data: /messages\n\n", "not endpoint"},
		{"event: endpoint\ndata: /nowhere\n\n", "405"},
	} {
		s := newOldServer(t)
		s.first = test.first
		server := httptest.NewServer(s)
		_, err := client.ConnectSSE(context.Background(), server.URL+"/sse", nil)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("first event %q: got %v, want %q", test.first, err, test.want)
		}
		server.Close()
	}
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"404", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, "404"},
		{"JSON", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, "{}") }, "application/json"},
		{"empty", func(w http.ResponseWriter, _ *http.Request) { writeSSE(w, ":\n\n") }, "EOF"},
	} {
		server := httptest.NewServer(test.handler)
		if _, err := client.ConnectSSE(context.Background(), server.URL, nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
		server.Close()
	}
	if _, err := client.ConnectSSE(context.Background(), "ftp://x/", nil); err == nil {
		t.Error("ftp: got no error")
	}
}

// TestSilentStream: a stream that never names its endpoint is given up after the
// time limit of a call, or as the context ends.
func TestSilentStream(t *testing.T) {
	for _, test := range []struct{ limit, context, want time.Duration }{
		{0, time.Minute, 10 * time.Second},
		{time.Minute, 3 * time.Second, 3 * time.Second},
		{-1, time.Hour, 5 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			silent := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				writeSSE(w, ":\n\n")
				<-r.Context().Done()
			})
			ctx, cancel := context.WithTimeout(t.Context(), test.context)
			defer cancel()
			begun := time.Now()
			_, err := client.ConnectSSE(ctx, "http://memory/sse", &client.Options{CallTimeout: test.limit, HTTPClient: &http.Client{Transport: memory{silent}}})
			if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took != test.want {
				t.Errorf("limit %v, context %v: got %v after %v, want context.DeadlineExceeded after %v", test.limit, test.context, err, took, test.want)
			}
		})
	}
}

// TestFallback: which answers to initialize make the client try the older
// transport, and that the first error is the one that counts.
func TestFallback(t *testing.T) {
	noLeaks(t)
	for _, test := range []struct {
		status int
		never  bool
		gets   int
	}{{400, false, 1}, {404, false, 1}, {405, false, 1}, {404, true, 0}, {401, false, 0}, {403, false, 0}, {500, false, 0}} {
		gets := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				gets++
				w.WriteHeader(http.StatusTeapot)
				return
			}
			w.WriteHeader(test.status)
		}))
		_, err := client.ConnectHTTP(context.Background(), server.URL, &client.Options{NoFallback: test.never})
		var status *client.HTTPError
		if !errors.As(err, &status) || status.Status != test.status || gets != test.gets {
			t.Errorf("POST answered %d, NoFallback %v: got %v and %d GETs, want status %d and %d GETs", test.status, test.never, err, gets, test.status, test.gets)
		}
		server.Close()
	}
	// A server that refuses notifications/initialized has answered initialize.
	var log []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		log = append(log, r.Method)
		body, err := io.ReadAll(r.Body)
		if f := parse(t, body); err == nil && f.Method == "initialize" {
			writeJSON(w, resultOf(f, initResult))
			return
		}
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer server.Close()
	if _, err := client.ConnectHTTP(context.Background(), server.URL, nil); err == nil || fmt.Sprint(log) != "[POST POST]" {
		t.Errorf("got %v after %v, want an error after two POSTs", err, log)
	}
}
