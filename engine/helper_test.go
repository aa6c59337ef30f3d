package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// legacy are the revisions that have a handshake.
var legacy = []engine.Revision{engine.Rev20241105, engine.Rev20250326, engine.Rev20250618, engine.Rev20251125}

// logs keeps what an engine logs.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// newEngine makes an engine that ends with the test, and gives its log.
func newEngine(t *testing.T, o *engine.Options) (*engine.Engine, *logs) {
	t.Helper()
	if o == nil {
		o = &engine.Options{}
	}
	l := new(logs)
	o.Logger = slog.New(slog.NewTextHandler(l, nil))
	e := engine.New(engine.Info{Name: "test", Version: "1"}, o)
	t.Cleanup(func() { _ = e.Shutdown(t.Context()) })
	return e, l
}

// must fails a test where something cannot be registered.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// reply is a Stream that keeps its frames.
type reply struct {
	mu       sync.Mutex
	frames   []string
	finishes int
	code     int
}

func (r *reply) Send(frame []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frames = append(r.frames, string(frame))
	return nil
}

func (r *reply) Finish(frame []byte, code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finishes++
	r.code = code
	if frame != nil {
		r.frames = append(r.frames, string(frame))
	}
}

func (r *reply) Flush() {}

// take gives the frames since the last time.
func (r *reply) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	frames := r.frames
	r.frames = nil
	return frames
}

// finished tells how often the stream was finished.
func (r *reply) finished() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.finishes
}

// peer is a client of a session.
type peer struct {
	t       *testing.T
	session *engine.Session
	notes   *reply // what belongs to no request
}

var peers atomic.Int64

// open opens a session without a handshake.
func open(t *testing.T, e *engine.Engine) *peer {
	t.Helper()
	session, err := e.OpenSession("peer-"+strconv.FormatInt(peers.Add(1), 10), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, session: session, notes: new(reply)}
	session.Attach(watch(t, session.Revision, "", p.notes))
	return p
}

// connect opens a session with a handshake.
func connect(t *testing.T, e *engine.Engine, rev engine.Revision) *peer {
	t.Helper()
	p := open(t, e)
	p.result(codec.MethodInitialize, `{"protocolVersion":"`+rev.String()+`","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
	if got := p.session.Revision(); got != rev {
		t.Fatalf("negotiated revision: got %v, want %v", got, rev)
	}
	p.notify(codec.NotifyInitialized, "{}")
	return p
}

func request(id, method, params string) string {
	if params != "" {
		params = `,"params":` + params
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"` + params + `}`
}

// send hands one frame to the session, as a POST would, and waits.
func (p *peer) send(frame string) *reply {
	p.t.Helper()
	r := new(reply)
	p.receive(context.Background(), frame, r)
	return r
}

func (p *peer) receive(ctx context.Context, frame string, r *reply) {
	var m codec.Message
	fault := codec.Decode([]byte(frame), &m)
	p.session.Receive(ctx, &m, fault, watch(p.t, p.session.Revision, frame, r))
}

// start hands a request to the session and does not wait.
func (p *peer) start(frame string) (r *reply, done <-chan struct{}) {
	r = new(reply)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.receive(context.Background(), frame, r)
	}()
	return r, ended
}

func (p *peer) notify(method, params string) {
	p.t.Helper()
	r := p.send(`{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`)
	if got := r.take(); len(got) != 0 {
		p.t.Errorf("answer to notification %s: got %v, want none", method, got)
	}
}

// result gives the result of a request, or its error as code, message and data.
func (p *peer) result(method, params string) string {
	p.t.Helper()
	r := p.send(request("1", method, params))
	frames := r.take()
	if len(frames) != 1 || r.finished() != 1 {
		p.t.Fatalf("%s %s: got frames %v, finished %d times, want one answer", method, params, frames, r.finished())
	}
	return answerOf(p.t, frames[0], "1")
}

// call gives the result of a tool.
func (p *peer) call(name, arguments string) string {
	p.t.Helper()
	return p.result(codec.MethodToolsCall, `{"name":"`+name+`","arguments":`+arguments+`}`)
}

// answerOf takes a response apart.
func answerOf(t *testing.T, frame, id string) string {
	t.Helper()
	var m codec.Message
	if err := codec.Decode([]byte(frame), &m); err != nil {
		t.Fatalf("frame %s: %v", frame, err)
	}
	if string(m.ID) != id {
		t.Errorf("id of %s: got %s, want %s", frame, m.ID, id)
	}
	if m.Kind == codec.KindResponse {
		return string(m.Result)
	}
	code, _ := codec.Int(m.Error, "code")
	text := fmt.Sprint(code, " ", codec.Text(m.Error, "message"))
	if data := codec.Member(m.Error, "data"); data != nil {
		text += " " + string(data)
	}
	return text
}

func check(t *testing.T, call, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", call, got, want)
	}
}

func checkFrames(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// text is the result of a tool that gives one text.
func text(s string) string { return `{"content":[{"type":"text","text":"` + s + `"}]}` }

// toolError is the result of a tool that failed.
func toolError(s string) string {
	return `{"content":[{"type":"text","text":"` + s + `"}],"isError":true}`
}

// echo registers a tool that gives its raw arguments.
func echo(t *testing.T, e *engine.Engine, name string) {
	t.Helper()
	must(t, e.AddRawTool(engine.Tool{Name: name}, func(_ context.Context, _ *engine.Call, args, out []byte) ([]byte, error) {
		return engine.AppendTextResult(out, args), nil
	}))
}

// blocker is a tool that waits for the end of its context or for release.
type blocker struct {
	started chan string // ids
	release chan struct{}
	ended   chan error // of the contexts
}

func addBlocker(t *testing.T, e *engine.Engine) *blocker {
	t.Helper()
	b := &blocker{make(chan string, 100), make(chan struct{}), make(chan error, 100)}
	must(t, e.AddRawTool(engine.Tool{Name: "block"}, func(ctx context.Context, c *engine.Call, _, out []byte) ([]byte, error) {
		b.started <- c.ID()
		select {
		case <-ctx.Done():
		case <-b.release:
		}
		b.ended <- ctx.Err()
		return engine.AppendTextResult(out, "done"), ctx.Err()
	}))
	return b
}

func block(id string) string { return request(id, codec.MethodToolsCall, `{"name":"block"}`) }

// memberNames gives the names of an object's members, sorted.
func memberNames(object []byte) string {
	var names []string
	codec.EachMember(object, func(name, _ []byte) bool {
		names = append(names, string(name))
		return true
	})
	slices.Sort(names)
	return strings.Join(names, " ")
}
