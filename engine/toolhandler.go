package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/mcpengine/mcpengine/codec"
)

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
		if err := h(ctx, c); err != nil {
			return c.toolFailure(ctx, err)
		}
		return nil
	}
}

// toolFailure gives what becomes of a tool's error: a protocol error, or a
// result with isError, which it sets.
func (c *Call) toolFailure(ctx context.Context, err error) error {
	if bad := (argumentError{}); errors.As(err, &bad) {
		return c.badArguments(bad)
	}
	if page := (*urlNeeded)(nil); errors.As(err, &page) {
		if wire := page.wire(c); wire != nil {
			err = wire
		}
	}
	if wire := (*codec.Error)(nil); errors.As(err, &wire) || errors.Is(err, errInputRequired) || errors.Is(err, errAnswered) {
		return err
	}
	if missing := (*CapabilityError)(nil); errors.As(err, &missing) && c.rev.IsModern() {
		return err
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return codec.ErrCancelled
	}
	c.setToolError(c.engine.redact(err))
	return nil
}

// checkedOutput holds a tool's structured content to its output schema, which is
// sent from a revision on. A result that breaks it is the server's fault, and
// none is sent.
func checkedOutput(v validator, since Revision, h Handler) Handler {
	return func(ctx context.Context, c *Call) error {
		if err := h(ctx, c); err != nil && !errors.Is(err, errAnswered) || c.resultType != "" {
			return err
		}
		result := c.out[c.result:]
		if c.rev < since || codec.Bool(result, "isError") {
			return nil
		}
		structured := codec.Member(result, "structuredContent")
		if structured == nil {
			return codec.NewError(codec.CodeInternalError, "The tool gave no structured content, which its output schema demands")
		}
		if err := v.validate(structured); err != nil {
			c.engine.log.Error("structured content breaks the output schema", "tool", c.name, "error", err)
			return codec.NewError(codec.CodeInternalError, "The tool's structured content breaks its output schema")
		}
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
		if t.OutputSchema != nil && string(raw) == "null" {
			return codec.NewError(codec.CodeInternalError, "The tool gave no result, which its output schema demands")
		}
		r := &Result{Content: []Content{Text{Text: string(raw)}}}
		if codec.IsObject(raw) || t.OutputSchema != nil {
			r.Structured = raw
		}
		return c.setResult(r)
	}, nil
}

// setResult renders a Result for the call's revision.
func (c *Call) setResult(r *Result) error {
	content := r.Content
	if len(content) == 0 && len(r.Structured) > 0 {
		content = []Content{Text{Text: string(r.Structured)}} // for clients that know only text
	}
	dst := append(c.out[:c.result], `{"content":`...)
	dst = appendBlocks(dst, content, c.rev)
	if len(r.Structured) > 0 && c.rev >= Rev20250618 && (codec.IsObject(r.Structured) || c.rev.IsModern()) {
		dst = append(dst, `,"structuredContent":`...)
		dst = appendCompact(dst, r.Structured)
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
