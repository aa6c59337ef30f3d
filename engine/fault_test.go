package engine_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// faults are handlers that break off, with what the log must say of each.
var faults = []struct {
	name, logged string
	f            func()
}{
	{"string", "secret in /home/me/a.go", func() { panic("secret in /home/me/a.go") }},
	{"error", "an error", func() { panic(errors.New("an error")) }},
	{"nil", "panic called with nil argument", func() { panic(nil) }},
	{"runtime", "index out of range", func() { _ = strings.Split("a", ",")[1] }},
	{"goexit", "runtime.Goexit was called", runtime.Goexit},
}

// TestPanics has a handler of each kind break off.
func TestPanics(t *testing.T) {
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			e, l := newEngine(t, nil)
			must(t, engine.AddTool(e, engine.Tool{Name: "typed"}, func(context.Context, *engine.Call, struct{}) (string, error) {
				fault.f()
				return "", nil
			}))
			must(t, e.AddRawTool(engine.Tool{Name: "raw"}, func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
				fault.f()
				return out, nil
			}))
			must(t, e.AddResource(engine.Resource{URI: "a:", Name: "a"}, func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) {
				fault.f()
				return nil, nil
			}))
			must(t, e.AddPrompt(engine.Prompt{Name: "p"}, func(context.Context, *engine.Call, map[string]string) (*engine.PromptResult, error) {
				fault.f()
				return nil, nil
			}))
			echo(t, e, "echo")
			var mu sync.Mutex
			var failed []string
			e.System().ActorSystem().EventStream.Subscribe(func(event any) {
				if f, ok := event.(*actor.SupervisorEvent); ok {
					mu.Lock()
					defer mu.Unlock()
					failed = append(failed, f.Child.Id+" "+f.Directive.String())
				}
			})
			p := connect(t, e, engine.Rev20251125)
			for i, c := range []struct{ method, params string }{
				{codec.MethodToolsCall, `{"name":"typed"}`},
				{codec.MethodToolsCall, `{"name":"raw"}`},
				{codec.MethodResourcesRead, `{"uri":"a:"}`},
				{codec.MethodPromptsGet, `{"name":"p"}`},
			} {
				r, done := p.start(request("5", c.method, c.params))
				<-done // with Goexit the goroutine of the call ends too
				checkFrames(t, c.method+" "+c.params, r.take(),
					`{"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"Internal error"}}`)
				if r.finished() != 1 || r.code != -32603 {
					t.Errorf("reply: finished %d times, code %d, want once, -32603", r.finished(), r.code)
				}
				mu.Lock()
				if len(failed) != i+1 || !strings.HasPrefix(failed[i], "request/") || !strings.HasSuffix(failed[i], " "+actor.StopDirective.String()) {
					t.Errorf("supervisor events: got %v, want %d of requests that were stopped", failed, i+1)
				}
				mu.Unlock()
				check(t, "the session goes on", p.call("echo", "{}"), text("{}"))
			}
			for _, want := range []string{"handler panicked", fault.logged, "engine_test.TestPanics", "method=tools/call name=typed"} {
				if !strings.Contains(l.String(), want) {
					t.Errorf("log: %q is missing in %s", want, l)
				}
			}
			if got := e.Stats(); got.ActiveRequests != 0 || got.Sessions != 1 {
				t.Errorf("Stats: got %+v, want no request and the session", got)
			}
		})
	}
}

// TestPanicAfterProgress checks that what was sent before a panic stays sent,
// and that no half of a result is.
func TestPanicAfterProgress(t *testing.T) {
	e, _ := newEngine(t, nil)
	must(t, e.AddRawTool(engine.Tool{Name: "raw"}, func(ctx context.Context, c *engine.Call, _, out []byte) ([]byte, error) {
		c.Progress(ctx, 1, 0)
		_ = engine.AppendTextResult(out, "half")
		panic("oh")
	}))
	p := connect(t, e, engine.Rev20251125)
	r := p.send(request("1", codec.MethodToolsCall, `{"name":"raw","_meta":{"progressToken":"t"}}`))
	checkFrames(t, "frames", r.take(),
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error"}}`)
}

// TestBadResults has raw tools give what is no result.
func TestBadResults(t *testing.T) {
	e, l := newEngine(t, nil)
	var result string
	must(t, e.AddRawTool(engine.Tool{Name: "raw"}, func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
		return append(out, result...), nil
	}))
	p := connect(t, e, engine.Rev20251125)
	for _, c := range []struct{ result, want string }{
		{``, "-32603 Internal error"},
		{`{"content":[`, "-32603 Internal error"},
		{`[]`, "-32603 Internal error"},
		{`{"content":[]}}`, "-32603 Internal error"},
		{"{\"content\":[{\"type\":\"text\",\"text\":\"a\nb\"}]}", "-32603 Internal error"},
		{"{\n\"content\": []\r\n}", `{"content": []}`},
	} {
		result = c.result
		check(t, "raw result "+c.result, p.call("raw", "{}"), c.want)
	}
	if !strings.Contains(l.String(), "handler gave a result that is no JSON object") {
		t.Errorf("log: got %s", l)
	}
}
