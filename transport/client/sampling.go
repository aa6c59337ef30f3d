package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcpengine/mcpengine/codec"
)

// ErrRejected is what OnSample returns where the user does not allow the
// request: error -1 of the protocol.
var ErrRejected = codec.NewError(-1, "User rejected sampling request")

// SampleRequest is what a server asks of a language model with
// sampling/createMessage (section Sampling of the client features). Slices share
// the memory of Raw.
type SampleRequest struct {
	Messages  []SampleMessage
	MaxTokens int64
	// SystemPrompt, IncludeContext, Preferences and StopSequences are wishes
	// which the client may change or leave aside.
	SystemPrompt string
	// IncludeContext is "none", "thisServer" or "allServers".
	IncludeContext string
	// Preferences is the raw modelPreferences, or nil.
	Preferences   []byte
	Temperature   *float64
	StopSequences []string
	// Metadata is a raw object for the provider of the model, or nil.
	Metadata []byte
	// Tools are those that the model may ask to use; ToolChoice is "auto",
	// "required" or "none". Both need Options.SampleTools.
	Tools      []Tool
	ToolChoice string
	// Raw is the whole of params.
	Raw []byte
}

// SampleMessage is one message of a conversation; Role is "user" or "assistant".
type SampleMessage struct {
	Role string
	// Content has one block, or several from 2025-11-25 on.
	Content []Content
	Raw     []byte
}

// SampleResult is the answer of a language model.
type SampleResult struct {
	// Role is "assistant" where it is empty.
	Role string
	// Content has blocks of text, images, sound or tool_use. Before 2025-11-25
	// it must be one block, and no tool_use.
	Content []Content
	// Model is the name of the model, which must not be empty.
	Model string
	// StopReason is "endTurn", "stopSequence", "maxTokens", "toolUse" or one of
	// the provider's; it is left out where it is empty.
	StopReason string
}

// sample answers sampling/createMessage by OnSample.
func (c *Client) sample(ctx context.Context, r *serverRequest) ([]byte, error) {
	f := c.features.Load()
	request, err := parseSample(r.params, f)
	if err != nil {
		return nil, invalid(err)
	}
	result, err := c.o.OnSample(ctx, request)
	switch {
	case err != nil:
		return nil, err
	case result == nil:
		return nil, errors.New("client: OnSample returned neither a result nor an error")
	}
	return result.encode(f.revision)
}

// invalid makes the error for params that are wrong.
func invalid(err error) error {
	return codec.NewError(codec.CodeInvalidParams, "Invalid params: "+err.Error())
}

// parseSample reads and checks the params of sampling/createMessage.
func parseSample(params []byte, f *features) (*SampleRequest, error) {
	r := &SampleRequest{
		SystemPrompt:   codec.Text(params, "systemPrompt"),
		IncludeContext: "none",
		Preferences:    codec.Member(params, "modelPreferences"),
		Metadata:       codec.Member(params, "metadata"),
		ToolChoice:     "auto",
		Raw:            params,
	}
	var ok bool
	if r.MaxTokens, ok = codec.Int(params, "maxTokens"); !ok {
		return nil, errors.New("maxTokens must be an integer")
	}
	if include := codec.Member(params, "includeContext"); include != nil {
		r.IncludeContext, _ = codec.String(include)
		if !slices.Contains([]string{"none", "thisServer", "allServers"}, r.IncludeContext) {
			return nil, fmt.Errorf("includeContext %s is unknown", excerpt(include))
		}
	}
	if t, ok := codec.Number(params, "temperature"); ok {
		r.Temperature = &t
	}
	codec.EachElement(codec.Member(params, "stopSequences"), func(v []byte) bool {
		s, _ := codec.String(v)
		r.StopSequences = append(r.StopSequences, s)
		return true
	})
	if err := r.parseTools(f); err != nil {
		return nil, err
	}
	if err := r.parseMessages(); err != nil {
		return nil, err
	}
	return r, checkToolTurns(r.Messages)
}

// parseTools reads tools and toolChoice, which a client that did not declare
// sampling.tools must refuse.
func (r *SampleRequest) parseTools(f *features) error {
	tools, choice := codec.Member(r.Raw, "tools"), codec.Member(r.Raw, "toolChoice")
	if tools == nil && choice == nil {
		return nil
	}
	if !f.sampleTools {
		return errors.New("the client did not declare sampling.tools")
	}
	if tools != nil {
		ok := codec.EachElement(tools, func(t []byte) bool {
			r.Tools = append(r.Tools, parseTool(t))
			return codec.Text(t, "name") != "" && codec.IsObject(codec.Member(t, "inputSchema"))
		})
		if !ok {
			return errors.New("tools must be an array of tools")
		}
	}
	if mode := codec.Member(choice, "mode"); mode != nil {
		r.ToolChoice, _ = codec.String(mode)
		if !slices.Contains([]string{"auto", "required", "none"}, r.ToolChoice) {
			return fmt.Errorf("toolChoice.mode %s is unknown", excerpt(mode))
		}
	}
	return nil
}

func (r *SampleRequest) parseMessages() error {
	var err error
	ok := codec.EachElement(codec.Member(r.Raw, "messages"), func(v []byte) bool {
		m := SampleMessage{Role: codec.Text(v, "role"), Raw: v}
		var blocks bool
		m.Content, blocks = parseBlocks(codec.Member(v, "content"))
		at := len(r.Messages)
		r.Messages = append(r.Messages, m)
		switch {
		case m.Role != "user" && m.Role != "assistant":
			err = fmt.Errorf("messages[%d].role must be user or assistant", at)
		case !blocks:
			err = fmt.Errorf("messages[%d].content must be a content block or an array of them", at)
		}
		return err == nil
	})
	if err == nil && !ok {
		err = errors.New("messages must be an array")
	}
	return err
}

// checkToolTurns holds a conversation to the rules of section Message Content
// Constraints: results of tools stand alone in a message of the user's, and
// every use of a tool is answered by the message right after it.
func checkToolTurns(messages []SampleMessage) error {
	var open []string // the ids that the next message must answer
	for i, m := range messages {
		uses, results, others := toolIDs(m.Content)
		switch {
		case len(results) > 0 && (m.Role != "user" || others || len(uses) > 0):
			return fmt.Errorf("messages[%d] mixes tool results with other content", i)
		case len(uses) > 0 && m.Role != "assistant":
			return fmt.Errorf("messages[%d] uses a tool, which only the assistant does", i)
		case !sameSet(open, results) && len(open) > 0:
			return errors.New("tool result missing in request")
		case !sameSet(open, results):
			return fmt.Errorf("messages[%d] has results of tools that were not used", i)
		}
		open = uses
	}
	if len(open) > 0 {
		return errors.New("tool result missing in request")
	}
	return nil
}

// toolIDs gives the ids of the uses and of the results among blocks, and
// whether there are blocks of another type.
func toolIDs(blocks []Content) (uses, results []string, others bool) {
	for i := range blocks {
		switch b := &blocks[i]; {
		case b.ToolUse != nil:
			uses = append(uses, b.ToolUse.ID)
		case b.ToolOutcome != nil:
			results = append(results, b.ToolOutcome.ToolUseID)
		default:
			others = true
		}
	}
	return uses, results, others
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// encode makes the result as the revision has it.
func (r *SampleResult) encode(revision string) ([]byte, error) {
	role := r.Role
	orDefault(&role, "assistant")
	switch {
	case r.Model == "":
		return nil, errors.New("client: OnSample named no model")
	case len(r.Content) == 0:
		return nil, errors.New("client: OnSample gave no content")
	case len(r.Content) > 1 && revision < revision20251125:
		return nil, fmt.Errorf("client: OnSample gave %d blocks of content; revision %s has one", len(r.Content), revision)
	}
	out := codec.AppendString([]byte(`{"role":`), role)
	out = codec.AppendString(append(out, `,"model":`...), r.Model)
	if r.StopReason != "" {
		out = codec.AppendString(append(out, `,"stopReason":`...), r.StopReason)
	}
	out = append(out, `,"content":`...)
	if len(r.Content) > 1 {
		out = append(out, '[')
	}
	for i := range r.Content {
		if i > 0 {
			out = append(out, ',')
		}
		b := &r.Content[i]
		switch {
		case b.Type == "tool_use" && revision < revision20251125, b.Type == "audio" && revision < revision20250326:
			return nil, fmt.Errorf("client: OnSample gave a block of type %s, which revision %s does not have", b.Type, revision)
		}
		var err error
		if out, err = b.append(out); err != nil {
			return nil, err
		}
	}
	if len(r.Content) > 1 {
		out = append(out, ']')
	}
	return append(out, '}'), nil
}
