package transport_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/transport"
)

// pipeCaller calls a raw tool over the in-memory pipe and allocates nothing.
type pipeCaller struct {
	tb      testing.TB
	conn    io.ReadWriteCloser
	request []byte
	answer  []byte
}

func newPipeCaller(tb testing.TB) *pipeCaller {
	tb.Helper()
	f := newFixture(tb, nil)
	conn, served := transport.Pipe(context.Background(), f.Engine)
	tb.Cleanup(func() { _ = conn.Close(); <-served })
	p := &pipeCaller{tb: tb, conn: conn, answer: make([]byte, 4<<10)}
	for _, frame := range []string{initialize, initialized} {
		if _, err := io.WriteString(conn, frame+"\n"); err != nil {
			tb.Fatal(err)
		}
		if frame == initialize {
			p.read()
		}
	}
	p.request = []byte(call(firstID, "quick", "") + "\n")
	return p
}

// read reads one line, which is never more than one read of a pipe.
func (p *pipeCaller) read() []byte {
	n, err := p.conn.Read(p.answer)
	if err != nil || n == 0 || p.answer[n-1] != '\n' {
		p.tb.Fatalf("the answer: got %q and %v, want a line", p.answer[:n], err)
	}
	return p.answer[:n]
}

func (p *pipeCaller) call() {
	nextID(p.request)
	if _, err := p.conn.Write(p.request); err != nil {
		p.tb.Fatal(err)
	}
	if got := p.read(); !bytes.Contains(got, []byte(`"quick"`)) {
		p.tb.Fatalf("the answer: got %q, want that of the tool", got)
	}
}

// firstID is the id of a request that nextID counts on.
const firstID = "1000000000"

// nextID gives a request the next id, in its place: an id is used once.
func nextID(request []byte) {
	i := bytes.Index(request, []byte(`"id":`)) + len(`"id":`) + len(firstID) - 1
	for ; request[i] == '9'; i-- {
		request[i] = '0'
	}
	request[i]++
}

func BenchmarkPipeToolsCall(b *testing.B) {
	p := newPipeCaller(b)
	b.ReportAllocs()
	for b.Loop() {
		p.call()
	}
}

// BenchmarkHTTPToolsCall calls a raw tool over a connection of loopback, with a
// client that allocates nothing.
func BenchmarkHTTPToolsCall(b *testing.B) {
	w := newWeb(b, nil, nil)
	session := w.session("2025-11-25")
	conn := w.dial()
	body := call(firstID, "quick", "")
	request := []byte(head(session, "Mcp-Protocol-Version: 2025-11-25", "Content-Length: "+strconv.Itoa(len(body))) + body)
	_ = conn.SetDeadline(time.Time{})
	b.ReportAllocs()
	for b.Loop() {
		nextID(request)
		if _, err := conn.Write(request); err != nil {
			b.Fatal(err)
		}
		if status := readQuickly(b, conn.r); status != http.StatusOK {
			b.Fatalf("status: got %d, want 200", status)
		}
	}
}

// readQuickly reads a response that has a Content-Length, and gives its status.
func readQuickly(tb testing.TB, r *bufio.Reader) (status int) {
	length := -1
	for first := true; ; first = false {
		line, err := r.ReadSlice('\n')
		if err != nil {
			tb.Fatal(err)
		}
		switch {
		case first:
			status = digits(line[len("HTTP/1.1 "):])
		case len(line) == 2:
			if _, err := r.Discard(length); err != nil {
				tb.Fatalf("a body of %d bytes: %v", length, err)
			}
			return status
		case bytes.HasPrefix(line, []byte("Content-Length: ")):
			length = digits(line[len("Content-Length: "):])
		}
	}
}

// digits reads the number that b begins with.
func digits(b []byte) (n int) {
	for _, c := range b {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + int(c-'0')
	}
	return n
}
