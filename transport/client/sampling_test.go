package client_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client"
)

func TestSampleRequest(t *testing.T) {
	noLeaks(t)
	var got *client.SampleRequest
	_, p := connectPipe(t, &client.Options{SampleTools: true, OnSample: func(_ context.Context, r *client.SampleRequest) (*client.SampleResult, error) {
		got = r
		return onSample(t.Context(), r)
	}})
	p.ask(`"id":1,"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"a"}},` +
		`{"role":"assistant","content":[{"type":"text","text":"b"},{"type":"tool_use","id":"t1","name":"f","input":{"x":1}}]},` +
		`{"role":"user","content":{"type":"tool_result","toolUseId":"t1","content":[{"type":"text","text":"c"}],"structuredContent":{"y":2},"isError":true}}],` +
		`"maxTokens":100,"systemPrompt":"s","includeContext":"thisServer","temperature":0.5,"stopSequences":["x","y"],` +
		`"modelPreferences":{"hints":[]},"metadata":{"k":1},"tools":[{"name":"f","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"required"}}`)
	have := fmt.Sprintln(got.MaxTokens, got.SystemPrompt, got.IncludeContext, *got.Temperature, got.StopSequences, string(got.Preferences), string(got.Metadata),
		len(got.Tools), got.Tools[0].Name, got.ToolChoice, len(got.Messages))
	if want := `100 s thisServer 0.5 [x y] {"hints":[]} {"k":1} 1 f required 3` + "\n"; have != want {
		t.Errorf("request: got %s, want %s", have, want)
	}
	use, outcome := got.Messages[1].Content[1].ToolUse, got.Messages[2].Content[0].ToolOutcome
	have = fmt.Sprintln(got.Messages[0].Role, got.Messages[0].Content[0].Text, use.ID, use.Name, string(use.Input),
		outcome.ToolUseID, outcome.Content[0].Text, string(outcome.Structured), outcome.IsError)
	if want := `user a t1 f {"x":1} t1 c {"y":2} true` + "\n"; have != want {
		t.Errorf("messages: got %s, want %s", have, want)
	}
	p.ask(`"id":2,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}`)
	if got.IncludeContext != "none" || got.ToolChoice != "auto" || got.Temperature != nil || got.Tools != nil {
		t.Errorf("a request without options: got %+v", got)
	}
}

// TestSampleRules: what the client must refuse with -32602.
func TestSampleRules(t *testing.T) {
	noLeaks(t)
	_, p := connectPipe(t, &client.Options{OnSample: onSample, SampleTools: true})
	const (
		use    = `{"type":"tool_use","id":"%s","name":"f","input":{}}`
		result = `{"type":"tool_result","toolUseId":"%s","content":[]}`
		text   = `{"type":"text","text":"x"}`
	)
	message := func(role string, blocks ...string) string {
		return `{"role":"` + role + `","content":[` + strings.Join(blocks, ",") + `]}`
	}
	a, b := fmt.Sprintf(use, "a"), fmt.Sprintf(use, "b")
	ra, rb := fmt.Sprintf(result, "a"), fmt.Sprintf(result, "b")
	for _, test := range []struct {
		messages []string
		ok       bool
	}{
		{nil, true},
		{[]string{message("user", text, text)}, true},
		{[]string{message("user", text), message("assistant", text, a, b), message("user", rb, ra), message("assistant", text)}, true},
		{[]string{message("assistant", a), message("user", ra), message("assistant", b), message("user", rb)}, true},
		{[]string{message("assistant", a)}, false},
		{[]string{message("assistant", a), message("user", text)}, false},
		{[]string{message("assistant", a), message("user", text), message("user", ra)}, false},
		{[]string{message("assistant", a, b), message("user", ra)}, false},
		{[]string{message("assistant", a, b), message("user", ra, ra)}, false},
		{[]string{message("assistant", a), message("user", ra, rb)}, false},
		{[]string{message("assistant", a), message("user", ra, text)}, false},
		{[]string{message("assistant", a), message("assistant", ra)}, false},
		{[]string{message("user", a), message("user", ra)}, false},
		{[]string{message("user", ra)}, false},
		{[]string{message("system", text)}, false},
		{[]string{`{"role":"user"}`}, false},
		{[]string{`{"role":"user","content":"x"}`}, false},
		{[]string{`{"role":"user","content":["x"]}`}, false},
		{[]string{`7`}, false},
	} {
		messages := strings.Join(test.messages, ",")
		got := p.ask(`"id":1,"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[` + messages + `]}`)
		if ok := strings.HasPrefix(got, `"id":1,"result":`); ok != test.ok || !ok && !strings.Contains(got, `"code":-32602`) {
			t.Errorf("messages %s: got %s, want a result: %v", messages, got, test.ok)
		}
	}
	for _, params := range []string{
		`{"messages":[]}`, `{"messages":[],"maxTokens":"1"}`, `{"messages":[],"maxTokens":1.5}`, `{"maxTokens":1}`, `{"messages":{},"maxTokens":1}`,
		`{"messages":[],"maxTokens":1,"includeContext":"all"}`, `{"messages":[],"maxTokens":1,"includeContext":null}`,
		`{"messages":[],"maxTokens":1,"tools":{}}`, `{"messages":[],"maxTokens":1,"tools":[{"name":"f"}]}`,
		`{"messages":[],"maxTokens":1,"toolChoice":{"mode":"any"}}`, `{}`,
	} {
		if got := p.ask(`"id":1,"method":"sampling/createMessage","params":` + params); !strings.Contains(got, `"code":-32602`) {
			t.Errorf("params %s: got %s, want -32602", params, got)
		}
	}
}

func TestSampleResult(t *testing.T) {
	noLeaks(t)
	text := client.TextContent("a\nb")
	image := client.Content{Type: "image", Data: "AA==", MIMEType: "image/png"}
	audio := client.Content{Type: "audio", Data: "AA==", MIMEType: "audio/wav"}
	use := client.Content{Type: "tool_use", ToolUse: &client.ToolUse{ID: "t", Name: "f"}}
	const internal = `"error":{"code":-32603,"message":"Internal error"}`
	const wav = `{"role":"assistant","model":"m","content":{"type":"audio","data":"AA==","mimeType":"audio/wav"}}`
	for _, test := range []struct {
		revision string
		result   *client.SampleResult
		err      error
		want     string // a result where it begins with a brace
	}{
		{"2025-11-25", &client.SampleResult{Model: "m", Content: []client.Content{text}}, nil,
			`{"role":"assistant","model":"m","content":{"type":"text","text":"a\nb"}}`},
		{"2025-11-25", &client.SampleResult{Role: "user", Model: "m", StopReason: "endTurn", Content: []client.Content{image}}, nil,
			`{"role":"user","model":"m","stopReason":"endTurn","content":{"type":"image","data":"AA==","mimeType":"image/png"}}`},
		{"2025-11-25", &client.SampleResult{Model: "m", StopReason: "toolUse", Content: []client.Content{text, use}}, nil,
			`{"role":"assistant","model":"m","stopReason":"toolUse","content":[{"type":"text","text":"a\nb"},{"type":"tool_use","id":"t","name":"f","input":{}}]}`},
		{"2025-11-25", &client.SampleResult{Model: "m", Content: []client.Content{{Raw: []byte(`{"type":"text","text":"raw"}`)}}}, nil,
			`{"role":"assistant","model":"m","content":{"type":"text","text":"raw"}}`},
		{"2025-06-18", &client.SampleResult{Model: "m", Content: []client.Content{text, text}}, nil, internal},
		{"2025-06-18", &client.SampleResult{Model: "m", Content: []client.Content{use}}, nil, internal},
		{"2025-03-26", &client.SampleResult{Model: "m", Content: []client.Content{audio}}, nil, wav},
		{"2024-11-05", &client.SampleResult{Model: "m", Content: []client.Content{audio}}, nil, internal},
		{"2025-11-25", &client.SampleResult{Content: []client.Content{text}}, nil, internal},
		{"2025-11-25", &client.SampleResult{Model: "m"}, nil, internal},
		{"2025-11-25", &client.SampleResult{Model: "m", Content: []client.Content{{Type: "resource"}}}, nil, internal},
		{"2025-11-25", &client.SampleResult{Model: "m", Content: []client.Content{{Raw: []byte(`1`)}}}, nil, internal},
		{"2025-11-25", &client.SampleResult{Model: "m", Content: []client.Content{{Type: "tool_use", ToolUse: &client.ToolUse{Input: []byte(`{`)}}}}, nil, internal},
		{"2025-11-25", nil, nil, internal},
		{"2025-11-25", nil, client.ErrRejected, `"error":{"code":-1,"message":"User rejected sampling request"}`},
		{"2025-11-25", nil, fmt.Errorf("x: %w", codec.NewError(-7, "own")), `"error":{"code":-7,"message":"own"}`},
	} {
		_, p, _ := connectPipeAs(t, initResultOf(test.revision, `{}`), &client.Options{
			OnSample: func(context.Context, *client.SampleRequest) (*client.SampleResult, error) {
				return test.result, test.err
			},
		})
		want := `"id":1,` + test.want
		if strings.HasPrefix(test.want, "{") {
			want = `"id":1,"result":` + test.want
			validate(t, test.revision, "CreateMessageResult", test.want)
		}
		if got := p.ask(`"id":1,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}`); got != want {
			t.Errorf("%+v in %s: got %s, want %s", test.result, test.revision, got, want)
		}
	}
}
