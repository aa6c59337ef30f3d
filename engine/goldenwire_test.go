package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport"
)

// lines gathers the frames of a stream.
type lines struct {
	mu   sync.Mutex
	list []string
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, line)
}

func (l *lines) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.list
	l.list = nil
	return list
}

// pipeWire is the client's end of a pipe.
type pipeWire struct {
	p      *player
	end    io.ReadWriteCloser
	served <-chan struct{}
}

func dialPipe(p *player) wire {
	end, served := transport.Pipe(p.t.Context(), p.e)
	in := p.stream()
	go func() {
		for scanner := bufio.NewScanner(end); scanner.Scan(); {
			in.add(scanner.Text())
		}
	}()
	return &pipeWire{p, end, served}
}

func (w *pipeWire) send(frame string) {
	if _, err := io.WriteString(w.end, frame+"\n"); err != nil {
		w.p.t.Errorf("write %s: %v", frame, err)
	}
}

func (w *pipeWire) leave(id string) {
	w.p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
}

func (w *pipeWire) log() []string { return nil }

func (w *pipeWire) close() {
	_ = w.end.Close()
	<-w.served
}

// memoryListener hands out the server's ends of pipes.
type memoryListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return memoryAddr{} }

type memoryAddr struct{}

func (memoryAddr) Network() string { return "memory" }
func (memoryAddr) String() string  { return "memory" }

func (l *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// httpWire is a client of Streamable HTTP, whose connections are pipes.
type httpWire struct {
	p        *player
	listener *memoryListener
	server   *http.Server
	client   *http.Client
	running  sync.WaitGroup

	mu      sync.Mutex
	session string
	entries []string // of the log
	cancels map[string]context.CancelFunc
}

func dialHTTP(p *player) wire {
	l := &memoryListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	w := &httpWire{
		p: p, listener: l, server: &http.Server{Handler: transport.NewHTTPHandler(p.e, nil)},
		client:  &http.Client{Transport: &http.Transport{DialContext: l.dial, DisableCompression: true}},
		cancels: make(map[string]context.CancelFunc),
	}
	w.running.Go(func() { _ = w.server.Serve(l) })
	return w
}

func (w *httpWire) send(frame string) {
	var m codec.Message
	_ = codec.Decode([]byte(frame), &m) // the player has decoded it
	what := string(m.Method)
	if m.Kind == codec.KindResponse {
		what = "response"
	}
	headers := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if m.MetaVersionPresent {
		for name, values := range headersFor(frame) {
			headers[name] = values
		}
	}
	w.exchange(http.MethodPost, what, string(m.ID), frame, headers)
	if what == codec.NotifyInitialized {
		w.p.settle()
		w.exchange(http.MethodGet, "", "", "", http.Header{"Accept": {"text/event-stream"}})
	}
}

// exchange begins a request whose response goes to a stream of its own.
func (w *httpWire) exchange(method, what, id, body string, headers http.Header) {
	ctx, cancel := context.WithCancel(context.Background())
	w.mu.Lock()
	w.cancels[id] = cancel
	entry := len(w.entries)
	w.entries = append(w.entries, "")
	if w.session != "" {
		headers.Set("Mcp-Session-Id", w.session)
		headers.Set("Mcp-Protocol-Version", w.p.rev.String())
	}
	w.mu.Unlock()
	in := w.p.stream()
	w.running.Go(func() {
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, method, "http://memory/mcp", strings.NewReader(body))
		if err != nil {
			w.p.t.Error(err)
			return
		}
		r.Header = headers
		response, err := w.client.Do(r)
		if err != nil {
			w.note(entry, strings.TrimSpace(fmt.Sprint(method, " ", what))+": no response")
			return
		}
		defer func() { _ = response.Body.Close() }()
		line := strings.TrimSpace(fmt.Sprint(method, " ", what)) + fmt.Sprintf(": %d %s", response.StatusCode, response.Header.Get("Content-Type"))
		w.mu.Lock()
		if key := response.Header.Get("Mcp-Session-Id"); key != "" {
			w.session = key
			line += ", Mcp-Session-Id: SESSION"
		}
		w.mu.Unlock()
		w.note(entry, strings.TrimSpace(line))
		readReply(response, in)
	})
}

// readReply gives the frames of a response, as they come.
func readReply(response *http.Response, in *lines) {
	scanner := bufio.NewScanner(response.Body)
	scanner.Buffer(nil, 1<<20)
	events := strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream")
	for scanner.Scan() {
		line := scanner.Text()
		if data, ok := strings.CutPrefix(line, "data: "); ok || !events {
			in.add(data)
		}
	}
}

func (w *httpWire) note(entry int, line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.entries[entry] = line
}

// leave breaks the connection of a request.
func (w *httpWire) leave(id string) {
	w.mu.Lock()
	cancel := w.cancels[id]
	w.entries = append(w.entries, "the client breaks the connection of "+id)
	w.mu.Unlock()
	cancel()
	w.p.settle()
}

func (w *httpWire) log() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.entries...)
}

func (w *httpWire) close() {
	w.client.CloseIdleConnections()
	_ = w.server.Close()
	w.running.Wait()
}
