package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcpengine/mcpengine/codec"
)

// Tool describes a tool to its callers. What the session's revision does not
// know of it is left out.
type Tool struct {
	// Name is 1 to 128 of the characters A-Z a-z 0-9 _ - .
	Name        string
	Title       string // for people; from 2025-06-18 on
	Description string // for the model
	// InputSchema is the JSON Schema of the arguments, an object schema.
	// AddTool infers it where it is nil; AddRawTool then takes any object.
	InputSchema json.RawMessage
	// OutputSchema is the JSON Schema of structuredContent; from 2025-06-18 on.
	// One that is not of an object is sent and applied from 2026-07-28 on.
	OutputSchema json.RawMessage
	Annotations  *ToolAnnotations // from 2025-03-26 on
	Icons        []Icon           // from 2025-11-25 on
	Meta         Meta             // from 2025-06-18 on
	// TaskSupport tells whether a call may go on as a task, which is answered
	// later: "" never; "optional" or "required" where the client asks for it
	// (2025-11-25) or can take it (the tasks extension of 2026-07-28);
	// "handler" where the handler decides, with Call.RunAsTask (2026-07-28).
	TaskSupport string
}

// ToolAnnotations are hints, not promises. Nil means the specification's
// default: not read-only, destructive, not idempotent, open world.
type ToolAnnotations struct {
	Title                                                        string
	ReadOnlyHint, DestructiveHint, IdempotentHint, OpenWorldHint *bool
}

// Hint gives a pointer to b, for the fields of ToolAnnotations.
func Hint(b bool) *bool { return &b }

// Result is what a tool gives when its value does not say it all. A tool whose
// output type is *Result decides over every part.
type Result struct {
	Content []Content
	// Structured becomes structuredContent, from 2025-06-18 on: a JSON object;
	// from 2026-07-28 on any JSON value.
	Structured json.RawMessage
	IsError    bool
	Meta       Meta
}

// TextResult is a Result of one text.
func TextResult(text string) *Result { return &Result{Content: []Content{Text{Text: text}}} }

// RawHandler is the form of a tool that allocates nothing: args are the raw
// arguments, an object that satisfies the input schema, borrowed until the
// return; the result object is appended to out, with AppendTextResult say. An
// error is a tool error, which the model reads, unless it is a *codec.Error.
type RawHandler func(ctx context.Context, c *Call, args []byte, out []byte) ([]byte, error)

// AppendTextResult appends the result of a tool that is one text.
func AppendTextResult[S ~string | ~[]byte](dst []byte, text S) []byte {
	dst = append(dst, `{"content":[{"type":"text","text":`...)
	dst = codec.AppendString(dst, text)
	return append(dst, `}]}`...)
}

// AddTool registers a tool whose arguments are an In, and whose result is an
// Out. Where the schemas are nil they are inferred from the types: json tags
// name the members, jsonschema tags describe them, a member without omitempty is
// required, and members that are not fields are refused. An Out becomes
// structuredContent and, for older clients, its JSON as text; a string becomes
// text; a *Result is sent as it is. An error is a tool error that the model
// reads, unless errors.As finds a *codec.Error in it.
//
// A tool of the same name is replaced. The error, which is logged too, tells
// what is wrong with the definition.
func AddTool[In, Out any](e *Engine, t Tool, h func(ctx context.Context, c *Call, in In) (Out, error)) error {
	given := t.OutputSchema
	in, err := inputOf[In](&t)
	if err != nil {
		return e.refuse(t.Name, err)
	}
	out, err := outputOf[Out](&t)
	if err != nil {
		return e.refuse(t.Name, err)
	}
	return e.addTool(t, nil, given, func(ctx context.Context, c *Call) error {
		var arguments In
		if err := in(c, &arguments); err != nil {
			return err
		}
		result, err := h(ctx, c, arguments)
		if err != nil {
			return err
		}
		return out(c, result)
	})
}

// AddRawTool registers a tool in its raw form. A tool of the same name is
// replaced. The error, which is logged too, tells what is wrong with the
// definition.
func (e *Engine) AddRawTool(t Tool, h RawHandler) error {
	if t.InputSchema == nil {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	v, err := compileSchema(t.InputSchema)
	if err != nil {
		return e.refuse(t.Name, err)
	}
	e.compiled.Add(1)
	return e.addTool(t, v, t.OutputSchema, func(ctx context.Context, c *Call) error {
		args := c.message.Arguments
		if args == nil {
			args = emptyObject
		}
		out, err := h(ctx, c, args, c.out)
		if err != nil {
			return err
		}
		c.out = out
		return nil
	})
}

var emptyObject = []byte("{}")

// RemoveTool takes a tool out. It reports whether there was one.
func (e *Engine) RemoveTool(name string) bool {
	return e.change(KindTool, name, func(c *catalog) bool { return c.tools.remove(name) })
}

// addTool puts a tool into the catalog. in checks the arguments, where the
// handler does not do so itself; outSchema is one that results are held to.
func (e *Engine) addTool(t Tool, in validator, outSchema json.RawMessage, h Handler) error {
	if err := checkTool(&t); err != nil {
		return e.refuse(t.Name, err)
	}
	headers, err := paramHeaders(t.InputSchema)
	if err != nil {
		return e.refuse(t.Name, err)
	}
	if outSchema != nil {
		out, err := compileSchema(outSchema)
		if err != nil {
			return e.refuse(t.Name, err)
		}
		e.compiled.Add(1)
		since := Rev20250618
		if !describesObject(outSchema) {
			since = Rev20260728
		}
		h = checkedOutput(out, since, h)
	}
	e.registrations.Add(1)
	item := &entry{
		name:        t.Name,
		taskSupport: t.TaskSupport,
		headers:     headers,
		bare:        toolHandler(in, h),
		append:      func(dst []byte, rev Revision) []byte { return t.appendTo(dst, rev) },
	}
	e.change(KindTool, t.Name, func(c *catalog) bool { return c.put(&c.tools, item) })
	return nil
}

// refuse logs and gives back why something was not registered.
func (e *Engine) refuse(name string, err error) error {
	err = fmt.Errorf("engine: %q is not registered: %w", name, err)
	e.log.Error(err.Error())
	return err
}

// describesObject reports whether a schema is of an object.
func describesObject(schema json.RawMessage) bool { return codec.Text(schema, "type") == "object" }

func checkTool(t *Tool) error {
	if t.Name == "" || len(t.Name) > 128 {
		return errors.New("a name has 1 to 128 characters")
	}
	for _, c := range []byte(t.Name) {
		ok := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.'
		if !ok {
			return fmt.Errorf("a name is made of A-Z a-z 0-9 _ - . and not of %q", c)
		}
	}
	if t.InputSchema != nil && (!codec.Valid(t.InputSchema) || !describesObject(t.InputSchema)) {
		return errors.New(`an input schema is a JSON object with "type":"object"`)
	}
	if t.OutputSchema != nil && !(codec.Valid(t.OutputSchema) && codec.IsObject(t.OutputSchema)) {
		return errors.New("an output schema is a JSON object")
	}
	switch t.TaskSupport {
	case "", "optional", "required", "handler":
	default:
		return fmt.Errorf(`TaskSupport is "", "optional", "required" or "handler", and not %q`, t.TaskSupport)
	}
	if t.Meta != nil && !(codec.Valid(t.Meta) && codec.IsObject(t.Meta)) {
		return errors.New("meta is no JSON object")
	}
	return nil
}
