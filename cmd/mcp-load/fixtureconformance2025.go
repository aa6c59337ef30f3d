package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcpengine/mcpengine/engine"
)

type (
	samplingIn struct {
		Prompt string `json:"prompt" jsonschema:"what the model is asked"`
	}
	elicitationIn struct {
		Message string `json:"message" jsonschema:"what the user is asked"`
	}
)

// reconnectAfter is when a client is told to come back to a stream.
const reconnectAfter = 100 * time.Millisecond

// conformanceSession are the tools of the revisions with sessions, in which the
// server asks the client or tells it something.
func conformanceSession(e *engine.Engine) []error {
	return []error{
		plainTool(e, "test_tool_with_logging", "Logs three messages to the client.", readOnly,
			func(ctx context.Context, c *engine.Call) (string, error) {
				for _, text := range []string{"The work begins.", "The work goes on.", "The work is done."} {
					if err := c.Log(ctx, engine.LevelInfo, "conformance", text); err != nil {
						return "", err
					}
					if err := sleep(ctx, 50*time.Millisecond); err != nil {
						return "", err
					}
				}
				return "Three messages were logged.", nil
			}),
		engine.AddTool(e, engine.Tool{Name: "test_sampling", Description: "Asks the client's model."},
			func(ctx context.Context, c *engine.Call, in samplingIn) (string, error) {
				r, err := c.Sample(ctx, &engine.SampleRequest{
					Messages:  []engine.SampleMessage{{Role: "user", Content: []engine.Content{engine.Text{Text: in.Prompt}}}},
					MaxTokens: 100,
				})
				if err != nil {
					return "", err
				}
				return "The model answered: " + r.Text(), nil
			}),
		engine.AddTool(e, engine.Tool{Name: "test_elicitation", Description: "Asks the user for a name and an address."},
			func(ctx context.Context, c *engine.Call, in elicitationIn) (string, error) {
				return elicit(ctx, c, in.Message, userForm)
			}),
		plainTool(e, "test_elicitation_sep1034_defaults", "Asks the user with a default in every field.", nil,
			func(ctx context.Context, c *engine.Call) (string, error) {
				return elicit(ctx, c, "Please review and update the form fields with defaults.", defaultsForm)
			}),
		plainTool(e, "test_elicitation_sep1330_enums", "Asks the user to choose, in every way there is.", nil,
			func(ctx context.Context, c *engine.Call) (string, error) {
				return elicit(ctx, c, "Please select options from the enum fields.", enumsForm)
			}),
		plainTool(e, "test_reconnection", "Closes its stream and answers when the client is back.", readOnly,
			func(ctx context.Context, c *engine.Call) (string, error) {
				// Where streams are not resumable, the answer comes on this one.
				if err := c.CloseStream(reconnectAfter); err != nil && !errors.Is(err, engine.ErrNotDetachable) {
					return "", err
				}
				return "The connection was closed and resumed.", sleep(ctx, reconnectAfter)
			}),
	}
}

// elicit asks the user and tells what came of it.
func elicit(ctx context.Context, c *engine.Call, message string, form json.RawMessage) (string, error) {
	r, err := c.Elicit(ctx, &engine.ElicitRequest{Message: message, Schema: form})
	if err != nil {
		return "", err
	}
	if r.Content == nil {
		return "The user answered: " + r.Action, nil
	}
	return "The user answered: " + r.Action + " " + string(r.Content), nil
}

var (
	userForm = json.RawMessage(`{"type":"object","properties":{` +
		`"username":{"type":"string","description":"user's response"},` +
		`"email":{"type":"string","description":"user's email address"}},"required":["username","email"]}`)

	defaultsForm = json.RawMessage(`{"type":"object","properties":{` +
		`"name":{"type":"string","default":"John Doe"},` +
		`"age":{"type":"integer","default":30},` +
		`"score":{"type":"number","default":95.5},` +
		`"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},` +
		`"verified":{"type":"boolean","default":true}}}`)

	enumsForm = json.RawMessage(`{"type":"object","properties":{` +
		`"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},` +
		`"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},` +
		`{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},` +
		`"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},` +
		`"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},` +
		`"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},` +
		`{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`)
)
