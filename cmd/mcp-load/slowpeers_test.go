package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are pipes in memory, so that a test of
// minutes takes none.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// dial gives the client's end of a new connection.
func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

// TestSlowPeers has clients that send a byte a second, or nothing any more. Each
// is cut off when its time is over, in virtual time; a stream that is read goes
// on; and nothing of them is left.
func TestSlowPeers(t *testing.T) {
	const head = "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
	for _, c := range []struct {
		name, at, then string // sent at once, and byte by byte
		least, most    time.Duration
		status         string // of a response that precedes the end
	}{
		{"nothing at all", "", "", 9 * time.Second, 11 * time.Second, ""},
		{"a slow head", "POST /mcp HTTP/1.1\r\n", strings.Repeat("X-A: b\r\n", 100), 9 * time.Second, 11 * time.Second, "400"},
		{"half a head", head, "", 9 * time.Second, 11 * time.Second, ""},
		{"a slow body", head + "\r\n", strings.Repeat(" ", 1000), 29 * time.Second, 32 * time.Second, "408"},
		{"half a body", head + "\r\n{", "", 29 * time.Second, 32 * time.Second, "408"},
		{"idle after an answer", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "", 119 * time.Second, 122 * time.Second, "404"},
		{"a huge head", "POST /mcp HTTP/1.1\r\nX: " + strings.Repeat("y", 100<<10), "", 0, 12 * time.Second, "431"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := servePipes(t)
				conn := listener.dial()
				begun := time.Now()
				wrote := make(chan struct{})
				go func() {
					defer close(wrote)
					if _, err := io.WriteString(conn, c.at); err != nil {
						return
					}
					for _, b := range []byte(c.then) {
						time.Sleep(time.Second)
						if _, err := conn.Write([]byte{b}); err != nil {
							return
						}
					}
				}()
				raw, err := io.ReadAll(conn)
				took := time.Since(begun)
				_ = conn.Close()
				<-wrote
				status := ""
				if fields := strings.Fields(string(raw)); len(fields) > 1 {
					status = fields[1]
				}
				if err != nil || status != c.status || took < c.least || took > c.most {
					t.Errorf("got status %q, %v, the end after %v; want %q, the end after %v to %v", status, err, took, c.status, c.least, c.most)
				}
			})
		})
	}
}

// TestTimeoutsSpareStreams keeps a stream open for far longer than any timeout
// of the server: it goes on.
func TestTimeoutsSpareStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := servePipes(t)
		client := &http.Client{Transport: &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) { return listener.dial(), nil },
		}}
		defer client.CloseIdleConnections()
		c := &legacyClient{http: client, url: "http://127.0.0.1/mcp"}
		if err := c.open("2025-11-25"); err != nil {
			t.Fatal(err)
		}
		stream := c.stream(t, http.MethodGet, "", "")
		defer func() { _ = stream.Close() }()
		begun, comments := time.Now(), 0
		for lines := bufio.NewScanner(stream); time.Since(begun) < 10*time.Minute; {
			if !lines.Scan() {
				t.Fatalf("the stream ended after %v: %v", time.Since(begun), lines.Err())
			}
			if strings.HasPrefix(lines.Text(), ":") {
				comments++
			}
		}
		if comments < 30 {
			t.Errorf("keep-alive comments in 10 minutes: got %d, want one each 15 s", comments)
		}
	})
}

// servePipes serves the demo fixture, as the command does, to pipes, until the
// bubble of the test ends.
func servePipes(t *testing.T) *pipes {
	t.Helper()
	f := &serveFlags{http: "127.0.0.1:0", path: "/mcp", fixture: "demo", sessionIdle: time.Hour, store: "memory", logLevel: "error"}
	s, err := newServer(t.Context(), f, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	listener := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	web := s.webServer()
	s.web.Store(web)
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	t.Cleanup(func() {
		err := s.shutdown(context.Background(), time.Second)
		if served := <-served; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, fmt.Errorf("Serve: %w", served))
		}
		if err != nil {
			t.Error(err)
		}
	})
	return listener
}

// TestStuckPipe ends a stdio server whose input never ends and whose output is
// never read, while answers wait for it: it exits when the drain is over.
func TestStuckPipe(t *testing.T) {
	s := startServed(t, "", "--stdio", "--drain", "300ms")
	var calls strings.Builder
	for i := range 100 { // far more than a pipe holds
		fmt.Fprintf(&calls, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"big","arguments":{"bytes":100000}}}`+"\n", i)
	}
	if _, err := io.WriteString(s.stdin, handshake+calls.String()); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.next(t); !ok {
		t.Fatalf("no answer to initialize; stderr %s", s.stderr())
	}
	time.Sleep(200 * time.Millisecond) // its output is blocked
	begun := time.Now()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	code := s.end(t)
	if took := time.Since(begun); took > 5*time.Second || s.cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		t.Errorf("the end came after %v, code %d; want it by itself when the drain of 300 ms is over; stderr %s", took, code, s.stderr())
	}
}
