package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/bench"
)

// TestStarter reads back what was written: everything offered is there, or named in a comment.
func TestStarter(t *testing.T) {
	o := &bench.Offer{
		Server: "shop 1.0\nevil: true",
		Tools: []bench.OfferedTool{
			{Name: "search", ReadOnly: true, Arguments: json.RawMessage(`{"q":"x","n":1e400,"o":{"a":[true,null,"${x}","it's \"so\"\n","é"]},"e":""}`)},
			{Name: "plain", ReadOnly: true, Arguments: json.RawMessage(`{}`)},
			{Name: "delete\nall", Arguments: json.RawMessage(`{}`)},
			{Name: "yes", ReadOnly: true, Arguments: json.RawMessage(`{"a":"on","b":"1"}`)},
			{Name: "plain", ReadOnly: true},
		},
		Resources: []string{"file:///a: b#c", "x:{}${y}"},
		Prompts:   []bench.OfferedPrompt{{Name: "- greet", Arguments: json.RawMessage(`{"name":"x"}`)}},
	}
	for i := range maxResources {
		o.Resources = append(o.Resources, fmt.Sprint("r:", i))
	}
	var out bytes.Buffer
	if err := WriteStarter(&out, o, false); err != nil {
		t.Fatal(err)
	}
	s, err := Parse("starter.yaml", out.Bytes(), nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	var got []string
	for _, f := range s.Flows {
		for _, step := range f.Steps {
			got = append(got, strings.TrimSpace(strings.Join([]string{f.Name, step.Method, step.Tool, step.Prompt, step.URI, string(step.Arguments)}, "|")))
		}
	}
	want := []string{
		`call search|tools/call|search|||{"q":"x","n":1e400,"o":{"a":[true,null,"$${x}","it's \"so\"\n","é"]},"e":""}`,
		`call plain|tools/call|plain|||`, `call yes|tools/call|yes|||{"a":"on","b":"1"}`, `call plain (2)|tools/call|plain|||`,
		`read resources|resources/list||||`, `read resources|resources/read|||file:///a: b#c|`, `read resources|resources/read|||x:{}$${y}|`,
	}
	for i := range maxResources - 2 {
		want = append(want, fmt.Sprintf("read resources|resources/read|||r:%d|", i))
	}
	want = append(want, `get - greet|prompts/get||- greet||{"name":"x"}`)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s\nfrom\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), out.String())
	}
	for _, line := range []string{
		"# Scenario for shop 1.0 evil: true, written by mcp-load init.\n",
		"#   tool delete all: it does not declare readOnlyHint, so calling it may change data\n",
		"#   resource r:19: a starter has at most 20 resources\n",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("there is no line %q in\n%s", line, out.String())
		}
	}
	out.Reset()
	if err := WriteStarter(&out, o, true); err != nil {
		t.Fatal(err)
	}
	if s, err = Parse("starter.yaml", out.Bytes(), nil); err != nil || s.Flows[2].Steps[0].Tool != "delete\nall" {
		t.Errorf("with any tool: %+v, %v; want the third tool too", s, err)
	}
	out.Reset()
	if err := WriteStarter(&out, &bench.Offer{}, false); err != nil {
		t.Fatal(err)
	}
	if s, err = Parse("starter.yaml", out.Bytes(), nil); err != nil || s.Flows[0].Steps[0].Method != "tools/list" {
		t.Errorf("of an empty server: %+v, %v; want a flow that lists tools", s, err)
	}
}
