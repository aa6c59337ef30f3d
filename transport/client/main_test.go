package client_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpengine/mcpengine/transport/client"
)

// TestMain is also the server process of the tests of Spawn: the test binary
// runs itself with childVar set.
func TestMain(m *testing.M) {
	if kind := os.Getenv(childVar); kind != "" {
		os.Exit(child(kind))
	}
	goleak.VerifyTestMain(m)
}

// noLeaks fails the test where a goroutine of it is left at its end.
func noLeaks(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
}

const initResult = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{"subscribe":true}},` +
	`"serverInfo":{"name":"fake","title":"Fake","version":"1"},"instructions":"be kind"}`

// frame is a message as a fake server reads it. The standard decoder will do
// for what our own client has written.
type frame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func parse(t *testing.T, b []byte) frame {
	t.Helper()
	var f frame
	if err := json.Unmarshal(b, &f); err != nil {
		t.Errorf("the client sent %q: %v", b, err)
	}
	return f
}

func resultOf(f frame, result string) string {
	return `{"jsonrpc":"2.0","id":` + string(f.ID) + `,"result":` + result + `}`
}

// peer is the server's end of a pipe.
type peer struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

// read reads a frame, or gives false at the end of the pipe.
func (p *peer) read() (frame, bool) {
	line, err := p.r.ReadBytes('\n')
	if err != nil {
		return frame{}, false
	}
	return parse(p.t, line), true
}

// drain reads frames and drops them until the pipe ends.
func (p *peer) drain() {
	for ok := true; ok; {
		_, ok = p.read()
	}
}

// expect reads a frame of a method.
func (p *peer) expect(method string) frame {
	p.t.Helper()
	f, ok := p.read()
	if !ok || f.Method != method {
		p.t.Errorf("the client sent %+v (%v), want %s", f, ok, method)
	}
	return f
}

func (p *peer) write(frames ...string) {
	if _, err := io.WriteString(p.conn, strings.Join(frames, "\n")+"\n"); err != nil {
		p.t.Errorf("peer: %v", err)
	}
}

// connectPipe connects a client to a peer with which the handshake was made.
func connectPipe(t *testing.T, o *client.Options) (*client.Client, *peer) {
	t.Helper()
	c, p, _ := connectPipeAs(t, initResult, o)
	return c, p
}

// connectPipeAs does the same with a result of initialize, and gives the params
// of initialize too.
func connectPipeAs(t *testing.T, result string, o *client.Options) (*client.Client, *peer, string) {
	t.Helper()
	ours, theirs := net.Pipe()
	p := &peer{t: t, conn: theirs, r: bufio.NewReader(theirs)}
	shaken := make(chan string, 1)
	go func() {
		f := p.expect("initialize")
		p.write(resultOf(f, result))
		p.expect("notifications/initialized")
		shaken <- string(f.Params)
	}()
	c, err := client.ConnectPipe(context.Background(), ours, o)
	if err != nil {
		t.Fatalf("ConnectPipe: %v", err)
	}
	t.Cleanup(func() { closeClient(t, c) })
	return c, p, <-shaken
}

// initResultOf makes a result of initialize.
func initResultOf(revision, capabilities string) string {
	return `{"protocolVersion":"` + revision + `","capabilities":` + capabilities + `,"serverInfo":{"name":"fake","version":"1"}}`
}

// ask writes a request, whose members after jsonrpc are given, and gives those
// of the answer.
func (p *peer) ask(request string) string {
	p.t.Helper()
	p.write(`{"jsonrpc":"2.0",` + request + `}`)
	return p.line()
}

// line reads a frame and gives its members after jsonrpc.
func (p *peer) line() string {
	p.t.Helper()
	line, err := p.r.ReadString('\n')
	if err != nil {
		p.t.Errorf("peer: %v", err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(line, `{"jsonrpc":"2.0",`), "}\n")
}

func closeClient(t *testing.T, c *client.Client) {
	t.Helper()
	if err := c.Close(context.Background()); err != nil {
		t.Errorf("Close: got %v, want nil", err)
	}
}
