package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client"
)

// serve answers each request with what the function gives for it.
func serve(t *testing.T, o *client.Options, answer func(f frame) string) *client.Client {
	t.Helper()
	c, p := connectPipe(t, o)
	go func() {
		for f, ok := p.read(); ok; f, ok = p.read() {
			if f.ID != nil {
				p.write(answer(f))
			}
		}
	}()
	return c
}

func TestCallTool(t *testing.T) {
	noLeaks(t)
	var params string
	result := `{"content":[{"type":"text","text":"a\n"},{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"text","text":"b"},` +
		`{"type":"resource","resource":{"uri":"u:1","mimeType":"text/plain","text":"t"}},{"type":"resource_link","uri":"u:2","name":"n"}],` +
		`"structuredContent":{"n":1},"isError":true}`
	c := serve(t, nil, func(f frame) string {
		params = string(f.Params)
		return resultOf(f, result)
	})
	for _, test := range []struct {
		arguments any
		want      string
	}{
		{nil, `{"name":"to\"ol"}`},
		{[]byte(`{"a": 1}`), `{"name":"to\"ol","arguments":{"a": 1}}`},
		{json.RawMessage(`{"a":12345678901234567890}`), `{"name":"to\"ol","arguments":{"a":12345678901234567890}}`},
		{map[string]int{"a": 1}, `{"name":"to\"ol","arguments":{"a":1}}`},
		{struct{ A []string }{[]string{"x"}}, `{"name":"to\"ol","arguments":{"A":["x"]}}`},
	} {
		r, err := c.CallTool(context.Background(), `to"ol`, test.arguments, nil)
		if err != nil || params != test.want {
			t.Errorf("CallTool(%v): sent %s, %v, want %s", test.arguments, params, err, test.want)
			continue
		}
		if r.Text() != "a\n\nb" || !r.IsError || string(r.Structured) != `{"n":1}` || string(r.Raw) != result || len(r.Content) != 5 {
			t.Errorf("CallTool(%v): got %+v", test.arguments, r)
		}
		if got := r.Content[1]; got.Type != "image" || got.Data != "AA==" || got.MIMEType != "image/png" || got.Resource != nil {
			t.Errorf("image: got %+v", got)
		}
		if got := r.Content[3].Resource; got == nil || got.URI != "u:1" || got.Text != "t" || got.IsBlob {
			t.Errorf("embedded resource: got %+v", got)
		}
		if got := r.Content[4]; got.URI != "u:2" || got.Name != "n" {
			t.Errorf("resource link: got %+v", got)
		}
	}
	for _, bad := range []any{[]byte(`{"a":`), []byte(`{},"name":"other"`), func() {}} {
		if _, err := c.CallTool(context.Background(), "t", bad, nil); err == nil {
			t.Errorf("CallTool(%T): got no error", bad)
		}
	}
	result = `{"toolResult":1}`
	if _, err := c.CallTool(context.Background(), "t", nil, nil); !errors.Is(err, client.ErrMalformed) {
		t.Errorf("CallTool without content: got %v, want ErrMalformed", err)
	}
}

// TestLists walks three pages of each list, the middle one empty.
func TestLists(t *testing.T) {
	noLeaks(t)
	first := map[string]string{
		"tools/list":               `"tools":[{"name":"a","title":"A","description":"d","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]`,
		"resources/list":           `"resources":[{"uri":"u:a","name":"a","title":"A","description":"d","mimeType":"m"}]`,
		"resources/templates/list": `"resourceTemplates":[{"uriTemplate":"u:{a}","name":"a","title":"A","description":"d","mimeType":"m"}]`,
		"prompts/list":             `"prompts":[{"name":"a","title":"A","description":"d","arguments":[{"name":"x","required":true},{"name":"y","description":"e"}]}]`,
	}
	members := map[string]string{"tools/list": "tools", "resources/list": "resources", "resources/templates/list": "resourceTemplates", "prompts/list": "prompts"}
	c := serve(t, nil, func(f frame) string {
		switch string(f.Params) {
		case ``:
			return resultOf(f, `{`+first[f.Method]+`,"nextCursor":"p\"2"}`)
		case `{"cursor":"p\"2"}`:
			return resultOf(f, `{"`+members[f.Method]+`":[],"nextCursor":""}`)
		case `{"cursor":""}`:
			return resultOf(f, `{"`+members[f.Method]+`":[{"name":"z"}],"nextCursor":null}`)
		}
		return resultOf(f, `"unexpected params"`)
	})
	ctx := context.Background()
	tools, err := c.ListTools(ctx)
	if err != nil || len(tools) != 2 || !tools[0].ReadOnly() || tools[1].ReadOnly() || tools[1].Name != "z" ||
		fmt.Sprint(tools[0].Name, tools[0].Title, tools[0].Description, string(tools[0].InputSchema)) != `aAd{"type":"object"}` {
		t.Errorf("ListTools: got %+v, %v", tools, err)
	}
	resources, err := c.ListResources(ctx)
	if err != nil || len(resources) != 2 || len(resources[0].Raw) == 0 {
		t.Fatalf("ListResources: got %+v, %v", resources, err)
	}
	resources[0].Raw = nil
	if want := (client.Resource{URI: "u:a", Name: "a", Title: "A", Description: "d", MIMEType: "m"}); !reflect.DeepEqual(resources[0], want) {
		t.Errorf("ListResources: got %+v, want %+v", resources[0], want)
	}
	templates, err := c.ListResourceTemplates(ctx)
	if err != nil || len(templates) != 2 || templates[0].URITemplate != "u:{a}" || templates[0].MIMEType != "m" {
		t.Errorf("ListResourceTemplates: got %+v, %v", templates, err)
	}
	prompts, err := c.ListPrompts(ctx)
	if err != nil || len(prompts) != 2 || fmt.Sprint(prompts[0].Arguments) != `[{x   true} {y  e false}]` {
		t.Errorf("ListPrompts: got %+v, %v", prompts, err)
	}
}

func TestListLimits(t *testing.T) {
	noLeaks(t)
	for _, test := range []struct {
		name string
		page func(n int) string
		want error
	}{
		{"for ever", func(n int) string { return fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, n) }, client.ErrTooLarge},
		{"the same cursor", func(int) string { return `{"tools":[],"nextCursor":"x"}` }, client.ErrMalformed},
		{"large", func(n int) string {
			return fmt.Sprintf(`{"tools":["%s"],"nextCursor":"%d"}`, strings.Repeat("x", 900), n)
		}, client.ErrTooLarge},
		{"no array", func(int) string { return `{"tools":{}}` }, client.ErrMalformed},
		{"no object", func(int) string { return `[]` }, client.ErrMalformed},
	} {
		n := 0
		c := serve(t, &client.Options{MaxPages: 50, MaxMessageBytes: 1000}, func(f frame) string { n++; return resultOf(f, test.page(n)) })
		if _, err := c.ListTools(context.Background()); !errors.Is(err, test.want) || n > 50 {
			t.Errorf("%s: got %v after %d pages, want %v", test.name, err, n, test.want)
		}
		closeClient(t, c)
	}
}

func TestOtherCalls(t *testing.T) {
	noLeaks(t)
	var last string
	c := serve(t, nil, func(f frame) string {
		last = f.Method + string(f.Params)
		switch f.Method {
		case "resources/read":
			return resultOf(f, `{"contents":[{"uri":"u","text":""},{"uri":"v","blob":"AA=="}]}`)
		case "prompts/get":
			return resultOf(f, `{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}`)
		case "resources/unsubscribe":
			return `{"jsonrpc":"2.0","id":` + string(f.ID) + `,"error":{"code":-32601,"message":"no"}}`
		}
		return resultOf(f, `{}`)
	})
	ctx := context.Background()
	check := func(err error, is error, want string) {
		t.Helper()
		if !errors.Is(err, is) || last != want {
			t.Errorf("sent %s, got %v; want %s, %v", last, err, want, is)
		}
	}
	read, err := c.ReadResource(ctx, "u")
	check(err, nil, `resources/read{"uri":"u"}`)
	if len(read.Contents) != 2 || read.Contents[0].IsBlob || !read.Contents[1].IsBlob || read.Contents[1].Blob != "AA==" {
		t.Errorf("ReadResource: got %+v", read)
	}
	prompt, err := c.GetPrompt(ctx, "p", map[string]string{"b": "2", "a": "\n"})
	check(err, nil, `prompts/get{"name":"p","arguments":{"a":"\n","b":"2"}}`)
	if prompt.Description != "d" || len(prompt.Messages) != 1 || prompt.Messages[0].Role != "user" || prompt.Messages[0].Content.Text != "hi" {
		t.Errorf("GetPrompt: got %+v", prompt)
	}
	_, err = c.GetPrompt(ctx, "p", nil)
	check(err, nil, `prompts/get{"name":"p"}`)
	check(c.Subscribe(ctx, "u"), nil, `resources/subscribe{"uri":"u"}`)
	check(c.Unsubscribe(ctx, "u"), codec.ErrMethodNotFound, `resources/unsubscribe{"uri":"u"}`)
	check(c.Ping(ctx), nil, `ping`)
}
