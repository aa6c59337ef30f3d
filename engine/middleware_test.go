package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// track is middleware that notes when it is entered and left.
func track(log *[]string, name string) engine.Middleware {
	return func(next engine.Handler) engine.Handler {
		return func(ctx context.Context, c *engine.Call) error {
			*log = append(*log, name+">")
			err := next(ctx, c)
			*log = append(*log, "<"+name)
			return err
		}
	}
}

func TestMiddlewareOrder(t *testing.T) {
	e, _ := newEngine(t, nil)
	var log []string
	e.Use(track(&log, "a"))
	must(t, e.AddRawTool(engine.Tool{Name: "tool"}, func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
		log = append(log, "tool")
		return engine.AppendTextResult(out, "t"), nil
	}))
	for _, l := range lists[1:] {
		must(t, l.add(e, "x"))
	}
	e.Use(track(&log, "b"), track(&log, "c"))
	p := connect(t, e, engine.Rev20251125)
	for _, c := range []struct {
		method, params string
		want           []string
	}{
		{codec.MethodToolsCall, `{"name":"tool"}`, []string{"a>", "b>", "c>", "tool", "<c", "<b", "<a"}},
		{codec.MethodToolsList, ``, []string{"a>", "b>", "c>", "<c", "<b", "<a"}},
		{codec.MethodResourcesList, ``, []string{"a>", "b>", "c>", "<c", "<b", "<a"}},
		{codec.MethodToolsCall, `{"name":"no such"}`, nil},
		{codec.MethodPing, ``, nil},
		{codec.MethodInitialize, `{"protocolVersion":"2025-11-25"}`, nil},
	} {
		log = nil
		p.result(c.method, c.params)
		if !slices.Equal(log, c.want) {
			t.Errorf("%s %s: middleware ran as %v, want %v", c.method, c.params, log, c.want)
		}
	}
}

func TestMiddlewareEffects(t *testing.T) {
	e, _ := newEngine(t, nil)
	var f engine.Middleware
	e.Use(func(next engine.Handler) engine.Handler {
		return func(ctx context.Context, c *engine.Call) error {
			if f == nil {
				return next(ctx, c)
			}
			return f(next)(ctx, c)
		}
	})
	echo(t, e, "echo")
	type key struct{}
	must(t, e.AddRawTool(engine.Tool{Name: "value"}, func(ctx context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
		return engine.AppendTextResult(out, fmt.Sprint(ctx.Value(key{}))), nil
	}))
	must(t, e.AddResource(engine.Resource{URI: "a:", Name: "a"}, func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) {
		return []engine.ResourceContents{{Text: "t"}}, nil
	}))
	p := connect(t, e, engine.Rev20250618)
	for _, c := range []struct {
		name           string
		f              func(ctx context.Context, c *engine.Call, next engine.Handler) error
		method, params string
		want           string
	}{
		{"refuses", func(context.Context, *engine.Call, engine.Handler) error { return codec.NewError(-32001, "not you") },
			codec.MethodToolsCall, `{"name":"echo"}`, "-32001 not you"},
		{"fails", func(context.Context, *engine.Call, engine.Handler) error { return errors.New("in /home/me") },
			codec.MethodToolsCall, `{"name":"echo"}`, "-32603 Internal error"},
		{"panics", func(context.Context, *engine.Call, engine.Handler) error { panic("oh") },
			codec.MethodToolsCall, `{"name":"echo"}`, "-32603 Internal error"},
		{"answers itself", func(_ context.Context, c *engine.Call, _ engine.Handler) error {
			c.SetResult(json.RawMessage(text("mine")))
			return nil
		}, codec.MethodToolsCall, `{"name":"echo"}`, text("mine")},
		{"gives nothing", func(context.Context, *engine.Call, engine.Handler) error { return nil },
			codec.MethodToolsCall, `{"name":"echo"}`, "-32603 Internal error"},
		{"sees and replaces the result", func(ctx context.Context, c *engine.Call, next engine.Handler) error {
			if err := next(ctx, c); err != nil {
				return err
			}
			c.SetResult(json.RawMessage(`{"was":` + string(slices.Clone(c.Result())) + `}`))
			return nil
		}, codec.MethodResourcesRead, `{"uri":"a:"}`, `{"was":{"contents":[{"uri":"a:","text":"t"}]}}`},
		{"passes a value", func(ctx context.Context, c *engine.Call, next engine.Handler) error {
			return next(context.WithValue(ctx, key{}, "v"), c)
		}, codec.MethodToolsCall, `{"name":"value"}`, text("v")},
		{"sees the call", func(_ context.Context, c *engine.Call, _ engine.Handler) error {
			return codec.NewError(1, fmt.Sprint(c.Method(), " ", c.Name(), " ", string(c.Arguments()), " ", string(c.Meta()), " ",
				c.Revision(), " ", c.ID(), " ", c.Session() == p.session))
		}, codec.MethodToolsCall, `{"name":"ech\u006f","arguments":{"a":1},"_meta":{"b":2}}`,
			`1 tools/call echo {"a":1} {"b":2} 2025-06-18 1 true`},
	} {
		f = func(next engine.Handler) engine.Handler {
			return func(ctx context.Context, call *engine.Call) error { return c.f(ctx, call, next) }
		}
		check(t, "middleware that "+c.name, p.result(c.method, c.params), c.want)
	}
	f = nil
	check(t, "without middleware", p.call("echo", "{}"), text("{}"))
}

// TestChangeWhileServing changes the catalog and the middleware while requests
// run.
func TestChangeWhileServing(t *testing.T) {
	e, _ := newEngine(t, &engine.Options{PageSize: 3})
	echo(t, e, "echo")
	stop := make(chan struct{})
	var changing, calling sync.WaitGroup
	changing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			name := fmt.Sprint("t", i%7)
			_ = e.AddRawTool(engine.Tool{Name: name}, nil)
			e.RemoveTool(fmt.Sprint("t", (i+3)%7))
			_ = e.AddResource(engine.Resource{URI: "a:" + name, Name: name}, nil)
			if i%50 == 0 && i < 500 {
				e.Use(func(next engine.Handler) engine.Handler { return next })
			}
		}
	})
	for range 4 {
		p := connect(t, e, engine.Rev20251125)
		calling.Go(func() {
			for range 200 {
				check(t, "tools/call", p.call("echo", `{}`), text("{}"))
				names, _ := page(t, p.result(codec.MethodToolsList, ""), "tools", "name")
				if len(names) < len("echo") || names[:4] != "echo" {
					t.Errorf("tools/list: got %q, want echo first", names)
				}
			}
		})
	}
	calling.Wait()
	close(stop)
	changing.Wait()
}
