package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport/client"
)

// catalog is what one upstream offers, as it is registered with the gateway's engine. Only what has changed is
// registered anew, so that nobody is told of changes that are none. What an upstream that is away offered stays listed:
// it is likely to come back, and a list that flickers costs its readers more than a call that fails.
type catalog struct {
	up     *upstream
	engine *engine.Engine
	prefix string
	known  chan struct{} // closed when the upstream has told what it offers for the first time

	mu      sync.Mutex
	entries map[string]string // guarded by mu: the raw definition by kind and name
	left    []string          // guarded by mu: what could not be registered, and why
}

// offer is one thing of an upstream's lists.
type offer struct {
	key string // kind and name, as "tool docs_search"
	raw []byte
	add func() error
}

func newCatalog(u *upstream, e *engine.Engine) *catalog {
	return &catalog{up: u, engine: e, prefix: u.spec.Name + "_", known: make(chan struct{}), entries: map[string]string{}}
}

// read brings the engine up to date with what the upstream offers now.
func (c *catalog) read(ctx context.Context, from *client.Client) error {
	var offers []offer
	for _, list := range []func(context.Context, *client.Client) ([]offer, error){c.tools, c.prompts, c.resources} {
		more, err := list(ctx, from)
		if err != nil && !notOffered(err) {
			return err
		}
		offers = append(offers, more...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.known:
	default:
		defer close(c.known)
	}
	gone := c.entries
	c.entries, c.left = make(map[string]string, len(offers)), nil
	for _, o := range offers {
		if gone[o.key] != string(o.raw) {
			if err := o.add(); err != nil {
				c.left = append(c.left, fmt.Sprintf("%s: %v", o.key, err))
				continue
			}
		}
		delete(gone, o.key)
		c.entries[o.key] = string(o.raw)
	}
	for key := range gone {
		c.drop(key)
	}
	return nil
}

// notOffered reports whether a list could not be read because the upstream has none of its kind.
func notOffered(err error) bool {
	missing, wire := (*client.CapabilityError)(nil), (*codec.Error)(nil)
	return errors.As(err, &missing) || errors.As(err, &wire) && wire.Code == codec.CodeMethodNotFound
}

// drop takes out what the upstream does not offer any more.
func (c *catalog) drop(key string) {
	kind, name, _ := strings.Cut(key, " ")
	switch kind {
	case "tool":
		c.engine.RemoveTool(name)
	case "prompt":
		c.engine.RemovePrompt(name)
	default:
		c.engine.RemoveResource(name)
	}
}

// trouble tells what of the upstream's lists is not offered.
func (c *catalog) trouble() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.left) == 0 {
		return ""
	}
	return fmt.Sprintf("%d not offered, first %s", len(c.left), c.left[0])
}

func (c *catalog) tools(ctx context.Context, from *client.Client) ([]offer, error) {
	listed, err := from.ListTools(ctx)
	offers := make([]offer, 0, len(listed))
	for _, t := range listed {
		tool := engine.Tool{
			Name: c.prefix + t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
			OutputSchema: t.OutputSchema, Annotations: annotations(t.Annotations), Meta: codec.Member(t.Raw, "_meta"),
		}
		offers = append(offers, offer{"tool " + tool.Name, t.Raw, func() error {
			return c.engine.AddRawTool(tool, c.up.toolCall(t.Name))
		}})
	}
	return offers, err
}

func (c *catalog) prompts(ctx context.Context, from *client.Client) ([]offer, error) {
	listed, err := from.ListPrompts(ctx)
	offers := make([]offer, 0, len(listed))
	for _, p := range listed {
		prompt := engine.Prompt{
			Name: c.prefix + p.Name, Title: p.Title, Description: p.Description, Meta: codec.Member(p.Raw, "_meta"),
		}
		for _, a := range p.Arguments {
			prompt.Arguments = append(prompt.Arguments, engine.PromptArgument(a))
		}
		offers = append(offers, offer{"prompt " + prompt.Name, p.Raw, func() error {
			return c.engine.AddPrompt(prompt, c.up.promptGet(p.Name))
		}})
	}
	return offers, err
}

// resources keep their URIs, under which other things may refer to them. Of two upstreams that offer the same one, the
// later one serves it.
func (c *catalog) resources(ctx context.Context, from *client.Client) ([]offer, error) {
	listed, err := from.ListResources(ctx)
	offers := make([]offer, 0, len(listed))
	for _, r := range listed {
		resource := engine.Resource{
			URI: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, MIMEType: r.MIMEType,
			Meta: codec.Member(r.Raw, "_meta"),
		}
		offers = append(offers, offer{"resource " + r.URI, r.Raw, func() error {
			return c.engine.AddResource(resource, c.up.resourceRead)
		}})
	}
	return offers, err
}

// annotations reads the hints of a tool.
func annotations(raw []byte) *engine.ToolAnnotations {
	if raw == nil {
		return nil
	}
	hint := func(name string) *bool {
		if codec.Member(raw, name) == nil {
			return nil
		}
		return engine.Hint(codec.Bool(raw, name))
	}
	return &engine.ToolAnnotations{
		Title: codec.Text(raw, "title"), ReadOnlyHint: hint("readOnlyHint"), DestructiveHint: hint("destructiveHint"),
		IdempotentHint: hint("idempotentHint"), OpenWorldHint: hint("openWorldHint"),
	}
}

// callParams makes the params of a tools/call.
func callParams(tool string, args []byte) json.RawMessage {
	p := codec.AppendString(append(make([]byte, 0, len(tool)+len(args)+32), `{"name":`...), tool)
	if args != nil {
		p = append(append(p, `,"arguments":`...), args...)
	}
	return append(p, '}')
}
