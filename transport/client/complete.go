package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcpengine/mcpengine/codec"
)

// SetLevel asks the server to log from a level on (logging/setLevel); OnLog
// receives it. The error is a *CapabilityError where the server did not declare
// logging. On the stateless revision nothing is sent: each request from then on
// asks for the level itself, and "" asks for nothing.
func (c *Client) SetLevel(ctx context.Context, level LogLevel) error {
	if err := c.needServer("logging"); err != nil {
		return err
	}
	if e := c.era.Load(); e != nil {
		e.level.Store(level)
		return nil
	}
	params := append(codec.AppendString([]byte(`{"level":`), level), '}')
	_, err := c.Request(ctx, codec.MethodSetLevel, params, nil)
	return err
}

// CompleteRequest asks how the value of an argument may go on. Exactly one of
// Prompt and Template says whose argument it is.
type CompleteRequest struct {
	// Prompt is the name of a prompt, Template a URI template of resources.
	Prompt, Template string
	// Argument is the name of the argument, Value what the user has typed.
	Argument, Value string
	// Others are arguments that have their values already. Revisions before
	// 2025-06-18 have no place for them.
	Others map[string]string
}

// Completion is what an argument may be, at most 100 values.
type Completion struct {
	Values []string
	// Total is how many values there are in all, where HasTotal.
	Total    int64
	HasTotal bool
	// HasMore tells that there are more values than these.
	HasMore bool
	Raw     []byte
}

// Complete asks the server for completions (completion/complete). The error is a
// *CapabilityError where the server did not declare completions, which exists
// since 2025-03-26.
func (c *Client) Complete(ctx context.Context, r *CompleteRequest) (*Completion, error) {
	if c.server.Protocol >= revision20250326 {
		if err := c.needServer("completions"); err != nil {
			return nil, err
		}
	}
	params, err := r.params(c.server.Protocol)
	if err != nil {
		return nil, err
	}
	result, err := c.Request(ctx, codec.MethodComplete, params, nil)
	if err != nil {
		return nil, err
	}
	completion := codec.Member(result, "completion")
	out := &Completion{HasMore: codec.Bool(completion, "hasMore"), Raw: result}
	out.Total, out.HasTotal = codec.Int(completion, "total")
	ok := codec.EachElement(codec.Member(completion, "values"), func(v []byte) bool {
		s, isText := codec.String(v)
		out.Values = append(out.Values, s)
		return isText
	})
	if !ok {
		return nil, fmt.Errorf("%w: completion/complete gave no values: %s", ErrMalformed, excerpt(result))
	}
	return out, nil
}

func (r *CompleteRequest) params(revision string) ([]byte, error) {
	var p []byte
	switch {
	case (r.Prompt == "") == (r.Template == ""):
		return nil, errors.New("client: a completion needs either Prompt or Template")
	case r.Prompt != "":
		p = codec.AppendString([]byte(`{"ref":{"type":"ref/prompt","name":`), r.Prompt)
	default:
		p = codec.AppendString([]byte(`{"ref":{"type":"ref/resource","uri":`), r.Template)
	}
	p = codec.AppendString(append(p, `},"argument":{"name":`...), r.Argument)
	p = codec.AppendString(append(p, `,"value":`...), r.Value)
	p = append(p, '}')
	if len(r.Others) > 0 && revision >= revision20250618 {
		p = appendTexts(append(p, `,"context":{"arguments":`...), r.Others)
		p = append(p, '}')
	}
	return append(p, '}'), nil
}

// appendTexts appends an object of strings, sorted by name.
func appendTexts(dst []byte, texts map[string]string) []byte {
	names := make([]string, 0, len(texts))
	for name := range texts {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = codec.AppendString(dst, name)
		dst = append(dst, ':')
		dst = codec.AppendString(dst, texts[name])
	}
	return append(dst, '}')
}
