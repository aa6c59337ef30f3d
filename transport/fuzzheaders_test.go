package transport_test

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport"
)

// FuzzHTTPHeaders sends arbitrary header bytes, through the parser of net/http,
// to a handler that listens on loopback. What is not refused names a loopback
// host and no foreign origin; no answer carries a line end into its header;
// every body is a message; and no session appears but by an initialize.
func FuzzHTTPHeaders(f *testing.F) {
	fix := fuzzFixture(f)
	h := transport.NewHTTPHandler(fix.Engine, &transport.HTTPOptions{
		MaxMessageBytes: fuzzLimit, CORS: true, AllowedOrigins: []string{"https://app.example"}, Events: transport.NewMemoryEvents(0, 0),
	})
	const post, local = "POST /mcp HTTP/1.1\r\n", "Host: 127.0.0.1:80\r\n"
	const kinds = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
	for _, head := range []string{
		post + local + kinds, post + "Host: evil.example\r\n" + kinds, post + local + kinds + "Origin: https://evil.example\r\n",
		post + "Host: [::1]\r\nOrigin: http://[::1]\r\n" + kinds, "OPTIONS /mcp HTTP/1.1\r\n" + local + "Origin: https://app.example\r\n" +
			"Access-Control-Request-Headers: mcp-param-a, x\r\n", "DELETE /mcp HTTP/1.1\r\n" + local + "Mcp-Session-Id: SESSION\r\n",
		"GET /mcp HTTP/1.1\r\n" + local + "Accept: text/event-stream\r\nMcp-Session-Id: SESSION\r\nLast-Event-ID: 1-1\r\n",
		post + local + kinds + "Mcp-Session-Id: SESSION\r\nMcp-Protocol-Version: 2025-06-18\r\n",
		post + local + kinds + "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: =?base64?ZWNobw==?=\r\n",
		post + local + "content-type: APPLICATION/JSON;charset=utf-8\r\naccept: */*;q=0.0\r\n" + strings.Repeat("X: y\r\n", 50),
	} {
		for choice := range uint8(3) {
			f.Add(head, choice)
		}
	}
	bodies := []string{
		initialize, ping("1"), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a"},` +
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
	}
	f.Fuzz(func(t *testing.T, head string, choice uint8) {
		body := bodies[choice%3]
		session := ""
		if strings.Contains(head, "SESSION") {
			session = open(t, h)
			head = strings.ReplaceAll(head, "SESSION", session)
			defer fix.Session(session).Close()
		}
		before := fix.Stats().Sessions
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head + "\r\n")))
		if err != nil || strings.ContainsFunc(r.Host, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return // the server refuses such a Host by itself
		}
		r.Body, r.ContentLength = http.NoBody, 0
		if r.Method == http.MethodPost {
			r.Body, r.ContentLength = httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)).Body, int64(len(body))
		}
		// A stream goes on until its client leaves.
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), http.LocalAddrContextKey,
			&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}), 100*time.Millisecond)
		defer cancel()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(ctx))
		opened := w.Header().Get("Mcp-Session-Id")
		if opened != "" {
			defer fix.Session(opened).Close()
		}
		checkGuarded(t, r, w.Code)
		checkHeader(t, w.Header())
		checkBody(t, w)
		if grown := fix.Stats().Sessions - before; grown > 0 && (opened == "" || body != initialize || r.Method != http.MethodPost) {
			t.Errorf("%s %q: %d sessions appeared", r.Method, head, grown)
		}
	})
}

// open opens a session at a handler.
func open(t *testing.T, h http.Handler) string {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(initialize))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("initialize: got %d %s", w.Code, w.Body)
	}
	return w.Header().Get("Mcp-Session-Id")
}

// checkGuarded checks that a request which was served may be served.
func checkGuarded(t *testing.T, r *http.Request, status int) {
	t.Helper()
	if status < 200 || status > 599 || status == http.StatusInternalServerError {
		t.Errorf("status: got %d, want one of success or refusal", status)
	}
	if status == http.StatusForbidden || status == http.StatusRequestHeaderFieldsTooLarge {
		return
	}
	host := strings.ToLower(r.Host)
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if host != "localhost" && (err != nil || !addr.Unmap().IsLoopback()) {
		t.Errorf("Host %q: got %d, want 403", r.Host, status)
	}
	origin := strings.ToLower(r.Header.Get("Origin"))
	if origin != "" && origin != "https://app.example" && !strings.Contains(origin, strings.ToLower(r.Host)) {
		t.Errorf("Origin %q at Host %q: got %d, want 403", origin, r.Host, status)
	}
}

// checkHeader checks that no value of a header holds what ends a line.
func checkHeader(t *testing.T, header http.Header) {
	t.Helper()
	for name, values := range header {
		if text := name + strings.Join(values, ""); strings.ContainsAny(text, "\r\n\x00") {
			t.Errorf("header %q: got %q, want no line end in it", name, values)
		}
	}
}

// checkBody checks that a body is a message, or a stream of messages.
func checkBody(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	switch w.Header().Get("Content-Type") {
	case "application/json":
		checkFrame(t, w.Body.Bytes())
	case "text/event-stream":
		for line := range bytes.Lines(w.Body.Bytes()) {
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				checkFrame(t, bytes.TrimSuffix(data, []byte("\n")))
			}
		}
	default:
		if w.Body.Len() > 0 {
			t.Errorf("body without a type: got %q of a %d, want none", w.Body, w.Code)
		}
	}
	if w.Code == http.StatusNotFound {
		if code := codec.Member(w.Body.Bytes(), "error", "code"); string(code) != "-32001" && string(code) != "-32601" {
			t.Errorf("404: got code %s, want -32001 or -32601", code)
		}
	}
}
