package transport_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/transport"
)

// lazyPair gives the two ends of a connection, the first one accepted by a
// listener of ours.
func lazyPair(t *testing.T) (ours, peer net.Conn) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := transport.NewListener(inner)
	t.Cleanup(func() { _ = l.Close() })
	if peer, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.Close() })
	if ours, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	return ours, peer
}

// TestListenerDeadlines moves the read deadline in all directions. A read ends
// when the deadline that was set last says so, not before, and not long after.
func TestListenerDeadlines(t *testing.T) {
	const short, long, never = 60 * time.Millisecond, 180 * time.Millisecond, time.Hour
	in := func(d time.Duration) time.Time { return time.Now().Add(d) }
	past := time.Unix(1, 0)
	for _, c := range []struct {
		name   string
		before func(c net.Conn)
		during func(c net.Conn) // the read, after half of short
		after  time.Duration    // when it ends
	}{
		{"one", func(c net.Conn) { _ = c.SetReadDeadline(in(short)) }, nil, short},
		{"later", func(c net.Conn) { _ = c.SetReadDeadline(in(short)); _ = c.SetReadDeadline(in(long)) }, nil, long},
		{"earlier", func(c net.Conn) { _ = c.SetReadDeadline(in(never)); _ = c.SetReadDeadline(in(short)) }, nil, short},
		{"undone and set", func(c net.Conn) {
			_ = c.SetReadDeadline(in(short))
			_ = c.SetReadDeadline(time.Time{})
			_ = c.SetReadDeadline(in(long))
		}, nil, long},
		{"long ago", func(c net.Conn) { _ = c.SetReadDeadline(past) }, nil, 0},
		{"just over", func(c net.Conn) { _ = c.SetReadDeadline(in(-time.Second)) }, nil, 0},
		{"just over, with an earlier one in place", func(c net.Conn) {
			_ = c.SetReadDeadline(in(short / 4))
			time.Sleep(short / 2)
			_ = c.SetReadDeadline(in(-time.Millisecond))
		}, nil, 0},
		{"long ago and undone", func(c net.Conn) {
			_ = c.SetReadDeadline(past)
			_ = c.SetReadDeadline(time.Time{})
			_ = c.SetReadDeadline(in(long))
		}, nil, long},
		{"both directions at once", func(c net.Conn) { _ = c.SetDeadline(in(short)) }, nil, short},
		{"earlier, meanwhile", func(c net.Conn) { _ = c.SetReadDeadline(in(never)) },
			func(c net.Conn) { _ = c.SetReadDeadline(in(short)) }, short},
		{"later, meanwhile", func(c net.Conn) { _ = c.SetReadDeadline(in(short)) },
			func(c net.Conn) { _ = c.SetReadDeadline(in(long)) }, long},
		{"long ago, meanwhile", func(c net.Conn) { _ = c.SetReadDeadline(in(never)) },
			func(c net.Conn) { _ = c.SetReadDeadline(past) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ours, peer := lazyPair(t)
			c.before(ours)
			if c.during != nil {
				time.AfterFunc(short/2, func() { c.during(ours) })
			}
			begin := time.Now()
			n, err := ours.Read(make([]byte, 1))
			took := time.Since(begin)
			if n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("Read: got %d, %v, want the end of its time", n, err)
			}
			if c.after > 0 && took < c.after-5*time.Millisecond {
				t.Errorf("Read ended after %v, want %v", took, c.after)
			}
			if took > 5*time.Second {
				t.Errorf("Read ended after %v, want about %v", took, c.after)
			}
			_ = ours.SetReadDeadline(time.Time{})
			go func() { time.Sleep(long); _, _ = peer.Write([]byte("x")) }()
			if n, err := ours.Read(make([]byte, 1)); n != 1 || err != nil {
				t.Errorf("Read without a deadline: got %d, %v, want the byte", n, err)
			}
		})
	}
}

// TestListenerCopies: a copy goes on past a deadline that was undone.
func TestListenerCopies(t *testing.T) {
	ours, peer := lazyPair(t)
	_ = ours.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	_ = ours.SetReadDeadline(time.Time{})
	go func() {
		time.Sleep(150 * time.Millisecond)
		_, _ = io.WriteString(peer, "late")
		_ = peer.Close()
	}()
	var got strings.Builder
	if n, err := io.Copy(&got, ours); n != 4 || err != nil || got.String() != "late" {
		t.Errorf("Copy: got %d, %v, %q, want 4, no error, late", n, err, got.String())
	}
}

// TestListenerServes holds the timeouts of an http.Server on the listener.
func TestListenerServes(t *testing.T) {
	noLeaks(t)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const limit = 200 * time.Millisecond
	server := &http.Server{
		ReadHeaderTimeout: limit, IdleTimeout: limit,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, r.Body)
			if r.URL.Path == "/slow" {
				time.Sleep(2 * limit)
			}
		}),
	}
	go func() { _ = server.Serve(transport.NewListener(inner)) }()
	defer func() { _ = server.Close() }()
	conn, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	for i, path := range []string{"/", "/slow", "/", "/", "/"} {
		time.Sleep(limit / 3)
		_, _ = io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi")
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if body, err := io.ReadAll(response.Body); string(body) != "hi" || err != nil {
			t.Fatalf("request %d: got %q, %v, want hi", i, body, err)
		}
	}
	begin := time.Now()
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("an idle connection: got %v, want its end", err)
	}
	if took := time.Since(begin); took < limit*9/10 {
		t.Errorf("an idle connection ended after %v, want %v", took, limit)
	}
	slow, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Close() }()
	_ = slow.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.WriteString(slow, "POST / HTTP/1.1\r\nHost: loc")
	if b, err := io.ReadAll(slow); err != nil || len(b) > 0 && !strings.HasPrefix(string(b), "HTTP/1.1 408") {
		t.Errorf("a header that does not arrive: got %q, %v, want the end of the connection", b, err)
	}
}
