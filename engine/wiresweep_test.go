package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// newRichEngine is newFullEngine with tools for everything else that goes over
// the wire.
func newRichEngine(t *testing.T) *engine.Engine {
	t.Helper()
	e := newFullEngine(t)
	tool := func(name string, h func(ctx context.Context, c *engine.Call) (string, error)) {
		must(t, addTool(e, engine.Tool{Name: name}, h))
	}
	tool("talk", func(ctx context.Context, c *engine.Call) (string, error) {
		for level := engine.LevelDebug; level <= engine.LevelEmergency; level++ {
			must(t, c.Log(ctx, level, "l", map[string]any{"a": level}))
		}
		c.Progress(ctx, 0.5, 0)
		c.ProgressMessage(ctx, 1, 2.5, "m")
		return "t", nil
	})
	form := func(schema string) func(context.Context, *engine.Call) (string, error) {
		return func(ctx context.Context, c *engine.Call) (string, error) {
			r, err := c.Elicit(ctx, &engine.ElicitRequest{Message: "m", Schema: json.RawMessage(schema)})
			if err != nil {
				return "", err
			}
			return r.Action, nil
		}
	}
	tool("form", form(allKinds))
	tool("lists", form(choiceLists))
	tool("page", func(ctx context.Context, c *engine.Call) (string, error) {
		_, err := c.Elicit(ctx, &engine.ElicitRequest{Message: "m", URL: "https://example.com/", ElicitationID: "e"})
		return "t", err
	})
	tool("pages", func(context.Context, *engine.Call) (string, error) {
		return "", engine.NeedURL("m", &engine.ElicitRequest{Message: "m", URL: "https://example.com/", ElicitationID: "e"})
	})
	tool("sample", func(ctx context.Context, c *engine.Call) (string, error) {
		_, err := c.Sample(ctx, &engine.SampleRequest{MaxTokens: 9, SystemPrompt: "s", Temperature: &half, IncludeContext: "none",
			StopSequences: []string{"a"}, Metadata: json.RawMessage(`{"a":1}`),
			Preferences: json.RawMessage(`{"hints":[{"name":"h"}],"costPriority":0,"speedPriority":0.5,"intelligencePriority":1}`),
			Messages: []engine.SampleMessage{{Role: "user", Content: blocks[:1]}, {Role: "user", Content: blocks[1:2]},
				{Role: "user", Content: blocks[2:3]}}})
		return "t", err
	})
	tool("sampletools", func(ctx context.Context, c *engine.Call) (string, error) {
		_, err := c.Sample(ctx, &engine.SampleRequest{MaxTokens: 9, ToolChoice: "auto",
			Tools: []engine.Tool{{Name: "f", Title: "t", Description: "d", Icons: icons, Meta: meta, Annotations: &engine.ToolAnnotations{Title: "t"}}},
			Messages: []engine.SampleMessage{{Role: "user", Content: blocks[:2]},
				{Role: "assistant", Content: []engine.Content{engine.ToolUse{ID: "c", Name: "f", Input: json.RawMessage(`{"a":1}`), Meta: meta}}},
				{Role: "user", Content: []engine.Content{engine.ToolResult{ToolUseID: "c", Content: blocks, Meta: meta}}}}})
		return "t", err
	})
	tool("roots", func(ctx context.Context, c *engine.Call) (string, error) { _, err := c.Roots(ctx); return "t", err })
	tool("fails", func(context.Context, *engine.Call) (string, error) { return "", errors.New("no luck") })
	tool("refuses", func(context.Context, *engine.Call) (string, error) {
		return "", &codec.Error{Code: 1000, Message: "m", Data: []byte(`[1]`)}
	})
	must(t, e.AddRawTool(engine.Tool{Name: "schemas", InputSchema: json.RawMessage(`{"type":"object","$defs":{"d":true},"properties":{"yes":true,"no":false,` +
		`"a":{"$ref":"#/$defs/d"}},"required":[],"additionalProperties":false}`)}, nil))
	must(t, addTool(e, engine.Tool{Name: "task", TaskSupport: "optional"}, func(ctx context.Context, c *engine.Call) (string, error) {
		c.Progress(ctx, 1, 2)
		if err := c.Log(ctx, engine.LevelError, "", "l"); err != nil {
			return "", err // it was cancelled
		}
		_, err := c.Roots(ctx)
		return "t", err
	}))
	must(t, e.AddResource(engine.Resource{URI: "blob:", Name: "n"}, func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) {
		return []engine.ResourceContents{{Blob: []byte{1}, MIMEType: "m", Meta: meta}, contents}, nil
	}))
	must(t, e.AddPrompt(engine.Prompt{Name: "completes", Arguments: []engine.PromptArgument{{Name: "a"}},
		Complete: func(context.Context, *engine.Call, string, string, map[string]string) (engine.Completion, error) {
			total := 500
			return engine.Completion{Values: strings.Split(strings.Repeat("v ", 149)+"v", " "), Total: &total}, nil
		}}, nil))
	return e
}

// sweepRequests are requests that every revision is asked.
var sweepRequests = []struct{ method, params string }{
	{codec.MethodToolsList, ``}, {codec.MethodToolsList, `{"cursor":"x"}`},
	{codec.MethodResourcesList, ``}, {codec.MethodResourceTemplatesList, ``}, {codec.MethodPromptsList, ``},
	{codec.MethodResourcesRead, `{"uri":"a:"}`}, {codec.MethodResourcesRead, `{"uri":"blob:"}`},
	{codec.MethodResourcesRead, `{"uri":"no:"}`}, {codec.MethodResourcesRead, `{}`},
	{codec.MethodPromptsGet, `{"name":"prompt","arguments":{"n":"v"}}`}, {codec.MethodPromptsGet, `{"name":"prompt"}`}, {codec.MethodPromptsGet, `{"name":"no"}`},
	{codec.MethodComplete, `{"ref":{"type":"ref/prompt","name":"completes"},"argument":{"name":"a","value":"v"}}`},
	{codec.MethodComplete, `{"ref":{"type":"ref/resource","uri":"b:{c}"},"argument":{"name":"c","value":"v"}}`},
	{codec.MethodComplete, `{"ref":{"type":"ref/prompt","name":"no"},"argument":{"name":"a","value":"v"}}`},
	{codec.MethodToolsCall, `{"name":"tool"}`}, {codec.MethodToolsCall, `{"name":"no"}`}, {codec.MethodToolsCall, `{"name":"tool","arguments":[]}`},
	{codec.MethodToolsCall, `{"name":"schemas","arguments":{"x":1}}`},
	{codec.MethodToolsCall, `{"name":"talk"}`}, {codec.MethodToolsCall, `{"name":"form"}`}, {codec.MethodToolsCall, `{"name":"lists"}`},
	{codec.MethodToolsCall, `{"name":"page"}`}, {codec.MethodToolsCall, `{"name":"pages"}`}, {codec.MethodToolsCall, `{"name":"sample"}`},
	{codec.MethodToolsCall, `{"name":"sampletools"}`}, {codec.MethodToolsCall, `{"name":"roots"}`}, {codec.MethodToolsCall, `{"name":"fails"}`},
	{codec.MethodToolsCall, `{"name":"refuses"}`}, {codec.MethodToolsCall, `{"name":"task"}`},
	{codec.MethodPing, ``}, {codec.MethodSetLevel, `{"level":"debug"}`}, {codec.MethodSetLevel, `{"level":"loud"}`},
	{codec.MethodResourcesSubscribe, `{"uri":"a:"}`}, {codec.MethodResourcesSubscribe, `{"uri":"no:"}`},
	{codec.MethodTasksList, ``}, {codec.MethodTasksGet, `{"taskId":"x"}`}, {codec.MethodDiscover, ``}, {"no/such", `{"a":1}`},
}

// TestSweepLegacy calls everything in every revision with a handshake. The peer
// holds each frame to the schema.
func TestSweepLegacy(t *testing.T) {
	needSchemas(t)
	e := newRichEngine(t)
	for _, rev := range legacy {
		for _, caps := range []string{everything, `{}`} {
			p := connectWith(t, e, rev, caps, func(method string, params []byte) string {
				if codec.Member(params, "requestedSchema", "properties", "s") != nil {
					return `{"action":"accept","content":{"s":"s"}}`
				}
				return yes(method, params)
			})
			for _, r := range sweepRequests {
				params := strings.TrimSuffix(r.params, "}")
				if params == "" {
					params = "{"
				} else if params != "{" {
					params += ","
				}
				p.frames("1", r.method, params+`"_meta":{"progressToken":"p","a/b":1}}`)
			}
			must(t, p.session.Ping(t.Context()))
			must(t, p.session.Log(engine.LevelAlert, "l", "d"))
			p.session.NotifyElicitationComplete("e")
			e.ResourceUpdated("a:")
			for _, list := range []string{"tools", "resources", "prompts"} {
				e.NotifyListChanged(list)
			}
			if rev == engine.Rev20251125 && caps == everything {
				id := createTask(t, p, "task")
				p.result(codec.MethodTasksResult, aboutTask(id))
				for _, method := range []string{codec.MethodTasksGet, codec.MethodTasksList, codec.MethodTasksCancel} {
					p.result(method, aboutTask(id))
				}
				id = createTask(t, p, "task")
				p.result(codec.MethodTasksCancel, aboutTask(id))
			}
			if rev == engine.Rev20250326 {
				r := new(reply)
				frame := `[` + request("1", "ping", "") + `,` + request("2", codec.MethodToolsCall, `{"name":"tool"}`) + `,` + request("3", "no/such", "") + `]`
				p.session.ReceiveBatch(t.Context(), []byte(frame), watch(t, p.session.Revision, frame, r))
				if got := r.take(); len(got) != 1 {
					t.Errorf("a batch: got %v, want one frame", got)
				}
			}
			asked := len(p.taken())
			if want := map[bool]bool{true: true, false: false}[caps == everything]; (asked > 1) != want {
				t.Errorf("%v: got %d requests of the server, with %s", rev, asked, caps)
			}
			waitFor(t, "notifications", func() bool { return len(p.notes.take()) > 0 || rev != engine.Rev20251125 })
			p.session.Close()
		}
	}
}

// TestSweepModern does it without.
func TestSweepModern(t *testing.T) {
	needSchemas(t)
	e := newRichEngine(t)
	for _, caps := range []string{everything, `{}`} {
		c := newModern(t, e).with(caps).asking(`"progressToken":"p","io.modelcontextprotocol/logLevel":"debug","a/b":1`)
		for _, r := range sweepRequests {
			frames := c.frames(r.method, r.params)
			if strings.Contains(frames[len(frames)-1], `"input_required"`) && !strings.Contains(r.params, "pages") {
				quiet := c.asking("")
				quiet.rounds(r.method, r.params, func(method string, params []byte) string {
					if codec.Member(params, "requestedSchema", "properties", "s") != nil {
						return `{"action":"accept","content":{"s":"s"}}`
					}
					return yes(method, params)
				})
			}
		}
		if caps == everything {
			id := createModern(t, c, "task")
			waitFor(t, "the task's question", func() bool {
				return status(c.result(codec.MethodTasksGet, aboutTask(id))) == "input_required"
			})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			r, done := c.start(ctx, listenFrame(c, `"s"`, `{"taskIds":["`+id+`"],"toolsListChanged":true,"promptsListChanged":true,`+
				`"resourcesListChanged":true,"resourceSubscriptions":["a:"]}`))
			waitFor(t, "the acknowledgement", func() bool { return total([]*reply{r}) == 1 })
			c.result(codec.MethodTasksUpdate, `{"taskId":"`+id+`","inputResponses":{"input":{"roots":[]}}}`)
			e.ResourceUpdated("a:")
			for _, list := range []string{"tools", "resources", "prompts"} {
				e.NotifyListChanged(list)
			}
			waitFor(t, "five kinds of notifications", func() bool {
				seen := make(map[string]bool)
				r.mu.Lock()
				defer r.mu.Unlock()
				for _, frame := range r.frames {
					seen[codec.Text([]byte(frame), "method")] = true
				}
				return len(seen) == 6 // and the acknowledgement
			})
			c.result(codec.MethodTasksCancel, aboutTask(id))
			cancel()
			<-done
		}
		for _, frame := range []string{
			request("1", codec.MethodToolsList, metaOf(`"v9"`, "{}", "")), request("1", codec.MethodToolsList, ""),
		} {
			c.sent(frame, headersFor(frame))
		}
		frame := c.frame("1", codec.MethodToolsList, "")
		c.sent(frame, headersFor(""))
	}
}
