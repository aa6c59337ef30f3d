package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// overHTTP2 starts a server that speaks what protocols says, and gives its URL and a configuration that trusts it.
func overHTTP2(t *testing.T, secure bool, h http.HandlerFunc) (string, *tls.Config) {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are meant to fail
	srv.Config.Protocols = &http.Protocols{}
	srv.Config.Protocols.SetHTTP1(true)
	t.Cleanup(srv.Close)
	if !secure {
		srv.Config.Protocols.SetUnencryptedHTTP2(true)
		srv.Start()
		return srv.URL, nil
	}
	srv.Config.Protocols.SetHTTP2(true)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	return srv.URL, &tls.Config{RootCAs: roots}
}

func connTo(t *testing.T, url string, o TargetOptions) (*Conn, []byte) {
	t.Helper()
	target, err := ParseTarget(url)
	if err != nil {
		t.Fatal(err)
	}
	if target, err = target.With(o); err != nil {
		t.Fatal(err)
	}
	head, err := target.Head("POST", http.Header{"Accept": {"application/json"}, "X-Test": {"yes"}})
	if err != nil {
		t.Fatal(err)
	}
	c := NewConn(target)
	t.Cleanup(c.Close)
	return c, head
}

// TestProtocols makes calls of each kind over each pairing of TLS and HTTP.
func TestProtocols(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Mcp-Session-Id", fmt.Sprintf("%s %s %d", r.Proto, r.Header.Get("X-Test"), r.ContentLength))
		switch string(body) {
		case "json":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`)
		case "sse":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"note\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":2}}\n\n")
		default:
			http.Error(w, "no", http.StatusTeapot)
		}
	}
	for _, secure := range []bool{false, true} {
		for _, two := range []bool{false, true} {
			t.Run(fmt.Sprintf("TLS %v HTTP/2 %v", secure, two), func(t *testing.T) {
				url, conf := overHTTP2(t, secure, handler)
				c, head := connTo(t, url, TargetOptions{TLS: conf, HTTP2: two})
				notes := 0
				proto := "HTTP/1.1 yes "
				if two {
					proto = "HTTP/2.0 yes "
				}
				c.OnMessage = messageCounter(&notes)
				for _, call := range []struct{ body, want string }{{"json", `{"a":1}`}, {"sse", `{"a":2}`}, {"json", `{"a":1}`}} {
					var rep Reply
					err := c.Call(&Request{Head: head, Body: []byte(call.body), ID: []byte("1")}, time.Now().Add(5*time.Second), &rep)
					if got := string(rep.Message.Result); err != nil || got != call.want {
						t.Errorf("Call(%s): got %q, %v; want %q", call.body, got, err, call.want)
					}
					if got, want := string(rep.SessionID), fmt.Sprint(proto, len(call.body)); got != want {
						t.Errorf("Call(%s): the server saw %q, want %q", call.body, got, want)
					}
					if rep.Sent.IsZero() || rep.FirstByte.Before(rep.Sent) || rep.Done.Before(rep.FirstByte) {
						t.Errorf("Call(%s): sent %v, first byte %v, done %v: not in order", call.body, rep.Sent, rep.FirstByte, rep.Done)
					}
				}
				var rep Reply
				err := c.Call(&Request{Head: head, Body: []byte("?"), ID: []byte("1")}, time.Now().Add(5*time.Second), &rep)
				var status *StatusError
				if !errors.As(err, &status) || status.Status != http.StatusTeapot || string(status.Body) != "no\n" {
					t.Errorf("Call(?): got %v, want status 418 with its body", err)
				}
				if notes != 1 {
					t.Errorf("got %d notifications before the response, want 1", notes)
				}
			})
		}
	}
}

// TestHTTP2Ends looks at calls and streams that end before their reply does.
func TestHTTP2Ends(t *testing.T) {
	var gone atomic.Int64
	url, _ := overHTTP2(t, false, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {}\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
		gone.Add(1)
	})
	c, head := connTo(t, url, TargetOptions{HTTP2: true})
	var rep Reply
	call := func(within time.Duration) error {
		return c.Call(&Request{Head: head, Body: []byte("{}"), ID: []byte("1")}, time.Now().Add(within), &rep)
	}
	if err := call(500 * time.Millisecond); kindOf(err) != KindTimeout || rep.Sent.IsZero() {
		t.Errorf("a call without an answer: got %v, sent %v, want a timeout", err, rep.Sent)
	}
	stream, _ := connTo(t, url, TargetOptions{HTTP2: true})
	get, err := stream.target.Head("GET")
	if err != nil {
		t.Fatal(err)
	}
	events := 0
	err = stream.Stream(get, time.Now().Add(5*time.Second), func() {}, func(*Event) {
		events++
		stream.Abort()
	})
	if kindOf(err) != KindAborted || events != 1 {
		t.Errorf("an aborted stream: got %v after %d events, want aborted after 1", err, events)
	}
	time.AfterFunc(200*time.Millisecond, c.Abort)
	if err := call(5 * time.Second); kindOf(err) != KindAborted {
		t.Errorf("an aborted call: got %v, want aborted", err)
	}
	for range 200 {
		if gone.Load() == 3 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("the server saw %d requests end, want 3", gone.Load())
}

// TestTLSRefusals tells what a target that is not what its URL says gives, and what cannot be asked for at all.
func TestTLSRefusals(t *testing.T) {
	plain, _ := overHTTP2(t, false, func(http.ResponseWriter, *http.Request) {})
	both, _ := overHTTP2(t, true, func(http.ResponseWriter, *http.Request) {})
	old := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	old.Config.ErrorLog = log.New(io.Discard, "", 0)
	old.StartTLS()
	t.Cleanup(old.Close)
	roots := x509.NewCertPool()
	roots.AddCert(old.Certificate())
	for _, tt := range []struct {
		name, url string
		options   TargetOptions
		want      string
	}{
		{"unknown authority", old.URL, TargetOptions{}, "x509: certificate signed by unknown authority"},
		{"unknown authority, HTTP/2", both, TargetOptions{HTTP2: true}, "x509: certificate signed by unknown authority"},
		{"no TLS there", strings.Replace(plain, "http:", "https:", 1), TargetOptions{}, "first record does not look like a TLS handshake"},
		{"no HTTP/2 there", old.URL, TargetOptions{TLS: &tls.Config{RootCAs: roots}, HTTP2: true}, "no application protocol"},
	} {
		c, head := connTo(t, tt.url, tt.options)
		var rep Reply
		err := c.Call(&Request{Head: head, Body: []byte("{}"), ID: []byte("1")}, time.Now().Add(5*time.Second), &rep)
		if err == nil || !strings.Contains(err.Error(), tt.want) || kindOf(err) != KindDial {
			t.Errorf("%s: got %v (%v), want a dial error with %q", tt.name, err, kindOf(err), tt.want)
		}
	}
	target, err := ParseTarget("http://127.0.0.1/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.With(TargetOptions{TLS: &tls.Config{}}); err == nil {
		t.Error("With(TLS) of an http URL: got no error")
	}
}

func messageCounter(n *int) func(*codec.Message) { return func(*codec.Message) { *n++ } }

func kindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return 0
}
