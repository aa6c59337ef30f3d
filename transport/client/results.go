package client

import (
	"fmt"
	"strings"

	"github.com/mcpengine/mcpengine/codec"
)

// The structs of this file give the members that callers ask for most. Raw is
// the whole object as the server wrote it; slices share its memory.

// Tool is an entry of tools/list.
type Tool struct {
	Name, Title, Description string
	// InputSchema, OutputSchema and Annotations are raw objects, or nil.
	InputSchema, OutputSchema, Annotations []byte
	// TaskSupport tells whether CallToolAsTask may be used (2025-11-25):
	// "forbidden", which "" means too, "optional" or "required".
	TaskSupport string
	Raw         []byte
}

// ReadOnly reports whether the tool declares by readOnlyHint that it changes
// nothing. It is a hint of the server's, and false where there is none.
func (t *Tool) ReadOnly() bool { return codec.Bool(t.Annotations, "readOnlyHint") }

func parseTool(raw []byte) Tool {
	return Tool{
		Name:         codec.Text(raw, "name"),
		Title:        codec.Text(raw, "title"),
		Description:  codec.Text(raw, "description"),
		InputSchema:  codec.Member(raw, "inputSchema"),
		OutputSchema: codec.Member(raw, "outputSchema"),
		Annotations:  codec.Member(raw, "annotations"),
		TaskSupport:  codec.Text(raw, "execution", "taskSupport"),
		Raw:          raw,
	}
}

// Resource is an entry of resources/list.
type Resource struct {
	URI, Name, Title, Description, MIMEType string
	Raw                                     []byte
}

func parseResource(raw []byte) Resource {
	return Resource{
		URI:         codec.Text(raw, "uri"),
		Name:        codec.Text(raw, "name"),
		Title:       codec.Text(raw, "title"),
		Description: codec.Text(raw, "description"),
		MIMEType:    codec.Text(raw, "mimeType"),
		Raw:         raw,
	}
}

// ResourceTemplate is an entry of resources/templates/list.
type ResourceTemplate struct {
	// URITemplate is a template as RFC 6570 defines it.
	URITemplate                        string
	Name, Title, Description, MIMEType string
	Raw                                []byte
}

func parseResourceTemplate(raw []byte) ResourceTemplate {
	return ResourceTemplate{
		URITemplate: codec.Text(raw, "uriTemplate"),
		Name:        codec.Text(raw, "name"),
		Title:       codec.Text(raw, "title"),
		Description: codec.Text(raw, "description"),
		MIMEType:    codec.Text(raw, "mimeType"),
		Raw:         raw,
	}
}

// Prompt is an entry of prompts/list.
type Prompt struct {
	Name, Title, Description string
	Arguments                []PromptArgument
	Raw                      []byte
}

// PromptArgument is an argument that a prompt takes.
type PromptArgument struct {
	Name, Title, Description string
	Required                 bool
}

func parsePrompt(raw []byte) Prompt {
	p := Prompt{
		Name:        codec.Text(raw, "name"),
		Title:       codec.Text(raw, "title"),
		Description: codec.Text(raw, "description"),
		Raw:         raw,
	}
	codec.EachElement(codec.Member(raw, "arguments"), func(a []byte) bool {
		p.Arguments = append(p.Arguments, PromptArgument{
			Name:        codec.Text(a, "name"),
			Title:       codec.Text(a, "title"),
			Description: codec.Text(a, "description"),
			Required:    codec.Bool(a, "required"),
		})
		return true
	})
	return p
}

// ToolResult is the result of tools/call.
type ToolResult struct {
	Content []Content
	// Structured is the raw structuredContent, or nil.
	Structured []byte
	// IsError tells that the tool failed; Content then says why.
	IsError bool
	Raw     []byte
}

// Text gives the text blocks, joined with line feeds.
func (r *ToolResult) Text() string {
	var parts []string
	for i := range r.Content {
		if r.Content[i].Type == "text" {
			parts = append(parts, r.Content[i].Text)
		}
	}
	return strings.Join(parts, "\n")
}

func parseToolResult(raw []byte) (*ToolResult, error) {
	r := &ToolResult{
		Structured: codec.Member(raw, "structuredContent"),
		IsError:    codec.Bool(raw, "isError"),
		Raw:        raw,
	}
	ok := codec.EachElement(codec.Member(raw, "content"), func(b []byte) bool {
		r.Content = append(r.Content, parseContent(b))
		return true
	})
	if !ok {
		return nil, fmt.Errorf("%w: tools/call gave no content: %s", ErrMalformed, excerpt(raw))
	}
	return r, nil
}

// ReadResult is the result of resources/read.
type ReadResult struct {
	Contents []ResourceContents
	Raw      []byte
}

func parseReadResult(raw []byte) (*ReadResult, error) {
	r := &ReadResult{Raw: raw}
	ok := codec.EachElement(codec.Member(raw, "contents"), func(b []byte) bool {
		r.Contents = append(r.Contents, parseResourceContents(b))
		return true
	})
	if !ok {
		return nil, fmt.Errorf("%w: resources/read gave no contents: %s", ErrMalformed, excerpt(raw))
	}
	return r, nil
}

// PromptResult is the result of prompts/get.
type PromptResult struct {
	Description string
	Messages    []PromptMessage
	Raw         []byte
}

// PromptMessage is one message of a prompt; Role is "user" or "assistant".
type PromptMessage struct {
	Role    string
	Content Content
}

func parsePromptResult(raw []byte) (*PromptResult, error) {
	r := &PromptResult{Description: codec.Text(raw, "description"), Raw: raw}
	ok := codec.EachElement(codec.Member(raw, "messages"), func(b []byte) bool {
		r.Messages = append(r.Messages, PromptMessage{
			Role:    codec.Text(b, "role"),
			Content: parseContent(codec.Member(b, "content")),
		})
		return true
	})
	if !ok {
		return nil, fmt.Errorf("%w: prompts/get gave no messages: %s", ErrMalformed, excerpt(raw))
	}
	return r, nil
}
