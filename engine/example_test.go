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

// exampleClient connects a client to an engine in memory. close ends both.
func exampleClient(e *engine.Engine, o *client.Options) (c *client.Client, done func()) {
	ctx := context.Background()
	pipe, served := transport.Pipe(ctx, e)
	c, err := client.ConnectPipe(ctx, pipe, o)
	if err != nil {
		panic(err)
	}
	return c, func() {
		_ = c.Close(ctx)
		<-served
		_ = e.Shutdown(ctx)
	}
}

// A typed tool: the schemas follow from the Go types, and arguments that do not
// fit them never reach the handler.
func ExampleAddTool() {
	type in struct {
		X int `json:"x" jsonschema:"left operand"`
		Y int `json:"y" jsonschema:"right operand"`
	}
	type out struct {
		Sum int `json:"sum"`
	}
	e := engine.New(engine.Info{Name: "calculator", Version: "1.0.0"}, nil)
	err := engine.AddTool(e, engine.Tool{Name: "add", Description: "adds two integers"},
		func(_ context.Context, _ *engine.Call, in in) (out, error) { return out{in.X + in.Y}, nil })
	if err != nil {
		fmt.Println(err)
		return
	}

	c, done := exampleClient(e, nil)
	defer done()
	for _, arguments := range []string{`{"x":2,"y":3}`, `{"x":"two","y":3}`} {
		result, err := c.CallTool(context.Background(), "add", json.RawMessage(arguments), nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(result.IsError, string(result.Structured), result.Text())
	}
	// Output:
	// false {"sum":5} {"sum":5}
	// true  Invalid arguments: /x must be an integer, not a string
}

// A tool in the raw form: argument bytes come in, the result is appended.
func ExampleEngine_AddRawTool() {
	e := engine.New(engine.Info{Name: "raw", Version: "1.0.0"}, nil)
	_ = e.AddRawTool(engine.Tool{Name: "shout"},
		func(_ context.Context, _ *engine.Call, args, out []byte) ([]byte, error) {
			return engine.AppendTextResult(out, strings.ToUpper(codec.Text(args, "text"))), nil
		})

	c, done := exampleClient(e, nil)
	defer done()
	result, err := c.CallTool(context.Background(), "shout", json.RawMessage(`{"text":"hello"}`), nil)
	fmt.Println(result.Text(), err)
	// Output: HELLO <nil>
}

// An error is what the model reads; a *codec.Error is a protocol error.
func ExampleAddTool_errors() {
	type in struct {
		Name string `json:"name"`
	}
	e := engine.New(engine.Info{Name: "errors", Version: "1.0.0"}, nil)
	_ = engine.AddTool(e, engine.Tool{Name: "find"},
		func(_ context.Context, _ *engine.Call, in in) (string, error) {
			if in.Name == "" {
				return "", codec.NewError(codec.CodeInvalidParams, "name is empty")
			}
			return "", errors.New("nobody of that name")
		})

	c, done := exampleClient(e, nil)
	defer done()
	result, err := c.CallTool(context.Background(), "find", json.RawMessage(`{"name":"Ada"}`), nil)
	fmt.Println(result.IsError, result.Text(), err)
	_, err = c.CallTool(context.Background(), "find", json.RawMessage(`{"name":""}`), nil)
	fmt.Println(errors.Is(err, codec.ErrInvalidParams), err)
	// Output:
	// true nobody of that name <nil>
	// true name is empty (-32602)
}

// Progress is sent only to a peer that asked for it.
func ExampleCall_Progress() {
	type in struct {
		Steps int `json:"steps"`
	}
	e := engine.New(engine.Info{Name: "progress", Version: "1.0.0"}, nil)
	_ = engine.AddTool(e, engine.Tool{Name: "work"},
		func(ctx context.Context, c *engine.Call, in in) (string, error) {
			for i := range in.Steps {
				c.Progress(ctx, float64(i+1), float64(in.Steps))
			}
			return "done", nil
		})

	c, done := exampleClient(e, nil)
	defer done()
	result, err := c.CallTool(context.Background(), "work", json.RawMessage(`{"steps":2}`), &client.CallOptions{
		OnProgress: func(p client.Progress) { fmt.Println(p.Progress, "of", p.Total) },
	})
	fmt.Println(result.Text(), err)
	// Output:
	// 1 of 2
	// 2 of 2
	// done <nil>
}

// A handler asks the user. In a session that is a request to the client; for a
// client of 2026-07-28 the same code ends the round and runs again with the
// answer, which is why the error has to be returned.
func ExampleCall_Elicit() {
	type in struct{}
	e := engine.New(engine.Info{Name: "booking", Version: "1.0.0"}, nil)
	_ = engine.AddTool(e, engine.Tool{Name: "book"},
		func(ctx context.Context, c *engine.Call, _ in) (string, error) {
			answer, err := c.Elicit(ctx, &engine.ElicitRequest{
				Message: "How many seats?",
				Schema:  json.RawMessage(`{"type":"object","properties":{"seats":{"type":"integer"}},"required":["seats"]}`),
			})
			if err != nil {
				return "", err
			}
			if answer.Action != "accept" {
				return "nothing booked", nil
			}
			return "booked: " + string(answer.Content), nil
		})

	c, done := exampleClient(e, &client.Options{
		OnElicit: func(_ context.Context, r *client.ElicitRequest) (*client.ElicitResult, error) {
			fmt.Println(r.Message)
			return &client.ElicitResult{Action: client.ElicitAccept, Content: json.RawMessage(`{"seats":2}`)}, nil
		},
	})
	defer done()
	result, err := c.CallTool(context.Background(), "book", nil, nil)
	fmt.Println(result.Text(), err)
	// Output:
	// How many seats?
	// booked: {"seats":2} <nil>
}

// Middleware stands around every request but initialize and ping.
func ExampleEngine_Use() {
	e := engine.New(engine.Info{Name: "middleware", Version: "1.0.0"}, nil)
	e.Use(func(next engine.Handler) engine.Handler {
		return func(ctx context.Context, c *engine.Call) error {
			err := next(ctx, c)
			fmt.Println(c.Method(), c.Name(), err)
			return err
		}
	})
	_ = e.AddResource(engine.Resource{URI: "note://1", Name: "note", MIMEType: "text/plain"},
		func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) {
			return []engine.ResourceContents{{Text: "remember the milk"}}, nil
		})

	c, done := exampleClient(e, nil)
	defer done()
	read, err := c.ReadResource(context.Background(), "note://1")
	fmt.Println(read.Contents[0].Text, err)
	// Output:
	// resources/read note://1 <nil>
	// remember the milk <nil>
}
