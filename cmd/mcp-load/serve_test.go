package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/transport/client"
)

// TestServeRefuses is the table of command lines and configurations that serve
// refuses: the code, and one clear line.
func TestServeRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for _, tt := range []struct {
		args   string
		config string
		code   int
		want   string
	}{
		{args: "--stdio --http 127.0.0.1:0", code: 2, want: "exclude each other"},
		{args: "--http 8080", code: 2, want: `--http "8080": give an address`},
		{args: "--path mcp", code: 2, want: `--path "mcp"`},
		{args: "--path /{x}", code: 2, want: `--path "/{x}"`},
		{args: "--fixture none", code: 2, want: `--fixture "none": use conformance or demo`},
		{args: "--log-level loud", code: 2, want: `--log-level "loud": use debug, info, warn or error`},
		{args: "--max-sessions -1", code: 2, want: "--max-sessions cannot be negative"},
		{args: "--session-idle 0s", code: 2, want: "--session-idle must be more than zero"},
		{args: "--drain -1s", code: 2, want: "--drain cannot be negative"},
		{args: "--drain 5", code: 2, want: "must be a duration"},
		{args: "--debug-cases 0.0.0.0:0", code: 2, want: "give a loopback address"},
		{args: "--debug-cases 9000", code: 2, want: "give a loopback address"},
		{args: "--admin 9000", code: 2, want: `--admin "9000": give an address`},
		{args: "--http 127.0.0.1:0 --admin " + taken.Addr().String(), code: 1, want: "address already in use"},
		{args: "--store file:x", code: 2, want: "give --session-keys too"},
		{args: "--store disk --session-keys x", code: 2, want: `--store "disk": use memory, file:PATH or redis://HOST:PORT`},
		{args: "--session-keys /nonexistent", code: 2, want: "--session-keys: open /nonexistent"},
		{args: "--request-state-keys /nonexistent", code: 2, want: "--request-state-keys: open /nonexistent"},
		{args: "--session-keys /nonexistent --store file:", code: 2, want: `--store "file"`},
		{args: "--nonsense", code: 2, want: "unknown flag: --nonsense (see mcp-load serve --help)"},
		{args: "extra", code: 2, want: `unknown command "extra"`},
		{args: "--http " + taken.Addr().String(), code: 1, want: "address already in use"},
		{args: "--http 127.0.0.1:0 --debug-cases " + taken.Addr().String(), code: 1, want: "address already in use"},
		{args: "--http 127.0.0.1:0", config: `{"no_such_key":1}`, code: 78, want: "no_such_key"},
		{args: "--http 127.0.0.1:0", config: `{"page_size":"2"}`, code: 78, want: "page_size"},
		{args: "--http 127.0.0.1:0", config: `{"extra_tools":["needs_a_friend"]}`, code: 78, want: "extra_tools"},
		{args: "--http 127.0.0.1:0", config: `{"eras":["modern","future"]}`, code: 78, want: "eras"},
		{args: "--http 127.0.0.1:0", config: `{`, code: 78, want: "MCP_CASE_CONFIG"},
	} {
		t.Setenv("MCP_CASE_CONFIG", tt.config)
		code, stdout, stderr := call(append([]string{"serve"}, strings.Fields(tt.args)...)...)
		if code != tt.code || !strings.Contains(stderr, tt.want) || stdout != "" {
			t.Errorf("serve %s with %q = %d, stdout %q, stderr %q; want %d with %q",
				tt.args, tt.config, code, stdout, stderr, tt.code, tt.want)
		}
		if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "mcp-load: ") {
			t.Errorf("serve %s: stderr is not one line: %q", tt.args, stderr)
		}
	}
}

// served is a server in a process of its own.
type served struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Scanner

	mu  sync.Mutex
	err strings.Builder // guarded by mu: standard error
	url chan string     // the endpoint of the ready line
}

// startServed starts serve with arguments and a case configuration.
func startServed(t *testing.T, config string, args ...string) *served {
	t.Helper()
	s := &served{cmd: exec.Command(os.Args[0], append([]string{"serve"}, args...)...), url: make(chan string, 1)}
	s.cmd.Env = append(os.Environ(), selfEnv+"=1", "MCP_CASE_CONFIG="+config)
	stdin, err1 := s.cmd.StdinPipe()
	stdout, err2 := s.cmd.StdoutPipe()
	s.cmd.Stderr = s
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	s.stdin, s.out = stdin, bufio.NewScanner(stdout)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
		}
	})
	return s
}

// Write takes standard error.
func (s *served) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err.Write(b)
	for line := range strings.Lines(s.err.String()) {
		if url, ok := strings.CutPrefix(line, "listening "); ok && strings.HasSuffix(line, "\n") {
			select {
			case s.url <- strings.TrimSpace(url):
			default:
			}
		}
	}
	return len(b), nil
}

func (s *served) stderr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err.String()
}

// endpoint waits for the ready line.
func (s *served) endpoint(t *testing.T) string {
	t.Helper()
	select {
	case url := <-s.url:
		return url
	case <-time.After(10 * time.Second):
		t.Fatalf("no ready line; stderr %q", s.stderr())
		return ""
	}
}

// end waits for the end of the process and gives its exit code.
func (s *served) end(t *testing.T) int {
	t.Helper()
	timer := time.AfterFunc(10*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}

// TestServeHTTPDrains ends a server while a call is in flight: the call is
// answered, or cut off when --drain is over.
func TestServeHTTPDrains(t *testing.T) {
	for _, tt := range []struct {
		drain  string
		steps  int
		answer string
		code   int
		stderr string
	}{
		{drain: "8s", steps: 5, answer: "done", code: 0},
		{drain: "50ms", steps: 1000, code: 1, stderr: "1 requests cut off"},
	} {
		s := startServed(t, "", "--http", "127.0.0.1:0", "--path", "/rpc", "--drain", tt.drain)
		url := s.endpoint(t)
		if !strings.HasPrefix(url, "http://127.0.0.1:") || !strings.HasSuffix(url, "/rpc") {
			t.Errorf("the ready line names %q", url)
		}
		c, err := client.ConnectHTTP(t.Context(), url, nil)
		if err != nil {
			t.Fatal(err)
		}
		var once sync.Once
		r, err := c.CallTool(t.Context(), "progress", progressIn{Steps: tt.steps, DelayMS: 50}, &client.CallOptions{
			OnProgress: func(client.Progress) { once.Do(func() { _ = s.cmd.Process.Signal(syscall.SIGTERM) }) },
		})
		var got string
		if err == nil {
			got = r.Text()
		}
		if got != tt.answer {
			t.Errorf("--drain %s: the call gave %q, %v, want %q", tt.drain, got, err, tt.answer)
		}
		if code := s.end(t); code != tt.code || !strings.Contains(s.stderr(), tt.stderr) {
			t.Errorf("--drain %s: exit code %d, stderr %q, want %d with %q", tt.drain, code, s.stderr(), tt.code, tt.stderr)
		}
		_ = c.Close(t.Context()) // the server is gone
	}
}

const handshake = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
	`"clientInfo":{"name":"test","version":"1"}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// message is what the tests need of a message on standard output.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"result"`
}

// next reads the next message from standard output.
func (s *served) next(t *testing.T) (m message, ok bool) {
	t.Helper()
	if !s.out.Scan() {
		return m, false
	}
	if err := json.Unmarshal(s.out.Bytes(), &m); err != nil {
		t.Fatalf("standard output carries %q: %v", s.out.Bytes(), err)
	}
	return m, true
}

// TestServeStdioDrains ends a stdio server while a call is in flight, by the
// end of its input and by SIGTERM: the call is answered and the code is 0.
func TestServeStdioDrains(t *testing.T) {
	for name, end := range map[string]func(s *served) error{
		"end of input": func(s *served) error { return s.stdin.Close() },
		"SIGTERM":      func(s *served) error { return s.cmd.Process.Signal(syscall.SIGTERM) },
	} {
		s := startServed(t, "", "--stdio")
		_, err := io.WriteString(s.stdin, handshake+`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"progress",`+
			`"arguments":{"steps":5,"delayMs":50},"_meta":{"progressToken":7}}}`+"\n")
		if err != nil {
			t.Fatal(err)
		}
		var answer string
		ended := false
		for m, ok := s.next(t); ok; m, ok = s.next(t) {
			if m.Method == "notifications/progress" && !ended {
				ended = true
				if err := end(s); err != nil {
					t.Fatal(err)
				}
			}
			if string(m.ID) == "1" && len(m.Result.Content) == 1 {
				answer = m.Result.Content[0].Text
			}
		}
		if code := s.end(t); code != 0 || answer != "done" || !ended {
			t.Errorf("%s: exit code %d, answer %q, stderr %q; want 0 and %q", name, code, answer, s.stderr(), "done")
		}
	}
}

// TestServeGuardsStdout checks that what a tool prints goes to standard error.
func TestServeGuardsStdout(t *testing.T) {
	s := startServed(t, `{"extra_tools":["case_print"]}`, "--stdio")
	_, err := io.WriteString(s.stdin, handshake+`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"case_print",`+
		`"arguments":{"text":"noise\n"}}}`+"\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"0", "1"} {
		if m, ok := s.next(t); !ok || string(m.ID) != want {
			t.Fatalf("got message %+v, %v, want the answer to %s", m, ok, want)
		}
	}
	if err := s.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if m, more := s.next(t); more {
		t.Errorf("standard output goes on with %+v", m)
	}
	if code := s.end(t); code != 0 || !strings.Contains(s.stderr(), "noise\n") {
		t.Errorf("exit code %d, stderr %q, want 0 with noise", code, s.stderr())
	}
}

// newTestServer makes a server in this process, which has not begun to listen.
func newTestServer(t *testing.T, f *serveFlags) *server {
	t.Helper()
	f.http, f.path, f.logLevel = "127.0.0.1:0", "/mcp", "error"
	f.sessionIdle, f.drain = time.Minute, time.Second
	if f.fixture == "" {
		f.fixture = "demo"
	}
	if err := f.check(); err != nil {
		t.Fatal(err)
	}
	s, err := newServer(t.Context(), f, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.shutdown(context.Background(), time.Second); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return s
}

// TestServeHosts checks what --allow-host and --allow-origin let through.
func TestServeHosts(t *testing.T) {
	s := newTestServer(t, &serveFlags{hosts: []string{"mcp.example.com"}, origins: []string{"https://app.example"}})
	web := httptest.NewServer(s.handler)
	defer web.Close()
	for _, tt := range []struct {
		host, origin string
		want         int
	}{
		{"127.0.0.1:8080", "", http.StatusOK},
		{"localhost:8080", "", http.StatusOK},
		{"mcp.example.com", "", http.StatusOK},
		{"other.example.com", "", http.StatusForbidden},
		{"localhost", "https://app.example", http.StatusOK},
		{"localhost", "https://other.example", http.StatusForbidden},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, strings.NewReader(strings.SplitAfter(handshake, "\n")[0]))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = tt.host
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != tt.want {
			t.Errorf("POST with Host %q and Origin %q: got %d, want %d", tt.host, tt.origin, res.StatusCode, tt.want)
		}
		if allowed := res.Header.Get("Access-Control-Allow-Origin"); tt.want == http.StatusOK && allowed != tt.origin {
			t.Errorf("POST with Origin %q: Access-Control-Allow-Origin is %q", tt.origin, allowed)
		}
	}
}

// TestCaseEras checks which eras a configuration leaves out.
func TestCaseEras(t *testing.T) {
	for _, tt := range []struct {
		config         string
		legacy, modern bool // left out
	}{
		{``, false, false},
		{`{"eras":["legacy","modern"]}`, false, false},
		{`{"eras":["legacy"]}`, false, true},
		{`{"eras":["modern"]}`, true, false},
	} {
		c, err := readCaseConfig(tt.config)
		if err != nil {
			t.Fatal(err)
		}
		if legacy, modern := c.lacks("legacy"), c.lacks("modern"); legacy != tt.legacy || modern != tt.modern {
			t.Errorf("lacks with %q: got %v, %v, want %v, %v", tt.config, legacy, modern, tt.legacy, tt.modern)
		}
	}
}
