package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport/client"
)

// toolCall forwards calls of a tool. Arguments and result pass as they are; progress passes while the call runs, and a
// cancelled call is cancelled at the upstream.
func (u *upstream) toolCall(tool string) engine.RawHandler {
	return func(ctx context.Context, call *engine.Call, args, out []byte) ([]byte, error) {
		params := callParams(tool, args)
		o := &client.CallOptions{OnProgress: func(p client.Progress) {
			call.ProgressMessage(ctx, p.Progress, p.Total, p.Message)
		}}
		err := u.do(ctx, func(c *client.Client) error {
			result, err := c.Request(ctx, codec.MethodToolsCall, params, o)
			if err != nil {
				return err
			}
			out = append(out, result...)
			return nil
		})
		return out, u.explain(err)
	}
}

// promptGet forwards requests for a prompt.
func (u *upstream) promptGet(name string) engine.PromptHandler {
	return func(ctx context.Context, _ *engine.Call, args map[string]string) (*engine.PromptResult, error) {
		var got *client.PromptResult
		err := u.do(ctx, func(c *client.Client) (err error) {
			got, err = c.GetPrompt(ctx, name, args)
			return err
		})
		if err != nil {
			return nil, u.explain(err)
		}
		result := &engine.PromptResult{Description: got.Description, Meta: codec.Member(got.Raw, "_meta")}
		for _, m := range got.Messages {
			content, err := contentOf(&m.Content)
			if err != nil {
				return nil, u.explain(err)
			}
			result.Messages = append(result.Messages, engine.PromptMessage{Role: m.Role, Content: content})
		}
		return result, nil
	}
}

// resourceRead forwards reads of a resource.
func (u *upstream) resourceRead(ctx context.Context, _ *engine.Call, uri string) ([]engine.ResourceContents, error) {
	var got *client.ReadResult
	err := u.do(ctx, func(c *client.Client) (err error) {
		got, err = c.ReadResource(ctx, uri)
		return err
	})
	if err != nil {
		return nil, u.explain(err)
	}
	contents := make([]engine.ResourceContents, len(got.Contents))
	for i := range got.Contents {
		if contents[i], err = resourceOf(&got.Contents[i]); err != nil {
			return nil, u.explain(err)
		}
	}
	return contents, nil
}

// explain says whose fault an error is. What the upstream answered passes as it is.
func (u *upstream) explain(err error) error {
	if wire := (*codec.Error)(nil); err == nil || errors.As(err, &wire) || errors.Is(err, errUnavailable) {
		return err
	}
	return fmt.Errorf("upstream %s: %w", u.spec.Name, err)
}

// contentOf gives a block of a prompt as the engine has it.
func contentOf(c *client.Content) (engine.Content, error) {
	switch c.Type {
	case "text":
		return &engine.Text{Text: c.Text}, nil
	case "resource_link":
		return &engine.ResourceLink{URI: c.URI, Name: c.Name, MIMEType: c.MIMEType}, nil
	case "resource":
		if c.Resource == nil {
			return nil, errors.New("an embedded resource without contents")
		}
		r, err := resourceOf(c.Resource)
		return &engine.EmbeddedResource{Resource: r}, err
	}
	data, err := base64.StdEncoding.DecodeString(c.Data)
	switch {
	case err != nil:
		return nil, err
	case c.Type == "image":
		return &engine.Image{Data: data, MIMEType: c.MIMEType}, nil
	case c.Type == "audio":
		return &engine.Audio{Data: data, MIMEType: c.MIMEType}, nil
	}
	return nil, fmt.Errorf("content of unknown type %q", c.Type)
}

// resourceOf gives the contents of a resource as the engine has them.
func resourceOf(c *client.ResourceContents) (engine.ResourceContents, error) {
	r := engine.ResourceContents{URI: c.URI, MIMEType: c.MIMEType, Text: c.Text, Meta: codec.Member(c.Raw, "_meta")}
	if !c.IsBlob {
		return r, nil
	}
	blob, err := base64.StdEncoding.DecodeString(c.Blob)
	r.Blob = append([]byte{}, blob...) // not nil, also where it is empty
	return r, err
}
