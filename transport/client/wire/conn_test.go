package wire

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"go.uber.org/goleak"
)

// rawServer accepts connections and answers the n-th request of all (from 1) with what reply gives, in pieces of the
// given size. hangUp closes the connection after the answer without announcing it.
type rawServer struct {
	reply    func(n int) string
	piece    int
	hangUp   func(n int) bool
	requests atomic.Int64
	conns    atomic.Int64
}

func (s *rawServer) start(t *testing.T) *Target {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			go s.serve(nc)
		}
	}()
	target, err := ParseTarget("http://" + l.Addr().String() + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func (s *rawServer) serve(nc net.Conn) {
	defer func() { _ = nc.Close() }()
	br := bufio.NewReader(nc)
	for {
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		n := int(s.requests.Add(1))
		out := s.reply(n)
		for len(out) > 0 {
			k := len(out)
			if s.piece > 0 {
				k = min(s.piece, k)
			}
			if _, err := nc.Write([]byte(out[:k])); err != nil {
				return
			}
			out = out[k:]
			if s.piece > 0 {
				time.Sleep(50 * time.Microsecond)
			}
		}
		if s.hangUp != nil && s.hangUp(n) {
			return
		}
	}
}

func post(t *testing.T, target *Target) *Request {
	t.Helper()
	head, err := target.Head("POST", http.Header{"Content-Type": {"application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	return &Request{Head: head, Body: []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}`), ID: []byte("7")}
}

const answer7 = `{"jsonrpc":"2.0","id":7,"result":{"ok":true}}`

func jsonReply(body string) string {
	return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: abc\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

func chunked(pieces ...string) string {
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(strconv.FormatInt(int64(len(p)), 16) + ";ext=1\r\n" + p + "\r\n")
	}
	return b.String() + "0\r\nTrailer: x\r\n\r\n"
}

const (
	sseHead     = "HTTP/1.1 200 OK\r\ncontent-type: Text/Event-Stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
	chunkedHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)

// TestReplies reads every form of reply, whole and in small pieces, and looks at whether the connection is kept.
func TestReplies(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	note := "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n"
	tests := []struct {
		name     string
		reply    string
		want     string // result, or the kind of the error, or "status N"
		keep     bool
		messages int
	}{
		{"content length", jsonReply(answer7), `{"ok":true}`, true, 0},
		{"interim reply first", "HTTP/1.1 100 Continue\r\n\r\n" + jsonReply(answer7), `{"ok":true}`, true, 0},
		{"chunked", chunkedHead + chunked(answer7[:10], answer7[10:]), `{"ok":true}`, true, 0},
		{"connection close", strings.Replace(jsonReply(answer7), "\r\n", "\r\nConnection: Close\r\n", 1), `{"ok":true}`, false, 0},
		{"JSON-RPC error", jsonReply(`{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}`), "error", true, 0},
		{"error without id", jsonReply(`{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}`), "error", true, 0},
		{"another id", jsonReply(`{"jsonrpc":"2.0","id":8,"result":{}}`), "protocol", false, 0},
		{"id as a string", jsonReply(`{"jsonrpc":"2.0","id":"7","result":{}}`), "protocol", false, 0},
		{"not JSON", jsonReply(`<html>`), "protocol", false, 0},
		{"empty body", jsonReply(""), "protocol", false, 0},
		{"not HTTP", "SSH-2.0-OpenSSH\r\n\r\n", "protocol", false, 0},
		{"bad length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "protocol", false, 0},
		{"bad chunk", chunkedHead + "zz\r\n", "protocol", false, 0},
		{"too large", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "protocol", false, 0},
		{"404", "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone", "status 404", true, 0},
		{"503 chunked", "HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked("busy"), "status 503", true, 0},
		{"sse", sseHead + chunked("id: 1\ndata:\n\n"+note, "data: "+answer7+"\n\n"), `{"ok":true}`, true, 1},
		{"sse with CRLF and BOM", sseHead + chunked("\xef\xbb\xbf: hi\r\ndata: "+answer7[:16]+"\r\ndata: "+answer7[16:]+"\r\n\r\n"), `{"ok":true}`, true, 0},
		{"sse with CR", sseHead + chunked("event: message\rdata:"+answer7+"\r\r"), `{"ok":true}`, true, 0},
		{"sse, message after the response", sseHead + chunked("data: "+answer7+"\n\n", note), `{"ok":true}`, true, 0},
		{"sse without response", sseHead + chunked(note), "protocol", false, 1},
		{"sse with another event name", sseHead + chunked("event: x\ndata: {}\n\ndata: "+answer7+"\n\n"), `{"ok":true}`, true, 0},
		{"sse, no JSON", sseHead + chunked("data: nope\n\n"), "protocol", false, 0},
	}
	for _, tt := range tests {
		for _, piece := range []int{0, 7} {
			t.Run(tt.name+"/"+strconv.Itoa(piece), func(t *testing.T) {
				s := &rawServer{reply: func(int) string { return tt.reply }, piece: piece}
				c := NewConn(s.start(t))
				defer c.Close()
				messages := 0
				c.OnMessage = func(*codec.Message) { messages++ }
				var rep Reply
				for range 2 { // the second call shows whether the first left anything behind
					messages = 0
					err := c.Call(post(t, c.target), time.Now().Add(5*time.Second), &rep)
					if got := resultText(&rep, err); got != tt.want {
						t.Fatalf("Call(%q) = %q (%v), want %q", tt.reply, got, err, tt.want)
					}
					if messages != tt.messages {
						t.Errorf("Call(%q) handed over %d messages, want %d", tt.reply, messages, tt.messages)
					}
				}
				want := int64(2)
				if tt.keep {
					want = 1
				}
				if got := s.conns.Load(); got != want {
					t.Errorf("two calls with %q used %d connections, want %d", tt.reply, got, want)
				}
				if err := rep.FirstByte.Before(rep.Sent) || tt.keep && rep.Done.Before(rep.FirstByte); err {
					t.Errorf("instants out of order: sent %v, first byte %v, done %v", rep.Sent, rep.FirstByte, rep.Done)
				}
			})
		}
	}
}

func resultText(rep *Reply, err error) string {
	var status *StatusError
	var we *Error
	switch {
	case errors.As(err, &status):
		return "status " + strconv.Itoa(status.Status)
	case errors.As(err, &we):
		return we.Kind.String()
	case rep.Message.Kind == codec.KindError:
		return "error"
	}
	return string(rep.Message.Result)
}

// TestDoneIsAtTheResponse shows that the time ends at the response event, and that an SSE reply that stays open after
// it costs the connection and not the call.
func TestDoneIsAtTheResponse(t *testing.T) {
	body := "data: " + answer7 + "\n\n"
	open := sseHead + strconv.FormatInt(int64(len(body)), 16) + "\r\n" + body + "\r\n"
	s := &rawServer{reply: func(int) string { return open }}
	c := NewConn(s.start(t))
	defer c.Close()
	var rep Reply
	if err := c.Call(post(t, c.target), time.Now().Add(5*time.Second), &rep); err != nil {
		t.Fatal(err)
	}
	if took, waited := rep.Done.Sub(rep.Sent), time.Since(rep.Sent); took > drainWait/2 || waited < drainWait {
		t.Errorf("response after %v and return after %v, want the response before the %v of the wait", took, waited, drainWait)
	}
	if string(rep.Message.Result) != `{"ok":true}` {
		t.Errorf("result = %q", rep.Message.Result)
	}
}

// TestIdleClose shows when a request is sent again: only on a connection that had answered before, and of which nothing
// came back.
func TestIdleClose(t *testing.T) {
	tests := []struct {
		name     string
		second   string // what the server sends for the second request before it hangs up
		hangUp   int
		pause    time.Duration
		want     string
		requests int64
		retried  bool
	}{
		{"closed while idle, seen before sending", "", 1, 200 * time.Millisecond, `{"ok":true}`, 2, false},
		{"closed without an answer", "", 2, 0, `{"ok":true}`, 3, true},
		{"closed in the middle of the answer", "HTTP/1.1 200 OK\r\n", 2, 0, "transport", 2, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &rawServer{hangUp: func(n int) bool { return n == tt.hangUp }}
			s.reply = func(n int) string {
				if n == 2 && tt.hangUp == 2 {
					return tt.second
				}
				return jsonReply(answer7)
			}
			c := NewConn(s.start(t))
			defer c.Close()
			var rep Reply
			if err := c.Call(post(t, c.target), time.Now().Add(5*time.Second), &rep); err != nil {
				t.Fatal(err)
			}
			time.Sleep(tt.pause)
			err := c.Call(post(t, c.target), time.Now().Add(5*time.Second), &rep)
			if got := resultText(&rep, err); got != tt.want || rep.Retried != tt.retried || s.requests.Load() != tt.requests {
				t.Errorf("second call = %q (%v), retried %v, %d requests seen; want %q, %v, %d",
					got, err, rep.Retried, s.requests.Load(), tt.want, tt.retried, tt.requests)
			}
		})
	}
}

// TestFailures covers the kinds of error that need no reply.
func TestFailures(t *testing.T) {
	silent := &rawServer{reply: func(int) string { return "" }}
	c := NewConn(silent.start(t))
	defer c.Close()
	var rep Reply
	err := c.Call(post(t, c.target), time.Now().Add(50*time.Millisecond), &rep)
	if got := resultText(&rep, err); got != "timeout" {
		t.Errorf("Call to a silent server = %q (%v), want timeout", got, err)
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		c.Abort()
	}()
	err = c.Call(post(t, c.target), time.Now().Add(10*time.Second), &rep)
	if got := resultText(&rep, err); got != "aborted" {
		t.Errorf("Call under Abort = %q (%v), want aborted", got, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target, err := ParseTarget("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	err = NewConn(target).Call(post(t, target), time.Now().Add(time.Second), &rep)
	if got := resultText(&rep, err); got != "dial" || !rep.Sent.IsZero() {
		t.Errorf("Call to a closed port = %q (%v), sent %v; want dial and never sent", got, err, rep.Sent)
	}
}

// TestParseTarget names what is wrong with an address.
func TestParseTarget(t *testing.T) {
	for _, tt := range []struct{ raw, path, host, addr, wrong string }{
		{"http://h/mcp?x=1", "/mcp?x=1", "h", "h:80", ""},
		{"http://127.0.0.1:8080", "/", "127.0.0.1:8080", "127.0.0.1:8080", ""},
		{"https://[::1]/m", "/m", "[::1]", "[::1]:443", ""},
		{"ftp://h/", "", "", "", "not an http:// or https:// URL"},
		{"127.0.0.1:8080/mcp", "", "", "", "not a URL"},
		{"http:///x", "", "", "", "names no host"},
		{"http://u:p@h/", "", "", "", "not supported"},
	} {
		target, err := ParseTarget(tt.raw)
		switch {
		case tt.wrong != "":
			if err == nil || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("ParseTarget(%q) error = %v, want %q", tt.raw, err, tt.wrong)
			}
		case err != nil || target.path != tt.path || target.host != tt.host || target.addr != tt.addr:
			t.Errorf("ParseTarget(%q) = %+v, %v; want %s %s %s", tt.raw, target, err, tt.host, tt.path, tt.addr)
		}
	}
}

// TestHeadRefusesLineBreaks guards the framing against header values.
func TestHeadRefusesLineBreaks(t *testing.T) {
	target, err := ParseTarget("http://h/mcp")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []http.Header{{"X": {"a\r\nY: b"}}, {"X Y": {"a"}}, {"": {"a"}}, {"X": {"a\x00"}}} {
		if head, err := target.Head("POST", h); err == nil {
			t.Errorf("Head(%q) = %q, want an error", h, head)
		}
	}
	head, err := target.Head("POST", http.Header{"A": {"1"}}, http.Header{"B": {"2"}})
	if want := "POST /mcp HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 2\r\n"; err != nil || string(head) != want {
		t.Errorf("Head = %q, %v; want %q", head, err, want)
	}
}

// TestStream reads a GET stream until it is aborted.
func TestStream(t *testing.T) {
	s := &rawServer{reply: func(int) string {
		return strings.TrimSuffix(sseHead+chunked("data: 1\n\n", "id: x\ndata: 2\n\n"), "0\r\nTrailer: x\r\n\r\n")
	}}
	c := NewConn(s.start(t))
	head, err := c.target.Head("GET")
	if err != nil {
		t.Fatal(err)
	}
	opened := 0
	var got []string
	err = c.Stream(head, time.Now().Add(time.Second), func() { opened++ }, func(ev *Event) {
		got = append(got, string(ev.Data)+"/"+string(ev.ID))
		if len(got) == 2 {
			c.Abort()
		}
	})
	if resultText(&Reply{}, err) != "aborted" || opened != 1 || strings.Join(got, " ") != "1/ 2/x" {
		t.Errorf("Stream = %v, opened %d, events %q; want aborted, 1, 1/ 2/x", err, opened, got)
	}
}

// pipeConn answers every write with the same reply, without system calls, so that only our own allocations count.
type pipeConn struct {
	net.Conn
	reply []byte
	left  []byte
}

func (p *pipeConn) Write(b []byte) (int, error) { p.left = p.reply; return len(b), nil }
func (p *pipeConn) Read(b []byte) (int, error) {
	n := copy(b, p.left)
	p.left = p.left[n:]
	return n, nil
}
func (p *pipeConn) SetDeadline(time.Time) error     { return nil }
func (p *pipeConn) SetReadDeadline(time.Time) error { return nil }
func (p *pipeConn) Close() error                    { return nil }

// TestCallDoesNotAllocate is the budget of the hot path.
func TestCallDoesNotAllocate(t *testing.T) {
	target, err := ParseTarget("http://h/mcp")
	if err != nil {
		t.Fatal(err)
	}
	plain := strings.Replace(jsonReply(answer7), "Mcp-Session-Id: abc\r\n", "", 1)
	for name, reply := range map[string]string{
		"json": plain, "chunked": chunkedHead + chunked(answer7),
		"sse": sseHead + chunked("data: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\ndata: "+answer7+"\n\n"),
	} {
		c := NewConn(target)
		c.nc = &pipeConn{reply: []byte(reply)}
		c.src = c.nc
		req := post(t, target)
		var rep Reply
		call := func() {
			if err := c.Call(req, time.Now().Add(time.Second), &rep); err != nil {
				t.Fatal(err)
			}
		}
		call()
		if got := testing.AllocsPerRun(200, call); got != 0 {
			t.Errorf("Call with a %s reply allocates %v times, want 0", name, got)
		}
	}
}
