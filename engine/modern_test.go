package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

const (
	noMetaVersion      = "-32602 Invalid params: _meta must hold io.modelcontextprotocol/protocolVersion, a string"
	noMetaCapabilities = "-32602 Invalid params: _meta must hold io.modelcontextprotocol/clientCapabilities, an object"
	allVersions        = `["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`
)

// metaOf makes params with a version and capabilities, "" for a member that is
// not there, and further members.
func metaOf(version, caps, further string) string {
	var members []string
	if version != "" {
		members = append(members, `"io.modelcontextprotocol/protocolVersion":`+version)
	}
	if caps != "" {
		members = append(members, `"io.modelcontextprotocol/clientCapabilities":`+caps)
	}
	params := `{"_meta":{` + strings.Join(members, ",") + `}`
	if further != "" {
		params += "," + further
	}
	return params + "}"
}

// TestOrderOfValidation sends requests that are wrong in several ways. The first
// fault in the order of validation is told.
func TestOrderOfValidation(t *testing.T) {
	e, _ := newEngine(t, nil)
	must(t, e.AddRawTool(engine.Tool{Name: "echo", InputSchema: []byte(`{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}`)},
		func(_ context.Context, _ *engine.Call, args, out []byte) ([]byte, error) {
			return engine.AppendTextResult(out, "ok"), nil
		}))
	unsupported := func(v string) string {
		return `-32022 Unsupported protocol version {"supported":` + allVersions + `,"requested":` + v + `}`
	}
	const now = `"2026-07-28"`
	good := metaOf(now, "{}", `"name":"echo"`)
	ok := complete(`"content":[{"type":"text","text":"ok"}]`)
	mismatch := func(header, value, body string) string {
		return fmt.Sprintf("-32020 Header mismatch: %s header value %q does not match body value %q", header, value, body)
	}
	for _, c := range []struct {
		what, method, params, headers string // of "Version Method Name", - for none
		overPipe                      string // the answer without a header layer
		want                          string
	}{
		{"all is well", "tools/call", good, "2026-07-28 tools/call echo", ok, ok},
		{"params {}", "tools/call", `{}`, "2026-07-28 tools/call echo", noMetaVersion, noMetaVersion},
		{"no params", "tools/call", ``, "2026-07-28 tools/call echo", noMetaVersion, noMetaVersion},
		{"_meta {}", "tools/call", `{"_meta":{}}`, "2026-07-28 tools/call echo", noMetaVersion, noMetaVersion},
		{"no version", "tools/call", metaOf("", "{}", `"name":"echo"`), "2026-07-28 tools/call echo", noMetaVersion, noMetaVersion},
		{"version no string", "tools/call", metaOf("20260728", "{}", `"name":"echo"`), "2026-07-28 tools/call echo", noMetaVersion, noMetaVersion},
		{"no capabilities", "tools/call", metaOf(now, "", `"name":"echo"`), "2026-07-28 tools/call echo", noMetaCapabilities, noMetaCapabilities},
		{"capabilities no object", "tools/call", metaOf(now, "[]", `"name":"echo"`), "2026-07-28 tools/call echo", noMetaCapabilities, noMetaCapabilities},
		{"no capabilities, before the header", "tools/call", metaOf(now, "", ""), "- - -", noMetaCapabilities, noMetaCapabilities},
		{"no version header", "tools/call", good, "- tools/call echo", ok, "-32020 Header mismatch: the Mcp-Protocol-Version header is missing"},
		{"legacy header", "tools/call", good, "2025-11-25 tools/call echo", ok, mismatch("Mcp-Protocol-Version", "2025-11-25", "2026-07-28")},
		{"comparison before support", "tools/call", metaOf(`"v999"`, "{}", ""), "2026-07-28 tools/call echo", unsupported(`"v999"`), mismatch("Mcp-Protocol-Version", "2026-07-28", "v999")},
		{"unknown version", "tools/call", metaOf(`"v999"`, "{}", ""), "v999 - -", unsupported(`"v999"`), unsupported(`"v999"`)},
		{"future version", "tools/call", metaOf(`"2099-01-01"`, "{}", ""), "2099-01-01 - -", unsupported(`"2099-01-01"`), unsupported(`"2099-01-01"`)},
		{"legacy version", "tools/call", metaOf(`"2025-11-25"`, "{}", ""), "2025-11-25 - -", unsupported(`"2025-11-25"`), unsupported(`"2025-11-25"`)},
		{"version before method", "no/such", metaOf(`"v999"`, "{}", ""), "v999 no/such -", unsupported(`"v999"`), unsupported(`"v999"`)},
		{"no method header", "tools/call", good, "2026-07-28 - echo", ok, "-32020 Header mismatch: the Mcp-Method header is missing"},
		{"method header differs", "tools/call", good, "2026-07-28 tools/list echo", ok, mismatch("Mcp-Method", "tools/list", "tools/call")},
		{"method header in another case", "tools/call", good, "2026-07-28 TOOLS/CALL echo", ok, mismatch("Mcp-Method", "TOOLS/CALL", "tools/call")},
		{"method header before method", "no/such", metaOf(now, "{}", ""), "2026-07-28 tools/list -", "-32601 Method not found: no/such", mismatch("Mcp-Method", "tools/list", "no/such")},
		{"no name header", "tools/call", good, "2026-07-28 tools/call -", ok, "-32020 Header mismatch: the Mcp-Name header is missing"},
		{"name header differs", "tools/call", good, "2026-07-28 tools/call Echo", ok, mismatch("Mcp-Name", "Echo", "echo")},
		{"name header before the tool is known", "tools/call", metaOf(now, "{}", `"name":"nope"`), "2026-07-28 tools/call echo",
			"-32602 Unknown tool: nope", mismatch("Mcp-Name", "echo", "nope")},
		{"stray name header", "tools/list", metaOf(now, "{}", ""), "2026-07-28 tools/list x", "", ""},
		{"no name in the body", "tools/call", metaOf(now, "{}", ""), "2026-07-28 tools/call echo",
			`-32602 Invalid params: "name" must be a string`, `-32602 Invalid params: "name" must be a string`},
		{"unknown method", "no/such", metaOf(now, "{}", ""), "2026-07-28 no/such -", "-32601 Method not found: no/such", "-32601 Method not found: no/such"},
		{"unknown tool", "tools/call", metaOf(now, "{}", `"name":"nope"`), "2026-07-28 tools/call nope", "-32602 Unknown tool: nope", "-32602 Unknown tool: nope"},
		{"param header missing", "tools/call", metaOf(now, "{}", `"name":"echo","arguments":{"r":"x"}`), "2026-07-28 tools/call echo", ok,
			"-32020 Header mismatch: the Mcp-Param-Region header is missing"},
		{"param header before progress token", "tools/call", `{"name":"echo","arguments":{"r":"x"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientCapabilities":{},"progressToken":1.5}}`, "2026-07-28 tools/call echo",
			"-32602 Invalid params: progressToken must be a string or an integer", "-32020 Header mismatch: the Mcp-Param-Region header is missing"},
		{"arguments no object", "tools/call", metaOf(now, "{}", `"name":"echo","arguments":[]`), "2026-07-28 tools/call echo",
			"-32602 Invalid params: arguments must be an object", "-32602 Invalid params: arguments must be an object"},
		{"log level unknown", "tools/call", `{"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"loud"}}`, "2026-07-28 tools/call echo",
			"-32602 Invalid params: unknown log level loud", "-32602 Invalid params: unknown log level loud"},
		{"bad state", "tools/call", metaOf(now, "{}", `"name":"echo","requestState":"x"`), "2026-07-28 tools/call echo", badState, badState},
	} {
		frame := request("5", c.method, c.params)
		headers := headersFor("")
		for i, name := range []string{"Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"} {
			if value := strings.Fields(c.headers)[i]; value != "-" {
				headers.Set(name, value)
			}
		}
		client := newModern(t, e)
		overHTTP, overPipe := answerOf(t, client.sent(frame, headers), "5"), answerOf(t, client.sent(frame, nil), "5")
		if c.want == "" {
			c.want, c.overPipe = overPipe, overPipe
			if !strings.HasPrefix(overPipe, `{"resultType":"complete","tools":[`) {
				t.Errorf("%s: got %s, want a list", c.what, overPipe)
			}
		}
		check(t, c.what+" over HTTP", overHTTP, c.want)
		check(t, c.what+" over a pipe", overPipe, c.overPipe)
	}
	if got := e.Stats(); got.Sessions != 0 || got.ActiveRequests != 0 {
		t.Errorf("Stats: got %+v, want nothing left", got)
	}
}

// TestDiscover checks what the server says of itself, and that it is true.
func TestDiscover(t *testing.T) {
	e, _ := newEngine(t, nil)
	c := newModern(t, e)
	check(t, "nothing registered", c.result(codec.MethodDiscover, ""),
		complete(`"supportedVersions":`+allVersions+`,"capabilities":{"logging":{}},"ttlMs":0,"cacheScope":"private"`))
	for _, method := range []string{codec.MethodToolsList, codec.MethodToolsCall, codec.MethodResourcesList, codec.MethodResourceTemplatesList,
		codec.MethodResourcesRead, codec.MethodPromptsList, codec.MethodPromptsGet, codec.MethodComplete,
		codec.MethodTasksGet, codec.MethodTasksUpdate, codec.MethodTasksCancel} {
		check(t, method+" where nothing is registered", c.with(everything).result(method, `{"name":"a","uri":"a:","taskId":"a"}`),
			"-32601 Method not found: "+method)
	}
	full := engine.New(engine.Info{Name: "n", Version: "2", Title: "t", Description: "d", WebsiteURL: "https://example.com", Icons: icons},
		&engine.Options{Instructions: "be \"kind\"", ListCache: engine.Cache{TTL: hour, Public: true}})
	t.Cleanup(func() { _ = full.Shutdown(t.Context()) })
	must(t, full.AddRawTool(engine.Tool{Name: "a", TaskSupport: "optional"}, nil))
	must(t, full.AddResourceTemplate(engine.ResourceTemplate{URITemplate: "a:{b}", Name: "n"}, nil))
	must(t, full.AddPrompt(engine.Prompt{Name: "a", Complete: func(context.Context, *engine.Call, string, string, map[string]string) (engine.Completion, error) {
		return engine.Completion{}, nil
	}}, nil))
	must(t, full.AddExtension("com.example/x", []byte(`{"a": 1}`)))
	check(t, "all registered", newModern(t, full).result(codec.MethodDiscover, `{"cursor":"x"}`),
		`{"resultType":"complete","supportedVersions":`+allVersions+`,"capabilities":{"logging":{},"tools":{"listChanged":true},`+
			`"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{},`+
			`"extensions":{"io.modelcontextprotocol/tasks":{},"com.example/x":{"a": 1}}},"instructions":"be \"kind\"","ttlMs":3600000,"cacheScope":"public",`+
			`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":"2","title":"t","description":"d","websiteUrl":"https://example.com",`+
			`"icons":[{"src":"https://example.com/i.png","mimeType":"image/png","sizes":["48x48","any"],"theme":"dark"}]}}}`)
}

// TestRemovedMethods asks for what the era does not have.
func TestRemovedMethods(t *testing.T) {
	e, _ := newEngine(t, nil)
	echo(t, e, "echo")
	must(t, e.AddRawTool(engine.Tool{Name: "task", TaskSupport: "optional"}, nil))
	must(t, e.AddResource(engine.Resource{URI: "a:", Name: "n"}, nil))
	c := newModern(t, e).with(everything)
	for _, method := range []string{codec.MethodPing, codec.MethodSetLevel, codec.MethodResourcesSubscribe, codec.MethodResourcesUnsubscribe,
		codec.MethodTasksResult, codec.MethodTasksList, codec.MethodSample, codec.MethodElicit, codec.MethodRootsList,
		codec.NotifyInitialized, "no/such", "", "Tools/list"} {
		check(t, method, c.result(method, `{"level":"info","uri":"a:","taskId":"x"}`), "-32601 Method not found: "+method)
	}
	check(t, "initialize", c.result(codec.MethodInitialize, `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`),
		`-32601 Method not found: initialize {"supported":`+allVersions+`}`)
}

// TestOneEra leaves one era out.
func TestOneEra(t *testing.T) {
	only, _ := newEngine(t, &engine.Options{ModernOnly: true})
	echo(t, only, "echo")
	c := newModern(t, only)
	check(t, "tools/call", c.call("echo", "{}"), complete(`"content":[{"type":"text","text":"{}"}]`))
	if got := c.result(codec.MethodDiscover, ""); !strings.Contains(got, `"supportedVersions":["2026-07-28"]`) {
		t.Errorf("server/discover: got %s, want one version", got)
	}
	p := open(t, only)
	for _, method := range []string{codec.MethodInitialize, codec.MethodPing, codec.MethodToolsList} {
		got := p.result(method, `{"protocolVersion":"2025-11-25"}`)
		if !strings.Contains(got, `"supported":["2026-07-28"]`) {
			t.Errorf("legacy %s: got %s, want an error that names the version", method, got)
		}
	}
	if p.session.Revision() != 0 {
		t.Errorf("Revision: got %v, want none", p.session.Revision())
	}

	old, _ := newEngine(t, &engine.Options{LegacyOnly: true})
	echo(t, old, "echo")
	for _, method := range []string{codec.MethodDiscover, codec.MethodToolsList} {
		check(t, "modern "+method, newModern(t, old).result(method, ""),
			`-32022 Unsupported protocol version {"supported":["2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"2026-07-28"}`)
	}
	check(t, "legacy", connect(t, old, engine.Rev20251125).call("echo", "{}"), text("{}"))
}

// TestModernResults checks what is particular to the era in results.
func TestModernResults(t *testing.T) {
	e, _ := newEngine(t, &engine.Options{ListCache: engine.Cache{TTL: 1500 * ms, Public: true}, PageSize: 1})
	raw := func(name, result string) {
		must(t, e.AddRawTool(engine.Tool{Name: name}, func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
			return append(out, result...), nil
		}))
	}
	raw("meta", `{"content":[],"_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{"name":"x","version":"x"}}}`)
	raw("typed", `{"resultType":"complete","content":[]}`)
	raw("spaced", "{ \"content\" : [] ,\n \"_meta\" : {} }")
	raw("broken", `{"content":[`)
	must(t, engine.AddTool(e, engine.Tool{Name: "array"}, func(context.Context, *engine.Call, struct{}) (*engine.Result, error) {
		return &engine.Result{Structured: []byte(`[1,null]`)}, nil
	}))
	must(t, engine.AddTool(e, engine.Tool{Name: "null"}, func(context.Context, *engine.Call, struct{}) (*engine.Result, error) {
		return &engine.Result{Structured: []byte(`null`)}, nil
	}))
	must(t, e.AddResource(engine.Resource{URI: "a:", Name: "n", Cache: engine.Cache{TTL: hour}},
		func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) {
			return []engine.ResourceContents{{Text: "t"}}, nil
		}))
	must(t, e.AddResource(engine.Resource{URI: "b:", Name: "n", Cache: engine.Cache{TTL: -hour, Public: true}},
		func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) { return nil, nil }))
	must(t, e.AddResource(engine.Resource{URI: "c:", Name: "n"},
		func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) {
			return nil, engine.ErrResourceNotFound
		}))
	c := newModern(t, e)
	call := func(name string) string { return `{"name":"` + name + `"}` }
	for _, r := range []struct{ method, params, want string }{
		{"tools/call", call("meta"), `{"resultType":"complete","_meta":{` + serverInfo + `,"a":1},"content":[]}`},
		{"tools/call", call("typed"), `{"resultType":"complete","content":[],"_meta":{` + serverInfo + `}}`},
		{"tools/call", call("spaced"), `{"resultType":"complete","_meta":{` + serverInfo + `},"content":[]}`},
		{"tools/call", call("broken"), "-32603 Internal error"},
		{"tools/call", call("array"), complete(`"content":[{"type":"text","text":"[1,null]"}],"structuredContent":[1,null]`)},
		{"tools/call", call("null"), complete(`"content":[{"type":"text","text":"null"}],"structuredContent":null`)},
		{"resources/read", `{"uri":"a:"}`, complete(`"contents":[{"uri":"a:","text":"t"}],"ttlMs":3600000,"cacheScope":"private"`)},
		{"resources/read", `{"uri":"b:"}`, complete(`"contents":[],"ttlMs":0,"cacheScope":"public"`)},
		{"resources/read", `{"uri":"c:"}`, `-32602 Resource not found {"uri":"c:"}`},
		{"resources/read", `{"uri":"no:such"}`, `-32602 Resource not found {"uri":"no:such"}`},
		{"resources/list", `{"cursor":""}`, "-32602 Invalid params: this cursor was not given out here"},
		{"resources/list", `{"cursor":null}`, "-32602 Invalid params: this cursor was not given out here"},
	} {
		check(t, r.method+" "+r.params, c.result(r.method, r.params), r.want)
	}
	legacy := connect(t, e, engine.Rev20251125)
	check(t, "an array in a session", legacy.call("array", "{}"), text("[1,null]"))
	check(t, "null in a session", legacy.call("null", "{}"), text("null"))

	// Every page says how long it may be kept, and the order stays.
	var first []string
	for range 3 {
		var names []string
		for params := ""; ; {
			got := c.result(codec.MethodToolsList, params)
			if !strings.HasSuffix(got, `,"ttlMs":1500,"cacheScope":"public","_meta":{`+serverInfo+`}}`) {
				t.Errorf("tools/list %s: got %s, want ttlMs and cacheScope", params, got)
			}
			name, next := page(t, got, "tools", "name")
			names = append(names, name)
			if params = next; next == "" {
				break
			}
		}
		if first == nil {
			first = names
		}
		checkFrames(t, "tools", names, first...)
	}
	if len(first) != 6 {
		t.Errorf("tools: got %v, want 6", first)
	}
}

// TestModernNotifications checks that a request gets what it asks for, before
// its result, and nothing else.
func TestModernNotifications(t *testing.T) {
	e, _ := newEngine(t, nil)
	must(t, addTool(e, engine.Tool{Name: "talk"}, func(ctx context.Context, c *engine.Call) (string, error) {
		c.Progress(ctx, 1, 2)
		must(t, c.Log(ctx, engine.LevelDebug, "", "d"))
		must(t, c.Log(ctx, engine.LevelInfo, "l", map[string]int{"a": 1}))
		c.ProgressMessage(ctx, 2, 2, "m")
		c.Progress(ctx, 2, 2) // no more than before
		must(t, c.Log(ctx, engine.LevelError, "", nil))
		return codec.Text(c.Meta(), "traceparent"), nil
	}))
	done := complete(`"content":[{"type":"text","text":""}]`)
	message := func(level, rest string) string {
		return `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"` + level + `",` + rest + `}}`
	}
	progress := func(rest string) string {
		return `{"jsonrpc":"2.0","method":"notifications/progress","params":{` + rest + `}}`
	}
	debug, info, failed := message("debug", `"data":"d"`), message("info", `"logger":"l","data":{"a":1}`), message("error", `"data":null`)
	for _, r := range []struct {
		meta string
		want []string
	}{
		{``, []string{done}},
		{`"io.modelcontextprotocol/logLevel":"error"`, []string{failed, done}},
		{`"io.modelcontextprotocol/logLevel":"info"`, []string{info, failed, done}},
		{`"io.modelcontextprotocol/logLevel":"debug"`, []string{debug, info, failed, done}},
		{`"io.modelcontextprotocol/logLevel":"emergency"`, []string{done}},
		{`"progressToken":"p\u0031"`, []string{progress(`"progressToken":"p\u0031","progress":1,"total":2`),
			progress(`"progressToken":"p\u0031","progress":2,"total":2,"message":"m"`), done}},
		{`"progressToken":0,"io.modelcontextprotocol/logLevel":"error"`, []string{progress(`"progressToken":0,"progress":1,"total":2`),
			progress(`"progressToken":0,"progress":2,"total":2,"message":"m"`), failed, done}},
		{`"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=b","baggage":"c=d"`,
			[]string{complete(`"content":[{"type":"text","text":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}]`)}},
		{`"traceparent":"nonsense","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}`,
			[]string{complete(`"content":[{"type":"text","text":"nonsense"}]`)}},
	} {
		checkFrames(t, "tools/call with "+r.meta, newModern(t, e).asking(r.meta).frames(codec.MethodToolsCall, `{"name":"talk"}`), r.want...)
	}
	// What one request asks for is nothing to the next, nor a session's level.
	session := connect(t, e, engine.Rev20251125)
	session.result(codec.MethodSetLevel, `{"level":"debug"}`)
	checkFrames(t, "tools/call after others", newModern(t, e).frames(codec.MethodToolsCall, `{"name":"talk"}`), done)
}
