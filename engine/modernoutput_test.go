package engine_test

import (
	"context"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// TestOutputSchemas registers schemas of any kind of value. Those that are not of
// an object are unknown to sessions.
func TestOutputSchemas(t *testing.T) {
	const broken = "-32603 The tool's structured content breaks its output schema"
	const nothing = "-32603 The tool gave no structured content, which its output schema demands"
	for _, c := range []struct{ schema, structured, session, modern string }{
		{`{"type":"object"}`, `{"a":1}`, "", ""},
		{`{"type":"object"}`, `[1]`, nothing, broken},
		{`{"type":"object"}`, `7`, nothing, broken},
		{`{"type":"object"}`, `null`, nothing, broken},
		{`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, `[]`, nothing, broken},
		{`{"type":"array","items":{"type":"integer"}}`, `[1,2]`, "", ""},
		{`{"type":"array","items":{"type":"integer"}}`, `["x"]`, "", broken},
		{`{"type":"array"}`, `{}`, "", broken},
		{`{"type":"array"}`, ``, "", nothing},
		{`{"type":"string"}`, `"s"`, "", ""},
		{`{"type":["integer","null"]}`, `null`, "", ""},
		{`{"anyOf":[{"type":"object"},{"type":"boolean"}]}`, `true`, "", ""},
		{`{}`, `[{}]`, "", ""},
	} {
		e, _ := newEngine(t, nil)
		must(t, engine.AddTool(e, engine.Tool{Name: "t", OutputSchema: []byte(c.schema)},
			func(context.Context, *engine.Call, struct{}) (*engine.Result, error) {
				return &engine.Result{Content: []engine.Content{engine.Text{Text: "x"}}, Structured: []byte(c.structured)}, nil
			}))
		object := codec.Text([]byte(c.schema), "type") == "object"
		p := connect(t, e, engine.Rev20251125)
		if c.session == "" {
			c.session = text("x")
			if codec.IsObject([]byte(c.structured)) {
				c.session = `{"content":[{"type":"text","text":"x"}],"structuredContent":` + c.structured + `}`
			}
		}
		if c.modern == "" {
			c.modern = complete(`"content":[{"type":"text","text":"x"}],"structuredContent":` + c.structured)
		}
		check(t, "a session, "+c.schema+" "+c.structured, p.call("t", "{}"), c.session)
		check(t, "2026-07-28, "+c.schema+" "+c.structured, newModern(t, e).call("t", "{}"), c.modern)
		listed := codec.Member(first([]byte(p.result(codec.MethodToolsList, "")), "tools"), "outputSchema")
		if (listed != nil) != object {
			t.Errorf("outputSchema in a session: got %s, want it there: %t", listed, object)
		}
		check(t, "outputSchema in 2026-07-28", string(codec.Member(first([]byte(newModern(t, e).result(codec.MethodToolsList, "")), "tools"), "outputSchema")), c.schema)
		_ = e.Shutdown(t.Context())
	}
	e, _ := newEngine(t, nil)
	must(t, engine.AddTool(e, engine.Tool{Name: "list", OutputSchema: []byte(`{"type":"array"}`)},
		func(context.Context, *engine.Call, struct{}) ([]int, error) { return []int{1, 2}, nil }))
	check(t, "a slice", newModern(t, e).call("list", "{}"), complete(`"content":[{"type":"text","text":"[1,2]"}],"structuredContent":[1,2]`))
	check(t, "a slice in a session", connect(t, e, engine.Rev20250618).call("list", "{}"), text("[1,2]"))
	for _, schema := range []string{`[]`, `"x"`, `{`, `true`} {
		if err := e.AddRawTool(engine.Tool{Name: "t", OutputSchema: []byte(schema)}, nil); err == nil {
			t.Errorf("AddRawTool with the output schema %s: no error", schema)
		}
	}
}
