package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMockRefuses: flags that cannot be meant are answered with one line and code 2.
func TestMockRefuses(t *testing.T) {
	const url = "http://127.0.0.1:1/mcp"
	for _, c := range []struct{ args, want string }{
		{"--service 5", `service time "5"`},
		{"--usl 50,0.1", "give LAMBDA,SIGMA,KAPPA"},
		{"--usl 50,0.1,0.1 --servers 2", "--usl is the whole of the service model"},
		{"--servers 2", "--servers needs a --service"},
		{"--token-bucket max", "--token-bucket: rate"},
		{"--stall-at 30s", "--stall-at needs --stall-for"},
		{"--bytes-per-session 1TiB", "--bytes-per-session: size"},
		{"--gap 10ms", "need --events"},
		{"--events 5 --drop 7", "--drop 7: the events have the numbers 1 to 5"},
		{"--stdio --http 127.0.0.1:0", "--stdio and --http exclude each other"},
		{"--stdio --events 5", "which --stdio does not have"},
		{"--http 8080", "give an address"},
		{"--delay 5ms", "give --proxy URL"},
		{"--delay 5ms --service 1ms", "--delay is of a proxy or router, --service of a server"},
		{"--stdio --proxy " + url, "--proxy is of a proxy or router, --stdio of a server"},
		{"--proxy " + url + " --fan-out 0", "--fan-out must be at least 1"},
		{"--proxy localhost", "no http:// or https:// URL"},
		{"--route random", "--route needs at least one --replica"},
		{"--route best --replica " + url, "use random or sticky"},
		{"--replica " + url, "--replica needs --route"},
		{"--proxy " + url + " --route random --replica " + url, "give one of the two"},
		{"extra", "unknown command"},
	} {
		var stdout, stderr bytes.Buffer
		code := execute(context.Background(), append([]string{"mcp-load", "mock"}, strings.Fields(c.args)...), &stdout, &stderr)
		text := stderr.String()
		if code != exitUsage || !strings.Contains(text, c.want) || strings.Count(text, "\n") != 1 || stdout.Len() > 0 {
			t.Errorf("mock %s: got code %d %q, want 2 and one line with %q", c.args, code, text, c.want)
		}
	}
}

// startMock starts mcp-load mock as a process of its own and gives the URL of its ready line.
func startMock(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"mock", "--http", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), selfEnv+"=1")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(stderr).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening ")
	if err != nil || !ok {
		t.Fatalf("ready line: got %q, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	return cmd, url
}

// TestMockProcesses: a router before two servers, driven by run; the counters of all; and SIGTERM ends each at once with
// code 0, though a call is in flight.
func TestMockProcesses(t *testing.T) {
	first, urlA := startMock(t, "--service", "2ms", "--bytes-per-session", "64KiB")
	second, urlB := startMock(t, "--service", "exp:2ms", "--servers", "4", "--seed", "9")
	router, url := startMock(t, "--route", "sticky", "--replica", urlA, "--replica", urlB, "--delay", "1ms")
	var stdout, stderr bytes.Buffer
	code := execute(context.Background(), []string{"mcp-load", "run", url, "-c", "4", "-n", "100", "--live", "off"}, &stdout, &stderr)
	if code != 0 || !strings.Contains(stdout.String(), "100 ok") {
		t.Errorf("run: got code %d, %s %s, want 0 and 100 calls", code, stdout.String(), stderr.String())
	}
	for at, want := range map[string]string{urlA: `"opened":2`, urlB: `"opened":2`, url: `"tools/call":100`} {
		resp, err := http.Get(strings.TrimSuffix(at, "/mcp") + "/stats")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(body), want) {
			t.Errorf("stats of %s: got %s, want %s", at, body, want)
		}
	}
	slow, slowURL := startMock(t, "--service", "1h")
	go func() {
		const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo",` +
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
		if resp, err := http.Post(slowURL, "application/json", strings.NewReader(call)); err == nil {
			resp.Body.Close()
		}
	}()
	time.Sleep(100 * time.Millisecond)
	for name, cmd := range map[string]*exec.Cmd{"first": first, "second": second, "router": router, "slow": slow} {
		start := time.Now()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil || time.Since(start) > 5*time.Second {
			t.Errorf("SIGTERM to %s: got %v after %v, want code 0 at once", name, err, time.Since(start))
		}
	}
}

// TestMockStdio: run spawns a mock over stdio.
func TestMockStdio(t *testing.T) {
	t.Setenv(selfEnv, "1")
	var stdout, stderr bytes.Buffer
	argv := []string{"mcp-load", "run", "-n", "20", "-c", "2", "--live", "off", "--", os.Args[0], "mock", "--stdio", "--service", "1ms"}
	if code := execute(context.Background(), argv, &stdout, &stderr); code != 0 || !strings.Contains(stdout.String(), "20 ok") {
		t.Errorf("run over stdio: got code %d, %s %s, want 0 and 20 calls", code, stdout.String(), stderr.String())
	}
}
