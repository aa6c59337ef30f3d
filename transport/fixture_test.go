package transport_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// fixture is an engine with the tools that the tests of this package call.
type fixture struct {
	*engine.Engine
	entered chan string   // names of the calls of gate that have begun
	ended   chan string   // names of those whose context has ended
	open    chan struct{} // closed to let all calls of gate go on
}

// newFixture makes a fixture that ends with the test.
func newFixture(tb testing.TB, o *engine.Options) *fixture {
	tb.Helper()
	var options engine.Options
	if o != nil {
		options = *o
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	f := &fixture{
		Engine:  engine.New(engine.Info{Name: "fixture", Version: "1"}, &options),
		entered: make(chan string, 2048),
		ended:   make(chan string, 2048),
		open:    make(chan struct{}),
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := f.Shutdown(ctx); err != nil {
			tb.Errorf("Shutdown: got %v, want nil", err)
		}
	})
	for name, h := range map[string]engine.RawHandler{
		"echo": echo, "big": big, "progress": progress, "gate": f.gate, "wait": wait, "quick": quick,
		"fail":  func(context.Context, *engine.Call, []byte, []byte) ([]byte, error) { return nil, errors.New("no luck") },
		"panic": func(context.Context, *engine.Call, []byte, []byte) ([]byte, error) { panic("on purpose") },
	} {
		f.add(tb, name, h)
	}
	return f
}

func (f *fixture) add(tb testing.TB, name string, h engine.RawHandler) {
	tb.Helper()
	if err := f.AddRawTool(engine.Tool{Name: name}, h); err != nil {
		tb.Fatalf("AddRawTool %s: %v", name, err)
	}
}

// echo answers its text.
func echo(_ context.Context, _ *engine.Call, args, out []byte) ([]byte, error) {
	return engine.AppendTextResult(out, codec.Text(args, "text")), nil
}

// quick answers the same bytes always, without an allocation.
func quick(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
	return append(out, `{"content":[{"type":"text","text":"quick"}]}`...), nil
}

// big answers n bytes that repeat its text.
func big(_ context.Context, _ *engine.Call, args, out []byte) ([]byte, error) {
	n, _ := codec.Int(args, "n")
	text := codec.Text(args, "text")
	return engine.AppendTextResult(out, strings.Repeat(text, int(n)/len(text))), nil
}

// progress reports n steps, with a pause of ms before each, and answers its text.
func progress(ctx context.Context, c *engine.Call, args, out []byte) ([]byte, error) {
	n, _ := codec.Int(args, "n")
	ms, _ := codec.Int(args, "ms")
	for i := range n {
		time.Sleep(time.Duration(ms) * time.Millisecond)
		c.Progress(ctx, float64(i+1), float64(n))
	}
	return engine.AppendTextResult(out, codec.Text(args, "text")), nil
}

// wait pauses for ms, whatever happens, and answers its text.
func wait(_ context.Context, _ *engine.Call, args, out []byte) ([]byte, error) {
	ms, _ := codec.Int(args, "ms")
	time.Sleep(time.Duration(ms) * time.Millisecond)
	return engine.AppendTextResult(out, codec.Text(args, "text")), nil
}

// gate waits for the fixture's door or for the end of its context.
func (f *fixture) gate(ctx context.Context, _ *engine.Call, args, out []byte) ([]byte, error) {
	name := codec.Text(args, "text")
	f.entered <- name
	select {
	case <-f.open:
		return engine.AppendTextResult(out, name), nil
	case <-ctx.Done():
		f.ended <- name
		return nil, ctx.Err()
	}
}

// noLeaks fails a test that is not parallel where a goroutine of it is left at
// its end. Call it first, so that its check comes last. It is patient: the actor
// library's timer for dead letters goes on for up to a second.
func noLeaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		err := goleak.Find(before)
		for deadline := time.Now().Add(5 * time.Second); err != nil && time.Now().Before(deadline); {
			err = goleak.Find(before)
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// The frames of a handshake, and how to make others.
const (
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	handshake   = initialize + "\n" + initialized + "\n"
	initialize  = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
)

func initializeAs(revision string) string {
	return strings.Replace(initialize, "2025-11-25", revision, 1)
}

func ping(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` }

func cancelOf(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
}

// call is a request for a tool. args holds the members of its arguments.
func call(id, tool, args string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":{` + args + `}}}`
}

// callWithToken is a request for a tool that wants progress.
func callWithToken(id, tool, args, token string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":{` + args +
		`},"_meta":{"progressToken":` + token + `}}}`
}

func text(s string) string { return `"text":` + strconv.Quote(s) }

// brief renders a frame of the server in short: "ID text", "ID ok", "ID CODE"
// for an error, "progress TOKEN N" or the method of another notification.
func brief(frame []byte) string {
	id := string(codec.Member(frame, "id"))
	if id == "" {
		id = "-"
	}
	switch {
	case !codec.Valid(frame):
		return "not JSON: " + string(frame)
	case codec.Text(frame, "method") == codec.NotifyProgress:
		return "progress " + string(codec.Member(frame, "params", "progressToken")) + " " +
			string(codec.Member(frame, "params", "progress"))
	case codec.Text(frame, "method") != "":
		return codec.Text(frame, "method")
	case codec.Member(frame, "error") != nil:
		return id + " " + string(codec.Member(frame, "error", "code"))
	}
	content := codec.Member(frame, "result", "content")
	if content == nil {
		return id + " ok"
	}
	words := id
	codec.EachElement(content, func(block []byte) bool {
		words += " " + codec.Text(block, "text")
		return true
	})
	return words
}

// sink is an output whose frames can be looked at while it is written to. It
// counts writes, and may be held up.
type sink struct {
	mu     sync.Mutex // guards what follows
	cond   sync.Cond
	data   []byte
	writes int
	held   bool
	broken error
}

func newSink() *sink {
	s := &sink{}
	s.cond.L = &s.mu
	return s
}

func (s *sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.held {
		s.cond.Wait()
	}
	if s.broken != nil {
		return 0, s.broken
	}
	s.data = append(s.data, b...)
	s.writes++
	return len(b), nil
}

// hold makes writes wait, or lets them go on.
func (s *sink) hold(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = on
	s.cond.Broadcast()
}

// fail makes writes fail from now on.
func (s *sink) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = err
}

// count gives the number of writes.
func (s *sink) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// frames gives what was written, in short. A last line without its end is marked.
func (s *sink) frames() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.data) > 0 && s.data[len(s.data)-1] != '\n' {
		list = append(list, "the last line has no end")
	}
	for line := range strings.Lines(string(s.data)) {
		list = append(list, brief([]byte(strings.TrimSuffix(line, "\n"))))
	}
	return list
}

var _ io.Writer = (*sink)(nil)

// quote is a string id that holds a number.
func quote(n int) string { return `"` + strconv.Itoa(n) + `"` }

// eventually waits until a condition holds that another goroutine brings about.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 10 s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
