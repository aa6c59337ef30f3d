package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
	"github.com/mcpengine/mcpengine/transport/client"
)

// A filter decides who knows of what. To everybody else a hidden tool is as good
// as unknown: in lists, in calls, in what is announced.
func ExampleOptions_visible() {
	type user struct{} // the key under which authentication leaves who it is
	e := engine.New(engine.Info{Name: "shop", Version: "1.0.0"}, &engine.Options{
		Principal: func(ctx context.Context) string {
			name, _ := ctx.Value(user{}).(string)
			return name
		},
		Visible: func(principal string, kind engine.Kind, name string) bool {
			return principal == "ada" || !(kind == engine.KindTool && strings.HasPrefix(name, "admin."))
		},
	})
	for _, name := range []string{"order", "admin.refund"} {
		_ = e.AddRawTool(engine.Tool{Name: name},
			func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
				return engine.AppendTextResult(out, "done"), nil
			})
	}

	for _, name := range []string{"ada", "bob"} {
		ctx := context.WithValue(context.Background(), user{}, name)
		pipe, served := transport.Pipe(ctx, e)
		c, err := client.ConnectPipe(ctx, pipe, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		tools, _ := c.ListTools(ctx)
		_, err = c.CallTool(ctx, "admin.refund", nil, nil)
		fmt.Println(name, "sees", len(tools), err)
		_ = c.Close(ctx)
		<-served
	}
	_ = e.Shutdown(context.Background())
	// Output:
	// ada sees 2 <nil>
	// bob sees 1 Unknown tool: admin.refund (-32602)
}

// Before a call somebody may have to approve of it, and its arguments may have
// to be checked or changed. The schema is checked after that.
func ExampleOptions_before() {
	type in struct {
		Path string `json:"path"`
	}
	e := engine.New(engine.Info{Name: "files", Version: "1.0.0"}, &engine.Options{
		Before: []func(context.Context, *engine.Call) error{
			func(_ context.Context, c *engine.Call) error {
				path := codec.Text(c.Arguments(), "path")
				if strings.Contains(path, "..") {
					return errors.New("stay in the workspace")
				}
				return c.SetArguments(append(codec.AppendString([]byte(`{"path":`), "workspace/"+path), '}'))
			},
		},
	})
	_ = engine.AddTool(e, engine.Tool{Name: "read"},
		func(_ context.Context, _ *engine.Call, in in) (string, error) { return "the text of " + in.Path, nil })

	c, done := exampleClient(e, nil)
	defer done()
	for _, path := range []string{"a.txt", "../b.txt"} {
		result, err := c.CallTool(context.Background(), "read", map[string]string{"path": path}, nil)
		fmt.Println(result.IsError, result.Text(), err)
	}
	// Output:
	// false the text of workspace/a.txt <nil>
	// true stay in the workspace <nil>
}

// After a call its result passes the hooks before it is sent, and so do errors.
func ExampleOptions_after() {
	e := engine.New(engine.Info{Name: "vault", Version: "1.0.0"}, &engine.Options{
		After: []func(context.Context, *engine.Call, *engine.Outcome){
			func(_ context.Context, c *engine.Call, o *engine.Outcome) {
				if o.Err != nil {
					o.Err = codec.NewError(codec.CodeInternalError, "The vault is closed")
					return
				}
				c.SetResult(json.RawMessage(strings.ReplaceAll(string(c.Result()), "hunter2", "*******")))
			},
		},
	})
	_ = engine.AddTool(e, engine.Tool{Name: "show"},
		func(context.Context, *engine.Call, struct{}) (string, error) { return "password: hunter2", nil })
	_ = engine.AddTool(e, engine.Tool{Name: "break"},
		func(context.Context, *engine.Call, struct{}) (string, error) {
			return "", codec.NewError(codec.CodeInternalError, "hunter2 does not fit")
		})

	c, done := exampleClient(e, nil)
	defer done()
	result, err := c.CallTool(context.Background(), "show", nil, nil)
	fmt.Println(result.Text(), err)
	_, err = c.CallTool(context.Background(), "break", nil, nil)
	fmt.Println(err)
	// Output:
	// password: ******* <nil>
	// The vault is closed (-32603)
}

// The audit hook gets a record of each request, also of those that were turned
// away.
func ExampleOptions_audit() {
	e := engine.New(engine.Info{Name: "audited", Version: "1.0.0"}, &engine.Options{
		Principal: func(context.Context) string { return "ada" },
		Audit: func(r engine.Record) { // to a buffered channel or a log, since it must not block
			fmt.Println(r.Principal, r.Method, r.Name, r.Outcome, r.Code)
		},
	})
	_ = engine.AddTool(e, engine.Tool{Name: "fail"},
		func(context.Context, *engine.Call, struct{}) (string, error) { return "", errors.New("no luck") })

	c, done := exampleClient(e, nil)
	for _, name := range []string{"fail", "unknown"} {
		_, _ = c.CallTool(context.Background(), name, nil, nil)
	}
	done()
	// Output:
	// ada tools/call fail tool_error 0
	// ada tools/call unknown error -32602
}
