package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcpengine/mcpengine/codec"
)

// CallTool calls a tool (tools/call). arguments is taken as raw JSON where it is
// a []byte or a json.RawMessage, left out where it is nil, and marshalled
// otherwise. A tool that fails gives a result with IsError and no error; an
// error means that the call itself failed. A task that the server makes of the
// call (Options.TaskExtension) is waited for, up to Options.MaxCallTimeout, and
// cancelled where the caller gives up.
func (c *Client) CallTool(ctx context.Context, name string, arguments any, o *CallOptions) (*ToolResult, error) {
	params, err := toolParams(name, arguments)
	if err != nil {
		return nil, err
	}
	result, err := c.Request(ctx, codec.MethodToolsCall, params, o)
	if err != nil {
		return nil, err
	}
	if c.era.Load() != nil && codec.Text(result, "resultType") == "task" {
		return c.waitForTask(ctx, result)
	}
	return parseToolResult(result)
}

func toolParams(name string, arguments any) ([]byte, error) {
	params := codec.AppendString([]byte(`{"name":`), name)
	raw, err := rawValue(arguments)
	if err != nil {
		return nil, fmt.Errorf("%w: arguments: %w", ErrBadParams, err)
	}
	if raw != nil {
		params = append(params, `,"arguments":`...)
		params = append(params, raw...)
	}
	return append(params, '}'), nil
}

// rawValue gives the JSON of a value that the user may give as raw JSON or as
// anything that can be marshalled; nil for nothing.
func rawValue(value any) ([]byte, error) {
	var raw []byte
	switch v := value.(type) {
	case nil:
	case []byte:
		raw = v
	case json.RawMessage:
		raw = v
	default:
		return json.Marshal(v)
	}
	if len(raw) == 0 {
		return nil, nil
	}
	if !codec.Valid(raw) { // or it could close the object and go on
		return nil, errors.New("not JSON")
	}
	return raw, nil
}

// ListTools gives all tools, over all pages (tools/list). Over HTTP without a
// session, tools whose x-mcp-header members break the rules are left out, which
// the log tells, and calls of the others carry the headers that they ask for.
func (c *Client) ListTools(ctx context.Context) ([]Tool, error) {
	tools, err := list(ctx, c, codec.MethodToolsList, "tools", parseTool)
	if e := c.era.Load(); e != nil && err == nil {
		tools = c.learnTools(e, tools)
	}
	return tools, err
}

// ListResources gives all resources, over all pages (resources/list).
func (c *Client) ListResources(ctx context.Context) ([]Resource, error) {
	return list(ctx, c, codec.MethodResourcesList, "resources", parseResource)
}

// ListResourceTemplates gives all templates, over all pages
// (resources/templates/list).
func (c *Client) ListResourceTemplates(ctx context.Context) ([]ResourceTemplate, error) {
	return list(ctx, c, codec.MethodResourceTemplatesList, "resourceTemplates", parseResourceTemplate)
}

// ListPrompts gives all prompts, over all pages (prompts/list).
func (c *Client) ListPrompts(ctx context.Context) ([]Prompt, error) {
	return list(ctx, c, codec.MethodPromptsList, "prompts", parsePrompt)
}

// maxListMessages is how many times as large as one message the pages of a list
// may be together.
const maxListMessages = 16

// list walks the pages of a list (section Pagination of the server utilities).
// A page that names the cursor it was asked with would never end, and is an
// error like a list that is over the limits.
func list[T any](ctx context.Context, c *Client, method, member string, parse func([]byte) T) ([]T, error) {
	var items []T
	var params []byte
	cursor, size := "", 0
	for range c.o.MaxPages {
		result, err := c.Request(ctx, method, params, nil)
		if err != nil {
			return nil, err
		}
		if size += len(result); size > maxListMessages*c.o.MaxMessageBytes {
			return nil, fmt.Errorf("%w: the pages of %s together", ErrTooLarge, method)
		}
		ok := codec.EachElement(codec.Member(result, member), func(value []byte) bool {
			items = append(items, parse(value))
			return true
		})
		if !ok {
			return nil, fmt.Errorf("%w: %s gave no array %q: %s", ErrMalformed, method, member, excerpt(result))
		}
		next, more := codec.String(codec.Member(result, "nextCursor"))
		switch {
		case !more:
			return items, nil
		case params != nil && next == cursor:
			return nil, fmt.Errorf("%w: %s repeats the cursor %q", ErrMalformed, method, excerpt(next))
		}
		cursor = next
		params = append(codec.AppendString([]byte(`{"cursor":`), next), '}')
	}
	return nil, fmt.Errorf("%w: more than %d pages of %s", ErrTooLarge, c.o.MaxPages, method)
}

// ReadResource reads a resource (resources/read).
func (c *Client) ReadResource(ctx context.Context, uri string) (*ReadResult, error) {
	result, err := c.Request(ctx, codec.MethodResourcesRead, uriParams(uri), nil)
	if err != nil {
		return nil, err
	}
	return parseReadResult(result)
}

// Subscribe asks for notifications/resources/updated of a resource, which
// Options.OnResourceUpdated receives. Where the server did not declare
// resources.subscribe the error is a *CapabilityError. On the stateless revision
// it is a subscription of its own, which is not renewed where it breaks; Listen
// gives more.
func (c *Client) Subscribe(ctx context.Context, uri string) error {
	if err := c.needServer("resources", "subscribe"); err != nil {
		return err
	}
	if e := c.era.Load(); e != nil {
		return c.subscribeByListen(ctx, e, uri)
	}
	_, err := c.Request(ctx, codec.MethodResourcesSubscribe, uriParams(uri), nil)
	return err
}

// Unsubscribe ends what Subscribe asked for.
func (c *Client) Unsubscribe(ctx context.Context, uri string) error {
	if err := c.needServer("resources", "subscribe"); err != nil {
		return err
	}
	if e := c.era.Load(); e != nil {
		e.unsubscribeByListen(uri)
		return nil
	}
	_, err := c.Request(ctx, codec.MethodResourcesUnsubscribe, uriParams(uri), nil)
	return err
}

func uriParams(uri string) []byte {
	return append(codec.AppendString([]byte(`{"uri":`), uri), '}')
}

// GetPrompt gets a prompt filled in with arguments (prompts/get).
func (c *Client) GetPrompt(ctx context.Context, name string, arguments map[string]string) (*PromptResult, error) {
	params := codec.AppendString([]byte(`{"name":`), name)
	if len(arguments) > 0 {
		params = appendTexts(append(params, `,"arguments":`...), arguments)
	}
	params = append(params, '}')
	result, err := c.Request(ctx, codec.MethodPromptsGet, params, nil)
	if err != nil {
		return nil, err
	}
	return parsePromptResult(result)
}

// Ping asks the server for a sign of life (ping, or server/discover on the
// stateless revision, which has no ping).
func (c *Client) Ping(ctx context.Context) error {
	if c.era.Load() != nil {
		_, err := c.Request(ctx, codec.MethodDiscover, []byte("{}"), &CallOptions{NoCache: true})
		return err
	}
	_, err := c.Request(ctx, codec.MethodPing, nil, nil)
	return err
}
