package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/bench"
)

// selfEnv turns the test binary into mcp-load, so that signals and exit codes are real.
const selfEnv = "MCP_LOAD_TEST_SELF"

func TestMain(m *testing.M) {
	if os.Getenv(selfEnv) != "" {
		main()
	}
	if os.Getenv(bucketEnv) != "" {
		serveBucket(os.Args[1])
	}
	os.Exit(m.Run())
}

// countingServer is an MCP server of another make, which counts what it sees.
type countingServer struct {
	initializes, calls, deletes atomic.Int64
	delay                       time.Duration
	delayed                     func() time.Duration // instead of delay, where it is not nil
	tools                       string
	prefix                      string // of the session ids
}

const readOnlyEcho = `[{"name":"echo","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]`

func (s *countingServer) start(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return srv.URL + "/mcp"
}

func (s *countingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/mcp" {
		http.NotFound(w, r)
		return
	}
	if r.Method == http.MethodDelete {
		s.deletes.Add(1)
		return
	}
	body, _ := io.ReadAll(r.Body)
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	result := `{}`
	switch m.Method {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", fmt.Sprint(s.prefix, "s", s.initializes.Add(1)))
		result = `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"counting","version":"1"}}`
	case "tools/list":
		result = `{"tools":` + s.tools + `}`
		if s.tools == "" {
			result = `{"tools":` + readOnlyEcho + `}`
		}
	case "tools/call":
		s.calls.Add(1)
		delay := s.delay
		if s.delayed != nil {
			delay = s.delayed()
		}
		time.Sleep(delay)
		result = `{"content":[]}`
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// call runs a command line in this process.
func call(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = execute(context.Background(), append([]string{"mcp-load"}, args...), &out, &errs)
	return code, out.String(), errs.String()
}

func readResult(t *testing.T, path string) *bench.Result {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var res bench.Result
	if err := json.Unmarshal(b, &res); err != nil {
		t.Fatalf("%s is not complete: %v", path, err)
	}
	return &res
}

// TestExitCodes is the table of ends: the code, and one clear line on standard error.
func TestExitCodes(t *testing.T) {
	good := (&countingServer{}).start(t)
	unsafe := (&countingServer{tools: `[{"name":"rm","inputSchema":{}}]`}).start(t)
	slow := (&countingServer{delay: 50 * time.Millisecond}).start(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + l.Addr().String() + "/mcp"
	_ = l.Close()
	for _, tt := range []struct {
		args []string
		code int
		want string // on stderr, or on stdout where the code tells of a result
	}{
		{[]string{"--version"}, 0, "mcp-load: load generator and capacity planner for Model Context Protocol servers\n"},
		{[]string{"run", good, "-n", "20", "-c", "2"}, 0, "20: 20 ok"},
		{[]string{"run", good, "-n", "20", "--threshold", "errors<1%"}, 0, "errors<1%  ok"},
		{[]string{"run", dead}, 1, "connection refused; is the server running"},
		{[]string{"run", strings.TrimSuffix(good, "mcp") + "other"}, 1, "no MCP endpoint at this path"},
		{[]string{"run", "--", "no-such-command-here"}, 1, "there is no such command"},
		{[]string{"run"}, 2, "give the URL of the server"},
		{[]string{"run", good, "extra"}, 2, "one argument too many"},
		{[]string{"run", good, "--", "cmd"}, 2, "not both"},
		{[]string{"run", "localhost:80"}, 2, "not an http://"},
		{[]string{"run", good, "-r", "fast"}, 2, `rate "fast" is not understood`},
		{[]string{"run", good, "-r", "-5"}, 2, `rate "-5" is not understood`},
		{[]string{"run", good, "-d", "10"}, 2, "must be a duration"},
		{[]string{"run", good, "-s", "100:30s"}, 2, `stage "100:30s" is not understood: write 30s:100`},
		{[]string{"run", good, "-s", "1s:max"}, 2, `stage "1s:max" is not understood`},
		{[]string{"run", good, "-s", "1s:5", "-d", "1s"}, 2, "leave -d out"},
		{[]string{"run", good, "--think-time", "2s"}, 2, "needs users"},
		{[]string{"run", good, "-u", "2", "--think-time", "two"}, 2, `think time "two" is not understood`},
		{[]string{"run", good, "--args-file", "testdata/none.ndjson"}, 2, "cannot read --args-file"},
		{[]string{"run", good, "-d", "0s"}, 2, "must be more than zero"},
		{[]string{"run", good, "-c", "0"}, 2, "--concurrency must be at least 1"},
		{[]string{"run", good, "-d", "1s", "-z", "1s"}, 2, "the same"},
		{[]string{"run", good, "--args", "{"}, 2, "not a JSON object"},
		{[]string{"run", good, "-H", "broken"}, 2, "write -H 'Name: value'"},
		{[]string{"run", good, "-o", "pdf=x"}, 2, "write -o json=FILE, hdr=FILE"},
		{[]string{"run", good, "-o", "json=/proc/none/x"}, 2, "cannot write /proc/none/x"},
		{[]string{"run", good, "--live", "fancy"}, 2, `unknown --live "fancy": choose auto, tui, plain, web or off`},
		{[]string{"run", good, "--tool", "nope"}, 2, `does not list a tool "nope": choose one of echo`},
		{[]string{"run", unsafe}, 2, "the server lists: rm"},
		{[]string{"run", good, "--nonsense"}, 2, "unknown flag: --nonsense (see mcp-load run --help)"},
		{[]string{"rum"}, 2, `unknown command "rum"`},
		{[]string{good}, 2, "mcp-load run " + good},
		{[]string{"run", slow, "-r", "100", "-d", "1s", "--max-in-flight", "1"}, 98, "INVALID"},
		{[]string{"run", slow, "-n", "20", "--threshold", "p(50)<1ms"}, 99, "CROSSED"},
		{[]string{"run", slow, "-r", "100", "-d", "1s", "--max-in-flight", "1", "--threshold", "p(50)<1ms"}, 98, "CROSSED"},
	} {
		code, stdout, stderr := call(tt.args...)
		where, other := stdout, stderr
		if code == 1 || code == 2 {
			where, other = stderr, stdout
			if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "mcp-load: ") {
				t.Errorf("%q: stderr is not one line: %q", tt.args, stderr)
			}
		}
		if code != tt.code || !strings.Contains(where, tt.want) || other != "" {
			t.Errorf("%q = %d, stdout %q, stderr %q; want %d with %q", tt.args, code, stdout, stderr, tt.code, tt.want)
		}
	}
}

// TestLoops runs the loops that the flags of stages and users describe. A busy machine may make them invalid, which is no
// fault here.
func TestLoops(t *testing.T) {
	s := &countingServer{}
	url := s.start(t)
	rows := filepath.Join(t.TempDir(), "rows.ndjson")
	if err := os.WriteFile(rows, []byte("{\"a\":1}\n{\"a\":2}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-s", "200ms:100", "-s", "200ms:0/s"}, "open loop, from 0/s to 100/s in 200ms to 0/s in 200ms, peak 100/s constant for 400ms"},
		{[]string{"-u", "3", "--think-time", "exp:10ms", "-n", "30"}, "closed loop, 3 users, exponential think time of mean 10ms"},
		{[]string{"-u", "3", "-d", "100ms"}, "closed loop, 3 users, think time 1s"},
		{[]string{"--args-file", rows, "-n", "20"}, "20: 20 ok"},
	} {
		code, stdout, stderr := call(append([]string{"run", url}, tt.args...)...)
		if code != 0 && code != exitInvalid || !strings.Contains(stdout, tt.want) {
			t.Errorf("%q = %d, stdout %q, stderr %q; want %q", tt.args, code, stdout, stderr, tt.want)
		}
	}
	if err := os.WriteFile(rows, []byte("{}\n{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call("run", url, "--args-file", rows); code != 2 || !strings.Contains(stderr, "rows.ndjson: line 2 is not a JSON object: {") {
		t.Errorf("a broken row = %d, %q; want 2 and the line", code, stderr)
	}
}

// TestRunWritesWhatHappened holds the file against what the server has seen.
func TestRunWritesWhatHappened(t *testing.T) {
	s := &countingServer{}
	dir := t.TempDir()
	path, log := filepath.Join(dir, "new", "r.json"), filepath.Join(dir, "l.hlog")
	code, stdout, stderr := call("run", s.start(t), "--sessions", "200", "-c", "20", "-z", "1s", "-H", "X-A: b", "-o", "json="+path, "-o", "hdr="+log)
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d, stderr %q\n%s", code, stderr, stdout)
	}
	res := readResult(t, path)
	if res.Sessions.Opened != 200 || s.initializes.Load() != 200 || res.Sessions.Closed != 200 || s.deletes.Load() != 200 ||
		res.Requests.Total != s.calls.Load() || res.Requests.OK != res.Requests.Total {
		t.Errorf("sessions %+v, requests %+v; server saw %d, %d, %d", res.Sessions, res.Requests, s.initializes.Load(), s.calls.Load(), s.deletes.Load())
	}
	if b, err := os.ReadFile(log); err != nil || !bytes.Contains(b, []byte("Tag=tools/call:echo:response,")) {
		t.Errorf("histogram log = %.100q, %v", b, err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 2 {
		t.Errorf("temporary files are left: %v", files)
	}
}

// start runs mcp-load as a process of its own.
func start(t *testing.T, dir string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), selfEnv+"=1")
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, &out
}

// waitFor waits until a server has seen calls, within ten seconds.
func waitFor(t *testing.T, calls *atomic.Int64) {
	t.Helper()
	for begin := time.Now(); calls.Load() < 10; time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			t.Fatal("no calls arrived")
		}
	}
}

// TestInterrupt presses Ctrl-C in the middle of a run: exit 130, with complete files and sessions that are ended.
func TestInterrupt(t *testing.T) {
	s := &countingServer{delay: 5 * time.Millisecond}
	dir := t.TempDir()
	cmd, out := start(t, dir, "run", s.start(t), "-r", "100", "--sessions", "30", "-d", "1m", "-o", "json=r.json", "-o", "hdr=l.hlog")
	waitFor(t, &s.calls)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code is looked at below
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit code %d, want 130\n%s", code, out)
	}
	res := readResult(t, filepath.Join(dir, "r.json"))
	if !res.Interrupted || res.Requests.Total != s.calls.Load() || res.Sessions.Closed != 30 || s.deletes.Load() != 30 || res.Requests.Cancelled != 0 {
		t.Errorf("requests %+v, sessions %+v; server saw %d calls and %d DELETE", res.Requests, res.Sessions, s.calls.Load(), s.deletes.Load())
	}
	if !strings.Contains(out.String(), "interrupted: what was measured until then") {
		t.Errorf("the summary does not tell of the interrupt:\n%s", out)
	}
}

// TestTargetDies ends a run whose target goes away in the middle.
func TestTargetDies(t *testing.T) {
	s := &countingServer{}
	srv := httptest.NewServer(s)
	dir := t.TempDir()
	cmd, out := start(t, dir, "run", srv.URL+"/mcp", "-c", "2", "-d", "1m", "--live", "off", "-o", "json=r.json")
	waitFor(t, &s.calls)
	srv.CloseClientConnections()
	srv.Close()
	_ = cmd.Wait() // the exit code is looked at below
	if code := cmd.ProcessState.ExitCode(); code != exitRuntime || !strings.Contains(out.String(), "mcp-load: the target has stopped answering, for 5s by now (") {
		t.Errorf("exit code %d, want 1 and the reason\n%s", code, out)
	}
	if res := readResult(t, filepath.Join(dir, "r.json")); res.Ended == "" || res.Requests.OK < 10 || res.Requests.TransportError == 0 {
		t.Errorf("ended %q, requests %+v", res.Ended, res.Requests)
	}
}

// TestDemo runs the demonstration against a server that a test has started.
func TestDemo(t *testing.T) {
	t.Chdir(t.TempDir())
	s := &countingServer{}
	stopped := false
	var stdout, stderr bytes.Buffer
	url := s.start(t)
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second) // the whole ten seconds are for people
	defer cancel()
	err := runDemo(ctx, []string{"mcp-load"}, func(context.Context) (string, func(context.Context) error, error) {
		return url, func(context.Context) error { stopped = true; return nil }, nil
	}, &stdout, &stderr)
	if err == nil || exitCode(err) != exitInterrupted || !stopped {
		t.Errorf("runDemo = %v, stopped %v; want an interrupted run and a stopped server", err, stopped)
	}
	res := readResult(t, demoJSON)
	if res.Sessions.Opened != demoSessions || res.Sessions.Closed != demoSessions || s.deletes.Load() != demoSessions || res.Requests.Total != s.calls.Load() || !res.Conditions.InProcess {
		t.Errorf("sessions %+v, requests %+v, server saw %d calls", res.Sessions, res.Requests, s.calls.Load())
	}
	if _, err := os.Stat(demoLog); err != nil {
		t.Error(err)
	}
}

func exitCode(err error) int {
	if e, ok := err.(*exitError); ok {
		return e.code
	}
	return -1
}

// TestParsing reads rates and tools.
func TestParsing(t *testing.T) {
	for _, tt := range []struct {
		text string
		want float64
	}{{"", 0}, {"max", 0}, {"200", 200}, {"200/s", 200}, {"6000/m", 100}, {"7200/h", 2}, {"0.5", 0.5}} {
		if got, err := parseRate(tt.text); err != nil || got != tt.want {
			t.Errorf("parseRate(%q) = %v, %v; want %v", tt.text, got, err, tt.want)
		}
	}
	for _, text := range []string{"0", "-1", "x", "10/d", "NaN", "Inf", "/s"} {
		if got, err := parseRate(text); err == nil {
			t.Errorf("parseRate(%q) = %v, want an error", text, got)
		}
	}
	for _, tt := range []struct {
		text string
		want bench.ToolChoice
	}{{"a", bench.ToolChoice{Name: "a", Weight: 1}}, {"a=3", bench.ToolChoice{Name: "a", Weight: 3}}, {"a=b", bench.ToolChoice{Name: "a=b", Weight: 1}}, {"a=0", bench.ToolChoice{Name: "a", Weight: 0}}} {
		if got := parseTool(tt.text); got != tt.want {
			t.Errorf("parseTool(%q) = %+v, want %+v", tt.text, got, tt.want)
		}
	}
}
