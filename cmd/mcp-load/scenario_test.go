package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// demoURL starts the demo server for a test.
func demoURL(t *testing.T) string {
	t.Helper()
	url, stop, err := startDemoServer(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return url
}

// TestInit writes a starter scenario that runs as it is.
func TestInit(t *testing.T) {
	url, dir := demoURL(t), t.TempDir()
	path, result := filepath.Join(dir, "s.yaml"), filepath.Join(dir, "r.json")
	if code, stdout, stderr := call("init", url, "-o", path); code != 0 || !strings.Contains(stdout, "written "+path) || stderr != "" {
		t.Fatalf("init = %d, %q, %q", code, stdout, stderr)
	}
	code, stdout, stderr := call("run", path, url, "-n", "80", "-o", "json="+result)
	if code != 0 || stderr != "" {
		t.Fatalf("run = %d, %q, %q", code, stdout, stderr)
	}
	res := readResult(t, result)
	var begun, failed int64
	for _, f := range res.Flows {
		begun += f.Begun
		if f.Flow != "call fail" && f.Flow != "call panic" { // which do as they are called
			failed += f.Failed
		}
	}
	if begun != 80 || failed != 0 || len(res.Flows) != 8 || res.Conditions.Scenario != "s.yaml" || res.Conditions.Concurrency != 2 {
		t.Errorf("flows = %+v, conditions = %+v; want 80 of 8 flows, none failed", res.Flows, res.Conditions)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call("init", url, "-o", path); code != 2 || !strings.Contains(stderr, "exists: choose another file with -o, or give --force") {
		t.Errorf("init over a file = %d, %q; want a refusal", code, stderr)
	}
	if code, stdout, _ := call("init", url); code != 0 || stdout != string(before) {
		t.Errorf("init to standard output = %d, %q; want what the file holds", code, stdout)
	}
	unsafe := (&countingServer{tools: `[{"name":"rm","inputSchema":{}}]`}).start(t)
	if code, stdout, _ := call("init", unsafe); code != 0 || strings.Contains(stdout, "call:") || !strings.Contains(stdout, "#   tool rm: it does not declare readOnlyHint") {
		t.Errorf("init of a server with an unsafe tool = %d, %q; want a comment only", code, stdout)
	}
}

// TestScenario runs a scenario over HTTP and over stdio, with data, values that are fed on, a notification and a cancelled
// call.
func TestScenario(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("words.csv", "word\nalpha\nbeta\n")
	http := write("http.yaml", `
load: {users: 4, think-time: 10ms, requests: 40}
thresholds: [errors<1%, "tools/call{tool=echo} max<30s"]
data: {words: words.csv}
flows:
  - name: talk
    steps:
      - call: echo
        arguments: {message: "${words.word} ${instance}"}
        expect: {contains: "${words.word}"}
        extract: {said: /content/0/text}
      - call: echo
        arguments: {message: "again: ${said}"}
        expect: {contains: ["again: ", "${words.word}"]}
  - name: give up
    steps:
      - {call: sleep, arguments: {ms: 20000}, cancel-after: 20ms}
      - call: fail
        expect: {isError: true}
`)
	result := filepath.Join(dir, "r.json")
	code, stdout, stderr := call("run", http, demoURL(t), "-o", "json="+result)
	if code != 0 && code != exitInvalid || stderr != "" {
		t.Fatalf("run = %d, %q, %q", code, stdout, stderr)
	}
	res := readResult(t, result)
	for _, f := range res.Flows {
		if f.Completed != f.Begun || f.Begun == 0 {
			t.Errorf("flow = %+v, want all completed", f)
		}
	}
	if q := res.Requests; q.Cancelled != res.Flows[1].Begun || q.Total-q.Cancelled != q.OK || res.Conditions.Users != 4 || !res.Thresholds[0].OK || !res.Thresholds[1].OK {
		t.Errorf("requests %+v, thresholds %+v, conditions %+v", q, res.Thresholds, res.Conditions)
	}
	if !strings.Contains(stdout, "the flows of http.yaml") || !strings.Contains(stdout, "talk: ") {
		t.Errorf("summary = %s", stdout)
	}
	stdio := write("stdio.yml", `
flows:
  - name: log
    steps:
      - call: test_tool_with_logging
      - {wait: notifications/message, timeout: 10s}
`)
	t.Setenv(selfEnv, "1")
	code, stdout, stderr = call("run", stdio, "-n", "5", "--", os.Args[0], "serve", "--stdio", "--fixture", "conformance")
	if code != 0 || !strings.Contains(stdout, "log: 5 begun, 5 completed") || !strings.Contains(stdout, "notifications/message") {
		t.Errorf("run over stdio = %d, %q, %q", code, stdout, stderr)
	}
}

// TestScenarioMistakes tells in one line what is wrong and where.
func TestScenarioMistakes(t *testing.T) {
	url, dir := (&countingServer{}).start(t), t.TempDir()
	path := filepath.Join(dir, "s.yaml")
	for _, tt := range []struct {
		text string
		args []string
		want string
	}{
		{"flows:\n  - stpes: []\n", nil, `s.yaml:2:5: a flow has no key "stpes": did you mean "steps"?`},
		{"flows:\n  - steps:\n      - call: ehco\n", nil, `flow "flow 1", step 1 (line 3): the server does not list a tool "ehco": choose one of echo`},
		{"flows: [{steps: [{ping: true}]}]\n", []string{"--tool", "echo"}, "leave --tool, --args and --args-file out"},
		{"load: {users: 2}\nflows: [{steps: [{ping: true}]}]\n", []string{"--sessions", "5"}, "leave --sessions out"},
	} {
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := call(append([]string{"run", path, url}, tt.args...)...)
		if code != 2 || !strings.Contains(stderr, tt.want) || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("%q %q = %d, %q, %q; want %q", tt.text, tt.args, code, stdout, stderr, tt.want)
		}
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"run", filepath.Join(dir, "none.yaml"), url}, "cannot read the scenario: open "},
		{[]string{"run", path}, "give the URL of the server"},
		{[]string{"run", path, url, "--", "cmd"}, "not both"},
		{[]string{"run", path, url, "more"}, "one argument too many"},
		{[]string{"init"}, "give the URL of the server, or -- and the command of a stdio server (see mcp-load init --help)"},
	} {
		if code, _, stderr := call(tt.args...); code != 2 || !strings.Contains(stderr, tt.want) {
			t.Errorf("%q = %d, %q; want %q", tt.args, code, stderr, tt.want)
		}
	}
	code, stdout, _ := call("run", "--print-schema")
	if code != 0 || !json.Valid([]byte(stdout)) || !bytes.Contains([]byte(stdout), []byte("json-schema.org")) {
		t.Errorf("--print-schema = %d, %.80q", code, stdout)
	}
}
