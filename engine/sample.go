package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// SampleRequest asks the client's model for a message.
type SampleRequest struct {
	// Key names the question within its call, where answers come with a
	// retry of the request (2026-07-28). Default: its position in the call.
	Key           string
	Messages      []SampleMessage
	MaxTokens     int // required
	SystemPrompt  string
	Temperature   *float64
	StopSequences []string
	// IncludeContext is "none", "thisServer" or "allServers"; the last two
	// need the client's sampling.context from 2025-11-25 on.
	IncludeContext string
	Preferences    json.RawMessage // modelPreferences
	Metadata       json.RawMessage // for the model's provider
	// Tools that the model may use, and how: "auto", "required" or "none".
	// They need the client's sampling.tools (2025-11-25).
	Tools      []Tool
	ToolChoice string
	// AsTask lets a client that can (2025-11-25) treat it as a task, so that
	// the question outlives a broken connection.
	AsTask bool
	// Timeout bounds the wait. Default: DefaultAskTimeout.
	Timeout time.Duration
}

// SampleMessage is a turn of the conversation. More than one block of content,
// ToolUse and ToolResult need 2025-11-25.
type SampleMessage struct {
	Role    string // "user" or "assistant"
	Content []Content
}

// ToolUse is a block in which the model wants a tool called.
type ToolUse struct {
	ID    string
	Name  string
	Input json.RawMessage // an object
	Meta  Meta
}

// ToolResult is a block that answers a ToolUse.
type ToolResult struct {
	ToolUseID  string
	Content    []Content
	Structured json.RawMessage // an object
	IsError    bool
	Meta       Meta
}

func (t ToolUse) appendTo(dst []byte, rev Revision) []byte {
	dst = append(dst, `{"type":"tool_use","id":`...)
	dst = codec.AppendString(dst, t.ID)
	dst = append(dst, `,"name":`...)
	dst = codec.AppendString(dst, t.Name)
	dst = append(dst, `,"input":`...)
	if t.Input == nil {
		t.Input = emptyObject
	}
	dst = append(dst, t.Input...)
	return append(appendMeta(dst, rev, t.Meta), '}')
}

func (t ToolResult) appendTo(dst []byte, rev Revision) []byte {
	dst = append(dst, `{"type":"tool_result","toolUseId":`...)
	dst = codec.AppendString(dst, t.ToolUseID)
	dst = append(dst, `,"content":`...)
	dst = appendBlocks(dst, t.Content, rev)
	if t.Structured != nil {
		dst = append(dst, `,"structuredContent":`...)
		dst = append(dst, t.Structured...)
	}
	if t.IsError {
		dst = append(dst, `,"isError":true`...)
	}
	return append(appendMeta(dst, rev, t.Meta), '}')
}

// appendBlocks appends an array of content.
func appendBlocks(dst []byte, blocks []Content, rev Revision) []byte {
	dst = append(dst, '[')
	for i, block := range blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = block.appendTo(dst, rev)
	}
	return append(dst, ']')
}

// SampleResult is the message that the model gave.
type SampleResult struct {
	Role       string
	Model      string
	StopReason string            // "endTurn", "stopSequence", "maxTokens", "toolUse", or another word
	Content    []json.RawMessage // raw blocks, one or several
}

// Text gives the texts among the blocks, one after another.
func (r *SampleResult) Text() string {
	var text strings.Builder
	for _, block := range r.Content {
		if codec.Text(block, "type") == "text" {
			text.WriteString(codec.Text(block, "text"))
		}
	}
	return text.String()
}

// ToolUses gives the blocks in which the model wants a tool called.
func (r *SampleResult) ToolUses() []ToolUse {
	var uses []ToolUse
	for _, block := range r.Content {
		if codec.Text(block, "type") == "tool_use" {
			uses = append(uses, ToolUse{
				ID: codec.Text(block, "id"), Name: codec.Text(block, "name"),
				Input: codec.Member(block, "input"), Meta: codec.Member(block, "_meta"),
			})
		}
	}
	return uses
}

// Sample asks the client's model and waits for the answer. A client that did
// not declare sampling, or what the request needs of it, gives a
// *CapabilityError, with nothing sent.
func (c *Call) Sample(ctx context.Context, r *SampleRequest) (*SampleResult, error) {
	n := c.client()
	if err := n.maySample(r); err != nil {
		return nil, err
	}
	params, err := r.params(n.rev)
	if err != nil {
		return nil, err
	}
	if c.session == nil {
		var result *SampleResult
		err := c.input(r.Key, codec.MethodSample, params, func(answer []byte) (err error) {
			result, err = readSample(answer)
			return err
		})
		return result, err
	}
	ask := c.askClient
	if r.AsTask && n.clientHas("tasks", "requests", "sampling", "createMessage") {
		ask = c.askAsTask
	}
	raw, err := ask(ctx, codec.MethodSample, params, r.Timeout)
	if err != nil {
		return nil, err
	}
	return readSample(raw)
}

// maySample tells whether the client can be asked so.
func (n *negotiated) maySample(r *SampleRequest) error {
	switch {
	case !n.clientHas("sampling"):
		return &CapabilityError{"sampling"}
	case (len(r.Tools) > 0 || r.ToolChoice != "") && (n.rev < Rev20251125 || !n.clientHas("sampling", "tools")):
		return &CapabilityError{"sampling.tools"}
	case r.IncludeContext != "" && r.IncludeContext != "none" && n.rev >= Rev20251125 && !n.clientHas("sampling", "context"):
		return &CapabilityError{"sampling.context"}
	}
	return nil
}

// params renders the request for a revision.
func (r *SampleRequest) params(rev Revision) ([]byte, error) {
	if r.MaxTokens <= 0 || len(r.Messages) == 0 {
		return nil, errors.New("engine: a sampling request has messages and MaxTokens")
	}
	dst := []byte(`{"messages":[`)
	for i, m := range r.Messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = m.appendTo(dst, rev); err != nil {
			return nil, err
		}
	}
	dst = append(dst, `],"maxTokens":`...)
	dst = strconv.AppendInt(dst, int64(r.MaxTokens), 10)
	dst = appendMember(dst, "systemPrompt", r.SystemPrompt)
	dst = appendMember(dst, "includeContext", r.IncludeContext)
	if r.Temperature != nil {
		dst = append(dst, `,"temperature":`...)
		dst = codec.AppendFloat(dst, *r.Temperature)
	}
	if len(r.StopSequences) > 0 {
		dst = append(dst, `,"stopSequences":[`...)
		for i, s := range r.StopSequences {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = codec.AppendString(dst, s)
		}
		dst = append(dst, ']')
	}
	dst = appendRaw(dst, "modelPreferences", r.Preferences)
	dst = appendRaw(dst, "metadata", r.Metadata)
	if len(r.Tools) > 0 {
		dst = append(dst, `,"tools":[`...)
		for i := range r.Tools {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = r.Tools[i].appendTo(dst, rev)
		}
		dst = append(dst, ']')
	}
	if r.ToolChoice != "" {
		dst = append(dst, `,"toolChoice":{"mode":`...)
		dst = append(codec.AppendString(dst, r.ToolChoice), '}')
	}
	return wellFormed(append(dst, '}'))
}

// wellFormed gives params back, unless what a handler put into them raw breaks
// them.
func wellFormed(params []byte) ([]byte, error) {
	if !codec.Valid(params) {
		return nil, errors.New("engine: what is asked of the client is not valid JSON")
	}
	return params, nil
}

// appendRaw appends a raw member after others, unless it is nil.
func appendRaw(dst []byte, name string, raw json.RawMessage) []byte {
	if raw == nil {
		return dst
	}
	dst = append(append(append(dst, `,"`...), name...), `":`...)
	return appendCompact(dst, raw)
}

// appendTo renders a message. Before 2025-11-25 its content is one block.
func (m *SampleMessage) appendTo(dst []byte, rev Revision) ([]byte, error) {
	dst = append(dst, `{"role":`...)
	dst = codec.AppendString(dst, m.Role)
	dst = append(dst, `,"content":`...)
	for _, block := range m.Content {
		switch block.(type) {
		case ResourceLink, EmbeddedResource:
			return nil, errors.New("engine: a message for a model holds no resources")
		}
	}
	if len(m.Content) == 1 {
		if rev < Rev20251125 {
			switch m.Content[0].(type) {
			case ToolUse, ToolResult:
				return nil, fmt.Errorf("engine: the client's revision %v has no tools in sampling", rev)
			}
		}
		return append(m.Content[0].appendTo(dst, rev), '}'), nil
	}
	if rev < Rev20251125 {
		return nil, fmt.Errorf("engine: the client's revision %v takes one block of content in a message", rev)
	}
	return append(appendBlocks(dst, m.Content, rev), '}'), nil
}

// readSample reads the answer.
func readSample(raw []byte) (*SampleResult, error) {
	r := &SampleResult{
		Role: codec.Text(raw, "role"), Model: codec.Text(raw, "model"), StopReason: codec.Text(raw, "stopReason"),
	}
	content := codec.Member(raw, "content")
	if codec.IsObject(content) {
		r.Content = []json.RawMessage{content}
		return r, nil
	}
	if !codec.EachElement(content, func(block []byte) bool { r.Content = append(r.Content, block); return true }) {
		return nil, errors.New("engine: the client's answer to a sampling request has no content")
	}
	return r, nil
}

// Root is a place that the client lets the server work in.
type Root struct {
	URI  string // file:…
	Name string
}

// Roots asks the client for its roots. A client that did not declare them gives
// a *CapabilityError, with nothing sent.
func (c *Call) Roots(ctx context.Context) ([]Root, error) { return c.roots(ctx, "") }

func (c *Call) roots(ctx context.Context, key string) ([]Root, error) {
	if !c.client().clientHas("roots") {
		return nil, &CapabilityError{"roots"}
	}
	if c.session == nil {
		var roots []Root
		err := c.input(key, codec.MethodRootsList, nil, func(answer []byte) (err error) {
			roots, err = readRoots(answer)
			return err
		})
		return roots, err
	}
	raw, err := c.askClient(ctx, codec.MethodRootsList, nil, 0)
	if err != nil {
		return nil, err
	}
	return readRoots(raw)
}

func readRoots(raw []byte) ([]Root, error) {
	var roots []Root
	if !codec.EachElement(codec.Member(raw, "roots"), func(root []byte) bool {
		roots = append(roots, Root{URI: codec.Text(root, "uri"), Name: codec.Text(root, "name")})
		return true
	}) {
		return nil, errors.New("engine: the client's answer has no list of roots")
	}
	return roots, nil
}
