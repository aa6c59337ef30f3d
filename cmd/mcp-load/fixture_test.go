package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
	"github.com/mcpengine/mcpengine/transport/client"
)

// connectPipe connects a client to an engine in memory, and sees to it that
// both ends are gone at the end of the test.
func connectPipe(t *testing.T, e *engine.Engine, o *client.Options) *client.Client {
	t.Helper()
	pipe, served := transport.Pipe(t.Context(), e)
	c, err := client.ConnectPipe(t.Context(), pipe, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
		<-served
	})
	return c
}

// asked keeps what the server asked the client.
type asked struct {
	mu     sync.Mutex
	params map[string][]byte // guarded by mu: by method, the last one
}

// answer is a client's OnRequest: a user who accepts, and a model.
func (a *asked) answer(_ context.Context, method string, params []byte) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.params[method] = params
	switch method {
	case codec.MethodSample:
		return []byte(`{"role":"assistant","model":"test","content":{"type":"text","text":"forty-two"}}`), nil
	case codec.MethodElicit:
		return []byte(`{"action":"accept","content":{"username":"alice","email":"alice@example.com"}}`), nil
	}
	return nil, codec.ErrMethodNotFound
}

func (a *asked) get(method string) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.params[method]
}

const askable = `{"sampling":{},"elicitation":{}}`

func TestConformanceTools(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	s := newTestServer(t, &serveFlags{fixture: "conformance"})
	var asked asked
	asked.params = make(map[string][]byte)
	var mu sync.Mutex
	var logged []string
	c := connectPipe(t, s.engine, &client.Options{
		Capabilities: []byte(askable), OnRequest: asked.answer,
		OnNotification: func(method string, params []byte) {
			mu.Lock()
			defer mu.Unlock()
			logged = append(logged, codec.Text(params, "data"))
		},
	})
	for _, tt := range []struct {
		tool, args string
		types      string // of the content
		want       string // in the text
		fails      bool
	}{
		{tool: "test_simple_text", types: "text", want: "simple text"},
		{tool: "test_image_content", args: `{}`, types: "image"},
		{tool: "test_audio_content", args: `{}`, types: "audio"},
		{tool: "test_embedded_resource", args: `{}`, types: "resource"},
		{tool: "test_multiple_content_types", args: `{}`, types: "text image resource"},
		{tool: "test_error_handling", args: `{}`, types: "text", want: "intentionally", fails: true},
		{tool: "test_tool_with_progress", args: `{}`, types: "text", want: "done"},
		{tool: "test_tool_with_logging", args: `{}`, types: "text", want: "logged"},
		{tool: "test_sampling", args: `{"prompt":"What is it?"}`, types: "text", want: "forty-two"},
		{tool: "test_sampling", args: `{}`, types: "text", want: "prompt", fails: true},
		{tool: "test_elicitation", args: `{"message":"Who?"}`, types: "text", want: `accept {"username":"alice"`},
		{tool: "test_elicitation_sep1034_defaults", args: `{}`, types: "text", want: "accept"},
		{tool: "test_elicitation_sep1330_enums", args: `{}`, types: "text", want: "accept"},
		{tool: "test_reconnection", args: `{}`, types: "text", want: "resumed"},
		{tool: "json_schema_2020_12_tool", args: `{"contactMethod":"phone","phone":"1"}`, types: "text", want: "Valid"},
		{tool: "json_schema_2020_12_tool", args: `{"contactMethod":"phone","email":"a@b"}`, types: "text", want: "phone", fails: true},
		{tool: "json_schema_2020_12_tool", args: `{"email":"a@b","other":1}`, types: "text", want: "other", fails: true},
	} {
		var progress []float64
		r, err := c.CallTool(t.Context(), tt.tool, json.RawMessage(tt.args), &client.CallOptions{
			OnProgress: func(p client.Progress) { progress = append(progress, p.Progress) },
		})
		if err != nil {
			t.Errorf("%s %s: %v", tt.tool, tt.args, err)
			continue
		}
		var types []string
		for _, block := range r.Content {
			types = append(types, block.Type)
		}
		if got := strings.Join(types, " "); got != tt.types || r.IsError != tt.fails || !strings.Contains(r.Text(), tt.want) {
			t.Errorf("%s %s: got %s %q, isError %v, want %s with %q, %v", tt.tool, tt.args, got, r.Text(), r.IsError, tt.types, tt.want, tt.fails)
		}
		if tt.tool == "test_tool_with_progress" && !slices.Equal(progress, []float64{0, 50, 100}) {
			t.Errorf("%s reported %v", tt.tool, progress)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(logged) != 3 {
		t.Errorf("test_tool_with_logging sent %q, want three messages", logged)
	}
}

// TestConformanceContents looks into what is sent: the bytes of the pictures and
// sounds, and the forms.
func TestConformanceContents(t *testing.T) {
	for name, tt := range map[string]struct {
		got  []byte
		want string
	}{
		"picture": {redPixel(), "\x89PNG\r\n\x1a\n"},
		"sound":   {silence(), "RIFF\x34\x00\x00\x00WAVEfmt "},
	} {
		if !strings.HasPrefix(string(tt.got), tt.want) {
			t.Errorf("%s begins with %q, want %q", name, tt.got[:min(len(tt.got), 16)], tt.want)
		}
	}
	s := newTestServer(t, &serveFlags{fixture: "conformance"})
	asked := &asked{params: make(map[string][]byte)}
	c := connectPipe(t, s.engine, &client.Options{Capabilities: []byte(askable), OnRequest: asked.answer})
	for _, tt := range []struct{ tool, property, member, want string }{
		{"test_elicitation_sep1034_defaults", "name", "default", `"John Doe"`},
		{"test_elicitation_sep1034_defaults", "age", "default", `30`},
		{"test_elicitation_sep1034_defaults", "score", "default", `95.5`},
		{"test_elicitation_sep1034_defaults", "status", "default", `"active"`},
		{"test_elicitation_sep1034_defaults", "verified", "default", `true`},
		{"test_elicitation_sep1330_enums", "untitledSingle", "enum", `["option1","option2","option3"]`},
		{"test_elicitation_sep1330_enums", "legacyEnum", "enumNames", `["Option One","Option Two","Option Three"]`},
		{"test_elicitation_sep1330_enums", "untitledMulti", "items", `{"type":"string","enum":["option1","option2","option3"]}`},
		{"test_elicitation_sep1330_enums", "titledSingle", "enum", ``},
	} {
		if _, err := c.CallTool(t.Context(), tt.tool, nil, nil); err != nil {
			t.Fatal(err)
		}
		got := codec.Member(asked.get(codec.MethodElicit), "requestedSchema", "properties", tt.property, tt.member)
		if string(got) != tt.want {
			t.Errorf("%s asks for %s with %s %s, want %s", tt.tool, tt.property, tt.member, got, tt.want)
		}
	}
}

// TestFixtureLists holds what every fixture lists to what the suite asks for:
// names, descriptions, and a first tool that works without arguments.
func TestFixtureLists(t *testing.T) {
	for fixture, want := range map[string]struct {
		tools, prompts, resources, templates int
		readOnly                             int
	}{
		"demo":        {tools: 6, prompts: 1, resources: 1, templates: 1, readOnly: 6},
		"conformance": {tools: 14, prompts: 4, resources: 3, templates: 1, readOnly: 10},
	} {
		s := newTestServer(t, &serveFlags{fixture: fixture})
		c := connectPipe(t, s.engine, nil)
		tools, err1 := c.ListTools(t.Context())
		prompts, err2 := c.ListPrompts(t.Context())
		resources, err3 := c.ListResources(t.Context())
		templates, err4 := c.ListResourceTemplates(t.Context())
		if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
			t.Fatal(err1, err2, err3, err4)
		}
		readOnly := 0
		for _, tool := range tools {
			if tool.Description == "" {
				t.Errorf("%s: the tool %s has no description", fixture, tool.Name)
			}
			if tool.ReadOnly() {
				readOnly++
			}
		}
		for _, prompt := range prompts {
			if prompt.Description == "" {
				t.Errorf("%s: the prompt %s has no description", fixture, prompt.Name)
			}
		}
		for _, n := range []struct {
			what       string
			got, least int
		}{
			{"tools", len(tools), want.tools},
			{"prompts", len(prompts), want.prompts},
			{"resources", len(resources), want.resources},
			{"templates", len(templates), want.templates},
			{"read-only tools", readOnly, want.readOnly},
		} {
			if n.got < n.least {
				t.Errorf("%s lists %d %s, want at least %d", fixture, n.got, n.what, n.least)
			}
		}
		if r, err := c.ReadResource(t.Context(), resources[0].URI); err != nil || len(r.Contents) != 1 {
			t.Errorf("%s: reading %s: %+v, %v", fixture, resources[0].URI, r, err)
		}
	}
}

func TestConformanceResourcesAndPrompts(t *testing.T) {
	s := newTestServer(t, &serveFlags{fixture: "conformance"})
	c := connectPipe(t, s.engine, nil)
	for _, tt := range []struct{ uri, mime, text, blob string }{
		{uri: "test://static-text", mime: "text/plain", text: "static text"},
		{uri: "test://static-binary", mime: "image/png", blob: base64.StdEncoding.EncodeToString(redPixel())},
		{uri: "test://watched-resource", mime: "text/plain", text: "Watched"},
		{uri: "test://template/12%203/data", mime: "application/json", text: `"12 3"`},
	} {
		r, err := c.ReadResource(t.Context(), tt.uri)
		if err != nil || len(r.Contents) != 1 {
			t.Errorf("reading %s: %+v, %v", tt.uri, r, err)
			continue
		}
		got := r.Contents[0]
		if got.URI != tt.uri || got.MIMEType != tt.mime || !strings.Contains(got.Text, tt.text) || got.Blob != tt.blob {
			t.Errorf("reading %s: got %+v, want %s with %q", tt.uri, got, tt.mime, tt.text)
		}
	}
	for _, tt := range []struct {
		prompt string
		args   map[string]string
		types  string
		want   string // in the raw result
	}{
		{prompt: "test_simple_prompt", types: "text", want: "simple prompt"},
		{prompt: "test_prompt_with_arguments", args: map[string]string{"arg1": "one", "arg2": "two"}, types: "text", want: "arg1='one', arg2='two'"},
		{prompt: "test_prompt_with_embedded_resource", args: map[string]string{"resourceUri": "test://x"}, types: "resource text", want: "test://x"},
		{prompt: "test_prompt_with_image", types: "image text", want: "image/png"},
	} {
		r, err := c.GetPrompt(t.Context(), tt.prompt, tt.args)
		if err != nil {
			t.Errorf("%s: %v", tt.prompt, err)
			continue
		}
		var types []string
		for _, m := range r.Messages {
			types = append(types, m.Content.Type)
		}
		if got := strings.Join(types, " "); got != tt.types || !strings.Contains(string(r.Raw), tt.want) {
			t.Errorf("%s: got %s in %s, want %s with %q", tt.prompt, got, r.Raw, tt.types, tt.want)
		}
	}
	raw, err := c.Request(t.Context(), codec.MethodComplete, []byte(`{"ref":{"type":"ref/prompt","name":"test_prompt_with_arguments"},`+
		`"argument":{"name":"arg1","value":"testV"}}`), nil)
	if got := string(codec.Member(raw, "completion", "values")); err != nil || got != `["testValue1","testValue2"]` {
		t.Errorf("completing testV: got %s, %v", got, err)
	}
}

// TestReconnectionOverHTTP calls the tool that closes its stream: the client
// comes back for the answer.
func TestReconnectionOverHTTP(t *testing.T) {
	s := newTestServer(t, &serveFlags{fixture: "conformance"})
	web := httptest.NewServer(s.handler)
	defer web.Close()
	c, err := client.ConnectHTTP(t.Context(), web.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.CallTool(t.Context(), "test_reconnection", nil, nil)
	if err != nil || !strings.Contains(r.Text(), "resumed") {
		t.Errorf("test_reconnection: got %+v, %v", r, err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// TestDemoTools calls what the demo serves.
func TestDemoTools(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	s := newTestServer(t, &serveFlags{})
	c := connectPipe(t, s.engine, nil)
	for _, tt := range []struct {
		tool, args, want string
		fails            bool
	}{
		{tool: "echo", args: `{"message":"plain"}`, want: "plain"},
		{tool: "echo", args: `{"message":"a\"\u0041\n\ud83d\ude00"}`, want: "a\"A\n\U0001f600"},
		{tool: "echo", args: `{"message":1}`, want: "message", fails: true},
		{tool: "sleep", args: `{"ms":1}`, want: "slept"},
		{tool: "sleep", args: `{"ms":0}`, want: "slept"},
		{tool: "progress", args: `{"steps":3,"delayMs":1}`, want: "done"},
		{tool: "fail", args: `{}`, want: "always fails", fails: true},
		{tool: "big", args: `{"bytes":5}`, want: "xxxxx"},
		{tool: "big", args: `{"bytes":-1}`, want: "between", fails: true},
		{tool: "big", args: `{"bytes":67108865}`, want: "between", fails: true},
	} {
		r, err := c.CallTool(t.Context(), tt.tool, json.RawMessage(tt.args), nil)
		if err != nil {
			t.Errorf("%s %s: %v", tt.tool, tt.args, err)
			continue
		}
		if r.IsError != tt.fails || !strings.Contains(r.Text(), tt.want) {
			t.Errorf("%s %s: got %q, isError %v, want %q, %v", tt.tool, tt.args, r.Text(), r.IsError, tt.want, tt.fails)
		}
	}
	if _, err := c.CallTool(t.Context(), "panic", nil, nil); err == nil {
		t.Error("panic: got no error")
	}
	if r, err := c.ReadResource(t.Context(), "test://items/a%22b"); err != nil || r.Contents[0].Text != `{"id":"a\"b"}` {
		t.Errorf("reading an item: got %+v, %v", r, err)
	}
	if r, err := c.GetPrompt(t.Context(), "greeting", map[string]string{"name": "Ada"}); err != nil || !strings.Contains(string(r.Raw), "Ada") {
		t.Errorf("greeting: got %+v, %v", r, err)
	}
}
