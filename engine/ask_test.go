package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// allKinds is a form with a field of every kind that 2025-11-25 has.
const allKinds = `{"type":"object","properties":{` +
	`"s":{"type":"string","title":"S","minLength":1,"maxLength":9,"format":"email","default":"a@b"},` +
	`"n":{"type":"number","minimum":0.5,"maximum":99.5,"default":95.5},"i":{"type":"integer","minimum":1,"default":3},` +
	`"b":{"type":"boolean","default":true},` +
	`"u":{"type":"string","enum":["a","b"],"default":"a"},"l":{"type":"string","enum":["a","b"],"enumNames":["A","B"]},` +
	`"t":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}],"default":"b"}},"required":["s"]}`

// lists of choices, which only 2025-11-25 and later have.
const choiceLists = `{"type":"object","properties":{` +
	`"m":{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1,"maxItems":2,"default":["a"]},` +
	`"o":{"type":"array","items":{"anyOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]},"default":[]}}}`

// TestQuestions checks what is sent for every kind of question, in each revision
// and for several clients, and that nothing is where it may not be.
func TestQuestions(t *testing.T) {
	half := 0.5
	text := []engine.SampleMessage{{Role: "user", Content: []engine.Content{engine.Text{Text: "hi", Meta: meta}}}}
	two := []engine.SampleMessage{{Role: "user", Content: []engine.Content{engine.Text{Text: "a"}, engine.Image{Data: []byte{1}, MIMEType: "image/png"}}}}
	audio := []engine.SampleMessage{{Role: "user", Content: []engine.Content{engine.Audio{Data: []byte{1}, MIMEType: "audio/wav"}}}}
	tools := []engine.SampleMessage{
		{Role: "assistant", Content: []engine.Content{engine.ToolUse{ID: "c1", Name: "f"}}},
		{Role: "user", Content: []engine.Content{engine.ToolResult{ToolUseID: "c1", Content: []engine.Content{engine.Text{Text: "r"}},
			Structured: json.RawMessage(`{"a":1}`), IsError: true, Meta: meta}}},
	}
	form := func(schema string) *engine.ElicitRequest {
		return &engine.ElicitRequest{Message: "m", Schema: json.RawMessage(schema)}
	}
	page := &engine.ElicitRequest{Message: "m", URL: "https://example.com/x", ElicitationID: "e1"}
	const (
		plainKinds = `{"type":"object","properties":{` +
			`"s":{"type":"string","title":"S","minLength":1,"maxLength":9,"format":"email"},` +
			`"n":{"type":"number","minimum":0.5,"maximum":99.5},"i":{"type":"integer","minimum":1},"b":{"type":"boolean","default":true},` +
			`"u":{"type":"string","enum":["a","b"]},"l":{"type":"string","enum":["a","b"],"enumNames":["A","B"]},` +
			`"t":{"type":"string","enum":["a","b"],"enumNames":["A","B"]}},"required":["s"]}`
		noSampling, noTools = "lacks sampling", "lacks sampling.tools"
		noElicitation       = "lacks elicitation"
		noURL, noForm       = "lacks elicitation.url", "lacks elicitation.form"
		oneBlock            = "the client's revision REV takes one block of content in a message"
	)
	sampled := func(messages, rest string) string { return `{"messages":[` + messages + `],"maxTokens":9` + rest + `}` }
	q := newQuestioner(t)
	const hi = `{"role":"user","content":{"type":"text","text":"hi"}}`
	const hiMeta = `{"role":"user","content":{"type":"text","text":"hi","_meta":{"a":1}}}`
	const wav = `{"role":"user","content":{"type":"audio","data":"AQ==","mimeType":"audio/wav"}}`
	for _, c := range []struct {
		name, caps string
		ask        engine.Ask
		want       map[engine.Revision]string // params, or the fault; that of an earlier revision goes on
	}{
		{"sampling", `{"sampling":{}}`, &engine.SampleRequest{Messages: text, MaxTokens: 9}, map[engine.Revision]string{
			engine.Rev20241105: sampled(hi, ``), engine.Rev20250618: sampled(hiMeta, ``)}},
		{"all of sampling", everything, &engine.SampleRequest{Messages: text, MaxTokens: 9, SystemPrompt: "s", IncludeContext: "thisServer",
			Temperature: &half, StopSequences: []string{"a", "b"}, Preferences: json.RawMessage(`{"hints":[{"name":"x"}],"costPriority":0.5}`),
			Metadata: json.RawMessage("{\"k\":\n1}")}, map[engine.Revision]string{
			engine.Rev20241105: sampled(hi, `,"systemPrompt":"s","includeContext":"thisServer","temperature":0.5,"stopSequences":["a","b"],`+
				`"modelPreferences":{"hints":[{"name":"x"}],"costPriority":0.5},"metadata":{"k":1}`),
			engine.Rev20250618: sampled(hiMeta, `,"systemPrompt":"s","includeContext":"thisServer","temperature":0.5,"stopSequences":["a","b"],`+
				`"modelPreferences":{"hints":[{"name":"x"}],"costPriority":0.5},"metadata":{"k":1}`)}},
		{"sampling of a client without", `{"elicitation":{}}`, &engine.SampleRequest{Messages: text, MaxTokens: 9}, map[engine.Revision]string{
			engine.Rev20241105: noSampling}},
		{"context not declared", `{"sampling":{}}`, &engine.SampleRequest{Messages: audio, MaxTokens: 9, IncludeContext: "allServers"}, map[engine.Revision]string{
			engine.Rev20241105: sampled(`{"role":"user","content":{"type":"text","text":"[audio of type audio/wav, 1 bytes, which this protocol revision cannot carry]"}}`,
				`,"includeContext":"allServers"`),
			engine.Rev20250326: sampled(wav, `,"includeContext":"allServers"`),
			engine.Rev20251125: "lacks sampling.context"}},
		{"several blocks", everything, &engine.SampleRequest{Messages: two, MaxTokens: 9}, map[engine.Revision]string{
			engine.Rev20241105: oneBlock,
			engine.Rev20251125: sampled(`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","data":"AQ==","mimeType":"image/png"}]}`, ``)}},
		{"no block", everything, &engine.SampleRequest{Messages: []engine.SampleMessage{{Role: "user"}}, MaxTokens: 9}, map[engine.Revision]string{
			engine.Rev20241105: oneBlock,
			engine.Rev20251125: sampled(`{"role":"user","content":[]}`, ``)}},
		{"tools", everything, &engine.SampleRequest{Messages: tools, MaxTokens: 9, ToolChoice: "required",
			Tools: []engine.Tool{{Name: "f", Description: "d"}}}, map[engine.Revision]string{
			engine.Rev20241105: noTools,
			engine.Rev20251125: sampled(`{"role":"assistant","content":{"type":"tool_use","id":"c1","name":"f","input":{}}},`+
				`{"role":"user","content":{"type":"tool_result","toolUseId":"c1","content":[{"type":"text","text":"r"}],"structuredContent":{"a":1},"isError":true,"_meta":{"a":1}}}`,
				`,"tools":[{"name":"f","description":"d","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"required"}`)}},
		{"tools of a client without", `{"sampling":{}}`, &engine.SampleRequest{Messages: text, MaxTokens: 9, ToolChoice: "auto"}, map[engine.Revision]string{
			engine.Rev20241105: noTools}},
		{"tool blocks alone", everything, &engine.SampleRequest{Messages: tools[:1], MaxTokens: 9}, map[engine.Revision]string{
			engine.Rev20241105: "the client's revision REV has no tools in sampling",
			engine.Rev20251125: sampled(`{"role":"assistant","content":{"type":"tool_use","id":"c1","name":"f","input":{}}}`, ``)}},
		{"content that no model takes", everything, &engine.SampleRequest{MaxTokens: 9, Messages: []engine.SampleMessage{
			{Role: "user", Content: []engine.Content{engine.ResourceLink{URI: "a:", Name: "n"}}}}}, map[engine.Revision]string{
			engine.Rev20241105: "a message for a model holds no resources"}},
		{"broken metadata", everything, &engine.SampleRequest{Messages: text, MaxTokens: 9, Metadata: json.RawMessage(`{`)}, map[engine.Revision]string{
			engine.Rev20241105: "what is asked of the client is not valid JSON"}},
		{"nothing to sample", everything, &engine.SampleRequest{MaxTokens: 9}, map[engine.Revision]string{
			engine.Rev20241105: "a sampling request has messages and MaxTokens"}},

		{"all kinds of fields", everything, form(allKinds), map[engine.Revision]string{
			engine.Rev20241105: noElicitation,
			engine.Rev20250618: `{"message":"m","requestedSchema":` + plainKinds + `}`,
			engine.Rev20251125: `{"mode":"form","message":"m","requestedSchema":` + allKinds + `}`}},
		{"lists of choices", everything, form(choiceLists), map[engine.Revision]string{
			engine.Rev20241105: noElicitation,
			engine.Rev20250618: `the client's revision REV has no list fields, as "m" is`,
			engine.Rev20251125: `{"mode":"form","message":"m","requestedSchema":` + choiceLists + `}`}},
		{"a form for a client that has only forms", `{"elicitation":{}}`, form(nameForm), map[engine.Revision]string{
			engine.Rev20241105: noElicitation,
			engine.Rev20250618: `{"message":"m","requestedSchema":` + nameForm + `}`,
			engine.Rev20251125: `{"mode":"form","message":"m","requestedSchema":` + nameForm + `}`}},
		{"a form for a client that has only pages", `{"elicitation":{"url":{}}}`, form(nameForm), map[engine.Revision]string{
			engine.Rev20241105: noElicitation,
			engine.Rev20250618: `{"message":"m","requestedSchema":` + nameForm + `}`, // there were no modes
			engine.Rev20251125: noForm}},
		{"a form for a client without", `{"sampling":{}}`, form(nameForm), map[engine.Revision]string{engine.Rev20241105: noElicitation}},
		{"a nested form", everything, form(`{"type":"object","properties":{"o":{"type":"object"}}}`), map[engine.Revision]string{
			engine.Rev20241105: noElicitation,
			engine.Rev20250618: `field "o" of a form is of type "object": forms are flat`}},
		{"no form", everything, form(`{"type":"string"}`), map[engine.Revision]string{
			engine.Rev20241105: noElicitation,
			engine.Rev20250618: `the schema of a form is an object with "type":"object"`}},
		{"a page", everything, page, map[engine.Revision]string{
			engine.Rev20241105: noElicitation, engine.Rev20250618: noURL,
			engine.Rev20251125: `{"mode":"url","message":"m","elicitationId":"e1","url":"https://example.com/x"}`,
			engine.Rev20260728: `{"mode":"url","message":"m","url":"https://example.com/x"}`}},
		{"a page for a client that has only forms", `{"elicitation":{}}`, page, map[engine.Revision]string{
			engine.Rev20241105: noElicitation, engine.Rev20250618: noURL}},
		{"a page without an id", everything, &engine.ElicitRequest{Message: "m", URL: "https://example.com/x"}, map[engine.Revision]string{
			engine.Rev20241105: noElicitation, engine.Rev20250618: noURL,
			engine.Rev20251125: "an elicitation in URL mode has an ElicitationID",
			engine.Rev20260728: `{"mode":"url","message":"m","url":"https://example.com/x"}`}},

		{"roots", `{"roots":{}}`, engine.RootsRequest{}, map[engine.Revision]string{engine.Rev20241105: ``}},
		{"roots of a client without", `{}`, engine.RootsRequest{}, map[engine.Revision]string{engine.Rev20241105: "lacks roots"}},
	} {
		want := ""
		for rev := engine.Rev20241105; rev <= engine.Rev20260728; rev++ {
			if w, ok := c.want[rev]; ok {
				want = w
			}
			check(t, rev.String()+" "+c.name, q.put(rev, c.caps, c.ask), strings.ReplaceAll(want, "REV", rev.String()))
		}
	}
}

// questioner is an engine with a tool that asks what it is told to.
type questioner struct {
	t     *testing.T
	e     *engine.Engine
	ask   engine.Ask
	fault error // that the tool got
}

func newQuestioner(t *testing.T) *questioner {
	t.Helper()
	q := &questioner{t: t}
	q.e, _ = newEngine(t, nil)
	must(t, addTool(q.e, engine.Tool{Name: "ask"}, func(ctx context.Context, c *engine.Call) (string, error) {
		_, q.fault = c.AskAll(ctx, q.ask)
		return "", q.fault
	}))
	return q
}

// put asks a client of a revision, and gives the params of the request, or why
// there was none.
func (q *questioner) put(rev engine.Revision, caps string, ask engine.Ask) string {
	q.t.Helper()
	q.ask = ask
	if rev.IsModern() {
		result := newModern(q.t, q.e).with(caps).call("ask", "{}")
		question := codec.Member([]byte(result), "inputRequests", "input-1")
		if question == nil {
			return q.words()
		}
		return string(codec.Member(question, "params"))
	}
	p := connectWith(q.t, q.e, rev, caps, func(string, []byte) string { return `{"code":-1,"message":"no"}` })
	p.call("ask", "{}")
	frames := p.taken()
	if len(frames) == 0 {
		return q.words()
	}
	if refused := (*codec.Error)(nil); !errors.As(q.fault, &refused) || refused.Code != -1 || refused.Message != "no" {
		q.t.Errorf("%v: the client's refusal: got %v", rev, q.fault)
	}
	return string(codec.Member([]byte(frames[0]), "params"))
}

// words says why nothing was asked.
func (q *questioner) words() string {
	if missing := (*engine.CapabilityError)(nil); errors.As(q.fault, &missing) {
		return "lacks " + missing.Capability
	}
	return strings.TrimPrefix(fmt.Sprint(q.fault), "engine: ")
}

// TestSameHandlerInBothEras runs one handler in every revision that has forms.
func TestSameHandlerInBothEras(t *testing.T) {
	e, _ := newEngine(t, nil)
	runs := 0
	must(t, addTool(e, engine.Tool{Name: "greet"}, func(ctx context.Context, c *engine.Call) (string, error) {
		runs++
		r, err := c.Elicit(ctx, askName(""))
		if err != nil {
			return "", err
		}
		if r.Action != "accept" {
			return "nobody: " + r.Action, nil
		}
		return "hello " + codec.Text(r.Content, "name"), nil
	}))
	for _, c := range []struct{ answer, want string }{
		{`{"action":"accept","content":{"name":"Ann"}}`, "hello Ann"},
		{`{"action":"decline"}`, "nobody: decline"},
		{`{"action":"cancel","content":{"name":"Ann"}}`, "nobody: cancel"},
	} {
		answer := func(string, []byte) string { return c.answer }
		for _, rev := range []engine.Revision{engine.Rev20250618, engine.Rev20251125} {
			p := connectWith(t, e, rev, `{"elicitation":{}}`, answer)
			check(t, rev.String()+" "+c.answer, p.call("greet", "{}"), text(c.want))
			if got := len(p.taken()); got != 1 {
				t.Errorf("%v: got %d requests to the client, want 1", rev, got)
			}
		}
		runs = 0
		got, n := newModern(t, e).with(`{"elicitation":{}}`).rounds(codec.MethodToolsCall, `{"name":"greet"}`, answer)
		check(t, "2026-07-28 "+c.answer, got, complete(`"content":[{"type":"text","text":"`+c.want+`"}]`))
		if n != 2 || runs != 2 {
			t.Errorf("2026-07-28: took %d rounds and %d runs, want 2 and 2", n, runs)
		}
	}
}

// TestAnswers checks what a handler gets of the client's answers in a session.
func TestAnswers(t *testing.T) {
	e, _ := newEngine(t, nil)
	must(t, addTool(e, engine.Tool{Name: "elicit"}, func(ctx context.Context, c *engine.Call) (string, error) {
		r, err := c.Elicit(ctx, askName(""))
		if err != nil {
			return "", err
		}
		return r.Action + " " + string(r.Content), nil
	}))
	must(t, addTool(e, engine.Tool{Name: "sample"}, func(ctx context.Context, c *engine.Call) (string, error) {
		r, err := c.Sample(ctx, &engine.SampleRequest{MaxTokens: 1, Messages: []engine.SampleMessage{{Role: "user", Content: []engine.Content{engine.Text{}}}}})
		if err != nil {
			return "", err
		}
		words := fmt.Sprint(r.Role, " ", r.Model, " ", r.StopReason, " ", len(r.Content), " ", r.Text())
		for _, use := range r.ToolUses() {
			words += " " + use.ID + " " + use.Name + string(use.Input)
		}
		return words, nil
	}))
	must(t, addTool(e, engine.Tool{Name: "roots"}, func(ctx context.Context, c *engine.Call) (string, error) {
		roots, err := c.Roots(ctx)
		return fmt.Sprint(roots), err
	}))
	quoted := func(s string) string { return strings.Trim(string(codec.AppendString(nil, s)), `"`) }
	for _, c := range []struct{ tool, answer, want string }{
		{"elicit", `{"action":"accept","content":{"name":"A"}}`, text(quoted(`accept {"name":"A"}`))},
		{"elicit", `{"action":"decline","content":{"name":"A"}}`, text("decline ")},
		{"elicit", `{"action":"accept"}`, toolError(`engine: the client's answer to an elicitation does not fit the form: /name: required member is missing`)},
		{"elicit", `{"action":"accept","content":{"name":1}}`, toolError(`engine: the client's answer to an elicitation does not fit the form: /name: must be of type string`)},
		{"elicit", `{"action":"accept","content":[]}`, toolError(`engine: the client's answer to an elicitation is no object`)},
		{"elicit", `{"action":"perhaps"}`, toolError(`engine: the client's answer to an elicitation has the action \"perhaps\"`)},
		{"elicit", `{}`, toolError(`engine: the client's answer to an elicitation has the action \"\"`)},
		{"sample", `{"role":"assistant","content":{"type":"text","text":"t"},"model":"m","stopReason":"endTurn"}`, text("assistant m endTurn 1 t")},
		{"sample", `{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"c","name":"f","input":{}},{"type":"text","text":"b"}],"model":"m"}`,
			text("assistant m  3 ab c f{}")},
		{"sample", `{"role":"assistant","model":"m"}`, toolError("engine: the client's answer to a sampling request has no content")},
		{"roots", `{"roots":[{"uri":"file:///x","name":"X"},{"uri":"file:///y"}]}`, text("[{file:///x X} {file:///y }]")},
		{"roots", `{"roots":[]}`, text("[]")},
		{"roots", `{}`, toolError("engine: the client's answer has no list of roots")},
		{"roots", `{"code":-32601,"message":"Method not found","data":{"a":1}}`,
			`-32601 Method not found {"a":1}`},
	} {
		p := connectWith(t, e, engine.Rev20251125, everything, func(string, []byte) string { return c.answer })
		check(t, c.tool+" answered "+c.answer, p.call(c.tool, "{}"), c.want)
	}
}
