package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client"
)

// TestStatelessShape: what a request carries, and what the server told of itself.
func TestStatelessShape(t *testing.T) {
	var params, headers []string
	s := &modernServer{}
	s.answer = func(f frame, h http.Header) string {
		params = append(params, string(f.Params))
		line := ""
		for _, name := range []string{"Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id", "Accept"} {
			line += h.Get(name) + "|"
		}
		headers = append(headers, line)
		if f.Method == "notifications/x" {
			return "202 "
		}
		return resultOf(f, `{"content":[],"contents":[],"messages":[]}`)
	}
	c := mustConnectModern(t, s, client.Options{
		Info: client.Implementation{Name: "n", Title: "t", Version: "v"}, LogLevel: client.LevelInfo, TaskExtension: true,
		Header:   http.Header{"Mcp-Session-Id": {"stale"}, "Mcp-Method": {"lie"}},
		OnElicit: onElicit, ElicitModes: client.ElicitForm | client.ElicitURL, ElicitTasks: true, RootList: []client.Root{},
	})
	info := c.Server()
	got := fmt.Sprint(info.Name, info.Title, info.Version, info.Protocol, info.Instructions, c.SessionID())
	if want := "fakeFake12026-07-28be kind"; got != want {
		t.Errorf("Server: got %s, want %s", got, want)
	}
	_, err1 := c.CallTool(t.Context(), "é", []byte(`{"a":1}`), nil)
	_, err2 := c.ReadResource(t.Context(), "file:///a%20b?q=1")
	_, err3 := c.Request(t.Context(), "prompts/get", []byte(`{"name":"p","_meta":{"traceparent":"tp","io.modelcontextprotocol/protocolVersion":"lie"}}`), nil)
	err4 := c.Notify(t.Context(), "notifications/x", nil)
	err5 := c.SetRoots(t.Context(), []client.Root{{URI: "file:///x"}}) // nobody needs to know
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` +
		`{"elicitation":{"form":{},"url":{}},"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"n","title":"t","version":"v"},"io.modelcontextprotocol/logLevel":"info"`
	want := []string{
		`{` + meta + `},"name":"é","arguments":{"a":1}}`,
		`{` + meta + `},"uri":"file:///a%20b?q=1"}`,
		`{` + meta + `,"traceparent":"tp"},"name":"p"}`, "",
	}
	if !slices.Equal(params, want) {
		t.Errorf("params: got\n%s\nwant\n%s", strings.Join(params, "\n"), strings.Join(want, "\n"))
	}
	wantHeaders := []string{
		"2026-07-28|tools/call|=?base64?w6k=?=||application/json, text/event-stream|",
		"2026-07-28|resources/read|file:///a%20b?q=1||application/json, text/event-stream|",
		"2026-07-28|prompts/get|p||application/json, text/event-stream|",
		"2026-07-28|notifications/x|||application/json, text/event-stream|",
	}
	if !slices.Equal(headers, wantHeaders) {
		t.Errorf("headers: got\n%s\nwant\n%s", strings.Join(headers, "\n"), strings.Join(wantHeaders, "\n"))
	}
	validate(t, "2026-07-28", "CallToolRequestParams", want[0])
	if log := s.log(); strings.Contains(log, "GET") || strings.Contains(log, "DELETE") || strings.Contains(log, "initialize") {
		t.Errorf("requests: got %s, want POSTs of the revision only", log)
	}
}

const askForm = `"k":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"n":{"type":"integer","default":3}}}}}`

// TestRounds: what a result that is not the end makes the client do.
func TestRounds(t *testing.T) {
	for _, test := range []struct {
		name    string
		results []string // one for each request; the last one stays
		want    string   // the requests after the first, or the error
	}{
		{"answers and state", []string{`{"resultType":"input_required","inputRequests":{` + askForm + `,"r":{"method":"roots/list"}},"requestState":"s\u0074\/ate"}`, `{"content":[]}`},
			`"inputResponses":{"k":{"action":"accept","content":{"n":3}},"r":{"roots":[]}},"requestState":"s\u0074\/ate"}`},
		{"no state", []string{`{"resultType":"input_required","inputRequests":{` + askForm + `}}`, `{"resultType":"complete","content":[]}`},
			`"inputResponses":{"k":{"action":"accept","content":{"n":3}}}}`},
		{"state alone", []string{`{"resultType":"input_required","requestState":""}`, `{"content":[]}`}, `"requestState":""}`},
		{"only the last state", []string{`{"resultType":"input_required","requestState":"1"}`, `{"resultType":"input_required","inputRequests":{` + askForm + `}}`, `{"content":[]}`},
			`"requestState":"1"}` + "\n" + `"inputResponses":{"k":{"action":"accept","content":{"n":3}}}}`},
		{"for ever", []string{`{"resultType":"input_required","requestState":"1"}`}, "the server keeps asking instead of answering (3 rounds of tools/call)"},
		{"nothing asked", []string{`{"resultType":"input_required"}`}, "malformed answer"},
		{"state of another type", []string{`{"resultType":"input_required","requestState":7}`}, "malformed answer"},
		{"requests of another type", []string{`{"resultType":"input_required","inputRequests":[]}`}, "malformed answer"},
		{"unknown type", []string{`{"resultType":"later"}`}, `a result of type "later" to tools/call`},
		{"type of another type", []string{`{"resultType":null,"content":[]}`}, `a result of type "" to tools/call`},
		{"a task that nobody wants", []string{`{"resultType":"task","taskId":"t","status":"working"}`}, `a result of type "task" to tools/call`},
		{"not declared", []string{`{"resultType":"input_required","inputRequests":{"k":{"method":"sampling/createMessage","params":{}}}}`}, "sampling/createMessage (k) was not answered: Method not found (-32601)"},
		{"not an input", []string{`{"resultType":"input_required","inputRequests":{"k":{"method":"ping"}}}`}, "ping (k) was not answered"},
		{"a form of nonsense", []string{`{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{}}}}`}, "elicitation/create (k) was not answered: Invalid params"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got, ids []string
			s := &modernServer{}
			s.answer = func(f frame, _ http.Header) string {
				_, rest, _ := strings.Cut(string(f.Params), `"arguments":{},`)
				got, ids = append(got, rest), append(ids, string(f.ID))
				return resultOf(f, test.results[min(len(got), len(test.results))-1])
			}
			c := mustConnectModern(t, s, client.Options{OnElicit: onElicit, RootList: []client.Root{}, MaxRounds: 3})
			_, err := c.CallTool(t.Context(), "x", []byte(`{}`), nil)
			text := strings.Join(got[1:], "\n")
			if err != nil {
				text = err.Error()
			}
			if err == nil && text != test.want || err != nil && !strings.Contains(text, test.want) {
				t.Errorf("got %s, want %s", text, test.want)
			}
			if slices.Sort(ids); len(slices.Compact(ids)) != len(got) {
				t.Errorf("ids: got %v, want each only once", ids)
			}
		})
	}
}

// TestRoundsElsewhere: methods that must not ask.
func TestRoundsElsewhere(t *testing.T) {
	s := &modernServer{}
	s.answer = func(f frame, _ http.Header) string {
		return resultOf(f, `{"resultType":"input_required","requestState":"1"}`)
	}
	c := mustConnectModern(t, s, client.Options{})
	if _, err := c.ListTools(t.Context()); !errors.Is(err, client.ErrMalformed) {
		t.Errorf("tools/list: got %v, want ErrMalformed", err)
	}
}

// TestRoundsEnd: a caller who gives up while a callback is at work is let go.
func TestRoundsEnd(t *testing.T) {
	s := &modernServer{}
	s.answer = func(f frame, _ http.Header) string {
		return resultOf(f, `{"resultType":"input_required","inputRequests":{`+askForm+`}}`)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := mustConnectModern(t, s, client.Options{OnElicit: func(ctx context.Context, _ *client.ElicitRequest) (*client.ElicitResult, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	if _, err := c.CallTool(ctx, "x", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("CallTool: got %v, want context.Canceled", err)
	}
}

// TestStatelessErrors are the codes of the revision that have a type.
func TestStatelessErrors(t *testing.T) {
	reply := ""
	s := &modernServer{}
	s.answer = func(frame, http.Header) string { return reply }
	c := mustConnectModern(t, s, client.Options{})

	reply = "400 " + errorOf(-32021, `{"requiredCapabilities":{"sampling":{}}}`)
	_, err := c.CallTool(t.Context(), "x", nil, nil)
	var required *client.RequiredCapabilityError
	if !errors.As(err, &required) || string(required.Required) != `{"sampling":{}}` || !errors.Is(err, &codec.Error{Code: -32021}) {
		t.Errorf("-32021: got %v, want a *RequiredCapabilityError for sampling", err)
	}
	reply = "400 " + errorOf(-32022, `{"supported":["2099-01-01"],"requested":"2026-07-28"}`)
	_, err = c.CallTool(t.Context(), "x", nil, nil)
	var version *client.UnsupportedVersionError
	if !errors.As(err, &version) || !slices.Equal(version.Supported, []string{"2099-01-01"}) {
		t.Errorf("-32022: got %v, want an *UnsupportedVersionError for 2099-01-01", err)
	}
	reply = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n"
	if _, err = c.CallTool(t.Context(), "x", nil, nil); !errors.Is(err, client.ErrNoResponse) {
		t.Errorf("a stream that ends early: got %v, want ErrNoResponse", err)
	}
}

// TestMirroredHeaders: headers follow the listed tools; a client that knows too little learns and tries again; tools with
// bad annotations are left out.
func TestMirroredHeaders(t *testing.T) {
	var seen []string
	s := &modernServer{}
	s.answer = func(f frame, h http.Header) string {
		if f.Method == "tools/list" {
			return resultOf(f, `{"ttlMs":60000,"tools":[{"name":"good","inputSchema":{"properties":{"r":{"type":"string","x-mcp-header":"Region"}}}},`+
				`{"name":"bad","inputSchema":{"properties":{"r":{"type":"number","x-mcp-header":"R"}}}},{"name":"plain"}]}`)
		}
		seen = append(seen, strings.Join(h.Values("Mcp-Param-Region"), ","))
		if h.Get("Mcp-Param-Region") == "" && strings.Contains(string(f.Params), `"r":"x"`) {
			return "400 " + errorOf(-32020, "")
		}
		return resultOf(f, `{"content":[]}`)
	}
	c := mustConnectModern(t, s, client.Options{})
	for _, arguments := range []string{`{"r":"x"}`, `{"r":"x"}`, `{"r":null}`, `{"r":" y"}`} {
		if _, err := c.CallTool(t.Context(), "good", []byte(arguments), nil); err != nil {
			t.Errorf("CallTool(%s): %v", arguments, err)
		}
	}
	if want := []string{"", "x", "x", "", "=?base64?IHk=?="}; !slices.Equal(seen, want) {
		t.Errorf("Mcp-Param-Region: got %q, want %q", seen, want)
	}
	tools, err := c.ListTools(t.Context())
	if err != nil || len(tools) != 2 || tools[0].Name != "good" || tools[1].Name != "plain" {
		t.Errorf("ListTools: got %v, %v; want good and plain", tools, err)
	}
	var excluded *client.ToolExcludedError
	if _, err := c.CallTool(t.Context(), "bad", nil, nil); !errors.As(err, &excluded) || !strings.Contains(excluded.Reason, "its type is not") {
		t.Errorf("CallTool(bad): got %v, want a *ToolExcludedError", err)
	}
}

// TestServersSendNoRequests: nothing is answered, whatever the server sends.
func TestServersSendNoRequests(t *testing.T) {
	noLeaks(t)
	c, p := connectModernPipe(t, client.Options{OnElicit: onElicit})
	p.write(`{"jsonrpc":"2.0","id":7,"method":"ping"}`, `{"jsonrpc":"2.0","id":8,"method":"elicitation/create","params":{}}`,
		`{"jsonrpc":"2.0","id":9,"method":"ping","params":7}`)
	go func() { _, _ = c.CallTool(t.Context(), "x", nil, nil) }()
	if f := p.expect("tools/call"); f.Result != nil || f.Error != nil {
		t.Errorf("the client answered: %+v", f)
	}
}

// TestStatelessCancelOnPipe: there the server is told by a notification.
func TestStatelessCancelOnPipe(t *testing.T) {
	noLeaks(t)
	c, p := connectModernPipe(t, client.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := c.CallTool(ctx, "x", nil, nil)
		failed <- err
	}()
	call := p.expect("tools/call")
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("CallTool: got %v, want context.Canceled", err)
	}
	if f := p.expect("notifications/cancelled"); !strings.HasPrefix(string(f.Params), `{"requestId":`+string(call.ID)+`,`) {
		t.Errorf("cancelled: got %s, want id %s", f.Params, call.ID)
	}
}

// TestURLModeWithoutID: the stateless revision has no elicitation ids.
func TestURLModeWithoutID(t *testing.T) {
	noLeaks(t)
	ours, theirs := net.Pipe()
	p := &peer{t: t, conn: theirs, r: bufio.NewReader(theirs)}
	go func() {
		p.write(resultOf(p.expect("server/discover"), discoverResult))
		p.write(resultOf(p.expect("tools/call"), `{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create",`+
			`"params":{"mode":"url","message":"m","url":"https://x/y"}}}}`))
		f := p.expect("tools/call")
		if !strings.Contains(string(f.Params), `"inputResponses":{"k":{"action":"accept"}}`) {
			t.Errorf("retry: got %s", f.Params)
		}
		p.write(resultOf(f, `{"content":[]}`))
	}()
	var asked string
	c, err := client.ConnectPipe(t.Context(), ours, &client.Options{
		Protocol: client.ProtocolStateless, ElicitModes: client.ElicitURL,
		OnElicit: func(_ context.Context, r *client.ElicitRequest) (*client.ElicitResult, error) {
			asked = r.URL
			return &client.ElicitResult{Action: client.ElicitAccept}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer closeClient(t, c)
	if _, err := c.CallTool(t.Context(), "x", nil, nil); err != nil || asked != "https://x/y" {
		t.Errorf("CallTool: got %v, asked for %q; want https://x/y", err, asked)
	}
}
