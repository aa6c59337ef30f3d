package transport_test

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/transport"
)

// TestStatusOfPost is the table of what a POST is answered with. A request has
// the standard header lines and a session, unless its row says otherwise.
func TestStatusOfPost(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, nil, &transport.HTTPOptions{MaxMessageBytes: 1000})
	current, batching := w.session("2025-11-25"), w.session("2025-03-26")
	inBatching := []string{"Mcp-Session-Id: " + batching}
	const asJSON, asEvents = "application/json", "text/event-stream"
	for _, c := range []struct {
		name   string
		header []string
		body   string
		status int
		code   string // of the error, if any
		kind   string // the Content-Type
	}{
		{"ping", nil, ping("1"), 200, "", asJSON},
		{"no Content-Type", []string{"Content-Type:"}, ping("1"), 415, "-32600", asJSON},
		{"another Content-Type", []string{"Content-Type: text/plain"}, ping("1"), 415, "-32600", asJSON},
		{"nearly the Content-Type", []string{"Content-Type: application/jsonl"}, ping("1"), 415, "-32600", asJSON},
		{"Content-Type with a parameter", []string{"Content-Type: application/json; charset=utf-8"}, ping("1"), 200, "", asJSON},
		{"Content-Type in capitals", []string{"Content-Type: Application/JSON"}, ping("1"), 200, "", asJSON},

		{"no Accept", []string{"Accept:"}, ping("1"), 200, "", asJSON},
		{"Accept JSON only", []string{"Accept: application/json"}, ping("1"), 200, "", asJSON},
		{"Accept events only", []string{"Accept: text/event-stream"}, ping("1"), 200, "", asEvents},
		{"Accept anything", []string{"Accept: */*"}, ping("1"), 200, "", asJSON},
		{"Accept wildcards", []string{"Accept: application/*, text/*"}, ping("1"), 200, "", asJSON},
		{"Accept text of any kind", []string{"Accept: text/*"}, ping("1"), 200, "", asEvents},
		{"Accept in capitals", []string{"Accept: Application/JSON, Text/Event-Stream"}, ping("1"), 200, "", asJSON},
		{"Accept on two lines", []string{"Accept: text/html", "+Accept: application/json"}, ping("1"), 200, "", asJSON},
		{"Accept with weights", []string{"Accept: application/json;q=0.1, text/event-stream; q=1.0"}, ping("1"), 200, "", asJSON},
		{"Accept something else", []string{"Accept: text/html"}, ping("1"), 406, "-32600", asJSON},
		{"Accept nothing", []string{"Accept: application/json;q=0, text/event-stream; q=0.000"}, ping("1"), 406, "-32600", asJSON},
		{"Accept no wildcard", []string{"Accept: */*;q=0"}, ping("1"), 406, "-32600", asJSON},
		{"Accept no JSON", []string{"Accept: application/json; q=0, text/event-stream"}, ping("1"), 200, "", asEvents},
		{"Accept anything but JSON", []string{"Accept: application/json;q=0, */*"}, ping("1"), 200, "", asEvents},
		{"Accept no JSON after a parameter", []string{"Accept: application/json;v=1;Q=0, text/event-stream"}, ping("1"), 200, "", asEvents},

		{"at the limit", nil, padded("1", 1000), 200, "", asJSON},
		{"over the limit", nil, padded("1", 1001), 413, "-32600", asJSON},
		{"empty", nil, "", 400, "-32700", asJSON},
		{"not JSON", nil, "{", 400, "-32700", asJSON},
		{"not an object", nil, "17", 400, "-32600", asJSON},
		{"no message", nil, `{"id":1,"method":"ping"}`, 400, "-32600", asJSON},
		{"null id", nil, ping("null"), 400, "-32600", asJSON},
		{"params are no object", nil, `{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, 400, "-32602", asJSON},
		{"unknown method", nil, `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, 200, "-32601", asJSON},
		{"unknown tool", nil, call("1", "nothing", ""), 200, "-32602", asJSON},

		{"notification", nil, initialized, 202, "", ""},
		{"unknown notification", nil, `{"jsonrpc":"2.0","method":"notifications/x"}`, 202, "", ""},
		{"malformed notification", nil, `{"jsonrpc":"2.0","method":"notifications/x","params":1}`, 400, "-32602", asJSON},
		{"response", nil, `{"jsonrpc":"2.0","id":1,"result":{}}`, 202, "", ""},
		{"error response", nil, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`, 202, "", ""},

		{"batch in a revision without", nil, "[" + ping("1") + "]", 400, "-32600", asJSON},
		{"batch", inBatching, "[" + ping("1") + "]", 200, "", asJSON},
		{"batch of notifications", inBatching, "[" + initialized + "]", 202, "", ""},
		{"empty batch", inBatching, "[]", 200, "-32600", asJSON},
		{"batch that is not JSON", inBatching, "[", 200, "-32700", asJSON},
		{"batch without a session", []string{"Mcp-Session-Id:"}, "[" + ping("1") + "]", 400, "-32600", asJSON},
		{"batch with an unknown session", []string{"Mcp-Session-Id: x"}, "[" + ping("1") + "]", 404, "-32001", asJSON},

		{"no session", []string{"Mcp-Session-Id:"}, ping("1"), 400, "-32600", asJSON},
		{"unknown session", []string{"Mcp-Session-Id: x"}, ping("1"), 404, "-32001", asJSON},
		{"notification of no session", []string{"Mcp-Session-Id:"}, initialized, 400, "-32600", asJSON},
		{"notification of an unknown session", []string{"Mcp-Session-Id: x"}, initialized, 404, "-32001", asJSON},
		{"second initialize", nil, initialize, 200, "-32600", asJSON},
		{"malformed initialize", []string{"Mcp-Session-Id:"}, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`,
			400, "-32602", asJSON},

		{"the version", []string{"Mcp-Protocol-Version: 2025-11-25"}, ping("1"), 200, "", asJSON},
		{"unknown version", []string{"Mcp-Protocol-Version: 1999-01-01"}, ping("1"), 400, "-32602", asJSON},
		{"nonsense as version", []string{`Mcp-Protocol-Version: "; drop`}, ping("1"), 400, "-32602", asJSON},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := append(append(standard, "Mcp-Session-Id: "+current), c.header...)
			got := w.do(w.request(http.MethodPost, c.body, header...))
			if got.status != c.status || got.code() != c.code || got.header.Get("Content-Type") != c.kind {
				t.Errorf("POST %.60q %q: got %d, code %q, %q; want %d, code %q, %q", c.body, c.header,
					got.status, got.code(), got.header.Get("Content-Type"), c.status, c.code, c.kind)
			}
			if c.status == 202 && got.body != "" {
				t.Errorf("body of a 202: got %q, want none", got.body)
			}
			if c.status >= 400 && strings.Contains(got.body, `"id":`) && !strings.Contains(c.body, `"id":1`) {
				t.Errorf("body: got %s, want no id where the request has none that can be told", got.body)
			}
		})
	}
}

// TestStatusOfMethods is the table for everything but POST.
func TestStatusOfMethods(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, nil, nil)
	session := "Mcp-Session-Id: " + w.session("2025-11-25")
	const events = "Accept: text/event-stream"
	for _, c := range []struct {
		method string
		header []string
		status int
		allow  string
	}{
		{"GET", []string{session}, 406, ""},
		{"GET", []string{session, "Accept: application/json"}, 406, ""},
		{"GET", []string{session, "Accept: text/event-stream;q=0"}, 406, ""},
		{"GET", []string{session, "Accept: */*;q=0"}, 406, ""},
		{"GET", []string{events}, 400, ""},
		{"GET", []string{events, "Mcp-Session-Id: x"}, 404, ""},
		{"GET", []string{events, session, "Mcp-Protocol-Version: 1999-01-01"}, 400, ""},
		{"PUT", []string{session}, 405, "GET, POST, DELETE"},
		{"PATCH", []string{session}, 405, "GET, POST, DELETE"},
		{"HEAD", []string{session, events}, 405, "GET, POST, DELETE"},
		{"OPTIONS", []string{"Origin: http://127.0.0.1"}, 403, ""},
		{"OPTIONS", nil, 405, "GET, POST, DELETE"},
		{"DELETE", nil, 400, ""},
		{"DELETE", []string{"Mcp-Session-Id: x"}, 404, ""},
		{"DELETE", []string{session, "Mcp-Protocol-Version: 1999-01-01"}, 400, ""},
		{"DELETE", []string{session}, 204, ""},
		{"DELETE", []string{session}, 404, ""},
		{"GET", []string{events, session}, 404, ""},
	} {
		got := w.do(w.request(c.method, "", c.header...))
		if got.status != c.status || got.header.Get("Allow") != c.allow {
			t.Errorf("%s %q: got %d, Allow %q; want %d, Allow %q", c.method, c.header, got.status, got.header.Get("Allow"),
				c.status, c.allow)
		}
	}
}

// TestBodies covers what only a connection of one's own can send.
func TestBodies(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, nil, &transport.HTTPOptions{MaxMessageBytes: 1000, BodyTimeout: 300 * time.Millisecond})
	session := w.session("2025-11-25")
	chunk := func(s string) string { return strconv.FormatInt(int64(len(s)), 16) + "\r\n" + s + "\r\n" }
	const chunked = "Transfer-Encoding: chunked"
	length := func(n int) string { return "Content-Length: " + strconv.Itoa(n) }
	one := ping("1")
	for _, c := range []struct {
		name, head, body string
		status           int
		code             string
		closes           bool
	}{
		{"chunked", head(session, chunked), chunk(one[:9]) + chunk(one[9:]) + "0\r\n\r\n", 200, "", false},
		{"chunked, at the limit", head(session, chunked), chunk(padded("1", 1000)) + "0\r\n\r\n", 200, "", false},
		{"chunked, over the limit", head(session, chunked), chunk(padded("1", 1001)) + "0\r\n\r\n", 413, "-32600", true},
		{"chunked without end", head(session, chunked), strings.Repeat(chunk(strings.Repeat("x", 500)), 10), 413, "-32600", true},
		{"a length over the limit, body not sent", head(session, length(1<<30)), "", 413, "-32600", true},
		{"a body that stops", head(session, length(len(one))), one[:10], 408, "-32600", true},
		{"a chunked body that stops", head(session, chunked), chunk(one[:10]), 408, "-32600", true},
		{"bad chunks", head(session, chunked), "nonsense\r\n", 400, "-32600", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := w.dial()
			conn.write(c.head + c.body)
			got := conn.read()
			if got.status != c.status || got.code() != c.code {
				t.Errorf("got %d, code %q; want %d, code %q (%s)", got.status, got.code(), c.status, c.code, got.body)
			}
			if c.closes {
				if _, err := conn.r.ReadByte(); err != io.EOF && !isReset(err) {
					t.Errorf("the connection afterwards: got %v, want its end", err)
				}
				return
			}
			conn.write(head(session, length(len(one))) + one)
			if got := conn.read(); got.status != 200 {
				t.Errorf("the next request on the connection: got %d, want 200", got.status)
			}
		})
	}
}

func isReset(err error) bool { return err != nil && strings.Contains(err.Error(), "reset by peer") }

// TestBodyInPieces: a body may come slowly within its time limit, and the limit
// is not one for what follows.
func TestBodyInPieces(t *testing.T) {
	noLeaks(t)
	const limit = 400 * time.Millisecond
	w := newWeb(t, nil, &transport.HTTPOptions{BodyTimeout: limit})
	session := w.session("2025-11-25")
	conn := w.dial()
	body := call("1", "wait", `"ms":600,`+text("slow"))
	conn.write(head(session, "Content-Length: "+strconv.Itoa(len(body))))
	for piece := range bytes.SplitSeq([]byte(body), []byte(",")) {
		time.Sleep(limit / 20)
		conn.write(string(piece))
		if !strings.HasSuffix(body, string(piece)) {
			conn.write(",")
		}
	}
	if got := conn.read(); got.status != 200 || got.frames()[0] != "1 slow" {
		t.Errorf("a call that takes longer than its body may: got %d %q, want 200 and the answer", got.status, got.frames())
	}
	time.Sleep(limit * 3 / 2)
	conn.write(head(session, "Content-Length: "+strconv.Itoa(len(ping("2")))) + ping("2"))
	if got := conn.read(); got.status != 200 {
		t.Errorf("the next request, after more than the limit: got %d, want 200", got.status)
	}
}
