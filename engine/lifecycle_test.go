package engine_test

import (
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

const supported = `["2024-11-05","2025-03-26","2025-06-18","2025-11-25"]`

func TestNegotiation(t *testing.T) {
	ok := func(version string) string {
		return `{"protocolVersion":"` + version + `","capabilities":{"logging":{},"tools":{"listChanged":true}},` +
			`"serverInfo":{"name":"test","version":"1"},"instructions":"be kind"}`
	}
	strict := func(requested string) string {
		return `-32602 Unsupported protocol version {"supported":` + supported + `,"requested":` + requested + `}`
	}
	for _, c := range []struct {
		params, want, wantStrict string
	}{
		{`{"protocolVersion":"2024-11-05"}`, ok("2024-11-05"), ok("2024-11-05")},
		{`{"protocolVersion":"2025-03-26"}`, ok("2025-03-26"), ok("2025-03-26")},
		{`{"protocolVersion":"2025-06-18"}`, ok("2025-06-18"), ok("2025-06-18")},
		{`{"protocolVersion":"2025-11-25","capabilities":{"x":1},"clientInfo":{}}`, ok("2025-11-25"), ok("2025-11-25")},
		{`{"protocolVersion":"2026-07-28"}`, ok("2025-11-25"), strict(`"2026-07-28"`)},
		{`{"protocolVersion":"1.0.0"}`, ok("2025-11-25"), strict(`"1.0.0"`)},
		{`{"protocolVersion":""}`, ok("2025-11-25"), strict(`""`)},
		{`{"protocolVersion":20251125}`, noVersion, noVersion},
		{`{"protocolVersion":null}`, noVersion, noVersion},
		{`{}`, noVersion, noVersion},
		{``, noVersion, noVersion},
		{`{"protocolVersion":"2025-11-25","capabilities":[]}`,
			`-32602 Invalid params: capabilities must be an object`, `-32602 Invalid params: capabilities must be an object`},
		{`{"protocolVersion":"2025-11-25","clientInfo":"c"}`,
			`-32602 Invalid params: clientInfo must be an object`, `-32602 Invalid params: clientInfo must be an object`},
	} {
		for _, strictly := range []bool{false, true} {
			e, _ := newEngine(t, &engine.Options{StrictVersion: strictly, Instructions: "be kind"})
			echo(t, e, "echo")
			p := open(t, e)
			want := c.want
			if strictly {
				want = c.wantStrict
			}
			check(t, "initialize "+c.params, p.result(codec.MethodInitialize, c.params), want)
			if refused := want[0] == '-'; refused != (p.session.Revision() == 0) {
				t.Errorf("revision after initialize %s: got %v", c.params, p.session.Revision())
			}
		}
	}
}

const noVersion = `-32602 Invalid params: protocolVersion must be a string`

// TestCapabilities checks that exactly what is registered is declared, and that
// what is not declared has no methods.
func TestCapabilities(t *testing.T) {
	for _, c := range []struct {
		add  func(e *engine.Engine) error
		want string
	}{
		{func(*engine.Engine) error { return nil }, `{"logging":{}}`},
		{func(e *engine.Engine) error { return e.AddRawTool(engine.Tool{Name: "a"}, nil) },
			`{"tools":{"listChanged":true},"logging":{}}`},
		{func(e *engine.Engine) error { return e.AddResource(engine.Resource{URI: "a:", Name: "a"}, nil) },
			`{"resources":{"subscribe":true,"listChanged":true},"logging":{}}`},
		{func(e *engine.Engine) error {
			return e.AddResourceTemplate(engine.ResourceTemplate{URITemplate: "a:{b}", Name: "a"}, nil)
		}, `{"resources":{"subscribe":true,"listChanged":true},"logging":{}}`},
		{func(e *engine.Engine) error { return e.AddPrompt(engine.Prompt{Name: "a"}, nil) },
			`{"prompts":{"listChanged":true},"logging":{}}`},
	} {
		e, _ := newEngine(t, nil)
		must(t, c.add(e))
		p := open(t, e)
		got := p.result(codec.MethodInitialize, `{"protocolVersion":"2025-11-25"}`)
		declared := codec.Member([]byte(got), "capabilities")
		check(t, "capabilities", memberNames(declared), memberNames([]byte(c.want)))
		for capability, methods := range map[string][]string{
			"tools":     {codec.MethodToolsList, codec.MethodToolsCall},
			"resources": {codec.MethodResourcesList, codec.MethodResourceTemplatesList, codec.MethodResourcesRead, codec.MethodResourcesSubscribe, codec.MethodResourcesUnsubscribe},
			"prompts":   {codec.MethodPromptsList, codec.MethodPromptsGet},
		} {
			for _, method := range methods {
				unknown := p.result(method, "{}") == "-32601 Method not found: "+method
				if offered := codec.Member(declared, capability) != nil; offered == unknown {
					t.Errorf("%s where %s is declared: %t; method unknown: %t", method, capability, offered, unknown)
				}
			}
		}
	}
}

func TestLifecycle(t *testing.T) {
	e, _ := newEngine(t, nil)
	echo(t, e, "echo")
	p := open(t, e)
	first := `-32600 Invalid Request: initialize comes first`
	check(t, "ping before initialize", p.result(codec.MethodPing, ""), `{}`)
	check(t, "tools/list before initialize", p.result(codec.MethodToolsList, "{}"), first)
	check(t, "tools/call before initialize", p.call("echo", "{}"), first)
	p.notify(codec.NotifyInitialized, "{}") // changes nothing
	check(t, "tools/list before initialize", p.result(codec.MethodToolsList, "{}"), first)
	if got := p.session.Revision(); got != 0 {
		t.Errorf("Revision before initialize: got %v, want 0", got)
	}

	initialize := `{"protocolVersion":"2025-06-18","clientInfo":{"name":"c","version":"2"}}`
	p.result(codec.MethodInitialize, initialize)
	if name, version := p.session.ClientInfo(); name != "c" || version != "2" {
		t.Errorf("ClientInfo: got %q %q, want c 2", name, version)
	}
	check(t, "tools/call before initialized", p.call("echo", "{}"), text("{}"))
	again := `-32600 Invalid Request: the session is initialized already`
	check(t, "initialize before initialized", p.result(codec.MethodInitialize, initialize), again)
	p.notify(codec.NotifyInitialized, "{}")
	p.notify(codec.NotifyInitialized, "{}")
	check(t, "second initialize", p.result(codec.MethodInitialize, `{"protocolVersion":"2024-11-05"}`), again)
	if got := p.session.Revision(); got != engine.Rev20250618 {
		t.Errorf("Revision after a second initialize: got %v, want 2025-06-18", got)
	}
	check(t, "tools/call", p.call("echo", `{"a":1}`), text(`{\"a\":1}`))
	check(t, "ping", p.result(codec.MethodPing, "{}"), `{}`)

	p.session.Close()
	<-p.session.Done()
	check(t, "tools/call after Close", p.call("echo", "{}"), "-31903 The session has ended")
	if got := e.Stats(); got.Sessions != 0 || got.ActiveRequests != 0 {
		t.Errorf("Stats: got %+v, want no session and no request", got)
	}
}

// TestFrames sends what is no request, or only nearly one.
func TestFrames(t *testing.T) {
	e, _ := newEngine(t, nil)
	echo(t, e, "echo")
	p := connect(t, e, engine.Rev20251125)
	for _, c := range []struct{ frame, want string }{
		{request(`"a\u0062"`, "ping", ""), `{"jsonrpc":"2.0","id":"a\u0062","result":{}}`},
		{request(`9007199254740993`, "ping", ""), `{"jsonrpc":"2.0","id":9007199254740993,"result":{}}`},
		{request(`-1`, "ping", ""), `{"jsonrpc":"2.0","id":-1,"result":{}}`},
		{request(`""`, "ping", ""), `{"jsonrpc":"2.0","id":"","result":{}}`},
		{request(`1`, "no/such", ""), `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: no/such"}}`},
		{request(`1`, "Ping", ""), `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: Ping"}}`},
		{request(`1`, "notifications/initialized", ""),
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: notifications/initialized"}}`},
		{`{"jsonrpc":"2.0","method":"tools/list"}`, ``}, // a notification of a request's name
		{`{"jsonrpc":"2.0","method":"no/such"}`, ``},
		{`{"jsonrpc":"2.0","id":77,"result":{}}`, ``}, // an answer to nothing
		{`{"jsonrpc":"2.0","id":"77","result":{}}`, ``},
		{`{"jsonrpc":"2.0","id":77,"error":{"code":1,"message":"m"}}`, ``},
	} {
		r := p.send(c.frame)
		var want []string
		if c.want != "" {
			want = []string{c.want}
		}
		checkFrames(t, c.frame, r.take(), want...)
	}
	for _, c := range []struct{ frame, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"ping"`, `-32700`},
		{request(`null`, "ping", ""), `-32600`},
		{request(`1.5`, "ping", ""), `-32600`},
		{`{"id":1,"method":"ping"}`, `-32600`},
		{`[]`, `-32600`},
		{request(`1`, "tools/list", "[]"), `-32602`},
	} {
		r := p.send(c.frame)
		frames := r.take()
		if len(frames) != 1 {
			t.Errorf("%s: got %v, want an error", c.frame, frames)
			continue
		}
		check(t, c.frame, string(codec.Member([]byte(frames[0]), "error", "code")), c.want)
	}
}
