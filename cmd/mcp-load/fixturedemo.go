package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// readOnly marks a tool that a load test may call without being asked to.
var readOnly = &engine.ToolAnnotations{ReadOnlyHint: engine.Hint(true), OpenWorldHint: engine.Hint(false)}

// maxBig bounds what the tool big may be asked for.
const maxBig = 64 << 20

// registerDemo registers the demo fixture: of each feature that is asked for,
// what the wire cases and the README name.
func registerDemo(e *engine.Engine, features map[string]bool) error {
	var errs []error
	if features["tools"] {
		errs = append(errs, demoTools(e)...)
	}
	if features["resources"] {
		errs = append(errs, demoResources(e)...)
	}
	if features["prompts"] {
		errs = append(errs, e.AddPrompt(engine.Prompt{
			Name:        "greeting",
			Description: "Greets somebody by name.",
			Arguments:   []engine.PromptArgument{{Name: "name", Description: "who is greeted", Required: true}},
		}, func(_ context.Context, _ *engine.Call, args map[string]string) (*engine.PromptResult, error) {
			return &engine.PromptResult{
				Description: "A greeting",
				Messages: []engine.PromptMessage{
					{Role: "user", Content: engine.Text{Text: "Say hello to " + args["name"] + "."}},
				},
			}, nil
		}))
	}
	return errors.Join(errs...)
}

type (
	sleepIn struct {
		MS int `json:"ms" jsonschema:"milliseconds"`
	}
	progressIn struct {
		Steps   int `json:"steps" jsonschema:"how many notifications"`
		DelayMS int `json:"delayMs" jsonschema:"milliseconds before each"`
	}
	bigIn struct {
		Bytes int `json:"bytes" jsonschema:"length of the text"`
	}
	noIn struct{}
)

func demoTools(e *engine.Engine) []error {
	return []error{
		e.AddRawTool(engine.Tool{
			Name:        "echo",
			Description: "Answers with the message.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"message":{"type":"string",` +
				`"description":"what to answer"}},"required":["message"],"additionalProperties":false}`),
			Annotations: readOnly,
		}, echo),
		engine.AddTool(e, engine.Tool{
			Name: "sleep", Description: "Answers after a while; can be cancelled.", Annotations: readOnly,
		}, func(ctx context.Context, _ *engine.Call, in sleepIn) (string, error) {
			return "slept", sleep(ctx, time.Duration(in.MS)*time.Millisecond)
		}),
		engine.AddTool(e, engine.Tool{
			Name: "progress", Description: "Reports progress step by step.", Annotations: readOnly,
		}, func(ctx context.Context, c *engine.Call, in progressIn) (string, error) {
			for i := 1; i <= in.Steps; i++ {
				if err := sleep(ctx, time.Duration(in.DelayMS)*time.Millisecond); err != nil {
					return "", err
				}
				c.Progress(ctx, float64(i), float64(in.Steps))
			}
			return "done", nil
		}),
		engine.AddTool(e, engine.Tool{
			Name: "fail", Description: "Fails, as a tool does that cannot do what it was asked.", Annotations: readOnly,
		}, func(context.Context, *engine.Call, noIn) (string, error) {
			return "", errors.New("this tool always fails")
		}),
		engine.AddTool(e, engine.Tool{
			Name: "panic", Description: "Panics, as a tool does that has a bug.", Annotations: readOnly,
		}, func(context.Context, *engine.Call, noIn) (string, error) {
			panic("this tool always panics")
		}),
		engine.AddTool(e, engine.Tool{
			Name: "big", Description: "Answers with a long text.", Annotations: readOnly,
		}, func(_ context.Context, _ *engine.Call, in bigIn) (string, error) {
			if in.Bytes < 0 || in.Bytes > maxBig {
				return "", errors.New("bytes must be between 0 and 67108864")
			}
			return strings.Repeat("x", in.Bytes), nil
		}),
	}
}

// echo is written in the raw form, which allocates nothing.
func echo(_ context.Context, _ *engine.Call, args, out []byte) ([]byte, error) {
	token := codec.Member(args, "message")
	inside := token[1 : len(token)-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return engine.AppendTextResult(out, inside), nil
	}
	return engine.AppendTextResult(out, codec.AppendUnescaped(nil, inside)), nil
}

// sleep waits, unless ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func demoResources(e *engine.Engine) []error {
	return []error{
		e.AddResource(engine.Resource{
			URI: "test://static/text", Name: "static text", Description: "A text that does not change.", MIMEType: "text/plain",
		}, func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) {
			return []engine.ResourceContents{{Text: "This text does not change."}}, nil
		}),
		e.AddResourceTemplate(engine.ResourceTemplate{
			URITemplate: "test://items/{id}", Name: "item", Description: "An item by its id.", MIMEType: "application/json",
		}, func(_ context.Context, _ *engine.Call, _ string, vars map[string]string) ([]engine.ResourceContents, error) {
			text := codec.AppendString([]byte(`{"id":`), vars["id"])
			return []engine.ResourceContents{{Text: string(text) + "}"}}, nil
		}),
	}
}
