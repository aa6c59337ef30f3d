package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

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
	OutputSchema json.RawMessage
	Annotations  *ToolAnnotations // from 2025-03-26 on
	Icons        []Icon           // from 2025-11-25 on
	Meta         Meta             // from 2025-06-18 on
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
	// Structured becomes structuredContent, from 2025-06-18 on: a JSON object.
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
	in, err := inputOf[In](&t)
	if err != nil {
		return e.refuse(t.Name, err)
	}
	out, err := outputOf[Out](&t)
	if err != nil {
		return e.refuse(t.Name, err)
	}
	return e.addTool(t, nil, func(ctx context.Context, c *Call) error {
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
	return e.addTool(t, v, func(ctx context.Context, c *Call) error {
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
	return e.change(listTools, func(c *catalog) bool { return c.tools.remove(name) })
}

// addTool puts a tool into the catalog.
func (e *Engine) addTool(t Tool, v validator, h Handler) error {
	if err := checkTool(&t); err != nil {
		return e.refuse(t.Name, err)
	}
	e.registrations.Add(1)
	item := &entry{
		name:   t.Name,
		bare:   toolHandler(v, h),
		append: func(dst []byte, rev Revision) []byte { return t.appendTo(dst, rev) },
	}
	e.change(listTools, func(c *catalog) bool { return c.put(&c.tools, item) })
	return nil
}

// refuse logs and gives back why something was not registered.
func (e *Engine) refuse(name string, err error) error {
	err = fmt.Errorf("engine: %q is not registered: %w", name, err)
	e.log.Error(err.Error())
	return err
}

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
	for _, schema := range []json.RawMessage{t.InputSchema, t.OutputSchema} {
		if schema != nil && (!codec.Valid(schema) || codec.Text(schema, "type") != "object") {
			return errors.New(`a schema is a JSON object with "type":"object"`)
		}
	}
	if t.Meta != nil && !(codec.Valid(t.Meta) && codec.IsObject(t.Meta)) {
		return errors.New("meta is no JSON object")
	}
	return nil
}

// toolHandler is what tools/call runs: it checks the arguments and turns a
// tool's error into a result.
func toolHandler(v validator, h Handler) Handler {
	return func(ctx context.Context, c *Call) error {
		if v != nil {
			args := c.message.Arguments
			if args == nil {
				args = emptyObject
			}
			if err := v.validate(args); err != nil {
				return c.badArguments(err)
			}
		}
		err := h(ctx, c)
		if err == nil {
			return nil
		}
		if bad := (argumentError{}); errors.As(err, &bad) {
			return c.badArguments(bad)
		}
		if page := (*urlNeeded)(nil); errors.As(err, &page) {
			err = page.wire(c)
		}
		if wire := (*codec.Error)(nil); errors.As(err, &wire) {
			return err
		}
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return codec.ErrCancelled
		}
		c.setToolError(c.engine.redact(err))
		return nil
	}
}

// badArguments answers arguments that do not satisfy the schema: from
// 2025-11-25 on a result that the model can mend (SEP-1303), before that
// invalid params.
func (c *Call) badArguments(err error) error {
	text := "Invalid arguments: " + err.Error()
	if c.rev >= Rev20251125 {
		c.setToolError(text)
		return nil
	}
	return codec.NewError(codec.CodeInvalidParams, text)
}

func (c *Call) setToolError(text string) {
	c.out = append(c.out[:c.result], `{"content":[{"type":"text","text":`...)
	c.out = codec.AppendString(c.out, text)
	c.out = append(c.out, `}],"isError":true}`...)
}

// outputOf gives the function that sends an Out.
func outputOf[Out any](t *Tool) (func(c *Call, out Out) error, error) {
	var zero Out
	switch any(zero).(type) {
	case *Result:
		return func(c *Call, out Out) error {
			r, _ := any(out).(*Result)
			if r == nil {
				r = &Result{}
			}
			return c.setResult(r)
		}, nil
	case string:
		return func(c *Call, out Out) error {
			c.out = AppendTextResult(c.out, any(out).(string))
			return nil
		}, nil
	}
	if t.OutputSchema == nil {
		if typ := reflect.TypeFor[Out](); typ.Kind() == reflect.Struct ||
			typ.Kind() == reflect.Pointer && typ.Elem().Kind() == reflect.Struct {
			schema, err := inferSchema(typ)
			if err != nil {
				return nil, err
			}
			t.OutputSchema = schema
		}
	}
	return func(c *Call, out Out) error {
		raw, err := json.Marshal(out)
		if err != nil {
			return fmt.Errorf("encoding the result: %w", err)
		}
		r := &Result{Content: []Content{Text{Text: string(raw)}}}
		if codec.IsObject(raw) {
			r.Structured = raw
		}
		return c.setResult(r)
	}, nil
}

// setResult renders a Result for the call's revision.
func (c *Call) setResult(r *Result) error {
	dst := append(c.out[:c.result], `{"content":`...)
	dst = appendBlocks(dst, r.Content, c.rev)
	if len(r.Structured) > 0 && c.rev >= Rev20250618 {
		dst = append(dst, `,"structuredContent":`...)
		dst = append(dst, r.Structured...)
	}
	if r.IsError {
		dst = append(dst, `,"isError":true`...)
	}
	if len(r.Meta) > 0 {
		dst = append(dst, `,"_meta":`...)
		dst = append(dst, r.Meta...)
	}
	c.out = append(dst, '}')
	return nil
}

// appendTo renders the definition for tools/list.
func (t *Tool) appendTo(dst []byte, rev Revision) []byte {
	dst = append(dst, `{"name":`...)
	dst = codec.AppendString(dst, t.Name)
	if rev >= Rev20250618 {
		dst = appendMember(dst, "title", t.Title)
	}
	dst = appendMember(dst, "description", t.Description)
	dst = append(dst, `,"inputSchema":`...)
	dst = appendCompact(dst, t.InputSchema)
	if t.OutputSchema != nil && rev >= Rev20250618 {
		dst = append(dst, `,"outputSchema":`...)
		dst = appendCompact(dst, t.OutputSchema)
	}
	if rev >= Rev20250326 {
		dst = t.Annotations.appendTo(dst)
	}
	if rev >= Rev20251125 {
		dst = appendIcons(dst, t.Icons)
	}
	return append(appendMeta(dst, rev, t.Meta), '}')
}

// appendCompact appends raw JSON as one line.
func appendCompact(dst, raw []byte) []byte {
	start := len(dst)
	return codec.CompactTail(append(dst, raw...), start)
}

func (a *ToolAnnotations) appendTo(dst []byte) []byte {
	if a == nil {
		return dst
	}
	dst = append(dst, `,"annotations":{`...)
	start := len(dst)
	if a.Title != "" {
		dst = append(dst, `"title":`...)
		dst = codec.AppendString(dst, a.Title)
	}
	for _, hint := range []struct {
		name  string
		value *bool
	}{
		{"readOnlyHint", a.ReadOnlyHint},
		{"destructiveHint", a.DestructiveHint},
		{"idempotentHint", a.IdempotentHint},
		{"openWorldHint", a.OpenWorldHint},
	} {
		if hint.value == nil {
			continue
		}
		dst = appendComma(dst, start)
		dst = append(dst, '"')
		dst = append(dst, hint.name...)
		dst = append(dst, '"', ':')
		if *hint.value {
			dst = append(dst, "true"...)
		} else {
			dst = append(dst, "false"...)
		}
	}
	return append(dst, '}')
}
