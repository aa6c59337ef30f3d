package layers

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/transport"
)

// nextID gives a request the next id, in its place: an id is used once.
func nextID(request []byte) {
	i := bytes.Index(request, []byte(`"id":1`)) + len(`"id":1000000000`) - 1
	for ; request[i] == '9'; i-- {
		request[i] = '0'
	}
	request[i]++
}

// BenchmarkTransportPipe calls a tool from one end of the in-memory pipe to the
// other.
func BenchmarkTransportPipe(b *testing.B) {
	conn, served := transport.Pipe(context.Background(), newEngine(b))
	b.Cleanup(func() { _ = conn.Close(); <-served })
	answer := make([]byte, 4<<10)
	exchange := func(frame []byte) {
		if _, err := conn.Write(frame); err != nil {
			b.Fatal(err)
		}
		if n, err := conn.Read(answer); err != nil || n == 0 || !bytes.Contains(answer[:n], []byte(`"result"`)) {
			b.Fatalf("the answer: got %q and %v", answer[:n], err)
		}
	}
	exchange([]byte(initializeFrame + "\n"))
	call := []byte(callFrame + "\n")
	b.ReportAllocs()
	for b.Loop() {
		nextID(call)
		exchange(call)
	}
}

// web is a server of net/http on loopback and one connection to it, whose client
// allocates nothing.
type web struct {
	b    *testing.B
	conn net.Conn
	r    *bufio.Reader
	key  string // of the last response that named a session
}

func newWeb(b *testing.B) *web {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: transport.NewHTTPHandler(newEngine(b), nil)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(); _ = server.Close(); <-served })
	return &web{b: b, conn: conn, r: bufio.NewReader(conn)}
}

// requestBytes makes a request with the standard header lines and others.
func requestBytes(method, body string, header ...string) []byte {
	lines := append([]string{method + " /mcp HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json",
		"Accept: application/json, text/event-stream", "Content-Length: " + strconv.Itoa(len(body))}, header...)
	return []byte(strings.Join(lines, "\r\n") + "\r\n\r\n" + body)
}

// exchange sends a request and reads its response, which has a Content-Length or
// no body.
func (w *web) exchange(request []byte, want string) {
	if _, err := w.conn.Write(request); err != nil {
		w.b.Fatal(err)
	}
	length := 0
	for first := true; ; first = false {
		line, err := w.r.ReadSlice('\n')
		if err != nil {
			w.b.Fatal(err)
		}
		if first && !bytes.Contains(line, []byte(want)) {
			w.b.Fatalf("status: got %q, want %s", line, want)
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			length = 0
			for _, c := range value[:len(value)-2] {
				length = 10*length + int(c-'0')
			}
		}
		if value, ok := bytes.CutPrefix(line, []byte("Mcp-Session-Id: ")); ok {
			w.key = string(value[:len(value)-2])
		}
		if len(line) == 2 {
			break
		}
	}
	if _, err := w.r.Discard(length); err != nil {
		w.b.Fatal(err)
	}
}

// BenchmarkTransportHTTP calls a tool over a connection of loopback. What package
// http allocates is in the figure, and is most of it.
func BenchmarkTransportHTTP(b *testing.B) {
	b.Run("session", func(b *testing.B) {
		w := newWeb(b)
		w.exchange(requestBytes(http.MethodPost, initializeFrame), "200")
		w.calls(requestBytes(http.MethodPost, callFrame, "Mcp-Session-Id: "+w.key, "MCP-Protocol-Version: 2025-11-25"))
	})
	b.Run("modern", func(b *testing.B) {
		w := newWeb(b)
		w.calls(requestBytes(http.MethodPost, modernFrame, "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: echo"))
	})
}

func (w *web) calls(call []byte) {
	w.b.ReportAllocs()
	for w.b.Loop() {
		nextID(call)
		w.exchange(call, "200")
	}
}

// BenchmarkTransportSession opens a session over HTTP and deletes it.
func BenchmarkTransportSession(b *testing.B) {
	w := newWeb(b)
	initialize := requestBytes(http.MethodPost, initializeFrame)
	b.ReportAllocs()
	for b.Loop() {
		w.exchange(initialize, "200")
		w.exchange(requestBytes(http.MethodDelete, "", "Mcp-Session-Id: "+w.key), "204")
	}
}
