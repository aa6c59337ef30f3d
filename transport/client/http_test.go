package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client"
)

func TestHTTPHeaders(t *testing.T) {
	var headers http.Header
	e := &endpoint{session: "s-1", post: func(w http.ResponseWriter, r *http.Request, f frame) {
		if f.Method == "m" {
			headers = r.Header.Clone()
			writeJSON(w, resultOf(f, `7`))
		}
	}}
	c := connectHTTP(t, e, &client.Options{NoStream: true, Header: http.Header{
		"Authorization": {"Bearer x"}, "Mcp-Session-Id": {"forged"}, "Content-Type": {"text/plain"},
	}})
	got, err := c.Request(context.Background(), "m", nil, nil)
	if err != nil || string(got) != "7" {
		t.Errorf("Request: got %s, %v, want 7", got, err)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Authorization": "Bearer x", "Mcp-Session-Id": "s-1", "Mcp-Protocol-Version": "2025-11-25",
	} {
		if got := strings.Join(headers[name], "|"); got != want {
			t.Errorf("header %s: got %q, want %q", name, got, want)
		}
	}
	if c.SessionID() != "s-1" {
		t.Errorf("SessionID: got %q, want s-1", c.SessionID())
	}
	closeClient(t, c)
	want := []string{
		"POST initialize",
		"POST notifications/initialized s-1 2025-11-25",
		"POST m s-1 2025-11-25",
		"DELETE s-1 2025-11-25",
	}
	if got := e.log(); !reflect.DeepEqual(got, want) {
		t.Errorf("requests: got %q, want %q", got, want)
	}
}

// TestReplyStream sends each reply in each way of cutting and ending lines.
func TestReplyStream(t *testing.T) {
	reply := ": hello\nid: 1\ndata:\n\n" +
		"event: message\ndata: {\"jsonrpc\":\"2.0\",\ndata:\"method\":\"notifications/message\"}\n\n" +
		"event: other\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"not for us\"}\n\n" +
		"data: {\"jsonrpc\":\"2.0\",\"id\":\"srv\",\"method\":\"ping\"}\n\n" +
		"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":ID,\"progress\":1}}\n\n" +
		"data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"é\":\"x\"}}\nretry: 5\n\n"
	for _, end := range []string{"\n", "\r", "\r\n"} {
		for _, chunk := range []int{1, 2, 7, 10_000} {
			t.Run(fmt.Sprintf("%q by %d", end, chunk), func(t *testing.T) {
				pong := make(chan string, 1)
				e := &endpoint{session: "s", post: func(w http.ResponseWriter, _ *http.Request, f frame) {
					switch f.Method {
					case "m":
						text := strings.ReplaceAll(strings.ReplaceAll(reply, "\n", end), "ID", string(f.ID))
						for part := range slices.Chunk([]byte(text), chunk) {
							writeSSE(w, string(part))
						}
					case "":
						pong <- string(f.ID) + string(f.Result)
					}
				}}
				var notes []string
				c := connectHTTP(t, e, &client.Options{NoStream: true, OnNotification: func(method string, _ []byte) { notes = append(notes, method) }})
				progress := 0
				got, err := c.Request(context.Background(), "m", nil, &client.CallOptions{OnProgress: func(client.Progress) { progress++ }})
				if want := `{"é":"x"}`; err != nil || string(got) != want {
					t.Errorf("Request: got %s, %v, want %s", got, err, want)
				}
				if fmt.Sprint(notes, progress) != "[notifications/message] 1" {
					t.Errorf("got notifications %q and %d of progress, want notifications/message and 1", notes, progress)
				}
				if got := <-pong; got != `"srv"{}` {
					t.Errorf("answer to ping: got %s", got)
				}
			})
		}
	}
}

func TestHTTPAnswers(t *testing.T) {
	reply := func(status int, contentType, body string) func(http.ResponseWriter, frame) {
		return func(w http.ResponseWriter, f frame) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(strings.ReplaceAll(body, "ID", string(f.ID))))
		}
	}
	for _, test := range []struct {
		name   string
		answer func(http.ResponseWriter, frame)
		is     error  // errors.Is
		status int    // of an *HTTPError, 0 for none
		text   string // in the error
	}{
		{"error", reply(200, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no m"}}`), codec.ErrMethodNotFound, 0, "no m"},
		{"error without id", reply(200, "application/json", `{"jsonrpc":"2.0","error":{"code":-32600,"message":"bad"}}`), codec.ErrInvalidRequest, 0, "bad"},
		{"error without id in a stream", reply(200, "text/event-stream", event(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"bad"}}`)), codec.ErrInvalidRequest, 0, "bad"},
		{"error in a body of 400", reply(400, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"bad"}}`), codec.ErrInvalidParams, 400, "bad"},
		{"error without id in a body of 503", reply(503, "application/json", `{"jsonrpc":"2.0","error":{"code":-31900,"message":"busy"}}`), codec.ErrOverloaded, 503, "busy"},
		{"text in a body of 500", reply(500, "text/plain", `oh dear`), nil, 500, "client: HTTP status 500 Internal Server Error: oh dear"},
		{"404 without a session", reply(404, "text/plain", ``), nil, 404, "404 Not Found"},
		{"202", reply(202, "", ``), client.ErrMalformed, 0, "status 202"},
		{"HTML", reply(200, "text/html", `<html>`), client.ErrMalformed, 0, `content type "text/html"`},
		{"no JSON", reply(200, "application/json", `{"jsonrpc":`), client.ErrMalformed, 0, `{"jsonrpc":`},
		{"empty", reply(200, "application/json", ``), client.ErrMalformed, 0, ""},
		{"answer to another id", reply(200, "application/json", `{"jsonrpc":"2.0","id":99,"result":{}}`), client.ErrMalformed, 0, "99"},
		{"batch", reply(200, "application/json", `[{"jsonrpc":"2.0","id":ID,"result":{}}]`), client.ErrMalformed, 0, ""},
		{"malformed answer", reply(200, "application/json", `{"jsonrpc":"2.0","id":ID,"result":{},"error":{}}`), client.ErrMalformed, 0, ""},
		{"malformed answer in a stream", reply(200, "text/event-stream", event(`{"jsonrpc":"2.0","id":ID}`)), client.ErrMalformed, 0, ""},
		{"large JSON", reply(200, "application/json", strings.Repeat(" ", 2001)), client.ErrTooLarge, 0, ""},
		{"large event", reply(200, "text/event-stream", "data: "+strings.Repeat("data:x\n", 3000)), client.ErrTooLarge, 0, ""},
		{"large line", reply(200, "text/event-stream", ": "+strings.Repeat("x", 2100)), client.ErrTooLarge, 0, ""},
		{"stream without the response", reply(200, "text/event-stream", event(`{"jsonrpc":"2.0","method":"n"}`)), client.ErrNoResponse, 0, "EOF"},
		{"cut off", func(w http.ResponseWriter, _ frame) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"json`))
		}, client.ErrNoResponse, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := &endpoint{post: func(w http.ResponseWriter, _ *http.Request, f frame) {
				if f.Method == "m" {
					test.answer(w, f)
				}
			}}
			c := connectHTTP(t, e, &client.Options{NoStream: true, MaxMessageBytes: 2000})
			_, err := c.Request(context.Background(), "m", nil, nil)
			if err == nil || test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("Request: got %v, want %v with %q", err, test.is, test.text)
			}
			var status *client.HTTPError
			if errors.As(err, &status) != (test.status != 0) || status != nil && status.Status != test.status {
				t.Errorf("Request: got %v, want HTTP status %d", err, test.status)
			}
			closeClient(t, c)
			if got := e.log(); slices.Contains(got, "DELETE 2025-11-25") {
				t.Errorf("requests: got %q, want no DELETE without a session", got)
			}
		})
	}
}

func TestSessionLost(t *testing.T) {
	e := &endpoint{session: "s", post: func(w http.ResponseWriter, _ *http.Request, f frame) {
		if f.Method == "m" {
			w.WriteHeader(http.StatusNotFound)
		}
	}}
	c := connectHTTP(t, e, nil)
	_, err := c.Request(context.Background(), "m", nil, nil)
	var status *client.HTTPError
	if !errors.Is(err, client.ErrSessionLost) || !errors.As(err, &status) || status.Status != 404 {
		t.Errorf("Request: got %v, want ErrSessionLost with status 404", err)
	}
	<-c.Done()
	if _, err := c.Request(context.Background(), "m", nil, nil); !errors.Is(err, client.ErrSessionLost) {
		t.Errorf("second Request: got %v, want ErrSessionLost", err)
	}
	closeClient(t, c)
	if got := e.log(); slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "DELETE") }) {
		t.Errorf("requests: got %q, want no DELETE of a lost session", got)
	}
}

func TestHTTPCancel(t *testing.T) {
	cancelled := make(chan string, 1)
	entered := make(chan string, 1)
	e := &endpoint{session: "s", post: func(_ http.ResponseWriter, r *http.Request, f frame) {
		switch f.Method {
		case "slow":
			entered <- string(f.ID)
			<-r.Context().Done()
		case "notifications/cancelled":
			cancelled <- string(f.Params)
		}
	}}
	c := connectHTTP(t, e, nil)
	ctx, cancel := context.WithCancel(context.Background())
	var id string
	go func() {
		id = <-entered
		cancel()
	}()
	if _, err := c.Request(ctx, "slow", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Request: got %v, want context.Canceled", err)
	}
	if got, want := <-cancelled, `{"requestId":`+id+`,"reason":"the caller gave up"}`; got != want {
		t.Errorf("cancelled: got %s, want %s", got, want)
	}
	_, err := c.Request(context.Background(), "slow", nil, &client.CallOptions{Timeout: 50 * time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Request: got %v, want context.DeadlineExceeded", err)
	}
	// On a busy machine the time may be up before the server has seen the call.
	if got := <-cancelled; !strings.HasSuffix(got, `,"reason":"timeout"}`) || strings.Contains(got, `"requestId":`+id+`,`) {
		t.Errorf("cancelled: got %s, want the id of the second call and reason timeout", got)
	}
}
