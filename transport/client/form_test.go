package client_test

import (
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client"
)

func flat(properties string) string { return `{"type":"object","properties":{` + properties + `}}` }

func TestApplyDefaults(t *testing.T) {
	const all = `"s":{"type":"string","default":"x\n"},"n":{"type":"number","default":95.5},"i":{"type":"integer","default":12345678901234567890},` +
		`"b":{"type":"boolean","default":false},"e":{"type":"string","enum":["p","q"],"default":"q"},` +
		`"o":{"type":"string","oneOf":[{"const":"p","title":"P"}],"default":"p"},` +
		`"m":{"type":"array","items":{"type":"string","enum":["p","q"]},"default":["q","p"]},` +
		`"t":{"type":"array","items":{"anyOf":[{"const":"p","title":"P"}]},"default":[]},"none":{"type":"string"}`
	for _, test := range []struct{ schema, content, want string }{
		{flat(all), ``, `{"s":"x\n","n":95.5,"i":12345678901234567890,"b":false,"e":"q","o":"p","m":["q","p"],"t":[]}`},
		{flat(all), `{"i":1, "other": [ "z" ], "b":true,"s":"","m":[],"n":1e0,"o":"?","t":null}`,
			`{"i":1,"other":[ "z" ],"b":true,"s":"","m":[],"n":1e0,"o":"?","t":null,"e":"q"}`},
		{flat(``), `{}`, `{}`},
		{flat(`"\u00e9":{"type":"string","default":"x"}`), `{"é":"y"}`, `{"é":"y"}`},
		{flat(`"a":{"type":"string","default":"x"}`), `{"\u0061":"y"}`, `{"a":"y"}`},
		// Defaults that their own property does not allow.
		{flat(`"s":{"type":"string","default":1},"n":{"type":"number","default":"1"},"i":{"type":"integer","default":1.5},"b":{"type":"boolean","default":"true"},` +
			`"e":{"type":"string","enum":["p"],"default":"z"},"m":{"type":"array","items":{"enum":["p"]},"default":["z"]},"l":{"type":"string","minLength":2,"default":"a"}`),
			`{}`, `{}`},
	} {
		got, err := client.ApplyDefaults([]byte(test.schema), []byte(test.content))
		if err != nil || string(got) != test.want {
			t.Errorf("ApplyDefaults(%s, %s): got %s, %v, want %s", test.schema, test.content, got, err, test.want)
		}
	}
	for _, test := range []struct{ schema, content string }{
		{`{"type":"object"}`, `{}`},
		{`{"properties":{}}`, `{}`},
		{`[]`, `{}`},
		{`{"type":"object","properties":{}`, `{}`},
		{flat(``), `[]`},
		{flat(``), `{"a":}`},
		{flat(`"a":true`), `{}`},
		{flat(`"a":{}`), `{}`},
		{flat(`"a":{"type":"object"}`), `{}`},
		{flat(`"a":{"type":"array","items":{"type":"string"}}`), `{}`},
		{flat(`"a":{"type":"array","items":{"type":"object","properties":{}}}`), `{}`},
		{flat(`"a":{"type":"string","enum":[1]}`), `{}`},
		{flat(`"a":{"type":"string","oneOf":[{"title":"x"}]}`), `{}`},
		{`{"type":"object","properties":{},"required":"a"}`, `{}`},
	} {
		if got, err := client.ApplyDefaults([]byte(test.schema), []byte(test.content)); err == nil {
			t.Errorf("ApplyDefaults(%s, %s): got %s, want an error", test.schema, test.content, got)
		}
	}
}

func TestCheckForm(t *testing.T) {
	for _, test := range []struct{ property, value, want string }{
		{`"type":"string"`, `"x"`, ``},
		{`"type":"string"`, `1`, `a: not a string`},
		{`"type":"string"`, `null`, `a: not a string`},
		{`"type":"string","minLength":2`, `"é"`, `a: shorter than 2 characters`},
		{`"type":"string","minLength":2,"maxLength":2`, `"éé"`, ``},
		{`"type":"string","maxLength":1`, `"éé"`, `a: longer than 1 characters`},
		{`"type":"string","pattern":"^[a-z]+$"`, `"ab"`, ``},
		{`"type":"string","pattern":"^[a-z]+$"`, `"AB"`, `a: does not match the pattern`},
		{`"type":"string","pattern":"(?=x)"`, `"AB"`, ``},
		{`"type":"string","format":"email"`, `"a@b.c"`, ``},
		{`"type":"string","format":"email"`, `"A <a@b.c>"`, `a: not of format email`},
		{`"type":"string","format":"uri"`, `"urn:x"`, ``},
		{`"type":"string","format":"uri"`, `"/x"`, `a: not of format uri`},
		{`"type":"string","format":"date"`, `"2025-02-29"`, `a: not of format date`},
		{`"type":"string","format":"date"`, `"2024-02-29"`, ``},
		{`"type":"string","format":"date-time"`, `"2024-02-29T00:00:00Z"`, ``},
		{`"type":"string","format":"date-time"`, `"2024-02-29 00:00"`, `a: not of format date-time`},
		{`"type":"string","format":"color"`, `"?"`, ``},
		{`"type":"number"`, `-1.5e3`, ``},
		{`"type":"number"`, `"1"`, `a: not a number`},
		{`"type":"number"`, `1e999`, `a: out of range`},
		{`"type":"number","minimum":1`, `0.5`, `a: less than 1`},
		{`"type":"number","maximum":1`, `1.5`, `a: more than 1`},
		{`"type":"integer","minimum":1,"maximum":1`, `1.0`, ``},
		{`"type":"integer"`, `1.5`, `a: not an integer`},
		{`"type":"boolean"`, `true`, ``},
		{`"type":"boolean"`, `"true"`, `a: not a boolean`},
		{`"type":"string","enum":["p"],"enumNames":["P"]`, `"p"`, ``},
		{`"type":"string","enum":["p"]`, `"P"`, `a: not one of the choices`},
		{`"type":"string","oneOf":[{"const":"p","title":"P"}]`, `"P"`, `a: not one of the choices`},
		{`"type":"array","items":{"enum":["p","q"]},"minItems":1,"maxItems":1`, `["q"]`, ``},
		{`"type":"array","items":{"enum":["p","q"]},"minItems":1`, `[]`, `a: fewer than 1 choices`},
		{`"type":"array","items":{"enum":["p","q"]},"maxItems":1`, `["p","q"]`, `a: more than 1 choices`},
		{`"type":"array","items":{"anyOf":[{"const":"p"}]}`, `["z"]`, `a: not one of the choices`},
		{`"type":"array","items":{"enum":["p"]}`, `"p"`, `a: not an array of strings`},
		{`"type":"array","items":{"enum":["p"]}`, `[1]`, `a: not an array of strings`},
	} {
		err := client.CheckForm([]byte(flat(`"a":{`+test.property+`}`)), []byte(`{"a":`+test.value+`}`))
		if got := text(err); got != test.want {
			t.Errorf("%s of {%s}: got %q, want %q", test.value, test.property, got, test.want)
		}
	}
	for _, test := range []struct{ content, want string }{
		{`{"a":"x","z":["y"]}`, ``},
		{`{"z":1}`, `a: required`},
		{`{"a":"x","z":{}}`, `z: not a string, number, boolean or array of strings`},
		{`{"a":"x","z":null}`, `z: not a string, number, boolean or array of strings`},
	} {
		err := client.CheckForm([]byte(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`), []byte(test.content))
		if got := text(err); got != test.want {
			t.Errorf("CheckForm %s: got %q, want %q", test.content, got, test.want)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// FuzzApplyDefaults: what is filled in is valid JSON, keeps what was there, and
// is the same when it is filled in again.
func FuzzApplyDefaults(f *testing.F) {
	f.Add(flat(`"a":{"type":"string","default":"x"},"b":{"type":"array","items":{"enum":["p"]},"default":["p"]}`), `{"b":[]}`)
	f.Add(flat(`"\u0061":{"type":"number","default":1e2},"a":{"type":"boolean","default":true}`), `{"":1,"":2}`)
	f.Fuzz(func(t *testing.T, schema, content string) {
		got, err := client.ApplyDefaults([]byte(schema), []byte(content))
		if err != nil {
			return
		}
		if !codec.Valid(got) {
			t.Fatalf("ApplyDefaults(%s, %s): got %q, which is not JSON", schema, content, got)
		}
		codec.EachMember([]byte(strings.TrimSpace(content)), func(name, _ []byte) bool {
			if codec.Member(got, string(name)) == nil {
				t.Errorf("ApplyDefaults(%s, %s): got %s, without %q", schema, content, got, name)
			}
			return true
		})
		again, err := client.ApplyDefaults([]byte(schema), got)
		if err != nil || string(again) != string(got) {
			t.Errorf("ApplyDefaults(%s, %s): got %s, then %s, %v", schema, content, got, again, err)
		}
	})
}
