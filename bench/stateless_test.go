package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

const discoverOK = `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},` +
	`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"modern","version":"2"}}}}`

// statelessServer is a server of the stateless era which refuses whatever lacks what the era wants.
type statelessServer struct {
	discover string // status and answer without its head; default 200 and discoverOK
	tools    string
	call     string // result of a call; default a complete one
	era      *fakeServer

	mu   sync.Mutex
	seen map[string]int // requests by method, and by fault
}

func (s *statelessServer) start(t *testing.T) string {
	t.Helper()
	s.seen = map[string]int{}
	s.era.start(t) // for its state
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return srv.URL + "/mcp"
}

func (s *statelessServer) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[what]++
}

func (s *statelessServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name string                     `json:"name"`
			Args map[string]any             `json:"arguments"`
			Meta map[string]json.RawMessage `json:"_meta"`
		} `json:"params"`
	}
	if r.Method != http.MethodPost || json.Unmarshal(body, &m) != nil {
		s.count("bad " + r.Method)
		return
	}
	if m.Params.Meta == nil { // of the older era
		s.count(m.Method)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		s.era.serve(w, r)
		return
	}
	h := r.Header
	var info struct{ Name, Version string }
	switch {
	case string(m.Params.Meta["io.modelcontextprotocol/protocolVersion"]) != `"2026-07-28"`, h.Get("Mcp-Protocol-Version") != "2026-07-28",
		string(m.Params.Meta["io.modelcontextprotocol/clientCapabilities"]) != "{}", h.Get("Mcp-Method") != m.Method,
		json.Unmarshal(m.Params.Meta["io.modelcontextprotocol/clientInfo"], &info) != nil, info.Name != "mcp-load",
		h.Get("Mcp-Name") != m.Params.Name, h.Get("Mcp-Session-Id") != "":
		s.count("fault in " + m.Method)
	case m.Method == "tools/call" && h.Get("Mcp-Param-Message") != fmt.Sprint(m.Params.Args["message"]):
		s.count("fault in the mirrored header")
	}
	s.count(m.Method)
	reply := discoverOK
	switch m.Method {
	case "server/discover":
		if s.discover != "" {
			var status int
			code, rest, _ := strings.Cut(s.discover, " ")
			fmt.Sscan(code, &status)
			if !strings.HasPrefix(rest, `"`) {
				w.WriteHeader(status)
				fmt.Fprint(w, rest)
				return
			}
			w.WriteHeader(status)
			reply = rest
		}
	case "tools/list":
		reply = `"result":{"resultType":"complete","tools":` + s.tools + `}}`
	case "tools/call":
		reply = `"result":` + s.call + `}`
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s`, m.ID, reply)
}

const mirroringTools = `[{"name":"bad","annotations":{"readOnlyHint":true},"inputSchema":{"properties":{"n":{"type":"number","x-mcp-header":"N"}}}},` +
	`{"name":"echo","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"message":{"type":"string","x-mcp-header":"Message"}},"required":["message"]}}]`

func newStatelessServer(discover string) *statelessServer {
	return &statelessServer{discover: discover, tools: mirroringTools, call: `{"resultType":"complete","content":[]}`, era: &fakeServer{}}
}

// TestStatelessRun: what a run without sessions sends, and what it counts.
func TestStatelessRun(t *testing.T) {
	for _, protocol := range []string{Stateless, Auto} {
		s := newStatelessServer("")
		var warnings []string
		res, err := Run(context.Background(), Config{URL: s.start(t), Protocol: protocol, Concurrency: 2, Sessions: 5, Requests: 40, Streams: true,
			OnWarning: func(w string) { warnings = append(warnings, w) }})
		if err != nil {
			t.Fatal(err)
		}
		if c := res.Conditions; c.Protocol != Stateless || c.Server != "modern 2" || fmt.Sprint(c.Tools) != "[echo]" {
			t.Errorf("%s: conditions = %+v", protocol, c)
		}
		if n := res.Sessions; res.Requests.OK != 40 || n.Opened != 5 || n.Closed != 5 || n.Failed+n.Lost != 0 || n.Setup.Count != 5 {
			t.Errorf("%s: requests = %+v, sessions = %+v; want 40 ok, 5 opened and closed", protocol, res.Requests, n)
		}
		if got, want := fmt.Sprint(s.seen), "map[server/discover:5 tools/call:40 tools/list:1]"; got != want {
			t.Errorf("%s: the server saw %s, want %s", protocol, got, want)
		}
		if len(warnings) != 2 || !strings.Contains(warnings[0], `the tool "bad" is left out`) || !strings.Contains(warnings[1], "no GET streams") {
			t.Errorf("%s: warnings = %q", protocol, warnings)
		}
		var text strings.Builder
		if err := res.WriteSummary(&text, false); err != nil || !strings.Contains(text.String(), "each is one server/discover") {
			t.Errorf("%s: summary (%v):\n%s", protocol, err, &text)
		}
	}
}

// TestAuto: what a server makes of server/discover decides what a run speaks.
func TestAuto(t *testing.T) {
	const refused = `"error":{"code":%d,"message":"m","data":%s}}`
	for _, tt := range []struct {
		name, discover string
		protocol       string // or "" where the run ends
		err            string
	}{
		{"no such path", "404 not found", "2025-11-25", ""},
		{"no session", "400 " + fmt.Sprintf(refused, -32000, "{}"), "2025-11-25", ""},
		{"unknown method", "200 " + fmt.Sprintf(refused, -32601, "{}"), "2025-11-25", ""},
		{"unknown method in the new era", "404 " + fmt.Sprintf(refused, -32601, "{}"), Stateless, ""},
		{"older versions", "400 " + fmt.Sprintf(refused, -32022, `{"supported":["2025-11-25"]}`), "2025-11-25", ""},
		{"unknown versions", "400 " + fmt.Sprintf(refused, -32022, `{"supported":["2099-01-01"]}`), "", "it serves 2099-01-01"},
		{"refuses its own version", "400 " + fmt.Sprintf(refused, -32022, `{"supported":["2026-07-28"]}`), "", "refused server/discover"},
		{"bad headers", "400 " + fmt.Sprintf(refused, -32020, "{}"), "", "error -32020"},
		{"nothing that it says", `200 "result":{}}`, "2025-11-25", ""},
		{"not JSON", "200 <html>", "2025-11-25", ""},
		{"no rights", "401 who", "", "wants credentials"},
		{"busy", "503 busy", "", "HTTP status 503"},
	} {
		s := newStatelessServer(tt.discover)
		res, err := Run(context.Background(), Config{URL: s.start(t), Protocol: Auto, Concurrency: 1, Sessions: 3, Requests: 4, OnWarning: func(string) {}})
		got, text := "", ""
		if err == nil {
			got = res.Conditions.Protocol
		} else {
			text = err.Error()
		}
		if got != tt.protocol || !strings.Contains(text, tt.err) || tt.err == "" && err != nil {
			t.Errorf("%s: protocol %q, error %q; want %q, %q", tt.name, got, text, tt.protocol, tt.err)
		}
		if want := map[string]int{"2025-11-25": 1, Stateless: 3}[tt.protocol]; want != 0 && s.seen["server/discover"] != want {
			t.Errorf("%s: %d times server/discover, want %d: %v", tt.name, s.seen["server/discover"], want, s.seen)
		}
	}
}

// TestStatelessOnly says what is wrong where the one side has sessions and the other none.
func TestStatelessOnly(t *testing.T) {
	for _, tt := range []struct{ discover, protocol, want string }{
		{"400 " + `"error":{"code":-32000,"message":"no session"}}`, Stateless, "--protocol auto uses what it does serve"},
		{"404 nothing", Stateless, "there is no MCP endpoint at this path"},
		{"500 oops", Stateless, "answered server/discover with HTTP status 500: oops"},
	} {
		s := newStatelessServer(tt.discover)
		_, err := Run(context.Background(), Config{URL: s.start(t), Protocol: tt.protocol, Requests: 1})
		var ce *ConnectError
		if !errors.As(err, &ce) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s against %q: %v, want %q", tt.protocol, tt.discover, err, tt.want)
		}
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no initialize here"}}`)
	}))
	defer srv.Close()
	if _, err := Run(context.Background(), Config{URL: srv.URL, Requests: 1}); err == nil || !strings.Contains(err.Error(), "--protocol auto is what it needs") {
		t.Errorf("sessions against a server without: %v, want the advice to use auto", err)
	}
}

// TestIncompleteResults are no successes.
func TestIncompleteResults(t *testing.T) {
	s := newStatelessServer("")
	s.call = `{"resultType":"input_required","requestState":"s"}`
	res, err := Run(context.Background(), Config{URL: s.start(t), Protocol: Stateless, Concurrency: 1, Requests: 3, OnWarning: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	if q := res.Requests; q.ToolError != 3 || !strings.Contains(q.Examples["tool_error"], `a result of type "input_required"`) {
		t.Errorf("requests = %+v, want 3 tool errors that say why", q)
	}
}

// TestStatelessStdio: processes of both eras, one of which ends at the first request that it does not know.
func TestStatelessStdio(t *testing.T) {
	for _, tt := range []struct{ mode, protocol, want string }{
		{"modern", Stateless, Stateless}, {"modern", Auto, Stateless}, {"shuffle", Auto, "2025-06-18"}, {"fragile", Auto, "2025-06-18"},
	} {
		t.Setenv(childEnv, tt.mode)
		res, err := Run(context.Background(), Config{Command: []string{os.Args[0]}, Protocol: tt.protocol, Concurrency: 2, Sessions: 2, Requests: 20})
		if err != nil {
			t.Errorf("%s, %s: %v", tt.mode, tt.protocol, err)
			continue
		}
		if n := res.Sessions; res.Conditions.Protocol != tt.want || res.Requests.OK != 20 || n.Opened != 2 || n.Closed != 2 {
			t.Errorf("%s, %s: protocol %s, requests %+v, sessions %+v; want %s, 20 ok, 2 opened and closed",
				tt.mode, tt.protocol, res.Conditions.Protocol, res.Requests, n, tt.want)
		}
	}
}

// TestWriteRunsJSON is the form of a matrix.
func TestWriteRunsJSON(t *testing.T) {
	var text strings.Builder
	runs := []*Result{{Schema: Schema, Started: time.Unix(1, 0).UTC()}, {Schema: Schema}}
	if err := WriteRunsJSON(&text, runs); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Schema string   `json:"schema"`
		Runs   []Result `json:"runs"`
	}
	if err := json.Unmarshal([]byte(text.String()), &got); err != nil || got.Schema != Schema || len(got.Runs) != 2 || !got.Runs[0].Started.Equal(runs[0].Started) {
		t.Errorf("WriteRunsJSON = %s (%v), want the schema and two runs", &text, err)
	}
}
