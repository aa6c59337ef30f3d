package interop

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcpengine/mcpengine/internal/interop/fixture"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// result is the part of an mcp-load/v1 result file that these tests judge.
type result struct {
	Schema     string `json:"schema"`
	Conditions struct {
		Transport string `json:"transport"`
		Protocol  string `json:"protocol"`
	} `json:"conditions"`
	Verdict struct {
		Valid bool `json:"valid"`
	} `json:"verdict"`
	Sessions struct {
		Opened, Failed, Lost, Closed int64
	} `json:"sessions"`
	Requests struct {
		Total          int64 `json:"total"`
		OK             int64 `json:"ok"`
		ToolError      int64 `json:"tool_error"`
		RPCError       int64 `json:"rpc_error"`
		HTTPError      int64 `json:"http_error"`
		TransportError int64 `json:"transport_error"`
		Timeout        int64 `json:"timeout"`
		Cancelled      int64 `json:"cancelled"`
		Dropped        int64 `json:"dropped"`
	} `json:"requests"`
	Latency []struct {
		Method, Tool      string
		Response, Service struct{ Count int64 }
	} `json:"latency"`
}

// exitInvalid is the exit status of a run whose numbers cannot be trusted, such as one on a machine that is too busy to
// keep the schedule. That is not what these tests judge: the counts must be right all the same.
const exitInvalid = 98

// runLoad runs `mcp-load run` with the given arguments, wants it to succeed, and returns its result file.
func runLoad(t *testing.T, args ...string) result {
	t.Helper()
	file := filepath.Join(t.TempDir(), "result.json")
	cmd := exec.CommandContext(t.Context(), mcpLoad.binary(t), slices.Concat([]string{"run", "-o", "json=" + file}, args)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != exitInvalid {
		t.Fatalf("mcp-load %v: %v\n%s", cmd.Args[1:], err, out.Bytes())
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("mcp-load %v: %v\n%s", cmd.Args[1:], err, out.Bytes())
	}
	var r result
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatalf("result file: %v\n%s", err, data)
	}
	if !r.Verdict.Valid || testing.Verbose() {
		t.Logf("mcp-load %v\n%s", cmd.Args[1:], out.Bytes())
	}
	return r
}

// check wants a run without any error, with sessions opened and all of them closed again.
func (r result) check(t *testing.T, transport string, sessions int64) {
	t.Helper()
	if r.Schema != "mcp-load/v1" || r.Conditions.Transport != transport {
		t.Errorf("got schema %q, transport %q; want mcp-load/v1, %q", r.Schema, r.Conditions.Transport, transport)
	}
	if s := r.Sessions; s.Opened != sessions || s.Closed != sessions || s.Failed != 0 || s.Lost != 0 {
		t.Errorf("sessions: got %+v, want %d opened and closed, none failed or lost", s, sessions)
	}
	q := r.Requests
	if q.Total == 0 || q.OK != q.Total {
		t.Errorf("requests: got %+v, want some, all ok", q)
	}
	if bad := q.ToolError + q.RPCError + q.HTTPError + q.TransportError + q.Timeout + q.Cancelled + q.Dropped; bad != 0 {
		t.Errorf("requests: got %d that are not ok, want none: %+v", bad, q)
	}
	for _, row := range r.Latency {
		if row.Method == "tools/call" && row.Tool == "echo" {
			if row.Response.Count != q.OK || row.Service.Count != q.OK {
				t.Errorf("latency of echo: got %d and %d samples, want %d, as many as requests", row.Response.Count, row.Service.Count, q.OK)
			}
			return
		}
	}
	t.Error("latency: no row for tools/call of echo")
}

// echoFlags is a short closed loop of echo calls that counts every request, because nothing is warm-up.
var echoFlags = []string{"-d", "2s", "--warmup", "0s", "--tool", "echo", "--args", `{"message":"hello"}`}

// TestLoad lets mcp-load measure servers of every make.
func TestLoad(t *testing.T) {
	for _, s := range []*server{mcpLoad, goSDK, mcpGo} {
		t.Run(s.name+"/http", func(t *testing.T) {
			url := s.serveHTTP(t)
			r := runLoad(t, slices.Concat(echoFlags, []string{"--sessions", "8", "-c", "4", url})...)
			r.check(t, "http", 8)
		})
		t.Run(s.name+"/stdio", func(t *testing.T) {
			command := append([]string{"--sessions", "1", "-c", "2", "--"}, s.stdioCommand(t)...)
			r := runLoad(t, slices.Concat(echoFlags, command)...)
			r.check(t, "stdio", 1)
		})
	}
}

// TestCountingServer shows that the oracle of TestCounts counts right, with the client of its own make.
func TestCountingServer(t *testing.T) {
	url := goSDK.serveHTTP(t, "-counting")
	for range 3 {
		c := &goSDKClient{endpoint: url}
		c.connect(t, &mcp.StreamableClientTransport{Endpoint: url}, "2025-11-25")
		for range 2 {
			if _, err := c.call(within(t), "echo", fixture.Message{Message: "hello"}); err != nil {
				t.Fatalf("echo: %v", err)
			}
		}
		if _, err := c.call(within(t), "no such tool", nil); err == nil {
			t.Fatal("unknown tool: got no error")
		}
		if err := c.session.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	want := fixture.Counts{Initializes: 3, Calls: 9, FailedCalls: 3, Deletes: 3}
	if got := readCounts(t, url); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestCounts compares what mcp-load says about itself with what a server of another make saw.
func TestCounts(t *testing.T) {
	loops := map[string][]string{
		"closed loop": {"-c", "16"},
		"open loop":   {"-r", "300"},
	}
	for name, loop := range loops {
		t.Run(name, func(t *testing.T) {
			url := goSDK.serveHTTP(t, "-counting")
			r := runLoad(t, slices.Concat(echoFlags, []string{"-d", "3s", "--sessions", "200"}, loop, []string{url})...)
			r.check(t, "http", 200)
			want := fixture.Counts{Initializes: r.Sessions.Opened, Calls: r.Requests.Total, Deletes: r.Sessions.Closed}
			if got := readCounts(t, url); got != want {
				t.Errorf("the server saw %+v, the result file says %+v", got, want)
			}
		})
	}
}
