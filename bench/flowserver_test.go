package bench

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// TestFlowNotifications gets notifications from the GET stream of a session, and from a process.
func TestFlowNotifications(t *testing.T) {
	steps := []Step{
		{Method: codec.MethodResourcesSubscribe, URI: "u:1"},
		{Await: &Await{Method: "notifications/resources/updated", URI: "u:1", Timeout: 10 * time.Second}},
		call(`{}`),
	}
	c := Config{Concurrency: 1, Sessions: 1, Requests: 3, Flows: []Flow{{"a", 1, steps}}}
	http, stdio := c, c
	http.URL = (&fakeServer{updates: make(chan string)}).start(t)
	stdio.Command = []string{os.Args[0]}
	t.Setenv(childEnv, "plain")
	for name, c := range map[string]Config{"http": http, "stdio": stdio} {
		res, err := Run(context.Background(), c)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n := res.Flows[0]; n.Completed != 3 || res.Requests.OK != 6 {
			t.Errorf("%s: flows = %+v, requests = %+v; want 3 completed", name, n, res.Requests)
		}
	}
	http.Protocol, http.URL = Stateless, (&statelessServer{tools: echoTool, era: &fakeServer{}}).start(t)
	_, err := Run(context.Background(), http)
	if err == nil || !strings.Contains(err.Error(), `flow "a", step 1: protocol 2026-07-28 has neither`) {
		t.Errorf("subscribing without a session: %v, want a refusal", err)
	}
}

// TestFlowStateless repeats in headers what changes from call to call, as the stateless era wants it.
func TestFlowStateless(t *testing.T) {
	s := newStatelessServer("")
	steps := []Step{call(`{"message":"no. ${instance}"}`), {Method: codec.MethodToolsList}, {Method: codec.MethodToolsList, Cursor: "${instance}"}, call(`{"message":"é"}`)}
	res, err := Run(context.Background(), Config{URL: s.start(t), Protocol: Stateless, Concurrency: 2, Requests: 20, Flows: []Flow{{"a", 1, steps}}})
	if err != nil {
		t.Fatal(err)
	}
	if res.Flows[0].Completed != 20 || s.seen["tools/call"] != 40 || s.seen["tools/list"] != 41 {
		t.Errorf("flows = %+v, the server saw %v; want 20 completed", res.Flows[0], s.seen)
	}
	for what, n := range s.seen {
		if strings.HasPrefix(what, "fault") && !strings.Contains(what, "mirrored") {
			t.Errorf("%d times: %s", n, what)
		}
	}
	if n := s.seen["fault in the mirrored header"]; n != 20 { // é is sent in its encoded form, which this server does not decode
		t.Errorf("%d mirrored headers differ from their arguments, want those of the last step only", n)
	}
}

// TestDiscover lists what is there and calls nothing.
func TestDiscover(t *testing.T) {
	f := &fakeServer{}
	o, err := Discover(context.Background(), Config{URL: f.start(t)})
	if err != nil {
		t.Fatal(err)
	}
	want := []OfferedTool{{"write", false, json.RawMessage("{}")}, {"echo", true, json.RawMessage(`{"message":"x"}`)}}
	if !reflect.DeepEqual(o.Tools, want) || o.Server != "fake 1" || len(o.Resources)+len(o.Prompts) != 0 || f.calls.Load() != 0 || f.deletes.Load() != 1 {
		t.Errorf("offer = %+v, %d calls, %d DELETE; want two tools, no call, a session that is ended", o, f.calls.Load(), f.deletes.Load())
	}
	modern := &statelessServer{tools: echoTool, era: &fakeServer{}}
	if o, err = Discover(context.Background(), Config{URL: modern.start(t), Protocol: Auto}); err != nil || o.Protocol != Stateless || len(o.Tools) == 0 {
		t.Errorf("offer of the stateless era = %+v, %v", o, err)
	}
}

// TestFlowMistakes refuses flows that cannot be run, with one line that says where.
func TestFlowMistakes(t *testing.T) {
	for _, tt := range []struct {
		step Step
		want string
	}{
		{Step{}, `flow "a" has no step that calls or waits`},
		{Step{Method: "tools/cal"}, `flow "a", step 1: method "tools/cal" is not one that a step can send`},
		{call(`{"x":"${y}"}`), `there is no variable "y" here`},
		{call(`{"x":"${d.none}"}`), `there is no variable "d.none" here`},
		{call(`{"x":"${"}`), `"${" does not name a variable`},
		{call(`[]`), "not a JSON object"},
		{Step{Method: "ping", Extract: []Extraction{{"v", "a..b"}}}, `the path "a..b" is not understood`},
		{Step{Method: "ping", Extract: []Extraction{{"instance", ""}}}, `a variable cannot be called "instance"`},
		{Step{Method: "ping", CancelAfter: time.Minute}, "between 0 and the timeout, which is 30s"},
		{Step{Method: "ping", Await: &Await{Method: "x"}}, "either sends a request or waits"},
		{Step{Method: codec.MethodToolsCall, Tool: "ehco", Where: "here"}, `here: the server does not list a tool "ehco": choose one of write, echo`},
	} {
		c := Config{Concurrency: 1, Requests: 1, Flows: []Flow{{"a", 1, []Step{tt.step}}}, peer: &virtualPeer{}}
		c.Data = []DataSet{{Name: "d", Columns: []string{"c"}, Rows: [][]json.RawMessage{{nil}}}}
		_, err := Run(context.Background(), c)
		var u *UsageError
		if !errors.As(err, &u) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.step, err, tt.want)
		}
	}
}

// TestParsePath reads both forms.
func TestParsePath(t *testing.T) {
	const doc = `{"a":[{"b.c":1},{"d/e":[2,3]}],"":4}`
	for path, want := range map[string]string{
		"": doc, "/a/0/b.c": "1", "/a/1/d~1e/1": "3", "a[1]": `{"d/e":[2,3]}`, "$.a[0]": `{"b.c":1}`, "/": "4",
		"a[2]": "", "/a/x": "", "/a/0/b.c/z": "", "a.b": "",
	} {
		p, err := ParsePath(path)
		if got := string(at([]byte(doc), p)); err != nil || got != want {
			t.Errorf("at(%q) = %q, %v; want %q", path, got, err, want)
		}
	}
	for _, path := range []string{"a[", "a[x]", "a[-1]", ".[0]", "a.", "a..b", "a.[0]"} {
		if p, err := ParsePath(path); err == nil {
			t.Errorf("ParsePath(%q) = %q, want an error", path, p)
		}
	}
}
