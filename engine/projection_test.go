package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// fields are the members that an object may have, each from a revision on: "a b
// 2025-06-18 c" has c from there on. It gives those of one revision, sorted.
func fields(list string, rev engine.Revision) string {
	var names []string
	since := engine.Rev20241105
	for _, word := range strings.Fields(list) {
		if r := engine.ParseRevision(word); r != 0 {
			since = r
		} else if since <= rev {
			names = append(names, word)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// Definitions in which nothing is left out.
var (
	five        = int64(5)
	half        = 0.5
	meta        = engine.Meta(`{"a":1}`)
	icons       = []engine.Icon{{Src: "https://example.com/i.png", MIMEType: "image/png", Sizes: []string{"48x48", "any"}, Theme: "dark"}}
	annotations = &engine.Annotations{Audience: []string{"user", "assistant"}, Priority: &half, LastModified: "2025-01-01T00:00:00Z"}
	contents    = engine.ResourceContents{URI: "a:", MIMEType: "text/plain", Text: "t", Meta: meta}
	blocks      = []engine.Content{
		engine.Text{Text: "t", Annotations: annotations, Meta: meta},
		engine.Image{Data: []byte{1}, MIMEType: "image/png", Annotations: annotations, Meta: meta},
		engine.Audio{Data: []byte{1, 2, 3}, MIMEType: "audio/wav", Annotations: annotations, Meta: meta},
		engine.ResourceLink{URI: "a:", Name: "n", Title: "t", Description: "d", MIMEType: "m", Size: &five, Icons: icons, Annotations: annotations, Meta: meta},
		engine.EmbeddedResource{Resource: contents, Annotations: annotations, Meta: meta},
	}
)

func newFullEngine(t *testing.T) *engine.Engine {
	t.Helper()
	e := engine.New(engine.Info{Name: "n", Version: "1", Title: "t", Description: "d", WebsiteURL: "https://example.com", Icons: icons},
		&engine.Options{Instructions: "i"})
	t.Cleanup(func() { _ = e.Shutdown(t.Context()) })
	must(t, engine.AddTool(e, engine.Tool{
		Name: "tool", Title: "t", Description: "d", Icons: icons, Meta: meta,
		InputSchema:  json.RawMessage("{\"type\":\"object\",\r\n\"$schema\":\"https://json-schema.org/draft/2020-12/schema\"}"),
		OutputSchema: json.RawMessage(`{"type":"object"}`),
		Annotations: &engine.ToolAnnotations{Title: "at", ReadOnlyHint: engine.Hint(true), DestructiveHint: engine.Hint(false),
			IdempotentHint: engine.Hint(true), OpenWorldHint: engine.Hint(false)},
	}, func(context.Context, *engine.Call, map[string]any) (*engine.Result, error) {
		return &engine.Result{Content: blocks, Structured: json.RawMessage("{\"a\":\n1}"), IsError: true, Meta: meta}, nil
	}))
	must(t, e.AddResource(engine.Resource{URI: "a:", Name: "n", Title: "t", Description: "d", MIMEType: "m", Size: &five,
		Annotations: annotations, Icons: icons, Meta: meta},
		func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) {
			return []engine.ResourceContents{contents}, nil
		}))
	must(t, e.AddResourceTemplate(engine.ResourceTemplate{URITemplate: "b:{c}", Name: "n", Title: "t", Description: "d", MIMEType: "m",
		Annotations: annotations, Icons: icons, Meta: meta}, nil))
	must(t, e.AddPrompt(engine.Prompt{Name: "prompt", Title: "t", Description: "d", Icons: icons, Meta: meta,
		Arguments: []engine.PromptArgument{{Name: "n", Title: "t", Description: "d", Required: true}}},
		func(context.Context, *engine.Call, map[string]string) (*engine.PromptResult, error) {
			result := &engine.PromptResult{Description: "d", Meta: meta}
			for _, block := range blocks {
				result.Messages = append(result.Messages, engine.PromptMessage{Role: "user", Content: block})
			}
			return result, nil
		}))
	return e
}

// first gives the first element of the array at a path.
func first(object []byte, path ...string) (element []byte) {
	codec.EachElement(codec.Member(object, path...), func(value []byte) bool {
		element = value
		return false
	})
	return element
}

// TestProjection checks the members of everything that the engine sends,
// revision by revision, as the schemas have them: an unknown member would
// validate, so that the schemas prove nothing here.
func TestProjection(t *testing.T) {
	e := newFullEngine(t)
	for _, rev := range legacy {
		p := open(t, e)
		results := map[string][]byte{
			"initialize": []byte(p.result(codec.MethodInitialize, `{"protocolVersion":"`+rev.String()+`"}`)),
			"tools":      []byte(p.result(codec.MethodToolsList, "")),
			"call":       []byte(p.call("tool", "{}")),
			"resources":  []byte(p.result(codec.MethodResourcesList, "")),
			"read":       []byte(p.result(codec.MethodResourcesRead, `{"uri":"a:"}`)),
			"templates":  []byte(p.result(codec.MethodResourceTemplatesList, "")),
			"prompts":    []byte(p.result(codec.MethodPromptsList, "")),
			"prompt":     []byte(p.result(codec.MethodPromptsGet, `{"name":"prompt","arguments":{"n":"v"}}`)),
		}
		tool, resource := first(results["tools"], "tools"), first(results["resources"], "resources")
		for _, c := range []struct {
			what   string
			object []byte
			want   string
		}{
			{"InitializeResult", results["initialize"], "protocolVersion capabilities serverInfo instructions"},
			{"Implementation", codec.Member(results["initialize"], "serverInfo"), "name version 2025-06-18 title 2025-11-25 description websiteUrl icons"},
			{"Tool", tool, "name description inputSchema 2025-03-26 annotations 2025-06-18 title outputSchema _meta 2025-11-25 icons"},
			{"ToolAnnotations", codec.Member(tool, "annotations"), "2025-03-26 title readOnlyHint destructiveHint idempotentHint openWorldHint"},
			{"Tool.inputSchema", codec.Member(tool, "inputSchema"), "type $schema"},
			{"Resource", resource, "uri name description mimeType size annotations 2025-06-18 title _meta 2025-11-25 icons"},
			{"Annotations", codec.Member(resource, "annotations"), "audience priority 2025-06-18 lastModified"},
			{"ResourceTemplate", first(results["templates"], "resourceTemplates"), "uriTemplate name description mimeType annotations 2025-06-18 title _meta 2025-11-25 icons"},
			{"Prompt", first(results["prompts"], "prompts"), "name description arguments 2025-06-18 title _meta 2025-11-25 icons"},
			{"PromptArgument", first(first(results["prompts"], "prompts"), "arguments"), "name description required 2025-06-18 title"},
			{"Icon", first(tool, "icons"), "2025-11-25 src mimeType sizes theme"},
			{"ReadResourceResult", results["read"], "contents"},
			{"TextResourceContents", first(results["read"], "contents"), "uri mimeType text 2025-06-18 _meta"},
			{"CallToolResult", results["call"], "content isError _meta 2025-06-18 structuredContent"},
			{"GetPromptResult", results["prompt"], "description messages _meta"},
			{"PromptMessage", first(results["prompt"], "messages"), "role content"},
		} {
			check(t, rev.String()+" "+c.what, memberNames(c.object), fields(c.want, rev))
		}
		var ofTool, ofPrompt [][]byte
		codec.EachElement(codec.Member(results["call"], "content"), func(block []byte) bool {
			ofTool = append(ofTool, block)
			return true
		})
		codec.EachElement(codec.Member(results["prompt"], "messages"), func(message []byte) bool {
			ofPrompt = append(ofPrompt, codec.Member(message, "content"))
			return true
		})
		checkBlocks(t, rev.String()+" tool result", rev, ofTool)
		checkBlocks(t, rev.String()+" prompt", rev, ofPrompt)
		for name, result := range results {
			if strings.ContainsAny(string(result), "\r\n") {
				t.Errorf("%v %s: has a line break: %q", rev, name, result)
			}
		}
	}
}

func checkBlocks(t *testing.T, what string, rev engine.Revision, got [][]byte) {
	t.Helper()
	const plain = "type text annotations 2025-06-18 _meta"
	audio, link := "type data mimeType annotations 2025-06-18 _meta", "type uri name title description mimeType size annotations _meta 2025-11-25 icons"
	types := []string{"text", "image", "audio", "resource_link", "resource"}
	if rev < engine.Rev20250618 {
		types[3], link = "text", plain
	}
	if rev < engine.Rev20250326 {
		types[2], audio = "text", "type text annotations"
	}
	want := []string{plain, "type data mimeType annotations 2025-06-18 _meta", audio, link, "type resource annotations 2025-06-18 _meta"}
	if len(got) != len(want) {
		t.Fatalf("%s: got %d blocks, want %d", what, len(got), len(want))
	}
	for i, block := range got {
		check(t, fmt.Sprint(what, ", type of block ", i), codec.Text(block, "type"), types[i])
		check(t, fmt.Sprint(what, ", members of block ", i), memberNames(block), fields(want[i], rev))
	}
	check(t, what+", the resource inside", memberNames(codec.Member(got[4], "resource")), fields("uri mimeType text 2025-06-18 _meta", rev))
	if rev < engine.Rev20250326 {
		if text := codec.Text(got[2], "text"); !strings.Contains(text, "audio/wav") || !strings.Contains(text, "3 bytes") {
			t.Errorf("%s: audio as text: got %q, want its type and size", what, text)
		}
	}
	if rev < engine.Rev20250618 {
		if text := codec.Text(got[3], "text"); !strings.Contains(text, "a:") || !strings.Contains(text, "n") {
			t.Errorf("%s: resource link as text: got %q, want its name and URI", what, text)
		}
	}
}

// TestBareDefinitions checks that what is not set is not sent.
func TestBareDefinitions(t *testing.T) {
	e, _ := newEngine(t, nil)
	must(t, e.AddRawTool(engine.Tool{Name: "a", Annotations: &engine.ToolAnnotations{}}, nil))
	must(t, e.AddResource(engine.Resource{URI: "a:", Name: "n", Annotations: &engine.Annotations{}}, nil))
	must(t, e.AddResourceTemplate(engine.ResourceTemplate{URITemplate: "b:{c}", Name: "n"}, nil))
	must(t, e.AddPrompt(engine.Prompt{Name: "p", Arguments: []engine.PromptArgument{{Name: "x"}}}, nil))
	p := connect(t, e, engine.Rev20251125)
	for _, c := range []struct{ method, want string }{
		{codec.MethodToolsList, `{"tools":[{"name":"a","inputSchema":{"type":"object"},"annotations":{}}]}`},
		{codec.MethodResourcesList, `{"resources":[{"uri":"a:","name":"n","annotations":{}}]}`},
		{codec.MethodResourceTemplatesList, `{"resourceTemplates":[{"uriTemplate":"b:{c}","name":"n"}]}`},
		{codec.MethodPromptsList, `{"prompts":[{"name":"p","arguments":[{"name":"x"}]}]}`},
	} {
		check(t, c.method, p.result(c.method, ""), c.want)
	}
}
