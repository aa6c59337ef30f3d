package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

type addIn struct {
	X int `json:"x" jsonschema:"left operand"`
	Y int `json:"y,omitempty"`
}

type addOut struct {
	Sum int `json:"sum"`
}

func add(_ context.Context, _ *engine.Call, in addIn) (addOut, error) {
	return addOut{in.X + in.Y}, nil
}

const addSchema = `{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"integer"}},` +
	`"required":["x"],"additionalProperties":false}`

// minimumSchema needs the validator of the library.
const minimumSchema = `{"type":"object","properties":{"x":{"type":"integer","minimum":-100},"y":{"type":"integer"}},` +
	`"required":["x"],"additionalProperties":false}`

// addTools registers the same tool in each way there is.
func addTools(t *testing.T, e *engine.Engine) []string {
	t.Helper()
	raw := func(_ context.Context, _ *engine.Call, args, out []byte) ([]byte, error) {
		x, _ := codec.Number(args, "x")
		y, _ := codec.Number(args, "y")
		return engine.AppendTextResult(out, fmt.Sprintf(`{"sum":%g}`, x+y)), nil
	}
	must(t, engine.AddTool(e, engine.Tool{Name: "typed"}, add))
	must(t, engine.AddTool(e, engine.Tool{Name: "typed-own-schema", InputSchema: json.RawMessage(minimumSchema)}, add))
	must(t, e.AddRawTool(engine.Tool{Name: "raw", InputSchema: json.RawMessage(addSchema)}, raw))
	must(t, e.AddRawTool(engine.Tool{Name: "raw-full", InputSchema: json.RawMessage(minimumSchema)}, raw))
	return []string{"typed", "typed-own-schema", "raw", "raw-full"}
}

func TestArguments(t *testing.T) {
	e, _ := newEngine(t, nil)
	tools := addTools(t, e)
	for _, rev := range legacy {
		p := connect(t, e, rev)
		for _, name := range tools {
			for _, c := range []struct{ arguments, want string }{
				{`,"arguments":{"x":1,"y":2}`, `{"sum":3}`},
				{`,"arguments":{"x":1}`, `{"sum":1}`},
				{`,"arguments":{"x":1e1}`, `{"sum":10}`},
				{`,"arguments":{"\u0078":1}`, `{"sum":1}`},
				{`,"arguments":{"x":-1,"y":1.0}`, `{"sum":0}`},
				{``, `invalid`},
				{`,"arguments":{}`, `invalid`},
				{`,"arguments":{"y":1}`, `invalid`},
				{`,"arguments":{"x":"1"}`, `invalid`},
				{`,"arguments":{"x":1.5}`, `invalid`},
				{`,"arguments":{"x":null}`, `invalid`},
				{`,"arguments":{"x":[1]}`, `invalid`},
				{`,"arguments":{"x":1,"z":2}`, `invalid`},
				{`,"arguments":{"X":1}`, `invalid`},
				{`,"arguments":[1]`, `malformed`},
				{`,"arguments":"x"`, `malformed`},
			} {
				params := `{"name":"` + name + `"` + c.arguments + `}`
				got := p.result(codec.MethodToolsCall, params)
				what := fmt.Sprintf("%v tools/call %s", rev, params)
				switch c.want {
				case "malformed":
					check(t, what, got, "-32602 Invalid params: arguments must be an object")
				case "invalid":
					checkInvalid(t, what, got, rev)
				default:
					check(t, what, textOf(got), c.want)
				}
			}
		}
	}
}

// textOf gives the text of a result's first block.
func textOf(result string) (text string) {
	codec.EachElement(codec.Member([]byte(result), "content"), func(block []byte) bool {
		text = codec.Text(block, "text")
		return false
	})
	return text
}

// checkInvalid checks the answer to arguments that do not satisfy the schema: a
// tool error from 2025-11-25 on, a protocol error before.
func checkInvalid(t *testing.T, what, got string, rev engine.Revision) {
	t.Helper()
	if rev >= engine.Rev20251125 {
		if !codec.Bool([]byte(got), "isError") || !strings.HasPrefix(textOf(got), "Invalid arguments: ") {
			t.Errorf("%s: got %s, want a tool error about the arguments", what, got)
		}
	} else if !strings.HasPrefix(got, "-32602 Invalid arguments: ") {
		t.Errorf("%s: got %s, want -32602 about the arguments", what, got)
	}
}

func TestCallMalformed(t *testing.T) {
	e, _ := newEngine(t, nil)
	echo(t, e, "echo")
	p := connect(t, e, engine.Rev20251125)
	noName := `-32602 Invalid params: "name" must be a string`
	for _, c := range []struct{ params, want string }{
		{``, noName},
		{`{}`, noName},
		{`{"name":1}`, noName},
		{`{"name":null}`, noName},
		{`{"Name":"echo"}`, noName},
		{`{"name":"Echo"}`, "-32602 Unknown tool: Echo"},
		{`{"name":""}`, "-32602 Unknown tool: "},
		{`{"name":"` + strings.Repeat("x", 200) + `"}`, "-32602 Unknown tool: " + strings.Repeat("x", 128) + "…"},
		{`{"name":"echo"}`, text(`{}`)},
		{`{"name":"\u0065cho","arguments":{ "a" : "\n" }}`, text(`{ \"a\" : \"\\n\" }`)},
		{`{"name":"echo","_meta":{"progressToken":1.5}}`, "-32602 Invalid params: progressToken must be a string or an integer"},
		{`{"name":"echo","_meta":{"progressToken":null}}`, "-32602 Invalid params: progressToken must be a string or an integer"},
	} {
		check(t, "tools/call "+c.params, p.result(codec.MethodToolsCall, c.params), c.want)
	}
}

// TestOutputs has typed tools of each kind of output.
func TestOutputs(t *testing.T) {
	e, _ := newEngine(t, nil)
	type none struct{}
	must(t, engine.AddTool(e, engine.Tool{Name: "struct"}, func(context.Context, *engine.Call, none) (addOut, error) {
		return addOut{3}, nil
	}))
	must(t, engine.AddTool(e, engine.Tool{Name: "string"}, func(context.Context, *engine.Call, none) (string, error) {
		return "a\n\"b\"\u2028</c>", nil
	}))
	must(t, engine.AddTool(e, engine.Tool{Name: "slice"}, func(context.Context, *engine.Call, none) ([]int, error) {
		return []int{1, 2}, nil
	}))
	must(t, engine.AddTool(e, engine.Tool{Name: "result"}, func(context.Context, *engine.Call, none) (*engine.Result, error) {
		return &engine.Result{IsError: true, Meta: engine.Meta(`{"a":1}`), Content: []engine.Content{engine.Text{Text: "t"}}}, nil
	}))
	must(t, engine.AddTool(e, engine.Tool{Name: "nothing"}, func(context.Context, *engine.Call, none) (*engine.Result, error) {
		return nil, nil
	}))
	old, now := connect(t, e, engine.Rev20250326), connect(t, e, engine.Rev20251125)
	for _, c := range []struct{ name, wantOld, wantNow string }{
		{"struct", text(`{\"sum\":3}`), `{"content":[{"type":"text","text":"{\"sum\":3}"}],"structuredContent":{"sum":3}}`},
		{"string", text(`a\n\"b\"\u2028</c>`), text(`a\n\"b\"\u2028</c>`)},
		{"slice", text(`[1,2]`), text(`[1,2]`)},
		{"result", `{"content":[{"type":"text","text":"t"}],"isError":true,"_meta":{"a":1}}`,
			`{"content":[{"type":"text","text":"t"}],"isError":true,"_meta":{"a":1}}`},
		{"nothing", `{"content":[]}`, `{"content":[]}`},
	} {
		check(t, "2025-03-26 "+c.name, old.call(c.name, "{}"), c.wantOld)
		check(t, "2025-11-25 "+c.name, now.call(c.name, "{}"), c.wantNow)
	}
}

// TestToolErrors has a tool fail in every way that an error can tell, and
// checks that none tells the peer about the machine.
func TestToolErrors(t *testing.T) {
	e, _ := newEngine(t, nil)
	var failure error
	must(t, engine.AddTool(e, engine.Tool{Name: "typed"}, func(context.Context, *engine.Call, struct{}) (addOut, error) {
		return addOut{}, failure
	}))
	must(t, e.AddRawTool(engine.Tool{Name: "raw"}, func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
		return append(out, `{"content":[{"ty`...), failure
	}))
	path := &fs.PathError{Op: "open", Path: "/srv/secret data/key", Err: fs.ErrNotExist}
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("division by zero"), toolError("division by zero")},
		{errors.New(""), toolError("the tool failed")},
		{codec.NewError(-32602, "no such user"), "-32602 no such user"},
		{fmt.Errorf("wrapped: %w", &codec.Error{Code: 7, Message: "m", Data: []byte(`{"a":1}`)}), `7 m {"a":1}`},
		{context.DeadlineExceeded, toolError("context deadline exceeded")},
		{path, toolError("open …: file does not exist")},
		{fmt.Errorf("reading: %w", path), toolError("reading: open …: file does not exist")},
		{errors.New("open /home/somebody/.ssh/id_rsa: denied"), toolError("open …/id_rsa: denied")},
		{errors.New(`in "/var/lib/x/y.db", (/etc/passwd) and path=/opt/a/b`), toolError(`in \"…/y.db\", (…/passwd) and path=…/b`)},
		{errors.New(`open C:\Users\me\key.pem: denied`), toolError(`open …\\key.pem: denied`)},
		{errors.New("failed:/home/me/a.txt"), toolError("failed:…/a.txt")},
		{errors.New("see `/home/me/a.txt` or </home/me/b.txt>"), toolError("see `…/a.txt` or <…/b.txt>")},
		{errors.New("file:///home/me/a.txt"), toolError("file://…/a.txt")},
		{errors.New("GET https://example.com/a/b: 404"), toolError("GET https://example.com/a/b: 404")},
		{errors.New("1/2 and/or 3/4"), toolError("1/2 and/or 3/4")},
		{errors.New("oh\ngoroutine 7 [running]:\nmain.main()\n\t/src/main.go:3"), toolError("oh")},
	} {
		failure = c.err
		for _, rev := range []engine.Revision{engine.Rev20241105, engine.Rev20251125} {
			p := connect(t, e, rev)
			for _, name := range []string{"typed", "raw"} {
				check(t, fmt.Sprintf("%v %s that fails with %v", rev, name, c.err), p.call(name, "{}"), c.want)
			}
		}
	}
}

func TestRefusedDefinitions(t *testing.T) {
	e, l := newEngine(t, nil)
	raw := func(tool engine.Tool) error { return e.AddRawTool(tool, nil) }
	for what, err := range map[string]error{
		"no name":           raw(engine.Tool{}),
		"long name":         raw(engine.Tool{Name: strings.Repeat("x", 129)}),
		"blank in a name":   raw(engine.Tool{Name: "a b"}),
		"schema, no object": raw(engine.Tool{Name: "a", InputSchema: json.RawMessage(`{"type":"array"}`)}),
		"schema, no JSON":   raw(engine.Tool{Name: "a", InputSchema: json.RawMessage(`{"type":"object"`)}),
		"output schema":     raw(engine.Tool{Name: "a", OutputSchema: json.RawMessage(`[]`)}),
		"meta":              raw(engine.Tool{Name: "a", Meta: engine.Meta(`1`)}),
		"input, no object": engine.AddTool(e, engine.Tool{Name: "a"},
			func(context.Context, *engine.Call, int) (string, error) { return "", nil }),
		"input that has no JSON": engine.AddTool(e, engine.Tool{Name: "a"},
			func(context.Context, *engine.Call, struct{ F func() }) (string, error) { return "", nil }),
		"resource without a URI":  e.AddResource(engine.Resource{Name: "a"}, nil),
		"resource without a name": e.AddResource(engine.Resource{URI: "a:"}, nil),
		"template":                e.AddResourceTemplate(engine.ResourceTemplate{URITemplate: "a:{", Name: "a"}, nil),
		"template without a name": e.AddResourceTemplate(engine.ResourceTemplate{URITemplate: "a:{b}"}, nil),
		"prompt without a name":   e.AddPrompt(engine.Prompt{}, nil),
	} {
		if err == nil {
			t.Errorf("%s: registered", what)
		} else if !strings.Contains(l.String(), "is not registered") {
			t.Errorf("%s: not logged", what)
		}
	}
	if got := e.Stats().ToolRegistrations; got != 0 {
		t.Errorf("ToolRegistrations: got %d, want 0", got)
	}
}
