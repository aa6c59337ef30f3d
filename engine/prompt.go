package engine

import (
	"context"
	"errors"

	"github.com/mcpengine/mcpengine/codec"
)

// Prompt describes a prompt.
type Prompt struct {
	Name        string
	Title       string // from 2025-06-18 on
	Description string
	Arguments   []PromptArgument
	Icons       []Icon // from 2025-11-25 on
	Meta        Meta
	// Complete completes the arguments' values, nil where that cannot be done.
	Complete CompleteFunc
}

// PromptArgument describes an argument of a prompt. Its value is a string.
type PromptArgument struct {
	Name        string
	Title       string // from 2025-06-18 on
	Description string
	Required    bool
}

// PromptResult is a prompt with its arguments filled in.
type PromptResult struct {
	Description string
	Messages    []PromptMessage
	Meta        Meta
}

// PromptMessage is one message of a prompt.
type PromptMessage struct {
	Role    string // "user" or "assistant"
	Content Content
}

// PromptHandler fills a prompt in. Every required argument is in args.
type PromptHandler func(ctx context.Context, c *Call, args map[string]string) (*PromptResult, error)

// AddPrompt registers a prompt, or replaces the one of its name.
func (e *Engine) AddPrompt(p Prompt, h PromptHandler) error {
	if p.Name == "" {
		return e.refuse(p.Name, errors.New("a prompt has a name"))
	}
	item := &entry{
		name:   p.Name,
		prompt: &p,
		append: func(dst []byte, rev Revision) []byte { return p.appendTo(dst, rev) },
		bare: func(ctx context.Context, c *Call) error {
			args, err := p.read(c.message.Arguments)
			if err != nil {
				return err
			}
			r, err := h(ctx, c, args)
			if err != nil {
				return err
			}
			return c.setPrompt(r)
		},
	}
	e.change(KindPrompt, p.Name, func(c *catalog) bool { return c.put(&c.prompts, item) })
	return nil
}

// RemovePrompt takes a prompt out. It reports whether there was one.
func (e *Engine) RemovePrompt(name string) bool {
	return e.change(KindPrompt, name, func(c *catalog) bool { return c.prompts.remove(name) })
}

// read reads the arguments and checks that the required ones are there.
func (p *Prompt) read(raw []byte) (map[string]string, error) {
	args := make(map[string]string)
	if raw != nil {
		var bad string
		walked := codec.EachMember(raw, func(name, value []byte) bool {
			s, ok := codec.String(value)
			if !ok {
				bad = string(name)
			}
			args[string(name)] = s
			return ok
		})
		if bad != "" {
			return nil, codec.NewError(codec.CodeInvalidParams, "Invalid params: argument "+bad+" must be a string")
		}
		if !walked {
			return nil, codec.NewError(codec.CodeInvalidParams, "Invalid params: arguments must be an object")
		}
	}
	for _, a := range p.Arguments {
		if _, there := args[a.Name]; a.Required && !there {
			return nil, codec.NewError(codec.CodeInvalidParams, "Invalid params: argument "+a.Name+" is required")
		}
	}
	return args, nil
}

// setPrompt renders the result of prompts/get.
func (c *Call) setPrompt(r *PromptResult) error {
	if r == nil {
		return errors.New("the prompt's handler gave nothing")
	}
	dst := append(c.out[:c.result], '{')
	if r.Description != "" {
		dst = append(dst, `"description":`...)
		dst = append(codec.AppendString(dst, r.Description), ',')
	}
	dst = append(dst, `"messages":[`...)
	for i, m := range r.Messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"role":`...)
		dst = codec.AppendString(dst, m.Role)
		dst = append(dst, `,"content":`...)
		dst = append(m.Content.appendTo(dst, c.rev), '}')
	}
	dst = append(dst, ']')
	if len(r.Meta) > 0 {
		dst = append(dst, `,"_meta":`...)
		dst = append(dst, r.Meta...)
	}
	c.out = append(dst, '}')
	return nil
}

func (p *Prompt) appendTo(dst []byte, rev Revision) []byte {
	dst = append(dst, `{"name":`...)
	dst = codec.AppendString(dst, p.Name)
	if rev >= Rev20250618 {
		dst = appendMember(dst, "title", p.Title)
	}
	dst = appendMember(dst, "description", p.Description)
	if len(p.Arguments) > 0 {
		dst = append(dst, `,"arguments":[`...)
		for i, a := range p.Arguments {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, `{"name":`...)
			dst = codec.AppendString(dst, a.Name)
			if rev >= Rev20250618 {
				dst = appendMember(dst, "title", a.Title)
			}
			dst = appendMember(dst, "description", a.Description)
			if a.Required {
				dst = append(dst, `,"required":true`...)
			}
			dst = append(dst, '}')
		}
		dst = append(dst, ']')
	}
	if rev >= Rev20251125 {
		dst = appendIcons(dst, p.Icons)
	}
	return append(appendMeta(dst, rev, p.Meta), '}')
}
