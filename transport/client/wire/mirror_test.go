package wire

import (
	"fmt"
	"strings"
	"testing"
)

func TestEncodeValue(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"us-west1", "us-west1"},
		{"us west 1", "us west 1"},
		{"", ""},
		{"file:///a%20b?q=1", "file:///a%20b?q=1"},
		{"Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="},
		{" padded ", "=?base64?IHBhZGRlZCA=?="},
		{"line1\nline2", "=?base64?bGluZTEKbGluZTI=?="},
		{"\tindented", "=?base64?CWluZGVudGVk?="},
		{"a\tb", "=?base64?YQli?="},
		{"\x7f", "=?base64?fw==?="},
		{"=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="},
		{"=?base64?literal", "=?base64?literal"},
		{"SGVsbG8=", "SGVsbG8="},
	} {
		if got := EncodeValue(tt.text); got != tt.want {
			t.Errorf("EncodeValue(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestMethodHeaders(t *testing.T) {
	for _, tt := range []struct{ method, name, want string }{
		{"tools/list", "", "map[Mcp-Method:[tools/list] Mcp-Protocol-Version:[v]]"},
		{"tools/call", "é", "map[Mcp-Method:[tools/call] Mcp-Name:[=?base64?w6k=?=] Mcp-Protocol-Version:[v]]"},
		{"resources/read", "u:1", "map[Mcp-Method:[resources/read] Mcp-Name:[u:1] Mcp-Protocol-Version:[v]]"},
		{"tasks/get", "t", "map[Mcp-Method:[tasks/get] Mcp-Name:[t] Mcp-Protocol-Version:[v]]"},
	} {
		if got := fmt.Sprint(MethodHeaders("v", tt.method, tt.name)); got != tt.want {
			t.Errorf("MethodHeaders(v, %s, %s) = %s, want %s", tt.method, tt.name, got, tt.want)
		}
		if named := NamedBy(tt.method); (named != "") != strings.Contains(tt.want, "Mcp-Name") {
			t.Errorf("NamedBy(%s) = %q, which does not fit %s", tt.method, named, tt.want)
		}
	}
}

func TestMirrors(t *testing.T) {
	const region = `{"type":"string","x-mcp-header":"Region"}`
	for _, tt := range []struct{ schema, want string }{
		{`{"type":"object"}`, "[]"},
		{`{"properties":{"r":` + region + `}}`, "[{Mcp-Param-Region [r]}]"},
		{`{"properties":{"a":{"type":"object","properties":{"r":` + region + `,"n":{"type":"integer","x-mcp-header":"N"}}}}}`,
			"[{Mcp-Param-Region [a r]} {Mcp-Param-N [a n]}]"},
		{`{"properties":{"b":{"type":"boolean","x-mcp-header":"Method"}}}`, "[{Mcp-Param-Method [b]}]"},
		{`{"properties":{"x-mcp-header":{"type":"string"}},"default":{"x-mcp-header":7}}`, "[]"},
		{`{"properties":{"r":{"type":"string","x-mcp-header":""}}}`, "x-mcp-header of r is no token"},
		{`{"properties":{"r":{"type":"string","x-mcp-header":"a b"}}}`, "x-mcp-header of r is no token"},
		{`{"properties":{"r":{"type":"string","x-mcp-header":"a:b"}}}`, "x-mcp-header of r is no token"},
		{`{"properties":{"r\n":{"type":"string","x-mcp-header":"é"}}}`, `x-mcp-header of r\n is no token`},
		{`{"properties":{"r":{"type":"string","x-mcp-header":7}}}`, "x-mcp-header of r is no token"},
		{`{"properties":{"r":{"type":"number","x-mcp-header":"R"}}}`, "x-mcp-header of r: its type is not string, integer or boolean"},
		{`{"properties":{"r":{"type":["string","null"],"x-mcp-header":"R"}}}`, "x-mcp-header of r: its type is not string, integer or boolean"},
		{`{"properties":{"a":{"type":"string","x-mcp-header":"R"},"b":{"type":"string","x-mcp-header":"r"}}}`, `x-mcp-header "r" is used twice`},
		{`{"$defs":{"a":` + region + `}}`, "x-mcp-header stands on something other than a property within properties"},
		{`{"properties":{"l":{"type":"array","items":` + region + `}}}`, "x-mcp-header stands on something other than a property within properties"},
		{`{"anyOf":[{"properties":{"r":` + region + `}}]}`, "x-mcp-header stands on something other than a property within properties"},
		{`{"x-mcp-header":"R"}`, "x-mcp-header stands on something other than a property within properties"},
	} {
		found, err := Mirrors([]byte(tt.schema))
		got := fmt.Sprint(found)
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("Mirrors(%s) = %s, want %s", tt.schema, got, tt.want)
		}
	}
}

func TestMirrorValue(t *testing.T) {
	m := Mirror{path: []string{"a", "r"}}
	for _, tt := range []struct{ arguments, want string }{
		{`{"a":{"r":"x"}}`, "x"}, {`{"a":{"r":""}}`, ""}, {`{"a":{"r":"\u00e9"}}`, "=?base64?w6k=?="},
		{`{"a":{"r":42}}`, "42"}, {`{"a":{"r":-0}}`, "-0"}, {`{"a":{"r":42.0}}`, "42"}, {`{"a":{"r":4.2e1}}`, "42"},
		{`{"a":{"r":9007199254740991}}`, "9007199254740991"}, {`{"a":{"r":0.5}}`, "0.5"}, {`{"a":{"r":1e99}}`, "1e99"},
		{`{"a":{"r":true}}`, "true"}, {`{"a":{"r":false}}`, "false"}, {`{"a":{"r":[1]}}`, "[1]"},
		{`{"a":{"r":null}}`, "none"}, {`{"a":{}}`, "none"}, {`{"a":7}`, "none"}, {`{}`, "none"}, {``, "none"},
	} {
		got, ok := m.Value([]byte(tt.arguments))
		if !ok {
			got = "none"
		}
		if got != tt.want {
			t.Errorf("Value(%s) = %q, want %q", tt.arguments, got, tt.want)
		}
	}
}
