package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/transport/client"
)

// TestResume runs in virtual time: a reply stream that ends early is taken up
// with GET and Last-Event-ID, after the pause that the server asked for.
func TestResume(t *testing.T) {
	const ask = "id: e1\nretry: 3000\ndata:\n\n"
	for _, test := range []struct {
		name  string
		first string   // the reply to POST, ID for the id
		gets  []string // the replies to GET; a number is a status
		took  time.Duration
		is    error // nil for an answer
		want  []string
	}{
		{"with retry", ask, []string{"id: e2\n" + event(`{"jsonrpc":"2.0","id":ID,"result":1}`)}, 3 * time.Second, nil, []string{"e1"}},
		{"own pause", "id: e1\ndata:\n\n", []string{event(`{"jsonrpc":"2.0","id":ID,"result":1}`)}, 500 * time.Millisecond, nil, []string{"e1"}},
		{"retry of zero", "id: e1\nretry: 0\ndata:\n\n", []string{event(`{"jsonrpc":"2.0","id":ID,"result":1}`)}, 10 * time.Millisecond, nil, []string{"e1"}},
		{"id without data", "id: e1\nretry: 1000\n\n", []string{event(`{"jsonrpc":"2.0","id":ID,"result":1}`)}, time.Second, nil, []string{"e1"}},
		{"several times", ask, []string{"id: e2\nretry: 1000\n" + event(`{"jsonrpc":"2.0","method":"n"}`), "503", "", event(`{"jsonrpc":"2.0","id":ID,"result":1}`)},
			6 * time.Second, nil, []string{"e1", "e2", "e2", "e2"}},
		{"half an event is no event", ask + "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":1}\n",
			[]string{event(`{"jsonrpc":"2.0","id":ID,"result":1}`)}, 3 * time.Second, nil, []string{"e1"}},
		{"never", ask, []string{"", "500", "", "", "", "", ""}, 15 * time.Second, client.ErrNoResponse, []string{"e1", "e1", "e1", "e1", "e1"}},
		{"refused", ask, []string{"405"}, 3 * time.Second, client.ErrNoResponse, []string{"e1"}},
		{"session lost", ask, []string{"404"}, 3 * time.Second, client.ErrSessionLost, []string{"e1"}},
		{"no id", "retry: 10\ndata:\n\n", nil, 0, client.ErrNoResponse, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var id string
				var asked []string
				e := &endpoint{
					session: "s",
					post: func(w http.ResponseWriter, _ *http.Request, f frame) {
						if f.Method == "m" {
							id = string(f.ID)
							writeSSE(w, strings.ReplaceAll(test.first, "ID", id))
						}
					},
					get: func(w http.ResponseWriter, r *http.Request) {
						asked = append(asked, r.Header.Get("Last-Event-ID"))
						reply := test.gets[len(asked)-1]
						var status int
						if _, err := fmt.Sscanf(reply, "%d", &status); err == nil {
							w.WriteHeader(status)
							return
						}
						writeSSE(w, strings.ReplaceAll(reply, "ID", id))
					},
				}
				c := connectMemory(t, e, client.Options{NoStream: true, CallTimeout: time.Minute})
				begun := time.Now()
				got, err := c.Request(t.Context(), "m", nil, nil)
				if took := time.Since(begun); took != test.took || !errors.Is(err, test.is) || (err == nil) != (string(got) == "1") {
					t.Errorf("Request: got %s, %v after %v; want %v after %v", got, err, took, test.is, test.took)
				}
				if !reflect.DeepEqual(asked, test.want) {
					t.Errorf("Last-Event-ID: got %q, want %q", asked, test.want)
				}
			})
		})
	}
}

// TestResumeTimesOut: the time limit of a call holds while it waits to resume.
func TestResumeTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{post: func(w http.ResponseWriter, _ *http.Request, f frame) {
			if f.Method == "m" {
				writeSSE(w, "id: 1\nretry: 99999999999999999999\ndata:\n\n")
			}
		}}
		c := connectMemory(t, e, client.Options{NoStream: true})
		begun := time.Now()
		_, err := c.Request(t.Context(), "m", nil, nil)
		if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took != 10*time.Second {
			t.Errorf("Request: got %v after %v, want context.DeadlineExceeded after 10s", err, took)
		}
	})
}

// TestGetStream: what the server sends on the GET stream arrives, its requests
// are answered by POST, and the stream is taken up again after the pause.
func TestGetStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := make(chan string, 10)
		answers := make(chan string, 10)
		var opened []string
		begun := time.Now()
		e := &endpoint{
			session: "s",
			post: func(_ http.ResponseWriter, _ *http.Request, f frame) {
				if f.Method == "" {
					answers <- string(f.ID) + string(f.Result)
				}
			},
			get: func(w http.ResponseWriter, r *http.Request) {
				opened = append(opened, fmt.Sprint(time.Since(begun), r.Header.Get("Last-Event-ID")))
				switch len(opened) {
				case 1:
					writeSSE(w, "id: a\nretry: 7000\n"+event(`{"jsonrpc":"2.0","method":"first"}`), event(`{"jsonrpc":"2.0","id":"q","method":"ask","params":{"x":1}}`))
				case 2:
					w.WriteHeader(http.StatusBadGateway)
				default:
					writeSSE(w, event(`{"jsonrpc":"2.0","method":"second"}`))
					<-r.Context().Done()
				}
			},
		}
		c := connectMemory(t, e, client.Options{
			OnNotification: func(method string, _ []byte) { notes <- method },
			OnRequest:      func(_ context.Context, _ string, params []byte) ([]byte, error) { return params, nil },
		})
		for _, want := range []string{"first", "second"} {
			if got := <-notes; got != want {
				t.Errorf("notification: got %s, want %s", got, want)
			}
		}
		if got, want := <-answers, `"q"{"x":1}`; got != want {
			t.Errorf("answer: got %s, want %s", got, want)
		}
		if want := []string{"0s", "7sa", "14sa"}; !reflect.DeepEqual(opened, want) {
			t.Errorf("GET at, Last-Event-ID: got %q, want %q", opened, want)
		}
		closeClient(t, c)
	})
}

// TestGetStreamGivenUp counts the attempts that the client makes in an hour.
func TestGetStreamGivenUp(t *testing.T) {
	for _, test := range []struct {
		name string
		get  func(w http.ResponseWriter)
		want int
	}{
		{"405", func(w http.ResponseWriter) { w.WriteHeader(http.StatusMethodNotAllowed) }, 1},
		{"404", func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, 1},
		{"401", func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) }, 1},
		{"500", func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }, 6},
		{"JSON", func(w http.ResponseWriter) { writeJSON(w, "{}") }, 6},
		{"nothing in it", func(w http.ResponseWriter) { writeSSE(w, ":\n\n") }, 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got atomic.Int32
				e := &endpoint{
					session: "s",
					get:     func(w http.ResponseWriter, _ *http.Request) { got.Add(1); test.get(w) },
					post: func(w http.ResponseWriter, _ *http.Request, f frame) {
						if f.Method == "ping" {
							writeJSON(w, resultOf(f, "{}"))
						}
					},
				}
				c := connectMemory(t, e, client.Options{})
				time.Sleep(time.Hour)
				if got := int(got.Load()); got != test.want {
					t.Errorf("GET: got %d, want %d", got, test.want)
				}
				if err := c.Ping(t.Context()); err != nil {
					t.Errorf("Ping: %v", err)
				}
			})
		})
	}
}

// TestAnswerOnAnotherStream: a response finds its call wherever it arrives.
func TestAnswerOnAnotherStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := make(chan string, 1)
		e := &endpoint{
			session: "s",
			post: func(w http.ResponseWriter, r *http.Request, f frame) {
				if f.Method == "m" {
					writeSSE(w, ":\n\n")
					ids <- string(f.ID)
					<-r.Context().Done()
				}
			},
			get: func(w http.ResponseWriter, r *http.Request) {
				writeSSE(w, event(`{"jsonrpc":"2.0","id":`+<-ids+`,"result":"by GET"}`))
				<-r.Context().Done()
			},
		}
		c := connectMemory(t, e, client.Options{})
		got, err := c.Request(t.Context(), "m", nil, nil)
		if err != nil || string(got) != `"by GET"` {
			t.Errorf("Request: got %s, %v", got, err)
		}
	})
}

// TestTail: what follows a response on its stream is still delivered, and a
// stream that never ends is cut.
func TestTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := make(chan string, 1)
		ended := make(chan time.Duration, 1)
		e := &endpoint{post: func(w http.ResponseWriter, r *http.Request, f frame) {
			if f.Method == "m" {
				begun := time.Now()
				writeSSE(w, event(resultOf(f, "1")), event(`{"jsonrpc":"2.0","method":"late"}`))
				<-r.Context().Done()
				ended <- time.Since(begun)
			}
		}}
		c := connectMemory(t, e, client.Options{NoStream: true, OnNotification: func(method string, _ []byte) { notes <- method }})
		begun := time.Now()
		if got, err := c.Request(t.Context(), "m", nil, nil); err != nil || time.Since(begun) != 0 {
			t.Errorf("Request: got %s, %v after %v, want an answer at once", got, err, time.Since(begun))
		}
		if got := <-notes; got != "late" {
			t.Errorf("notification: got %s, want late", got)
		}
		if got := <-ended; got != time.Second {
			t.Errorf("the stream was cut after %v, want 1s", got)
		}
	})
}
