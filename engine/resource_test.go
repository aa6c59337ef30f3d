package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

func TestReadResource(t *testing.T) {
	e, l := newEngine(t, nil)
	read := func(uri string, contents []engine.ResourceContents, err error) {
		must(t, e.AddResource(engine.Resource{URI: uri, Name: "n", MIMEType: "text/plain"},
			func(_ context.Context, c *engine.Call, got string) ([]engine.ResourceContents, error) {
				if got != uri || c.Name() != uri {
					t.Errorf("uri: got %q and Name %q, want %q", got, c.Name(), uri)
				}
				return contents, err
			}))
	}
	read("a:text", []engine.ResourceContents{{Text: "hi\n"}}, nil)
	read("a:blob", []engine.ResourceContents{{Blob: []byte{0xfb, 0xff, 0}, MIMEType: "image/png"}, {URI: "a:other", Text: ""}}, nil)
	read("a:none", nil, nil)
	read("a:gone", nil, fmt.Errorf("looked: %w", engine.ErrResourceNotFound))
	read("a:fails", nil, errors.New("cannot open /home/me/a"))
	read("a:wire", nil, codec.NewError(-32602, "ask again"))
	must(t, e.AddResourceTemplate(engine.ResourceTemplate{URITemplate: "a:{first}/{second}", Name: "n"},
		func(_ context.Context, _ *engine.Call, uri string, vars map[string]string) ([]engine.ResourceContents, error) {
			return []engine.ResourceContents{{Text: uri + " " + vars["first"] + " " + vars["second"]}}, nil
		}))
	must(t, e.AddResourceTemplate(engine.ResourceTemplate{URITemplate: "a:{any}/x", Name: "n"},
		func(context.Context, *engine.Call, string, map[string]string) ([]engine.ResourceContents, error) {
			t.Error("the template that was registered later serves a URI of both")
			return nil, nil
		}))
	p := connect(t, e, engine.Rev20251125)
	for _, c := range []struct{ params, want string }{
		{`{"uri":"a:text"}`, `{"contents":[{"uri":"a:text","mimeType":"text/plain","text":"hi\n"}]}`},
		{`{"uri":"a:blob"}`, `{"contents":[{"uri":"a:blob","mimeType":"image/png","blob":"+/8A"},{"uri":"a:other","mimeType":"text/plain","text":""}]}`},
		{`{"uri":"a:none"}`, `{"contents":[]}`},
		{`{"uri":"a:one/x"}`, `{"contents":[{"uri":"a:one/x","text":"a:one/x one x"}]}`},
		{`{"uri":"a:a%20b/c"}`, `{"contents":[{"uri":"a:a%20b/c","text":"a:a%20b/c a b c"}]}`},
		{`{"uri":"a:gone"}`, `-32002 Resource not found {"uri":"a:gone"}`},
		{`{"uri":"a:\"x"}`, `-32002 Resource not found {"uri":"a:\"x"}`},
		{`{"uri":"A:text"}`, `-32002 Resource not found {"uri":"A:text"}`},
		{`{"uri":"a:fails"}`, `-32603 Internal error`},
		{`{"uri":"a:wire"}`, `-32602 ask again`},
		{`{}`, `-32602 Invalid params: "uri" must be a string`},
		{`{"uri":1}`, `-32602 Invalid params: "uri" must be a string`},
		{``, `-32602 Invalid params: "uri" must be a string`},
	} {
		check(t, "resources/read "+c.params, p.result(codec.MethodResourcesRead, c.params), c.want)
	}
	if got := l.String(); got == "" {
		t.Error("the error of a resource was not logged")
	}
	for _, rev := range legacy {
		p := connect(t, e, rev)
		check(t, rev.String(), p.result(codec.MethodResourcesRead, `{"uri":"b:"}`), `-32002 Resource not found {"uri":"b:"}`)
	}
}

func TestPrompts(t *testing.T) {
	e, _ := newEngine(t, nil)
	must(t, e.AddPrompt(engine.Prompt{Name: "greet", Arguments: []engine.PromptArgument{{Name: "who", Required: true}, {Name: "how"}}},
		func(_ context.Context, c *engine.Call, args map[string]string) (*engine.PromptResult, error) {
			return &engine.PromptResult{
				Description: c.Name(),
				Messages: []engine.PromptMessage{
					{Role: "user", Content: engine.Text{Text: args["how"] + " " + args["who"]}},
					{Role: "assistant", Content: engine.Text{Text: "hi"}},
				},
				Meta: engine.Meta(`{"a":1}`),
			}, nil
		}))
	must(t, e.AddPrompt(engine.Prompt{Name: "plain"},
		func(_ context.Context, _ *engine.Call, args map[string]string) (*engine.PromptResult, error) {
			if args == nil {
				t.Error("args: got nil, want a map")
			}
			return &engine.PromptResult{}, nil
		}))
	must(t, e.AddPrompt(engine.Prompt{Name: "nothing"},
		func(context.Context, *engine.Call, map[string]string) (*engine.PromptResult, error) { return nil, nil }))
	must(t, e.AddPrompt(engine.Prompt{Name: "fails"},
		func(context.Context, *engine.Call, map[string]string) (*engine.PromptResult, error) {
			return nil, errors.New("no /etc/passwd here")
		}))
	p := connect(t, e, engine.Rev20251125)
	for _, c := range []struct{ params, want string }{
		{`{"name":"greet","arguments":{"who":"\u0041nn","how":"hello"}}`, `{"description":"greet","messages":[` +
			`{"role":"user","content":{"type":"text","text":"hello Ann"}},` +
			`{"role":"assistant","content":{"type":"text","text":"hi"}}],"_meta":{"a":1}}`},
		{`{"name":"greet","arguments":{"how":"hello"}}`, `-32602 Invalid params: argument who is required`},
		{`{"name":"greet","arguments":{"Who":"x"}}`, `-32602 Invalid params: argument who is required`},
		{`{"name":"greet"}`, `-32602 Invalid params: argument who is required`},
		{`{"name":"greet","arguments":{"who":1}}`, `-32602 Invalid params: argument who must be a string`},
		{`{"name":"greet","arguments":["who"]}`, `-32602 Invalid params: arguments must be an object`},
		{`{"name":"plain"}`, `{"messages":[]}`},
		{`{"name":"plain","arguments":{"more":"x"}}`, `{"messages":[]}`},
		{`{"name":"nothing"}`, `-32603 Internal error`},
		{`{"name":"fails"}`, `-32603 Internal error`},
		{`{"name":"Greet"}`, `-32602 Unknown prompt: Greet`},
		{`{}`, `-32602 Invalid params: "name" must be a string`},
	} {
		check(t, "prompts/get "+c.params, p.result(codec.MethodPromptsGet, c.params), c.want)
	}
}

// TestReplace registers things again under their names.
func TestReplace(t *testing.T) {
	e, _ := newEngine(t, nil)
	p := func() *peer { return connect(t, e, engine.Rev20251125) }
	for _, version := range []string{"1", "2"} {
		must(t, e.AddRawTool(engine.Tool{Name: "a", Description: version}, func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
			return engine.AppendTextResult(out, version), nil
		}))
		must(t, e.AddResource(engine.Resource{URI: "a:", Name: version}, func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) {
			return []engine.ResourceContents{{Text: version}}, nil
		}))
		check(t, "tools/call", p().call("a", "{}"), text(version))
		check(t, "resources/read", p().result(codec.MethodResourcesRead, `{"uri":"a:"}`), `{"contents":[{"uri":"a:","text":"`+version+`"}]}`)
		check(t, "resources/list", p().result(codec.MethodResourcesList, ""), `{"resources":[{"uri":"a:","name":"`+version+`"}]}`)
		check(t, "tools/list", p().result(codec.MethodToolsList, ""),
			`{"tools":[{"name":"a","description":"`+version+`","inputSchema":{"type":"object"}}]}`)
	}
	session := p()
	if !e.RemoveTool("a") || !e.RemoveResource("a:") || slices.Contains([]bool{e.RemoveTool("a"), e.RemoveResource("a:"), e.RemovePrompt("a")}, true) {
		t.Error("Remove: want true once for each")
	}
	check(t, "tools/call of a removed tool", session.call("a", "{}"), "-32602 Unknown tool: a")
	check(t, "resources/read of a removed resource", session.result(codec.MethodResourcesRead, `{"uri":"a:"}`),
		`-32002 Resource not found {"uri":"a:"}`)
}
