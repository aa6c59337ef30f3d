package transport_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// modern is a request of 2026-07-28. members are those of params beside _meta.
func modern(id, method, members string) string {
	if members != "" {
		members = "," + members
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}` + members + `}}`
}

// modernCall is a request of 2026-07-28 for a tool.
func modernCall(id, tool, args string) string {
	return modern(id, "tools/call", `"name":"`+tool+`","arguments":{`+args+`}`)
}

// listen asks for a subscription to a resource.
func listen(id string) string {
	return modern(id, "subscriptions/listen", `"notifications":{"resourceSubscriptions":["a:"]}`)
}

// marks are the header lines of a request of 2026-07-28.
func marks(frame string) []string {
	var m codec.Message
	_ = codec.Decode([]byte(frame), &m) // what is no message has no names
	lines := append(append([]string(nil), standard...), "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: "+string(m.Method))
	for _, name := range [][]byte{m.Name, m.URI, m.TaskID} {
		if name != nil {
			lines = append(lines, "Mcp-Name: "+string(name))
		}
	}
	return lines
}

// stateless sends a request of 2026-07-28.
func (w *web) stateless(frame string, header ...string) reply {
	w.t.Helper()
	return w.do(w.request(http.MethodPost, frame, append(marks(frame), header...)...))
}

// TestModernStatus pairs errors with HTTP statuses.
func TestModernStatus(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, nil, nil)
	if err := engine.AddTool(w.Engine, engine.Tool{Name: "sample"}, func(ctx context.Context, c *engine.Call, _ struct{}) (string, error) {
		return "", c.Require("sampling")
	}); err != nil {
		t.Fatal(err)
	}
	session := w.session("2025-11-25")
	const none = "\x00"
	for _, c := range []struct {
		what, frame string
		header      []string
		status      int
		code        string // "" for a result, none for no body
	}{
		{"a call", modernCall("7", "echo", text("a")), nil, 200, ""},
		{"a session id means nothing", modernCall("7", "echo", text("a")), []string{"Mcp-Session-Id: " + session}, 200, ""},
		{"nor does an unknown one", modernCall("7", "echo", text("a")), []string{"Mcp-Session-Id: no-such"}, 200, ""},
		{"nor does Last-Event-ID", modernCall("7", "echo", text("a")), []string{"Last-Event-ID: 1-1"}, 200, ""},
		{"header names in another case", modernCall("7", "echo", text("a")), []string{"Mcp-Method:", "mcp-method: tools/call"}, 200, ""},
		{"a capability is missing, in the handler", modernCall("7", "sample", ""), nil, 400, "-32021"},
		{"the version is unknown", strings.Replace(modernCall("7", "echo", ""), "2026-07-28", "v999", 1), []string{"Mcp-Protocol-Version: v999"}, 400, "-32022"},
		{"the version differs", modernCall("7", "echo", ""), []string{"Mcp-Protocol-Version: 2025-11-25"}, 400, "-32020"},
		{"no version header", modernCall("7", "echo", ""), []string{"Mcp-Protocol-Version:"}, 400, "-32020"},
		{"no version header, in a session", modernCall("7", "echo", ""), []string{"Mcp-Protocol-Version:", "Mcp-Session-Id: " + session}, 400, "-32020"},
		{"no method header", modernCall("7", "echo", ""), []string{"Mcp-Method:"}, 400, "-32020"},
		{"no name header", modernCall("7", "echo", ""), []string{"Mcp-Name:"}, 400, "-32020"},
		{"a repeated header", modernCall("7", "echo", ""), []string{"+Mcp-Name: echo"}, 400, "-32020"},
		{"no _meta", ping("7"), nil, 400, "-32602"},
		{"no _meta, in a session", ping("7"), []string{"Mcp-Session-Id: " + session}, 400, "-32602"},
		{"an unknown version header and no _meta", ping("7"), []string{"Mcp-Protocol-Version: 1999-01-01"}, 400, "-32602"},
		{"an unknown version header and no _meta, in a session", ping("7"), []string{"Mcp-Protocol-Version: 1999-01-01", "Mcp-Session-Id: " + session}, 400, "-32602"},
		{"initialize with the era's header", initialize, []string{"Mcp-Method: initialize"}, 400, "-32602"},
		{"initialize with all marks", modern("7", "initialize", `"protocolVersion":"2025-11-25"`), nil, 404, "-32601"},
		{"a removed method", modern("7", "ping", ""), nil, 404, "-32601"},
		{"an unknown method", modern("7", "no/such", ""), nil, 404, "-32601"},
		{"no prompts here", modern("7", "prompts/list", ""), nil, 404, "-32601"},
		{"an unknown tool", modernCall("7", "nope", ""), nil, 400, "-32602"},
		{"a tool that fails", modernCall("7", "fail", ""), nil, 200, ""},
		{"a tool that panics", modernCall("7", "panic", ""), nil, 200, "-32603"},
		{"a batch", "[" + modern("7", "tools/list", "") + "]", nil, 400, "-32600"},
		{"not JSON", "{", nil, 400, "-32700"},
		{"a response", `{"jsonrpc":"2.0","id":7,"result":{}}`, nil, 400, "-32600"},
		{"a cancellation", cancelOf("7"), []string{"Mcp-Method: notifications/cancelled"}, 202, none},
		{"a notification of an unknown version", cancelOf("7"), []string{"Mcp-Protocol-Version: v999"}, 400, "-32022"},
		{"a subscription for a client that takes no events", listen("7"), []string{"Accept: application/json"}, 406, "-32600"},
		{"a call for a client that takes no events", modernCall("7", "echo", text("a")), []string{"Accept: application/json"}, 200, ""},
		{"an Origin of elsewhere", modernCall("7", "echo", ""), []string{"Origin: http://evil.example.com"}, 403, "-32600"},
		{"a Host of elsewhere", modernCall("7", "echo", ""), []string{"Host: evil.example.com"}, 403, "-32600"},
	} {
		got := w.stateless(c.frame, c.header...)
		id := string(codec.Member([]byte(got.body), "id"))
		switch {
		case got.status != c.status,
			c.code == none && got.body != "",
			c.code != none && got.code() != c.code,
			c.code == "" && codec.Text([]byte(got.body), "result", "resultType") != "complete":
			t.Errorf("%s: got %d %s, want %d %s", c.what, got.status, got.body, c.status, c.code)
		case strings.Contains(c.frame, `"id":7`) && strings.Contains(c.frame, "method") && c.frame[0] == '{' && c.status != 403 && id != "7":
			t.Errorf("%s: got %s, want the request's id", c.what, got.body)
		case got.header.Get("Mcp-Session-Id") != "":
			t.Errorf("%s: got a session", c.what)
		case c.code != none && got.header.Get("Content-Type") != "application/json":
			t.Errorf("%s: got Content-Type %q", c.what, got.header.Get("Content-Type"))
		}
	}
	if got := w.Stats().Sessions; got != 1 {
		t.Errorf("sessions: got %d, want the one", got)
	}
	if got := w.post(session, ping("1")); got.status != 200 {
		t.Errorf("the session: got %d, want 200", got.status)
	}
}

// TestModernMethods sends what is no POST.
func TestModernMethods(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, nil, nil)
	session := w.session("2025-11-25")
	for _, c := range []struct {
		method string
		header []string
		status int
	}{
		{http.MethodGet, []string{"Mcp-Protocol-Version: 2026-07-28", "Accept: text/event-stream"}, 405},
		{http.MethodGet, []string{"Mcp-Protocol-Version: 2026-07-28", "Accept: text/event-stream", "Mcp-Session-Id: " + session}, 405},
		{http.MethodDelete, []string{"Mcp-Protocol-Version: 2026-07-28"}, 405},
		{http.MethodDelete, []string{"Mcp-Protocol-Version: 2026-07-28", "Mcp-Session-Id: " + session}, 405},
		{http.MethodGet, []string{"Accept: text/event-stream"}, 400},
		{http.MethodDelete, nil, 400},
		{http.MethodPut, []string{"Mcp-Protocol-Version: 2026-07-28"}, 405},
	} {
		got := w.do(w.request(c.method, "", c.header...))
		if got.status != c.status || c.status == 405 && got.header.Get("Allow") == "" {
			t.Errorf("%s %q: got %d, Allow %q, want %d", c.method, c.header, got.status, got.header.Get("Allow"), c.status)
		}
	}
	if got := w.Stats().Sessions; got != 1 {
		t.Errorf("sessions: got %d, want 1, which no DELETE of the other era has ended", got)
	}
}

// TestModernOneEra leaves one era out.
func TestModernOneEra(t *testing.T) {
	noLeaks(t)
	only := newWeb(t, &engine.Options{ModernOnly: true}, nil)
	for _, frame := range []string{initialize, ping("1"), initialized} {
		got := only.do(only.request(http.MethodPost, frame, standard...))
		if got.status != 400 || !strings.Contains(got.body, `"2026-07-28"`) || got.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: got %d %s, want 400 that names the version", frame, got.status, got.body)
		}
	}
	if got := only.stateless(modern("1", "server/discover", "")); got.status != 200 || !strings.Contains(got.body, `"supportedVersions":["2026-07-28"]`) {
		t.Errorf("server/discover: got %d %s", got.status, got.body)
	}
	old := newWeb(t, &engine.Options{LegacyOnly: true}, nil)
	if got := old.stateless(modern("1", "server/discover", "")); got.status != 400 || got.code() != "-32022" {
		t.Errorf("server/discover of a legacy server: got %d %s, want 400 -32022", got.status, got.body)
	}
	if got := old.post(old.session("2025-11-25"), call("1", "echo", text("a"))); got.status != 200 {
		t.Errorf("a legacy call: got %d", got.status)
	}
}

// TestModernDisconnect breaks the connection of calls that run, in several ways.
// Their contexts end within a second, nothing more is sent, and others of the
// same id go on.
func TestModernDisconnect(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, nil, nil)
	other := make(chan reply, 1)
	stays := modernCall("1", "gate", text("stays"))
	go func() { other <- w.do(w.request(http.MethodPost, stays, marks(stays)...)) }()
	<-w.entered
	for name, leave := range map[string]func(c *raw){
		"close": func(c *raw) { _ = c.Close() },
		"reset": func(c *raw) { _ = c.Conn.(*net.TCPConn).SetLinger(0); _ = c.Close() },
		"half":  func(c *raw) { _ = c.Conn.(*net.TCPConn).CloseWrite() },
	} {
		for _, wait := range []time.Duration{0, 700 * time.Millisecond} { // a JSON reply that is pending, and an event stream
			frame := modernCall("1", "gate", text(name)) // the same id
			c := w.dial()
			c.write("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n" + strings.Join(marks(frame), "\r\n") +
				fmt.Sprintf("\r\nContent-Length: %d\r\n\r\n%s", len(frame), frame))
			if got := <-w.entered; got != name {
				t.Fatalf("%s: the call %q has begun", name, got)
			}
			time.Sleep(wait)
			begin := time.Now()
			leave(c)
			if got := <-w.ended; got != name {
				t.Errorf("%s: the context of %q has ended", name, got)
			}
			if took := time.Since(begin); took > time.Second {
				t.Errorf("%s: the context ended after %v, want at most 1 s", name, took)
			}
			if name == "half" {
				_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
				rest, _ := c.r.Peek(4096) // whatever comes before the server closes
				if strings.Contains(string(rest), "jsonrpc") {
					t.Errorf("after the client's end: got %q, want no frame", rest)
				}
			}
		}
	}
	close(w.open)
	if got := <-other; got.status != 200 || len(got.frames()) != 1 || got.frames()[0] != "1 stays" {
		t.Errorf("the call that stays: got %d %v", got.status, got.frames())
	}
	eventually(t, "the end of all calls", func() bool { return w.Stats().ActiveRequests == 0 })
}

// TestLegacyDisconnectIsNone breaks the connection of a call of a session, beside
// those of the stateless era: it goes on.
func TestLegacyDisconnectIsNone(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, nil, nil)
	session := w.session("2025-11-25")
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		r := w.request(http.MethodPost, call("1", "gate", text("a")), append(standard, "Mcp-Session-Id: "+session)...)
		response, err := w.client.Do(r.WithContext(ctx))
		if err == nil {
			_ = response.Body.Close()
		}
		left <- err
	}()
	<-w.entered
	cancel()
	<-left
	time.Sleep(50 * time.Millisecond) // for a cancellation that must not come
	select {
	case name := <-w.ended:
		t.Errorf("the context of %s has ended", name)
	default:
	}
	close(w.open)
	eventually(t, "the end of the call", func() bool { return w.Stats().ActiveRequests == 0 })
}

// TestModernSameID has 50 clients use one id at once.
func TestModernSameID(t *testing.T) {
	noLeaks(t)
	w := newWeb(t, nil, nil)
	replies := make(chan reply, 50)
	for i := range 50 {
		frame := modernCall(`"same"`, "gate", text(fmt.Sprint(i)))
		go func() { replies <- w.do(w.request(http.MethodPost, frame, marks(frame)...)) }()
	}
	for range 50 {
		<-w.entered
	}
	close(w.open)
	seen := make(map[string]bool)
	for range 50 {
		got := <-replies
		seen[fmt.Sprint(got.frames())] = true
	}
	if len(seen) != 50 {
		t.Errorf("answers: got %d different ones, want 50", len(seen))
	}
}
