package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/mcpengine/mcpengine/engine"
)

// caseTools are the tools that a wire case can ask for beside the fixture: they
// misbehave, as a tool with a fault does.
var caseTools = map[string]func(*engine.Engine) error{
	"case_progress": addProgressCase,
	"case_print":    addPrintCase,
	"case_elicit":   addElicitCase,

	"needs_confirmation": addConfirmationCase,
}

// registerCaseTools registers tools of caseTools by name.
func registerCaseTools(e *engine.Engine, names []string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, caseTools[name](e))
	}
	return errors.Join(errs...)
}

type (
	caseProgressIn struct {
		Values []float64 `json:"values" jsonschema:"what is reported"`
	}
	casePrintIn struct {
		Text string `json:"text" jsonschema:"what is printed"`
	}
)

func addProgressCase(e *engine.Engine) error {
	return engine.AddTool(e, engine.Tool{Name: "case_progress", Description: "Reports any progress.", Annotations: readOnly},
		func(ctx context.Context, c *engine.Call, in caseProgressIn) (string, error) {
			for _, v := range in.Values {
				c.Progress(ctx, v, 0)
			}
			return "done", nil
		})
}

func addPrintCase(e *engine.Engine) error {
	return engine.AddTool(e, engine.Tool{Name: "case_print", Description: "Prints to standard output.", Annotations: readOnly},
		func(_ context.Context, _ *engine.Call, in casePrintIn) (string, error) {
			_, err := fmt.Fprint(os.Stdout, in.Text)
			return "printed", err
		})
}

func addElicitCase(e *engine.Engine) error {
	form := json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)
	return plainTool(e, "case_elicit", "Asks the user, whether or not the client can.", nil,
		func(ctx context.Context, c *engine.Call) (string, error) {
			return elicit(ctx, c, "What is your name?", form)
		})
}

// actionsTaken counts what needs_confirmation did.
var actionsTaken atomic.Int64

type confirmationIn struct {
	Target string `json:"target" jsonschema:"what is acted on"`
}

func addConfirmationCase(e *engine.Engine) error {
	form := json.RawMessage(`{"type":"object","properties":{}}`)
	return engine.AddTool(e, engine.Tool{Name: "needs_confirmation", Description: "Acts only when the user agrees."},
		func(ctx context.Context, c *engine.Call, in confirmationIn) (string, error) {
			r, err := c.Elicit(ctx, &engine.ElicitRequest{Key: "confirm", Message: "Act on " + in.Target + "?", Schema: form})
			if err != nil {
				return "", err
			}
			if r.Action != "accept" {
				return "nothing was done", nil
			}
			actionsTaken.Add(1)
			return "acted on " + in.Target, nil
		})
}
