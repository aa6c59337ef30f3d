package main

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// nameForm asks for one name.
var nameForm = json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)

// askName is the question that most tools of this file ask.
func askName(key string) *engine.ElicitRequest {
	return &engine.ElicitRequest{Key: key, Message: "What is your name?", Schema: nameForm}
}

// askCapital is a question for the client's model.
func askCapital(key string) *engine.SampleRequest {
	return &engine.SampleRequest{
		Key: key, MaxTokens: 100,
		Messages: []engine.SampleMessage{{
			Role: "user", Content: []engine.Content{engine.Text{Text: "What is the capital of France?"}},
		}},
	}
}

// nameOf reads the answer to askName.
func nameOf(r *engine.ElicitResult) string {
	if r.Action != "accept" {
		return "nobody (" + r.Action + ")"
	}
	return codec.Text(r.Content, "name")
}

// conformanceStateless are the tools of 2026-07-28, in which the server asks by
// way of its answers.
func conformanceStateless(e *engine.Engine) []error {
	var changes atomic.Int64
	return []error{
		e.AddRawTool(engine.Tool{
			Name: "test_x_mcp_header", Description: "Takes an argument that a header repeats.", Annotations: readOnly,
			InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`),
		}, func(_ context.Context, _ *engine.Call, args, out []byte) ([]byte, error) {
			return engine.AppendTextResult(out, "region: "+codec.Text(args, "region")), nil
		}),
		plainTool(e, "test_missing_capability", "Needs a client that can sample.", readOnly,
			func(_ context.Context, c *engine.Call) (string, error) {
				return "The client can sample.", c.Require("sampling")
			}),
		plainTool(e, "test_streaming_elicitation", "Asks the user.", readOnly,
			func(ctx context.Context, c *engine.Call) (string, error) {
				r, err := c.Elicit(ctx, askName("name"))
				if err != nil {
					return "", err
				}
				return "Hello, " + nameOf(r) + "!", nil
			}),
		plainTool(e, "test_logging_tool", "Logs a message, if the request wants it.", readOnly,
			func(ctx context.Context, c *engine.Call) (string, error) {
				return "A message was logged, if it was wanted.", c.Log(ctx, engine.LevelInfo, "conformance", "The tool was called.")
			}),
		plainTool(e, "test_trigger_tool_change", "Changes the list of tools.", nil,
			func(context.Context, *engine.Call) (string, error) {
				const name = "test_appearing_tool"
				if changes.Add(1)%2 == 0 {
					e.RemoveTool(name)
					return "A tool has gone.", nil
				}
				return "A tool has come.", contentTool(e, name, "Comes and goes.", engine.Text{Text: "Here I am."})
			}),
		plainTool(e, "test_trigger_prompt_change", "Changes the list of prompts.", nil,
			func(context.Context, *engine.Call) (string, error) {
				e.NotifyListChanged("prompts")
				return "The list of prompts has changed.", nil
			}),
	}
}

// conformanceRounds are the tools that need the client to come back.
func conformanceRounds(e *engine.Engine) []error {
	asking := func(name, description string, h func(ctx context.Context, c *engine.Call) (string, error)) error {
		return plainTool(e, "test_input_required_result_"+name, description, nil, h)
	}
	greet := func(ctx context.Context, c *engine.Call) (string, error) {
		r, err := c.Elicit(ctx, askName("user_name"))
		if err != nil {
			return "", err
		}
		return "Hello, " + nameOf(r) + "!", nil
	}
	return []error{
		asking("elicitation", "Asks the user for a name.", greet),
		asking("request_state", "Asks the user to agree, with a state.", func(ctx context.Context, c *engine.Call) (string, error) {
			r, err := c.Elicit(ctx, &engine.ElicitRequest{
				Key: "confirm", Message: "Shall we go on?",
				Schema: json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`),
			})
			if err != nil {
				return "", err
			}
			return "The user answered: " + r.Action, nil
		}),
		asking("tampered_state", "Asks the user for a name, with a state that must come back unchanged.", greet),
		asking("sampling", "Asks the client's model.", func(ctx context.Context, c *engine.Call) (string, error) {
			r, err := c.Sample(ctx, askCapital("capital"))
			if err != nil {
				return "", err
			}
			return "The model answered: " + r.Text(), nil
		}),
		asking("list_roots", "Asks for the client's roots.", func(ctx context.Context, c *engine.Call) (string, error) {
			roots, err := c.Roots(ctx)
			if err != nil {
				return "", err
			}
			var names []string
			for _, root := range roots {
				names = append(names, root.URI)
			}
			return "The roots are: " + strings.Join(names, " "), nil
		}),
		asking("multiple_inputs", "Asks the user, the model and for the roots.", askEverything),
		asking("multi_round", "Asks the user twice, one after the other.", askTwice),
		asking("capabilities", "Asks only for what the client can do.", askWhatCanBe),
		e.AddPrompt(engine.Prompt{
			Name: "test_input_required_result_prompt", Description: "A prompt that asks the user what it is about.",
		}, func(ctx context.Context, c *engine.Call, _ map[string]string) (*engine.PromptResult, error) {
			r, err := c.Elicit(ctx, &engine.ElicitRequest{
				Key: "user_context", Message: "What is it about?",
				Schema: json.RawMessage(`{"type":"object","properties":{"context":{"type":"string"}},"required":["context"]}`),
			})
			if err != nil {
				return nil, err
			}
			text := "It is about " + codec.Text(r.Content, "context") + "."
			return &engine.PromptResult{Messages: []engine.PromptMessage{{Role: "user", Content: engine.Text{Text: text}}}}, nil
		}),
	}
}

func askEverything(ctx context.Context, c *engine.Call) (string, error) {
	answers, err := c.AskAll(ctx, askName("user_name"), askCapital("capital"), engine.RootsRequest{Key: "client_roots"})
	if err != nil {
		return "", err
	}
	return "Hello, " + nameOf(answers[0].Elicit) + "! The model says: " + answers[1].Sample.Text(), nil
}

func askTwice(ctx context.Context, c *engine.Call) (string, error) {
	first, err := c.Elicit(ctx, askName("step1"))
	if err != nil {
		return "", err
	}
	second, err := c.Elicit(ctx, &engine.ElicitRequest{
		Key: "step2", Message: "What is your favourite colour?",
		Schema: json.RawMessage(`{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}`),
	})
	if err != nil {
		return "", err
	}
	return nameOf(first) + " likes " + codec.Text(second.Content, "color") + ".", nil
}

func askWhatCanBe(ctx context.Context, c *engine.Call) (string, error) {
	var asks []engine.Ask
	if c.Require("elicitation") == nil {
		asks = append(asks, askName("user_name"))
	}
	if c.Require("sampling") == nil {
		asks = append(asks, askCapital("capital"))
	}
	if len(asks) == 0 {
		return "", c.Require("elicitation")
	}
	if _, err := c.AskAll(ctx, asks...); err != nil {
		return "", err
	}
	return "Thank you.", nil
}

type (
	greetIn struct {
		Name string `json:"name" jsonschema:"who is greeted"`
	}
	computeIn struct {
		Seconds float64 `json:"seconds" jsonschema:"how long it takes"`
		Label   string  `json:"label,omitempty" jsonschema:"what it is called"`
	}
	deleteIn struct {
		Filename string `json:"filename" jsonschema:"what would be deleted"`
	}
)

// conformanceTasks are the tools that answer with a task where the client can
// take one.
func conformanceTasks(e *engine.Engine) []error {
	return []error{
		engine.AddTool(e, engine.Tool{Name: "greet", Description: "Greets, at once.", Annotations: readOnly},
			func(_ context.Context, _ *engine.Call, in greetIn) (string, error) {
				return "Hello, " + in.Name + "!", nil
			}),
		engine.AddTool(e, engine.Tool{
			Name: "slow_compute", Description: "Takes a while.", TaskSupport: "optional", Annotations: readOnly,
		}, func(ctx context.Context, _ *engine.Call, in computeIn) (string, error) {
			return "computed " + in.Label, sleep(ctx, time.Duration(in.Seconds*float64(time.Second)))
		}),
		engine.AddTool(e, engine.Tool{
			Name: "failing_job", Description: "Fails after a while.", TaskSupport: "required", Annotations: readOnly,
		}, func(ctx context.Context, _ *engine.Call, _ noIn) (*engine.Result, error) {
			r := engine.TextResult("the job failed")
			r.IsError = true
			return r, sleep(ctx, 50*time.Millisecond)
		}),
		engine.AddTool(e, engine.Tool{
			Name: "protocol_error_job", Description: "Ends in a protocol error.", TaskSupport: "optional", Annotations: readOnly,
		}, func(ctx context.Context, _ *engine.Call, _ noIn) (string, error) {
			if err := sleep(ctx, 50*time.Millisecond); err != nil {
				return "", err
			}
			return "", codec.NewError(codec.CodeInternalError, "the job broke")
		}),
		engine.AddTool(e, engine.Tool{
			Name: "confirm_delete", Description: "Asks before it would delete.", TaskSupport: "optional",
		}, confirmDelete),
		plainTaskTool(e, "multi_input", "Asks two things at once.", "optional",
			func(ctx context.Context, c *engine.Call) (string, error) {
				answers, err := c.AskAll(ctx, askName("first"), askName("second"))
				if err != nil {
					return "", err
				}
				return nameOf(answers[0].Elicit) + " and " + nameOf(answers[1].Elicit), nil
			}),
		plainTaskTool(e, "test_tool_with_task", "Asks for a name, and then goes on as a task.", "handler", askThenTask),
	}
}

// plainTaskTool registers a tool without arguments that can be a task.
func plainTaskTool[Out any](e *engine.Engine, name, description, support string,
	h func(ctx context.Context, c *engine.Call) (Out, error),
) error {
	t := engine.Tool{Name: name, Description: description, TaskSupport: support}
	return engine.AddTool(e, t, func(ctx context.Context, c *engine.Call, _ noIn) (Out, error) { return h(ctx, c) })
}

func confirmDelete(ctx context.Context, c *engine.Call, in deleteIn) (string, error) {
	r, err := c.Elicit(ctx, &engine.ElicitRequest{
		Key: "confirm", Message: "Delete " + in.Filename + "?",
		Schema: json.RawMessage(`{"type":"object","properties":{"confirm":{"type":"boolean"}}}`),
	})
	if err != nil {
		return "", err
	}
	if r.Action == "accept" && codec.Bool(r.Content, "confirm") {
		return "deleted " + in.Filename, nil
	}
	return "kept " + in.Filename, nil
}

func askThenTask(ctx context.Context, c *engine.Call) (string, error) {
	r, err := c.Elicit(ctx, askName("user_name"))
	if err != nil {
		return "", err
	}
	return "", c.RunAsTask(func(ctx context.Context, c *engine.Call) error {
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
		c.SetResult(engine.AppendTextResult(nil, "Hello, "+nameOf(r)+"!"))
		return nil
	})
}
