package chaos_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// rawHTTP is a client that writes its requests byte by byte and shares no code
// with the product. It uses sessions of 2025-11-25, or none, as 2026-07-28 has
// it.
type rawHTTP struct {
	party
	modern  bool
	session string // "" while there is none
	birth   birth  // of the session
	socket  *socket
	gentle  bool     // it does nothing strange any more
	touched []string // addresses of its connections of the present request
	barred  bool     // the proxy did not let it in
}

// socket is one connection.
type socket struct {
	net.Conn
	reader *bufio.Reader
	kills  int64 // of the world when it was made
	used   time.Time
}

// response is what came back for one HTTP request.
type response struct {
	status int
	header http.Header
	err    error  // why it did not come, or not in whole
	text   string // of the body, where it is no answer to hear
}

// connect gives a connection: the one that is open, as a rule.
func (c *rawHTTP) connect() (*socket, error) {
	s := c.socket
	c.socket = nil
	if s != nil && time.Since(s.used) < 500*time.Millisecond && s.kills == c.world.kills.Load() && c.rand.IntN(5) > 0 {
		return s, nil
	}
	if s != nil {
		_ = s.Close()
	}
	kills := c.world.kills.Load()
	conn, err := net.DialTimeout("tcp", c.world.proxy.Addr(), c.world.bound)
	if err != nil {
		return nil, err
	}
	return &socket{Conn: conn, reader: bufio.NewReader(conn), kills: kills}, nil
}

// head makes the header lines of a request.
func (c *rawHTTP) head(method, session, extra string, length int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n", method)
	if method == http.MethodPost {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", length)
	}
	if session != "" {
		fmt.Fprintf(&b, "Mcp-Session-Id: %s\r\nMcp-Protocol-Version: 2025-11-25\r\n", session)
	}
	return b.String() + extra + "\r\n"
}

// send writes a request. Now and then it takes its time in the middle.
func (c *rawHTTP) send(s *socket, text string) error {
	_ = s.SetDeadline(time.Now().Add(c.world.bound))
	if !c.gentle && c.rand.IntN(8) == 0 {
		half := c.rand.IntN(len(text))
		if _, err := io.WriteString(s, text[:half]); err != nil {
			return err
		}
		time.Sleep(time.Duration(c.rand.IntN(40)) * time.Millisecond)
		text = text[half:]
	}
	_, err := io.WriteString(s, text)
	return err
}

// exchange sends a request and takes the response. Where h is nil its body is
// thrown away.
func (c *rawHTTP) exchange(method, session, extra, body string, h *hearing, reading func(*socket)) response {
	s, err := c.connect()
	if err != nil {
		c.barred = true // which the server knows nothing of
		return response{err: err}
	}
	c.touched = append(c.touched, s.LocalAddr().String())
	keep := false
	defer func() {
		if keep {
			s.used, c.socket = time.Now(), s
		} else {
			_ = s.Close()
		}
	}()
	// The server may have answered, and closed, before it has read everything.
	sendError := c.send(s, c.head(method, session, extra, len(body))+body)
	if reading != nil {
		reading(s)
	}
	r, err := http.ReadResponse(s.reader, &http.Request{Method: method})
	if err != nil {
		return response{err: errors.Join(err, sendError)}
	}
	out := response{status: r.StatusCode, header: r.Header}
	out.text, out.err = c.body(r, h)
	if errors.Is(out.err, errLeft) {
		_ = s.Conn.(*net.TCPConn).SetLinger(0)
	}
	if out.err == nil && s.reader.Buffered() > 0 {
		c.violate("%d bytes after the response", s.reader.Buffered())
	}
	keep = out.err == nil && !r.Close
	return out
}

// body takes the body of a response, and gives it where there is nothing for h to
// hear in it.
func (c *rawHTTP) body(r *http.Response, h *hearing) (string, error) {
	if h != nil && strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
		return "", h.stream(r.Body)
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	if h == nil || r.StatusCode/100 != 2 && r.StatusCode != http.StatusServiceUnavailable {
		return string(raw), nil
	}
	if raw = bytes.TrimSpace(raw); len(raw) > 0 {
		h.message(raw)
	}
	return "", nil
}

// excused reports whether what went wrong since may be put down to the faults.
func (c *rawHTTP) excused(since moment) bool {
	if c.barred || c.world.disturbed(since) {
		return true
	}
	for _, addr := range c.touched {
		if c.world.hit(addr, since) {
			return true
		}
	}
	return false
}

// refused reports whether the server has politely declined, as it may.
func (c *rawHTTP) refused(r response) bool {
	if r.status != http.StatusServiceUnavailable && r.status != http.StatusTooManyRequests {
		return false
	}
	if r.header.Get("Retry-After") == "" {
		c.violate("status %d without Retry-After", r.status)
	}
	return true
}

// clean makes a call on a connection of its own.
func (c *rawHTTP) clean() error {
	if !c.gentle {
		c.gentle = true
		c.drop()
	}
	last := ""
	for range 5 { // a session may be gone, a limit reached
		if !c.open() {
			last = "no session"
			time.Sleep(20 * time.Millisecond)
			continue
		}
		c.touched, c.barred = nil, false
		if last = c.call(work{tool: "echo", payload: c.next()}); last == "ok" {
			return nil
		}
	}
	return errors.New(last)
}

// leave deletes the session.
func (c *rawHTTP) leave() {
	c.gentle = true
	if c.session != "" {
		c.touched, c.barred = nil, false
		c.end()
	}
	c.drop()
}

// drop closes the connection.
func (c *rawHTTP) drop() {
	if c.socket != nil {
		_ = c.socket.Close()
		c.socket = nil
	}
}

// later calls f after a time, unless the returned function is called before,
// which waits for f.
func later(d time.Duration, f func()) (stop func()) {
	var done sync.WaitGroup
	done.Add(1)
	timer := time.AfterFunc(d, func() {
		defer done.Done()
		f()
	})
	return func() {
		if timer.Stop() {
			done.Done()
		}
		done.Wait()
	}
}
