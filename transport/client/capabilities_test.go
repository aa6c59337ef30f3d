package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/transport/client"
)

func onSample(context.Context, *client.SampleRequest) (*client.SampleResult, error) {
	return &client.SampleResult{Model: "m", Content: []client.Content{client.TextContent("hi")}}, nil
}

func onElicit(context.Context, *client.ElicitRequest) (*client.ElicitResult, error) {
	return &client.ElicitResult{Action: client.ElicitAccept}, nil
}

func onRoots(context.Context) ([]client.Root, error) { return nil, nil }

func TestDeclaredCapabilities(t *testing.T) {
	for _, test := range []struct {
		name string
		o    client.Options
		want string
	}{
		{"nothing", client.Options{}, `{}`},
		{"flags without callbacks", client.Options{SampleTools: true, ElicitModes: client.ElicitURL, SampleTasks: true}, `{}`},
		{"sampling", client.Options{OnSample: onSample}, `{"sampling":{}}`},
		{"sampling with all", client.Options{OnSample: onSample, SampleTools: true, SampleContext: true}, `{"sampling":{"context":{},"tools":{}}}`},
		{"forms", client.Options{OnElicit: onElicit}, `{"elicitation":{"form":{}}}`},
		{"URLs", client.Options{OnElicit: onElicit, ElicitModes: client.ElicitURL}, `{"elicitation":{"url":{}}}`},
		{"both", client.Options{OnElicit: onElicit, ElicitModes: client.ElicitForm | client.ElicitURL}, `{"elicitation":{"form":{},"url":{}}}`},
		{"roots", client.Options{Roots: onRoots}, `{"roots":{"listChanged":true}}`},
		{"an empty list of roots", client.Options{RootList: []client.Root{}}, `{"roots":{"listChanged":true}}`},
		{"tasks of one kind", client.Options{OnElicit: onElicit, ElicitTasks: true},
			`{"elicitation":{"form":{}},"tasks":{"list":{},"cancel":{},"requests":{"elicitation":{"create":{}}}}}`},
		{"all", client.Options{OnSample: onSample, OnElicit: onElicit, Roots: onRoots, SampleTasks: true, ElicitTasks: true},
			`{"sampling":{},"elicitation":{"form":{}},"roots":{"listChanged":true},` +
				`"tasks":{"list":{},"cancel":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}}}`},
		{"raw", client.Options{OnSample: onSample, Capabilities: []byte(`{"experimental":{"x":{}}}`)}, `{"experimental":{"x":{}}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			noLeaks(t)
			_, _, params := connectPipeAs(t, initResult, &test.o)
			want := `{"protocolVersion":"2025-11-25","capabilities":` + test.want + `,"clientInfo":`
			if !strings.HasPrefix(params, want) {
				t.Errorf("initialize: got %s, want %s…", params, want)
			}
			validate(t, "2025-11-25", "InitializeRequestParams", params)
		})
	}
}

// TestGates: what was not declared, or what the revision lacks, is refused even
// where there is a callback for it.
func TestGates(t *testing.T) {
	const (
		sample = `"id":1,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}`
		tools  = `"id":1,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[]}`
		roots  = `"id":1,"method":"roots/list"`
		form   = `"id":1,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}`
		url    = `"id":1,"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://x/y","elicitationId":"e"}`
		tasks  = `"id":1,"method":"tasks/list"`
		get    = `"id":1,"method":"tasks/get","params":{"taskId":"x"}`
		custom = `"id":1,"method":"x/y"`
	)
	all := client.Options{
		OnSample: onSample, SampleTools: true, OnElicit: onElicit, ElicitModes: client.ElicitForm | client.ElicitURL, Roots: onRoots,
		SampleTasks: true, OnRequest: func(context.Context, string, []byte) ([]byte, error) { return []byte(`"raw"`), nil },
	}
	raw := func(capabilities string) client.Options {
		o := all
		o.Capabilities = []byte(capabilities)
		return o
	}
	onlyRaw := client.Options{OnRequest: all.OnRequest, Capabilities: []byte(`{"sampling":{},"elicitation":{"url":{}},"roots":{}}`)}
	for _, test := range []struct {
		revision string
		o        client.Options
		request  string
		want     string // the beginning of the answer, after the id
	}{
		{"2025-11-25", all, sample, `"result":{"role"`},
		{"2025-11-25", all, tools, `"result":{"role"`},
		{"2025-11-25", all, form, `"result":{"action"`},
		{"2025-11-25", all, url, `"result":{"action"`},
		{"2025-11-25", all, roots, `"result":{"roots":[]}`},
		{"2025-11-25", all, tasks, `"result":{"tasks":[]}`},
		{"2025-11-25", all, get, `"error":{"code":-32602,`},
		{"2025-11-25", all, custom, `"result":"raw"`},

		{"2025-06-18", all, sample, `"result":{"role"`},
		{"2025-06-18", all, tools, `"error":{"code":-32602,`},
		{"2025-06-18", all, form, `"result":{"action"`},
		{"2025-06-18", all, url, `"error":{"code":-32602,`},
		{"2025-06-18", all, tasks, `"error":{"code":-32601,`},
		{"2025-06-18", all, get, `"error":{"code":-32601,`},
		{"2025-03-26", all, form, `"error":{"code":-32601,`},
		{"2024-11-05", all, form, `"error":{"code":-32601,`},
		{"2024-11-05", all, roots, `"result":{"roots":[]}`},

		{"2025-11-25", raw(`{"elicitation":{}}`), form, `"result":{"action"`},
		{"2025-11-25", raw(`{"elicitation":{}}`), url, `"error":{"code":-32602,`},
		{"2025-11-25", raw(`{"elicitation":{"url":{}}}`), form, `"error":{"code":-32602,`},
		{"2025-11-25", raw(`{"sampling":{}}`), tools, `"error":{"code":-32602,`},
		{"2025-11-25", raw(`{}`), sample, `"error":{"code":-32601,`},
		{"2025-11-25", raw(`{}`), form, `"error":{"code":-32601,`},
		{"2025-11-25", raw(`{}`), roots, `"error":{"code":-32601,`},
		{"2025-11-25", raw(`{"tasks":{}}`), tasks, `"error":{"code":-32601,`},
		{"2025-11-25", raw(`{"tasks":{"requests":{"elicitation":{"create":{}}}}}`), tasks, `"error":{"code":-32601,`},
		{"2025-11-25", raw(`{}`), custom, `"result":"raw"`},

		{"2025-11-25", onlyRaw, sample, `"result":"raw"`},
		{"2025-11-25", onlyRaw, roots, `"result":"raw"`},
		{"2025-11-25", onlyRaw, url, `"result":"raw"`},
		{"2025-11-25", onlyRaw, form, `"error":{"code":-32602,`},
		{"2025-11-25", client.Options{Capabilities: []byte(`{"elicitation":{}}`)}, form, `"error":{"code":-32601,`},
	} {
		t.Run(test.revision, func(t *testing.T) {
			noLeaks(t)
			_, p, _ := connectPipeAs(t, initResultOf(test.revision, `{}`), &test.o)
			if got := p.ask(test.request); !strings.HasPrefix(got, `"id":1,`+test.want) {
				t.Errorf("answer to %s with capabilities %s: got %s, want %s", test.request, test.o.Capabilities, got, test.want)
			}
		})
	}
}

// TestServerCapabilities: what the server did not declare is not asked for.
func TestServerCapabilities(t *testing.T) {
	noLeaks(t)
	ctx := context.Background()
	calls := map[string]func(c *client.Client) error{
		"logging":             func(c *client.Client) error { return c.SetLevel(ctx, client.LevelInfo) },
		"resources.subscribe": func(c *client.Client) error { return c.Subscribe(ctx, "u") },
		"completions": func(c *client.Client) error {
			_, err := c.Complete(ctx, &client.CompleteRequest{Prompt: "p"})
			return err
		},
		"tasks.requests.tools.call": func(c *client.Client) error { _, err := c.CallToolAsTask(ctx, "t", nil, 0, nil); return err },
		"tasks.list":                func(c *client.Client) error { _, err := c.ListTasks(ctx); return err },
		"tasks.cancel":              func(c *client.Client) error { _, err := c.Task("x").Cancel(ctx); return err },
		"tasks":                     func(c *client.Client) error { _, err := c.Task("x").Result(ctx, nil); return err },
	}
	for name, call := range calls {
		for _, test := range []struct{ revision, capabilities string }{
			{"2025-11-25", `{"resources":{"subscribe":false}}`},
			{"2025-06-18", `{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`},
		} {
			c, _, _ := connectPipeAs(t, initResultOf(test.revision, test.capabilities), nil)
			var missing *client.CapabilityError
			family, _, _ := strings.Cut(name, ".")
			err := call(c)
			if !errors.As(err, &missing) || !strings.HasPrefix(missing.Capability, family) || missing.Owner != "server" {
				t.Errorf("%s in %s, capabilities %s: got %v, want a CapabilityError", name, test.revision, test.capabilities, err)
			}
			closeClient(t, c)
		}
	}
}
