package engine_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

const hour = time.Hour

// TestNameHeaders compares Mcp-Name with what a request is about.
func TestNameHeaders(t *testing.T) {
	e, _ := newEngine(t, nil)
	echo(t, e, "echo")
	ok := func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) { return nil, nil }
	names := []string{"a:b c", "a:ü", " padded ", "=?base64?literal?=", "SGVsbG8=", "=?base64?SGVsbG8=", "=?base64?=", "a:%20?x=1", "a:\tb", "line1\nline2"}
	for _, uri := range names {
		must(t, e.AddResource(engine.Resource{URI: uri, Name: "n"}, ok))
	}
	const differs, malformed = "differs", "malformed"
	c := newModern(t, e)
	for _, r := range []struct {
		uri    string
		header []string
		want   string
	}{
		{"a:b c", []string{"a:b c"}, ""},
		{"a:b c", []string{"\t a:b c  "}, ""}, // HTTP trims
		{"a:b c", []string{"a:b  c"}, differs},
		{"a:b c", []string{"A:b c"}, differs},
		{"a:b c", []string{""}, differs},
		{"a:b c", nil, "missing"},
		{"a:b c", []string{"a:b c", "a:b c"}, "occurs 2 times"},
		{"a:b c", []string{"=?base64?YTpiIGM=?="}, ""}, // encoded without need
		{"a:b c", []string{"=?base64?YTpiIGM?="}, malformed},
		{"a:b c", []string{"=?base64?YTpiIGN=?="}, malformed}, // stray bits
		{"a:b c", []string{"=?base64?YTpi IGM=?="}, malformed},
		{"a:b c", []string{"=?base64?YTpi_GM=?="}, malformed},
		{"a:b c", []string{"=?base64??="}, differs},
		{"a:b c", []string{"=?BASE64?YTpiIGM=?="}, differs},
		{"a:ü", []string{"=?base64?YTrDvA==?="}, ""},
		{"a:ü", []string{"=?base64?YTr8?="}, malformed}, // not UTF-8
		{" padded ", []string{"=?base64?IHBhZGRlZCA=?="}, ""},
		{" padded ", []string{" padded "}, differs},
		{"=?base64?literal?=", []string{"=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="}, ""},
		{"=?base64?literal?=", []string{"=?base64?literal?="}, malformed},
		{"SGVsbG8=", []string{"SGVsbG8="}, ""},
		{"=?base64?SGVsbG8=", []string{"=?base64?SGVsbG8="}, ""},
		{"=?base64?=", []string{"=?base64?="}, ""},
		{"a:%20?x=1", []string{"a:%20?x=1"}, ""},
		{"a:%20?x=1", []string{"a: ?x=1"}, differs},
		{"a:\tb", []string{"=?base64?YToJYg==?="}, ""},
		{"line1\nline2", []string{"=?base64?bGluZTEKbGluZTI=?="}, ""},
	} {
		frame := c.frame("1", codec.MethodResourcesRead, `{"uri":`+string(codec.AppendString(nil, r.uri))+`}`)
		headers := headersFor(frame)
		headers["Mcp-Name"] = r.header
		got := answerOf(t, c.sent(frame, headers), "1")
		switch {
		case r.want == "" && got != complete(`"contents":[],"ttlMs":0,"cacheScope":"private"`),
			r.want == differs && !strings.HasPrefix(got, "-32020 Header mismatch: Mcp-Name header value"),
			r.want == malformed && got != "-32020 Header mismatch: the Mcp-Name header is not valid base64",
			r.want != "" && !strings.HasPrefix(got, "-32020 "),
			strings.Contains(r.want, " ") && !strings.Contains(got, r.want):
			t.Errorf("uri %q, Mcp-Name %q: got %s, want %s", r.uri, r.header, got, r.want)
		}
	}
	// The other headers that may be there once, and are never encoded.
	for name, values := range map[string][]string{
		"Mcp-Method":           {"tools/list", "tools/list"},
		"Mcp-Protocol-Version": {"2026-07-28", "2026-07-28"},
	} {
		frame := c.frame("1", codec.MethodToolsList, "")
		headers := headersFor(frame)
		headers[name] = values
		check(t, "repeated "+name, answerOf(t, c.sent(frame, headers), "1"), "-32020 Header mismatch: the "+name+" header occurs 2 times")
	}
	frame := c.frame("1", codec.MethodToolsList, "")
	headers := headersFor(frame)
	headers.Set("Mcp-Method", "=?base64?dG9vbHMvbGlzdA==?=")
	if got := answerOf(t, c.sent(frame, headers), "1"); !strings.HasPrefix(got, "-32020 ") {
		t.Errorf("an encoded Mcp-Method: got %s, want -32020", got)
	}
}

// TestParamHeaderRegistration registers tools with x-mcp-header members.
func TestParamHeaderRegistration(t *testing.T) {
	property := func(schema string) string { return `{"type":"object","properties":{"a":` + schema + `}}` }
	region := func(kind string) string { return `{"type":` + kind + `,"x-mcp-header":"Region"}` }
	for _, c := range []struct {
		schema string
		ok     bool
	}{
		{property(region(`"string"`)), true},
		{property(region(`"integer"`)), true},
		{property(region(`"boolean"`)), true},
		{property(region(`"number"`)), false},
		{property(region(`"object"`)), false},
		{property(region(`"array"`)), false},
		{property(region(`"null"`)), false},
		{property(region(`["string","null"]`)), false},
		{property(`{"x-mcp-header":"Region"}`), false},
		{property(`{"type":"string","x-mcp-header":"Method"}`), true},
		{property(`{"type":"string","x-mcp-header":"!#$%&'*+-.^_|~` + "`" + `09azAZ"}`), true},
		{property(`{"type":"string","x-mcp-header":""}`), false},
		{property(`{"type":"string","x-mcp-header":"a b"}`), false},
		{property(`{"type":"string","x-mcp-header":"a:b"}`), false},
		{property(`{"type":"string","x-mcp-header":"a\nb"}`), false},
		{property(`{"type":"string","x-mcp-header":"ü"}`), false},
		{property(`{"type":"string","x-mcp-header":7}`), false},
		{property(`{"type":"string","x-mcp-header":null}`), false},
		{`{"type":"object","properties":{"a":` + region(`"string"`) + `,"b":{"type":"string","x-mcp-header":"REGION"}}}`, false},
		{`{"type":"object","properties":{"a":` + region(`"string"`) + `,"b":{"type":"object","properties":{"c":{"type":"string","x-mcp-header":"region"}}}}}`, false},
		{property(`{"type":"object","properties":{"b":` + region(`"string"`) + `}}`), true},
		{property(`{"type":"array","items":` + region(`"string"`) + `}`), false},
		{property(`{"anyOf":[` + region(`"string"`) + `]}`), false},
		{property(`{"oneOf":[` + region(`"string"`) + `]}`), false},
		{property(`{"type":"object","additionalProperties":` + region(`"string"`) + `}`), false},
		{`{"type":"object","allOf":[{"properties":{"a":` + region(`"string"`) + `}}]}`, false},
		{`{"type":"object","if":{"properties":{"a":` + region(`"string"`) + `}}}`, false},
		{`{"type":"object","not":` + region(`"string"`) + `}`, false},
		{`{"type":"object","$defs":{"d":` + region(`"string"`) + `},"properties":{"a":{"$ref":"#/$defs/d"}}}`, false},
		{`{"type":"object","patternProperties":{"a":` + region(`"string"`) + `}}`, false},
		{`{"type":"object","x-mcp-header":"Region"}`, false},
		{`{"type":"object","properties":{"x-mcp-header":{"type":"string"}}}`, true},         // an argument of that name
		{`{"type":"object","properties":{"a":{"const":{"x-mcp-header":"Region"}}}}`, true},  // a value
		{`{"type":"object","properties":{"a":{"enum":[{"x-mcp-header":"Region"}]}}}`, true}, // another
		{`{"type":"object","default":{"x-mcp-header":7},"examples":[{"x-mcp-header":7}]}`, true},
	} {
		e, _ := newEngine(t, nil)
		err := e.AddRawTool(engine.Tool{Name: "t", InputSchema: []byte(c.schema)}, nil)
		if (err == nil) != c.ok {
			t.Errorf("AddRawTool with %s: got %v, want accepted %t", c.schema, err, c.ok)
		}
		_ = e.Shutdown(t.Context())
	}
}

// TestParamHeaders compares Mcp-Param headers with the arguments.
func TestParamHeaders(t *testing.T) {
	e, _ := newEngine(t, nil)
	must(t, e.AddRawTool(engine.Tool{Name: "t", InputSchema: []byte(`{"type":"object","properties":{` +
		`"s":{"type":"string","x-mcp-header":"S"},"i":{"type":"integer","x-mcp-header":"I"},"b":{"type":"boolean","x-mcp-header":"B"},` +
		`"n":{"type":"object","properties":{"s":{"type":"string","x-mcp-header":"Nested-S"}}},"free":{}}}`)},
		func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
			return engine.AppendTextResult(out, "ok"), nil
		}))
	const (
		missing, stray, differs, bad = "is missing", "has no counterpart", "does not match", "is not valid base64"
		twice, schema                = "occurs 2 times", "isError"
	)
	c := newModern(t, e)
	for _, r := range []struct {
		arguments string
		headers   http.Header
		want      string
	}{
		{`{}`, nil, ""},
		{`{"s":null,"i":null,"n":null}`, nil, schema}, // null is no string, but no header is wanted
		{`{"free":{"s":"x"}}`, nil, ""},
		{`{"s":"a"}`, http.Header{"Mcp-Param-S": {"a"}}, ""},
		{`{"s":"a"}`, http.Header{"Mcp-Param-S": {"=?base64?YQ==?="}}, ""},
		{`{"s":"us west 1"}`, http.Header{"Mcp-Param-S": {"us west 1"}}, ""},
		{`{"s":"\u0061"}`, http.Header{"Mcp-Param-S": {"a"}}, ""},
		{`{"s":""}`, http.Header{"Mcp-Param-S": {""}}, ""},
		{`{"s":""}`, nil, missing},
		{`{"s":"a"}`, nil, missing},
		{`{"s":"a"}`, http.Header{"Mcp-Param-S": {"A"}}, differs},
		{`{"s":"a"}`, http.Header{"Mcp-Param-S": {"=?base64?Y?="}}, bad},
		{`{"s":"a"}`, http.Header{"Mcp-Param-S": {"a", "a"}}, twice},
		{`{}`, http.Header{"Mcp-Param-S": {"a"}}, stray},
		{`{"s":null}`, http.Header{"Mcp-Param-S": {"null"}}, stray},
		{`{}`, http.Header{"Mcp-Param-Unknown": {"a", "b"}}, ""},
		{`{"s":7}`, http.Header{"Mcp-Param-S": {"x"}}, schema}, // the check of arguments tells
		{`{"i":42}`, http.Header{"Mcp-Param-I": {"42"}}, ""},
		{`{"i":42}`, http.Header{"Mcp-Param-I": {"42.0"}}, ""},
		{`{"i":42.0}`, http.Header{"Mcp-Param-I": {"42"}}, ""},
		{`{"i":4.2e1}`, http.Header{"Mcp-Param-I": {"42"}}, ""},
		{`{"i":9007199254740993}`, http.Header{"Mcp-Param-I": {"9007199254740993"}}, ""},
		{`{"i":9007199254740993}`, http.Header{"Mcp-Param-I": {"9007199254740992"}}, differs}, // the same float64
		{`{"i":-0}`, http.Header{"Mcp-Param-I": {"0"}}, ""},
		{`{"i":42}`, http.Header{"Mcp-Param-I": {"43"}}, differs},
		{`{"i":42}`, http.Header{"Mcp-Param-I": {"42x"}}, differs},
		{`{"i":42}`, http.Header{"Mcp-Param-I": {"84/2"}}, differs},
		{`{"i":42}`, http.Header{"Mcp-Param-I": {"0x2a"}}, differs},
		{`{"i":42}`, http.Header{"Mcp-Param-I": {"4_2"}}, differs},
		{`{"i":42}`, http.Header{"Mcp-Param-I": {""}}, differs},
		{`{"i":42}`, http.Header{"Mcp-Param-I": {"1e999999999"}}, differs},
		{`{"i":42}`, http.Header{"Mcp-Param-I": {strings.Repeat("0", 5000) + "42"}}, differs},
		{`{"b":true}`, http.Header{"Mcp-Param-B": {"true"}}, ""},
		{`{"b":true}`, http.Header{"Mcp-Param-B": {"TRUE"}}, differs},
		{`{"b":false}`, http.Header{"Mcp-Param-B": {"true"}}, differs},
		{`{"n":{"s":"x"}}`, http.Header{"Mcp-Param-Nested-S": {"x"}}, ""},
		{`{"n":{"s":"x"}}`, nil, missing},
		{`{"n":{}}`, nil, ""},
		{`{"n":{}}`, http.Header{"Mcp-Param-Nested-S": {"x"}}, stray},
		{`{"n":7}`, nil, schema},
	} {
		frame := c.frame("1", codec.MethodToolsCall, `{"name":"t","arguments":`+r.arguments+`}`)
		headers := headersFor(frame)
		for name, values := range r.headers {
			headers[name] = values
		}
		got := answerOf(t, c.sent(frame, headers), "1")
		switch {
		case r.want == "" && got != complete(`"content":[{"type":"text","text":"ok"}]`),
			r.want == schema && !strings.Contains(got, `"isError":true`),
			r.want != "" && r.want != schema && (!strings.HasPrefix(got, "-32020 ") || !strings.Contains(got, r.want)):
			t.Errorf("arguments %s, headers %v: got %s, want %q", r.arguments, r.headers, got, r.want)
		}
	}
}
