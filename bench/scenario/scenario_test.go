package scenario

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/codec"
)

// files opens files that are texts in memory.
func files(texts map[string]string) func(string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) {
		text, ok := texts[name]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return io.NopCloser(strings.NewReader(text)), nil
	}
}

var dataFiles = files(map[string]string{
	"people.csv": "\ufeffname,age\n\"Ann, B\",41\nBob,\n", "rows.ndjson": "{\"a\":1}\n\n{\"b\":[2],\"a\":null}\n",
	"bad.ndjson": "{}\n[1]\n", "none.csv": "", "head.csv": "a,b\n", "ragged.csv": "a,b\n1\n", "x.txt": "",
})

const whole = `# everything that a scenario can say
load:
  rate: 200/s
  stages: ["10s:100", 0s:6000/m]
  users: 3
  think-time: exp:2s
  concurrency: 4
  sessions: 5
  duration: 1m30s
  requests: 1_000
  warmup: 5s
  timeout: 10s
  arrivals: poisson
  max-in-flight: 7
  overflow: skip
  protocol: auto
  streams: true
  seed: 8
thresholds:
  - p(99)<200ms
  - tools/call{tool=search} errors<1%
data:
  people: people.csv
  rows: {file: rows.ndjson, order: random}
flows:
  - name: look up
    weight: 3
    steps:
      - list: resource-templates
        cursor: "${people.name}"
      - call: search
        arguments: &args
          query: "${people.name}"
          n: 0x10
          list: [1.50, true, null, "${rows.a}", text, 1e400, "1e4"]
          nested:
            more: |
              two
              lines
        cancel-after: 200ms
        expect: {isError: false, contains: [a, "${people.age}"]}
        extract:
          id: /structuredContent/hits/0/id
          text: content[0].text
      - think: 500ms
      - read: file:///${id}
        expect: {contains: x}
      - call: again
        arguments: *args
  - steps:
      - get: greeting
        arguments: {name: "$${x} ${instance}"}
      - subscribe: u:1
      - unsubscribe: u:1
      - ping: true
      - wait: notifications/resources/updated
        uri: u:1
        timeout: 3s
`

// text leaves out what a Go program would have to say: the threshold of errors is for all calls.
var text = strings.Replace(whole, "tools/call{tool=search} errors<1%", "tools/call{tool=search} p(50)<1s", 1)

// TestParse reads everything that a scenario can say.
func TestParse(t *testing.T) {
	s, err := Parse("dir/shop.yaml", []byte(text), dataFiles)
	if err != nil {
		t.Fatal(err)
	}
	no := false
	args := `{"query":"${people.name}","n":16,"list":[1.50,true,null,"${rows.a}","text",1e400,"1e4"],"nested":{"more":"two\nlines\n"}}`
	where := func(flow string, n, line int) string {
		b, _ := json.Marshal(flow)
		return "flow " + string(b) + ", step " + string(rune('0'+n)) + " (line " + jsonOf(line) + ")"
	}
	want := &Scenario{
		Name: "shop.yaml",
		Load: Load{
			Rate: 200, Stages: []bench.Stage{{Duration: 10 * time.Second, Rate: 100}, {Rate: 100}}, Users: 3,
			ThinkTime: bench.Think{Mean: 2 * time.Second, Exponential: true}, Concurrency: 4, Sessions: 5,
			Duration: 90 * time.Second, Requests: 1000, Warmup: 5 * time.Second, Timeout: 10 * time.Second,
			Arrivals: bench.Poisson, MaxInFlight: 7, Overflow: bench.Skip, Protocol: bench.Auto, Streams: true, Seed: 8,
		},
		Thresholds: []string{"p(99)<200ms", "tools/call{tool=search} p(50)<1s"},
		Data: []bench.DataSet{
			{Name: "people", Columns: []string{"name", "age"}, Rows: [][]json.RawMessage{
				{json.RawMessage(`"Ann, B"`), json.RawMessage(`"41"`)}, {json.RawMessage(`"Bob"`), json.RawMessage(`""`)}}},
			{Name: "rows", Columns: []string{"a", "b"}, Random: true, Rows: [][]json.RawMessage{
				{json.RawMessage(`1`), nil}, {json.RawMessage(`null`), json.RawMessage(`[2]`)}}},
		},
		Flows: []bench.Flow{
			{Name: "look up", Weight: 3, Steps: []bench.Step{
				{Method: "resources/templates/list", Cursor: "${people.name}", Where: where("look up", 1, 29)},
				{Method: "tools/call", Tool: "search", Arguments: json.RawMessage(args), CancelAfter: 200 * time.Millisecond,
					Expect:  bench.Expect{IsError: &no, Contains: []string{"a", "${people.age}"}},
					Extract: []bench.Extraction{{Name: "id", Path: "/structuredContent/hits/0/id"}, {Name: "text", Path: "content[0].text"}},
					Where:   where("look up", 2, 31)},
				{Think: bench.Think{Mean: 500 * time.Millisecond}, Where: where("look up", 3, 45)},
				{Method: "resources/read", URI: "file:///${id}", Expect: bench.Expect{Contains: []string{"x"}}, Where: where("look up", 4, 46)},
				{Method: "tools/call", Tool: "again", Arguments: json.RawMessage(args), Where: where("look up", 5, 48)},
			}},
			{Name: "flow 2", Weight: 1, Steps: []bench.Step{
				{Method: "prompts/get", Prompt: "greeting", Arguments: json.RawMessage(`{"name":"$${x} ${instance}"}`), Where: where("flow 2", 1, 51)},
				{Method: "resources/subscribe", URI: "u:1", Where: where("flow 2", 2, 53)},
				{Method: "resources/unsubscribe", URI: "u:1", Where: where("flow 2", 3, 54)},
				{Method: "ping", Where: where("flow 2", 4, 55)},
				{Await: &bench.Await{Method: "notifications/resources/updated", URI: "u:1", Timeout: 3 * time.Second}, Where: where("flow 2", 5, 56)},
			}},
		},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got  %s\nwant %s", jsonOf(s), jsonOf(want))
	}
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

const minimal = "flows:\n  - steps:\n      - call: echo\n"

// TestMistakes tells every mistake with its place and what was expected there.
func TestMistakes(t *testing.T) {
	step := func(s string) string { return "flows:\n  - steps:\n      - " + s + "\n" }
	for _, tt := range []struct{ text, want string }{
		{"", "s.yaml:1:1: the file is empty"},
		{"# nothing\n", "s.yaml:1:1: the file is empty"},
		{"load: {}\n", "s.yaml:1:1: the scenario has no flows"},
		{"flows: []\n", "the scenario has no flows"},
		{"flows: 3\n", "s.yaml:1:8: flows has to be a list, each entry after a dash, not a number"},
		{"flosw: []\n", `s.yaml:1:1: a scenario has no key "flosw": did you mean "flows"?`},
		{"- a\n", "s.yaml:1:1: a scenario has to be an object of keys and values, not a list"},
		{"a: [b\n", "s.yaml:1:"},
		{"flows: *x\n", "s.yaml:1:8: there is no anchor &x above"},
		{"load: {rate: 5}\nload: {rate: 6}\n" + minimal, `s.yaml:2:1: mapping key "load" already defined`},
		{minimal + "---\n" + minimal, "a scenario is one document"},
		{"load:\n  duartion: 5s\n" + minimal, `s.yaml:2:3: load has no key "duartion": did you mean "duration"?`},
		{"load:\n  xyz: 5s\n" + minimal, `s.yaml:2:3: load has no key "xyz": known are arrivals, concurrency, duration`},
		{"load: {duration: 5}\n" + minimal, `s.yaml:1:18: duration: "5" is not a duration: write for example 500ms, 30s or 1m30s`},
		{"load: {rate: fast}\n" + minimal, `rate: rate "fast" is not understood`},
		{"load: {stages: [100]}\n" + minimal, `stage: stage "100" is not understood: write 30s:100`},
		{"load: {users: 0}\n" + minimal, `users: "0" is not a whole number of at least 1`},
		{"load: {users: [1]}\n" + minimal, "users has to be a text, not a list"},
		{"load: {think-time: gauss}\n" + minimal, "think-time: think time"},
		{"load: {arrivals: Poisson}\n" + minimal, `arrivals: "Poisson" is not known: did you mean "poisson"?`},
		{"load: {streams: 1}\n" + minimal, "streams has to be true or false, not a number"},
		{"thresholds: [p99<1s]\n" + minimal, `s.yaml:1:14: threshold: threshold "p99<1s" is not understood`},
		{"data: {d: none.txt}\n" + minimal, "neither .csv nor .ndjson"},
		{"data: {d: missing.csv}\n" + minimal, "s.yaml:1:11: data file missing.csv: open missing.csv: file does not exist"},
		{"data: {d: bad.ndjson}\n" + minimal, "data file bad.ndjson: line 2 is not a JSON object"},
		{"data: {d: none.csv}\n" + minimal, "the first line names the columns"},
		{"data: {d: head.csv}\n" + minimal, "it has no rows"},
		{"data: {d: ragged.csv}\n" + minimal, "record on line 2: wrong number of fields"},
		{"data: {d: {order: random}}\n" + minimal, `data "d" names no file`},
		{"data: {d: {file: people.csv, order: any}}\n" + minimal, `order: "any" is not known: known are in-turn, random`},
		{"flows:\n  - weight: 2\n", `s.yaml:2:5: the flow "flow 1" has no steps`},
		{"flows:\n  - name: a\n    steps: [{think: 1s}]\n", `the flow "a" calls nothing`},
		{"flows:\n  - {name: a, steps: [{ping: true}]}\n  - {name: a, steps: [{ping: true}]}\n", `s.yaml:3:6: there is another flow of the name "a"`},
		{step("cal: echo"), `s.yaml:3:9: a step has no key "cal": did you mean "call"?`},
		{step("arguments: {}"), "the step does not say what it does: one of its keys has to be call, get, list"},
		{step("{call: a, read: b}"), "a step does one thing, and this one both call and read"},
		{step("{call: a, uri: b}"), `s.yaml:3:19: "uri" does not go with "call": known are arguments, cancel-after, expect, extract`},
		{step("{call: a, argumets: {}}"), `"argumets" does not go with "call": did you mean "arguments"?`},
		{step("{call: a, arguments: [1]}"), "arguments has to be an object of keys and values, not a list"},
		{step("{call: a, arguments: &a {x: [*a]}}"), "nested too deeply, or too large with its aliases"},
		{step("{call: a, arguments: {x: .inf}}"), "JSON has no such value"},
		{step(`{call: a, arguments: {x: ["${y}"]}}`), `s.yaml:3:35: there is no variable "y" at this step: known are instance`},
		{step(`{call: a, arguments: {x: "${instnce}"}}`), `there is no variable "instnce" at this step: did you mean "instance"?`},
		{step(`{call: a, arguments: {x: "${"}}`), "does not name a variable"},
		{step(`{call: "${t}"}`), "the name of a tool holds no variable"},
		{step("call:"), `the key "call" has no value`},
		{step("{call: a, expect: {iserror: true}}"), `expect has no key "iserror": did you mean "isError"?`},
		{step("{call: a, expect: {isError: perhaps}}"), "isError has to be true or false, not a text"},
		{step("{call: a, extract: {x: a..b}}"), `extract: the path "a..b" is not understood`},
		{step("{call: a, extract: {x.y: a}}"), `a variable cannot be called "x.y"`},
		{step("{call: a, cancel-after: 0s}"), `cancel-after: "0s" is not a duration`},
		{step("list: tool"), `list: "tool" is not known: did you mean "tools"?`},
		{step("wait: updated"), `wait: "updated" is not a notification`},
		{step("ping: false"), "write ping: true"},
		{step("{call: a, extract: {x: a}}") + "      - read: ${x}\n      - read: ${z}\n", `s.yaml:5:15: there is no variable "z" at this step`},
	} {
		_, err := Parse("s.yaml", []byte(tt.text), dataFiles)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q:\n got  %v\n want %s", tt.text, err, tt.want)
		}
	}
}

// TestSchema holds the published schema against the reader: both take the same documents, and both refuse the same.
func TestSchema(t *testing.T) {
	var schema jsonschema.Schema
	if err := json.Unmarshal(Schema, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	step := func(s string) string { return "flows: [{steps: [" + s + "]}]" }
	for _, tt := range []struct {
		text string
		ok   bool
	}{
		{text, true}, {minimal, true}, {"load: {rate: 5}\n" + minimal, true}, {"load:\n" + minimal, true},
		{"load: {rate: max}\n" + minimal, true}, {"load: {think-time: 2s}\n" + minimal, true},
		{"{}", false}, {"flows: []", false}, {"load: {rate: fast}\n" + minimal, false}, {"load: {rates: 5}\n" + minimal, false},
		{"load: {users: 0}\n" + minimal, false}, {"load: {duration: 5}\n" + minimal, false}, {"load: {arrivals: x}\n" + minimal, false},
		{"load: {think-time: x}\n" + minimal, false}, {"load: {stages: [5]}\n" + minimal, false}, {"data: {d: {order: random}}\n" + minimal, false},
		{step("{call: a, read: b}"), false}, {step("{arguments: {}}"), false}, {step("{call: a, uri: b}"), false}, {step("{call: '${x}'}"), false},
		{step("{list: tool}"), false}, {step("{ping: false}"), false}, {step("{wait: x}"), false}, {step("{call: a, expect: {is: true}}"), false},
		{step("{call: a, extract: {x.y: a}}"), false}, {step("{call: a, cancel-after: 5}"), false}, {"flows: [{name: a}]", false},
	} {
		var doc any
		if err := yaml.Unmarshal([]byte(tt.text), &doc); err != nil {
			t.Fatalf("%q: %v", tt.text, err)
		}
		b, err := json.Marshal(doc)
		if err != nil {
			t.Fatalf("%q: %v", tt.text, err)
		}
		if err := json.Unmarshal(b, &doc); err != nil {
			t.Fatal(err)
		}
		_, read := Parse("s.yaml", []byte(tt.text), dataFiles)
		if valid := resolved.Validate(doc); (valid == nil) != tt.ok || (read == nil) != tt.ok {
			t.Errorf("%q: the schema says %v, the reader %v; want ok %v", tt.text, valid, read, tt.ok)
		}
	}
}

// TestApply lets flags override what the scenario says.
func TestApply(t *testing.T) {
	l := Load{
		Rate: 5, Sessions: 3, Duration: time.Minute, Warmup: time.Second, Timeout: 2 * time.Second, Arrivals: bench.Poisson, Seed: 9,
		ThinkTime: bench.Think{Mean: time.Second},
	}
	stages := l
	stages.Stages, stages.Duration = []bench.Stage{{Duration: time.Second, Rate: 9}}, 0
	for _, tt := range []struct {
		name  string
		load  Load
		flags []string
		c     bench.Config // as the flags have made it
		want  func(*bench.Config) bool
	}{
		{"nothing given", l, nil, bench.Config{Timeout: 30 * time.Second}, func(c *bench.Config) bool {
			return c.Rate == 5 && c.Sessions == 3 && c.Duration == time.Minute && c.Timeout == 2*time.Second && c.Arrivals == bench.Poisson && c.Seed == 9 && c.ThinkTime.Mean == 0
		}},
		{"users", l, []string{"users"}, bench.Config{Users: 7}, func(c *bench.Config) bool {
			return c.Rate == 0 && c.Users == 7 && c.Sessions == 0 && c.ThinkTime.Mean == time.Second && c.Duration == time.Minute
		}},
		{"requests", l, []string{"requests", "timeout"}, bench.Config{Requests: 10, Timeout: time.Hour}, func(c *bench.Config) bool {
			return c.Rate == 5 && c.Requests == 10 && c.Duration == 0 && c.Timeout == time.Hour
		}},
		{"stages", stages, nil, bench.Config{}, func(c *bench.Config) bool { return len(c.Stages) == 1 && c.Rate == 5 && c.Duration == 0 }},
		{"rate instead of stages", stages, []string{"rate"}, bench.Config{Rate: 1}, func(c *bench.Config) bool { return len(c.Stages) == 0 && c.Rate == 1 }},
	} {
		s := Scenario{Name: "x", Load: tt.load, Thresholds: []string{"max<1s"}}
		c := tt.c
		c.Thresholds = []string{"mean<1s"}
		s.Apply(&c, func(flag string) bool {
			for _, f := range tt.flags {
				if f == flag {
					return true
				}
			}
			return false
		})
		if !tt.want(&c) || c.Scenario != "x" || len(c.Thresholds) != 2 {
			t.Errorf("%s: %+v", tt.name, c)
		}
	}
}

// FuzzParse holds the reader to its promise: any text gives a scenario that can be applied, or an error with a place.
func FuzzParse(f *testing.F) {
	f.Add(text)
	f.Add(minimal)
	f.Add("flows: &a [*a]")
	f.Add("flows:\n- steps: [{call: a, arguments: {? [a] : b, !!str c: d, <<: {e: f}}}]\n")
	f.Add("? a\n: b\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse("s.yaml", []byte(text), dataFiles)
		var e *Error
		switch {
		case err == nil && len(s.Flows) == 0:
			t.Errorf("a scenario without flows was taken")
		case err != nil && (!errors.As(err, &e) || e.Line < 1 || e.Column < 1 || e.Text == ""):
			t.Errorf("error without a place: %v", err)
		}
		if err != nil {
			return
		}
		for _, flow := range s.Flows {
			for _, step := range flow.Steps {
				if step.Arguments != nil && !codec.Valid(step.Arguments) {
					t.Errorf("arguments are no JSON: %s", step.Arguments)
				}
			}
		}
	})
}
