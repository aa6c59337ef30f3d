package engine

import (
	"context"
	"strconv"

	"github.com/mcpengine/mcpengine/codec"
)

// maxCompletions is how many values one answer may hold (completion/complete).
const maxCompletions = 100

// Completion is what fits a value that is being typed.
type Completion struct {
	Values  []string // the first 100 are sent
	Total   *int     // how many there are in all, where that is known
	HasMore bool
}

// CompleteFunc completes an argument of a prompt, or a variable of a resource
// template. others are the values that the user has chosen already (from
// 2025-06-18 on).
type CompleteFunc func(ctx context.Context, c *Call, argument, value string, others map[string]string) (Completion, error)

var errRef = codec.NewError(codec.CodeInvalidParams, "Invalid params: ref names no prompt and no resource template")

func handleComplete(ctx context.Context, c *Call) error {
	params := c.message.Params
	argument := codec.Member(params, "argument")
	name, okName := codec.String(codec.Member(argument, "name"))
	value, okValue := codec.String(codec.Member(argument, "value"))
	if !okName || !okValue {
		return codec.NewError(codec.CodeInvalidParams, "Invalid params: argument has a name and a value")
	}
	complete, err := c.engine.catalog.Load().completer(codec.Member(params, "ref"), name, c.view())
	if err != nil {
		return err
	}
	var completion Completion
	if complete != nil {
		others := make(map[string]string)
		codec.EachMember(codec.Member(params, "context", "arguments"), func(n, v []byte) bool {
			others[string(n)], _ = codec.String(v)
			return true
		})
		if completion, err = complete(ctx, c, name, value, others); err != nil {
			return err
		}
	}
	c.setCompletion(&completion)
	return nil
}

// completer finds who completes, nil where nobody does.
func (c *catalog) completer(ref []byte, argument string, v view) (CompleteFunc, error) {
	switch codec.Text(ref, "type") {
	case "ref/prompt":
		e := v.finds(KindPrompt, c.prompts.byName[codec.Text(ref, "name")])
		if e == nil {
			return nil, errRef
		}
		for _, a := range e.prompt.Arguments {
			if a.Name == argument {
				return e.prompt.Complete, nil
			}
		}
		return nil, codec.NewError(codec.CodeInvalidParams, "Invalid params: the prompt has no argument "+clip([]byte(argument)))
	case "ref/resource":
		uri := codec.Text(ref, "uri")
		if e := v.finds(KindTemplate, c.templates.byName[uri]); e != nil {
			return e.complete, nil
		}
		if v.finds(KindResource, c.resources.byName[uri]) != nil {
			return nil, nil
		}
	}
	return nil, errRef
}

func (c *Call) setCompletion(r *Completion) {
	values := r.Values
	if len(values) > maxCompletions {
		values, r.HasMore = values[:maxCompletions], true
		if r.Total == nil {
			total := len(r.Values)
			r.Total = &total
		}
	}
	dst := append(c.out[:c.result], `{"completion":{"values":[`...)
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = codec.AppendString(dst, v)
	}
	dst = append(dst, ']')
	if r.Total != nil {
		dst = append(dst, `,"total":`...)
		dst = strconv.AppendInt(dst, int64(*r.Total), 10)
	}
	if r.HasMore {
		dst = append(dst, `,"hasMore":true`...)
	}
	c.out = append(dst, '}', '}')
}
