package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestStatelessScenarios runs the scenarios of 2026-07-28 against a fake, and compares the requests that came in.
func TestStatelessScenarios(t *testing.T) {
	t.Setenv("MCP_CONFORMANCE_CONTEXT", `{"toolCalls":[{"name":"a","arguments":{"x":1}},{"name":"b","arguments":{}}]}`)
	const lists = `{"tools":[{"name":"t","inputSchema":{}}],"resources":[{"uri":"u:1","name":"r"}],"prompts":[{"name":"p"}],` +
		`"content":[],"contents":[],"messages":[],"supportedVersions":["2026-07-28"],"capabilities":{}}`
	for scenario, want := range map[string]string{
		"request-metadata":              "server/discover tools/list",
		"json-schema-ref-no-deref":      "server/discover tools/list",
		"http-standard-headers":         "server/discover tools/list tools/call:t resources/list resources/read:u:1 prompts/list prompts/get:p",
		"http-custom-headers":           "server/discover tools/list tools/call:a tools/call:b",
		"http-invalid-tool-headers":     "server/discover tools/list tools/call:t",
		"sep-2322-client-request-state": "server/discover tools/list tools/call:test_mrtr_echo_state tools/call:test_mrtr_unrelated tools/call:test_mrtr_no_state tools/call:test_mrtr_no_result_type",
	} {
		var seen []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen = append(seen, strings.TrimSuffix(r.Header.Get("Mcp-Method")+":"+r.Header.Get("Mcp-Name"), ":"))
			var f struct {
				ID json.RawMessage `json:"id"`
			}
			if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
				t.Errorf("%s: %v", scenario, err)
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, f.ID, lists)
		}))
		err := run(scenario, "2026-07-28", server.URL)
		server.Close()
		if got := strings.Join(seen, " "); err != nil || got != want {
			t.Errorf("%s: got %s (%v), want %s", scenario, got, err, want)
		}
	}
	t.Setenv("MCP_CONFORMANCE_CONTEXT", "{")
	if err := callsOfContext(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "MCP_CONFORMANCE_CONTEXT") {
		t.Errorf("a broken context: got %v", err)
	}
}

// TestScenarios runs each scenario against a fake of the suite's server, which fails for any call but the right one.
func TestScenarios(t *testing.T) {
	const schema = `{"type":"object","$defs":{"a":{"x-kept":[1]}},"allOf":[]}`
	for _, test := range []struct{ scenario, tools, call, want string }{
		{"initialize", ``, `none`, ""},
		{"tools_call", `{"name":"add_numbers","inputSchema":{"type":"object"}}`, `{"name":"add_numbers","arguments":{"a":5,"b":3}}`, ""},
		{"tools_call", ``, `{"name":"another"}`, "the tool add_numbers failed"},
		{"sse-retry", ``, `{"name":"test_reconnection","arguments":{}}`, ""},
		{"elicitation-sep1034-client-defaults", ``, `{"name":"test_client_elicitation_defaults","arguments":{}}`, ""},
		{"json-schema-2020-12-preservation", `{"name":"json_schema_2020_12_tool","inputSchema":` + schema + `}`,
			`{"name":"json_schema_echo","arguments":{"schema":` + schema + `}}`, ""},
		{"json-schema-2020-12-preservation", ``, ``, "there is no tool json_schema_2020_12_tool"},
		{"auth/basic-cimd", ``, ``, `the scenario "auth/basic-cimd" is not one of mine`},
	} {
		called := "none"
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			var f struct {
				ID     json.RawMessage `json:"id"`
				Method string          `json:"method"`
				Params json.RawMessage `json:"params"`
			}
			if err != nil || json.Unmarshal(body, &f) != nil {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			result := ""
			switch f.Method {
			case "initialize":
				result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}`
			case "tools/list":
				result = `{"tools":[` + test.tools + `]}`
			case "tools/call":
				called = string(f.Params)
				result = fmt.Sprintf(`{"content":[],"isError":%v}`, called != test.call)
			default:
				w.WriteHeader(http.StatusAccepted)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, f.ID, result)
		}))
		err := run(test.scenario, "2025-11-25", server.URL)
		server.Close()
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != test.want || test.want == "" && strings.TrimSpace(called) != test.call {
			t.Errorf("%s: called %s, got %q; want %s, %q", test.scenario, called, got, test.call, test.want)
		}
	}
}
