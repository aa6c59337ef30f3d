package client

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/mcpengine/mcpengine/codec"
)

// Content is one block of a tool's result, of a prompt's message, or of a
// message in sampling.
type Content struct {
	// Type is "text", "image", "audio", "resource_link" or "resource"; in
	// sampling (2025-11-25) also "tool_use" or "tool_result".
	Type string
	Text string
	// Data is the base64 text of an image or a sound, as the server wrote it.
	Data string
	// MIMEType is that of Data or of the linked resource.
	MIMEType string
	// URI and Name are those of a linked resource.
	URI, Name string
	// Resource is the embedded resource, or nil.
	Resource *ResourceContents
	// ToolUse is the call of a tool that a model asks for, ToolOutcome what came
	// of one; nil in blocks of other types.
	ToolUse     *ToolUse
	ToolOutcome *ToolOutcome
	// Raw is the block as the server wrote it. In a block that is to be sent it
	// replaces all other fields.
	Raw []byte
}

// ToolUse is the inside of a tool_use block.
type ToolUse struct {
	// ID is what the block with the outcome names.
	ID, Name string
	// Input is the raw object of the arguments, {} where it is nil.
	Input []byte
}

// ToolOutcome is the inside of a tool_result block.
type ToolOutcome struct {
	ToolUseID string
	Content   []Content
	// Structured is the raw structuredContent, or nil.
	Structured []byte
	IsError    bool
}

// TextContent makes a block of text.
func TextContent(text string) Content { return Content{Type: "text", Text: text} }

func parseContent(raw []byte) Content {
	c := Content{
		Type:     codec.Text(raw, "type"),
		Text:     codec.Text(raw, "text"),
		Data:     codec.Text(raw, "data"),
		MIMEType: codec.Text(raw, "mimeType"),
		URI:      codec.Text(raw, "uri"),
		Name:     codec.Text(raw, "name"),
		Raw:      raw,
	}
	if r := codec.Member(raw, "resource"); codec.IsObject(r) {
		contents := parseResourceContents(r)
		c.Resource = &contents
	}
	switch c.Type {
	case "tool_use":
		c.ToolUse = &ToolUse{ID: codec.Text(raw, "id"), Name: c.Name, Input: codec.Member(raw, "input")}
	case "tool_result":
		c.ToolOutcome = &ToolOutcome{
			ToolUseID:  codec.Text(raw, "toolUseId"),
			Structured: codec.Member(raw, "structuredContent"),
			IsError:    codec.Bool(raw, "isError"),
		}
		codec.EachElement(codec.Member(raw, "content"), func(b []byte) bool {
			c.ToolOutcome.Content = append(c.ToolOutcome.Content, parseContent(b))
			return true
		})
	}
	return c
}

// parseBlocks reads one block or an array of them.
func parseBlocks(raw []byte) (blocks []Content, ok bool) {
	ok = true
	one := func(b []byte) bool {
		ok = ok && codec.IsObject(b)
		blocks = append(blocks, parseContent(b))
		return true
	}
	if codec.IsObject(raw) {
		one(raw)
		return blocks, ok
	}
	isArray := codec.EachElement(raw, one)
	return blocks, ok && isArray
}

// append appends the block as it is sent: text, image, audio or tool_use.
func (c *Content) append(dst []byte) ([]byte, error) {
	if c.Raw != nil {
		if !codec.Valid(c.Raw) || !codec.IsObject(bytes.TrimLeft(c.Raw, " \t\r\n")) {
			return nil, errors.New("client: the raw content is not a JSON object")
		}
		return append(dst, c.Raw...), nil
	}
	switch {
	case c.Type == "text":
		dst = codec.AppendString(append(dst, `{"type":"text","text":`...), c.Text)
	case c.Type == "image", c.Type == "audio":
		dst = codec.AppendString(append(dst, `{"type":`...), c.Type)
		dst = codec.AppendString(append(dst, `,"data":`...), c.Data)
		dst = codec.AppendString(append(dst, `,"mimeType":`...), c.MIMEType)
	case c.Type == "tool_use" && c.ToolUse != nil:
		input := c.ToolUse.Input
		if input == nil {
			input = []byte("{}")
		}
		if !codec.Valid(input) || !codec.IsObject(bytes.TrimLeft(input, " \t\r\n")) {
			return nil, errors.New("client: the input of a tool_use is not a JSON object")
		}
		dst = codec.AppendString(append(dst, `{"type":"tool_use","id":`...), c.ToolUse.ID)
		dst = codec.AppendString(append(dst, `,"name":`...), c.ToolUse.Name)
		dst = append(append(dst, `,"input":`...), input...)
	default:
		return nil, fmt.Errorf("client: content of type %q cannot be sent", c.Type)
	}
	return append(dst, '}'), nil
}

// ResourceContents is the content of a resource: text, or bytes in base64.
type ResourceContents struct {
	URI, MIMEType string
	Text          string
	// Blob is base64 text, as the server wrote it; IsBlob tells it from Text.
	Blob   string
	IsBlob bool
	Raw    []byte
}

func parseResourceContents(raw []byte) ResourceContents {
	blob, isBlob := codec.String(codec.Member(raw, "blob"))
	return ResourceContents{
		URI:      codec.Text(raw, "uri"),
		MIMEType: codec.Text(raw, "mimeType"),
		Text:     codec.Text(raw, "text"),
		Blob:     blob,
		IsBlob:   isBlob,
		Raw:      raw,
	}
}
