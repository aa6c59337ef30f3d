package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// flowServer answers in virtual time, and remembers what it was asked.
type flowServer struct {
	service time.Duration
	answer  func(s *virtualSession, method, params string) string // default: a result with little in it

	mu   sync.Mutex
	seen []string // method and params
}

// run runs flows against the server.
func (f *flowServer) run(t *testing.T, c Config) *Result {
	t.Helper()
	var res *Result
	synctest.Test(t, func(t *testing.T) {
		p := &virtualPeer{serve: func(now time.Time) time.Time { return now.Add(f.service) }}
		p.answer = func(s *virtualSession, method, params string) string {
			f.mu.Lock()
			f.seen = append(f.seen, method+" "+params)
			f.mu.Unlock()
			if f.answer != nil {
				if a := f.answer(s, method, params); a != "" {
					return a
				}
			}
			if method == codec.MethodToolsList {
				return `{"tools":` + echoTool + `}`
			}
			return `{"content":[{"type":"text","text":"fine"}]}`
		}
		c.peer, c.pause, c.InProcess = p, time.Sleep, true
		var err error
		if res, err = Run(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	})
	f.seen = slices.DeleteFunc(f.seen, func(s string) bool { return s == "tools/list {}" })
	return res
}

// row finds the latency row of a method and tool.
func row(t *testing.T, r *Result, method, tool string) *Latency {
	t.Helper()
	for i := range r.Latency {
		if r.Latency[i].Method == method && r.Latency[i].Tool == tool {
			return &r.Latency[i]
		}
	}
	t.Fatalf("there is no row %s %s in %+v", method, tool, r.Latency)
	return nil
}

func call(args string) Step {
	return Step{Method: codec.MethodToolsCall, Tool: "echo", Arguments: json.RawMessage(args)}
}

func think(d time.Duration) Step { return Step{Think: Think{Mean: d}} }

// TestFlowTimes starts flows on the schedule, and times every step from its own intended moment.
func TestFlowTimes(t *testing.T) {
	steps := []Step{call(`{}`), think(100 * time.Millisecond), {Method: codec.MethodPing}, {Method: codec.MethodResourcesRead, URI: "u:1", Think: Think{Mean: time.Second}}}
	f := &flowServer{service: 20 * time.Millisecond}
	res := f.run(t, Config{Rate: 10, Duration: 10 * time.Second, Flows: []Flow{{"a", 1, steps}}})
	for _, r := range []*Latency{row(t, res, "tools/call", "echo"), row(t, res, "ping", ""), row(t, res, "resources/read", "")} {
		if d := r.Response; d.P50US < 20e3 || d.MaxUS > 20.1e3 || r.Service.Count != d.Count {
			t.Errorf("%s %s: response = %+v, want 20 ms", r.Method, r.Tool, d)
		}
	}
	n := res.Flows[0]
	if n.Begun != 100 || n.Completed+n.Unfinished != 100 || n.Completed < 88 || n.Completed > 90 || n.Failed != 0 || n.Duration.Count != n.Completed {
		t.Errorf("flows = %+v, want 100 begun, and those of the last 1.14 s unfinished", n)
	}
	if d := n.Duration; d.P50US < 1159e3 || d.P50US > 1161e3 {
		t.Errorf("duration of a flow = %+v, want 1.16 s", d)
	}
	v, q := res.Verdict, res.Requests
	if !v.Valid || v.AskedRPS != 10 || v.DeliveredRPS != 10 || q.Total != int64(len(f.seen)) || all(res).Response.Count != q.Total || q.Dropped != 0 {
		t.Errorf("verdict %+v, requests %+v, %d seen; want 10 flows a second delivered", v, q, len(f.seen))
	}
}

// TestFlowWaitsForRoom counts what the cap delays in the first step only.
func TestFlowWaitsForRoom(t *testing.T) {
	f := &flowServer{service: 100 * time.Millisecond}
	steps := []Step{call(`{}`), {Method: codec.MethodPing}}
	res := f.run(t, Config{Rate: 10, Requests: 50, MaxInFlight: 1, Flows: []Flow{{"a", 1, steps}}})
	first, second := row(t, res, "tools/call", "echo").Response, row(t, res, "ping", "").Response
	if first.MaxUS < 4.9e6 || first.Count != 50 || second.MaxUS > 101e3 || second.Count != 50 || res.Flows[0].Completed != 50 {
		t.Errorf("first step %+v, second %+v, flows %+v; want up to 5 s, 100 ms, 50 completed", first, second, res.Flows)
	}
}

// TestFlowVariables feeds rows and results into later steps.
func TestFlowVariables(t *testing.T) {
	f := &flowServer{answer: func(_ *virtualSession, method, params string) string {
		if strings.Contains(params, "first") {
			return `{"content":[{"type":"text","text":"a \"b\"/ü"}],"structuredContent":{"items":[{"id":7}],"flag":null}}`
		}
		return ""
	}}
	first := call(`{"first":"${users.name}","n":["${users.age}", "no. ${instance}", "$${x}"]}`)
	first.Extract = []Extraction{{"text", "/content/0/text"}, {"id", "$.structuredContent.items[0].id"}, {"all", "structuredContent"}}
	steps := []Step{
		first,
		call(`{"id":"${id}","text":"<${text}>","id2":"n${id}","all":"${all}","plain":1e400}`),
		{Method: codec.MethodResourcesRead, URI: "file:///${text}?${id}"},
		{Method: codec.MethodPromptsGet, Prompt: "p", Arguments: json.RawMessage(`{"x":"${users.name}"}`)},
		{Method: codec.MethodToolsList, Cursor: "${id}"},
	}
	data := []DataSet{{Name: "users", Columns: []string{"name", "age"}, Rows: [][]json.RawMessage{
		{json.RawMessage(`"Ann"`), json.RawMessage(`41`)}, {json.RawMessage(`"Bob"`), nil}}}}
	f.run(t, Config{Concurrency: 1, Requests: 3, Flows: []Flow{{"a", 1, steps}}, Data: data})
	want := []string{
		`tools/call {"name":"echo","arguments":{"first":"Ann","n":[41,"no. 0","${x}"]}}`,
		`tools/call {"name":"echo","arguments":{"id":7,"text":"<a \"b\"/ü>","id2":"n7","all":{"items":[{"id":7}],"flag":null},"plain":1e400}}`,
		`resources/read {"uri":"file:///a \"b\"/ü?7"}`,
		`prompts/get {"name":"p","arguments":{"x":"Ann"}}`,
		`tools/list {"cursor":"7"}`,
		`tools/call {"name":"echo","arguments":{"first":"Bob","n":[null,"no. 1","${x}"]}}`,
	}
	if len(f.seen) != 15 {
		t.Fatalf("%d requests, want 15: %q", len(f.seen), f.seen)
	}
	for i, w := range want {
		if f.seen[i] != w {
			t.Errorf("request %d = %s, want %s", i, f.seen[i], w)
		}
	}
	if !strings.Contains(f.seen[10], `"first":"Ann","n":[41,"no. 2"`) {
		t.Errorf("the third flow sent %s, want the first row again", f.seen[10])
	}
}

// TestFlowCancels cancels calls as the step says, which is no error.
func TestFlowCancels(t *testing.T) {
	f := &flowServer{service: time.Second}
	slow := call(`{}`)
	slow.CancelAfter = 100 * time.Millisecond
	res := f.run(t, Config{Concurrency: 2, Requests: 20, Flows: []Flow{{"a", 1, []Step{slow}}}, Thresholds: []string{"errors<1%"}})
	q := res.Requests
	if q.Cancelled != 20 || q.CancelledMeant != 20 || q.Timeout != 0 || res.Flows[0].Completed != 20 || !res.Thresholds[0].OK || len(q.Examples) != 0 {
		t.Errorf("requests %+v, flows %+v, thresholds %+v; want 20 cancelled, no error", q, res.Flows, res.Thresholds)
	}
	if d := q.Outcomes["cancelled"]; d.P50US < 99e3 || d.P50US > 101e3 {
		t.Errorf("time of the cancelled calls = %+v, want 100 ms", d)
	}
	f = &flowServer{service: time.Second}
	res = f.run(t, Config{Concurrency: 1, Requests: 2, Timeout: 200 * time.Millisecond, Flows: []Flow{{"a", 1, []Step{call(`{}`), {Method: codec.MethodPing}}}}})
	if q := res.Requests; q.Timeout != 2 || q.Total != 2 || res.Flows[0].Failed != 2 || res.Flows[0].FirstWhy != `flow "a", step 1: read: deadline` {
		t.Errorf("requests %+v, flows %+v; want two timeouts that end the flows", q, res.Flows)
	}
}

// TestFlowWaits waits for notifications, also for one that has come before the step.
func TestFlowWaits(t *testing.T) {
	const updated = "notifications/resources/updated"
	f := &flowServer{service: 10 * time.Millisecond, answer: func(s *virtualSession, method, params string) string {
		tell := func(uri string) {
			frame := []byte(fmt.Sprintf(`{"jsonrpc":"2.0","method":"%s","params":{"uri":"%s"}}`, updated, uri))
			var m codec.Message
			if err := codec.Decode(frame, &m); err == nil {
				s.heard.deliver(&m)
			}
		}
		switch method {
		case codec.MethodResourcesSubscribe:
			tell("u:other")
			time.AfterFunc(50*time.Millisecond, func() { tell("u:1") })
		case codec.MethodPing:
			tell("u:2")
		}
		return ""
	}}
	steps := []Step{
		{Method: codec.MethodResourcesSubscribe, URI: "u:1"},
		{Await: &Await{Method: updated, URI: "u:1"}},
		{Method: codec.MethodPing},
		think(time.Second),
		{Await: &Await{Method: updated, URI: "u:2"}},
		{Await: &Await{Method: updated, Timeout: time.Second}}, // u:other
		{Method: codec.MethodResourcesUnsubscribe, URI: "u:1"},
	}
	res := f.run(t, Config{Concurrency: 1, Requests: 5, Flows: []Flow{{"a", 1, steps}}})
	if n := res.Flows[0]; n.Completed != 5 || n.Failed != 0 || n.Duration.P50US < 1079e3 || n.Duration.P50US > 1081e3 {
		t.Errorf("flows = %+v (%+v), want 5 completed in 1.08 s each", n, n.Duration)
	}
	r := row(t, res, updated, "")
	if r.Response.Count != 15 || r.Response.MaxUS < 49e3 || r.Response.MaxUS > 51e3 || r.Response.P50US != 0 || r.Service != nil {
		t.Errorf("waits = %+v, want 15, of which five took 50 ms", r.Response)
	}
	if q := res.Requests; q.Total != 15 || all(res).Response.Count != 15 || all(res).Response.MaxUS > 11e3 {
		t.Errorf("requests = %+v, want 15 calls, and the waits not among them", q)
	}
	res = f.run(t, Config{Concurrency: 1, Requests: 1, Flows: []Flow{{"a", 1, []Step{{Await: &Await{Method: updated, Timeout: time.Second}}}}}})
	if n := res.Flows[0]; n.Failed != 1 || n.FirstWhy != `flow "a", step 1: no notifications/resources/updated came within 1s` {
		t.Errorf("flows = %+v, want one that has waited in vain", n)
	}
}

// TestFlowExpectations judges answers by what the step expects of them.
func TestFlowExpectations(t *testing.T) {
	yes := true
	for _, tt := range []struct {
		name, answer string
		expect       Expect
		extract      string
		ok, wrong    int64 // of the requests
		why          string
	}{
		{"nothing expected", "", Expect{}, "", 1, 0, ""},
		{"isError", `{"isError":true,"content":[{"type":"text","text":"no"}]}`, Expect{}, "", 0, 1, "isError: no"},
		{"isError expected", `{"isError":true,"content":[]}`, Expect{IsError: &yes}, "", 1, 0, ""},
		{"isError expected and not there", "", Expect{IsError: &yes}, "", 0, 1, "expected isError, but the call succeeded: fine"},
		{"contains", "", Expect{Contains: []string{"in", "${instance}"}}, "", 0, 1, `expected "0" in the result, which is`},
		{"contains all", `{"content":[{"text":"fine 0"}]}`, Expect{Contains: []string{"in", "${instance}"}}, "", 1, 0, ""},
		{"names do not count", "", Expect{Contains: []string{"content"}}, "", 0, 1, `expected "content"`},
		{"missing value", "", Expect{}, "/content/1/text", 1, 0, `the result has no "/content/1/text" to take "v" from`},
	} {
		f := &flowServer{answer: func(_ *virtualSession, method, _ string) string {
			if method == codec.MethodToolsCall {
				return tt.answer
			}
			return ""
		}}
		s := call(`{}`)
		s.Expect = tt.expect
		if tt.extract != "" {
			s.Extract = []Extraction{{"v", tt.extract}}
		}
		res := f.run(t, Config{Concurrency: 1, Requests: 1, Flows: []Flow{{"a", 1, []Step{s, {Method: codec.MethodPing}}}}})
		n, q := res.Flows[0], res.Requests
		if tt.why == "" {
			tt.ok++ // the ping
		}
		if q.OK != tt.ok || q.ToolError != tt.wrong || (tt.why == "") != (n.Completed == 1) || !strings.Contains(n.FirstWhy, tt.why) || (n.FirstWhy == "") != (tt.why == "") {
			t.Errorf("%s: requests %+v, flow %+v; want %d ok, %d wrong, %q", tt.name, q, n, tt.ok, tt.wrong, tt.why)
		}
		if tt.wrong > 0 && !strings.Contains(q.Examples["tool_error"], tt.why) {
			t.Errorf("%s: example = %q, want %q", tt.name, q.Examples["tool_error"], tt.why)
		}
	}
}

// TestFlowUsers holds users who take flows to the response-time law, and flows to their weights.
func TestFlowUsers(t *testing.T) {
	f := &flowServer{service: 100 * time.Millisecond}
	flows := []Flow{{"often", 3, []Step{call(`{}`), think(300 * time.Millisecond), {Method: codec.MethodPing}}}, {"rarely", 1, []Step{{Method: codec.MethodPromptsList}}}}
	res := f.run(t, Config{Users: 20, ThinkTime: Think{time.Second, true}, Duration: 40 * time.Second, Flows: flows, Seed: 2})
	if l := res.LittlesLaw; !l.OK || l.Observed != 20 || l.Predicted < 18.5 || l.Predicted > 21.5 {
		t.Errorf("X(R+Z) = N gives %+v, want about 20", l)
	}
	often, rarely := res.Flows[0].Begun, res.Flows[1].Begun
	if share := float64(often) / float64(often+rarely); share < 0.7 || share > 0.8 {
		t.Errorf("%d often and %d rarely, want 3 to 1", often, rarely)
	}
	if k := res.Conditions; k.Users != 20 || !slices.Equal(k.Tools, []string{"echo"}) {
		t.Errorf("conditions = %+v", k)
	}
}
