package main

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/bench"
)

// command runs mcp-load in this process.
func command(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = execute(ctx, append([]string{"mcp-load"}, args...), &out, &errs)
	return code, out.String(), errs.String()
}

// resultIn reads the one result of a file.
func resultIn(t *testing.T, path string) *bench.Result {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	list, err := bench.ReadResults(f)
	if err != nil || len(list) != 1 {
		t.Fatalf("ReadResults(%s) = %d results, %v", path, len(list), err)
	}
	return list[0]
}

// TestSessionsOverHTTP is oracle 6 over sockets, in its short form: the memory of a process, a limit, and an idle expiry
// within 0.3 s.
func TestSessionsOverHTTP(t *testing.T) {
	t.Parallel() // it waits most of the time
	peer, url := startMock(t, "--bytes-per-session", "1MiB", "--max-sessions", "40", "--idle-ttl", "2s")
	file, page := filepath.Join(t.TempDir(), "s.json"), filepath.Join(t.TempDir(), "s.html")
	code, stdout, stderr := command(t.Context(), "sessions", url, "--server-pid", strconv.Itoa(peer.Process.Pid),
		"--max", "48", "--steps", "12",
		"--settle", "60ms", "--idle-max", "4s", "--storm-time", "300ms", "-r", "400", "--live", "off", "-o", "json="+file, "-o", "html="+page)
	if code != 0 && code != exitInvalid || stderr != "" {
		t.Fatalf("code %d %q, want 0, or 98 on a busy machine\n%s", code, stderr, stdout)
	}
	n := resultIn(t, file).SessionCapacity
	if n.MaxSessions != 40 || !n.Confirmed {
		t.Errorf("limit %d, confirmed %v, want 40", n.MaxSessions, n.Confirmed)
	}
	if !raceDetector && math.Abs(n.BytesPerSession-(1<<20)) > 0.05*(1<<20) {
		t.Errorf("%.0f bytes per session, want 1 MiB ± 5 %%: %v", n.BytesPerSession, n.Points)
	}
	if n.Idle == nil || math.Abs(n.Idle.ExpiryS-2) > 0.3 {
		t.Errorf("idle expiry %+v, want 2 s ± 0.3 s", n.Idle)
	}
	if n.Storm == nil || n.Storm.Clients != 16 || n.Storm.NeverBack != 0 || n.Storm.During.Calls == 0 {
		t.Errorf("storm %+v, want 16 clients, all back, and calls of others meanwhile", n.Storm)
	}
	if !strings.Contains(stdout, "\n  limit          40 sessions; confirmed") || strings.Index(stdout,
		"target") > strings.Index(stdout, "verdict") {
		t.Errorf("the text does not begin with the conditions, or lacks the limit:\n%s", stdout)
	}
	if html, err := os.ReadFile(page); err != nil || !bytes.Contains(html, []byte("Memory over open sessions")) {
		t.Errorf("the page (%v) lacks the chart of the memory", err)
	}
}

// TestSessionsOfCommand starts the server itself.
func TestSessionsOfCommand(t *testing.T) {
	t.Setenv(selfEnv, "1")
	code, stdout, stderr := command(t.Context(), "sessions", "--max", "20", "--steps", "7", "--settle", "20ms",
		"--idle-max", "0", "--storm", "0",
		"--live", "off", "--", os.Args[0], "mock", "--http", "{addr}", "--bytes-per-session", "1MiB")
	if code != 0 || !strings.Contains(stdout, "none up to 20 sessions") || !strings.Contains(stdout,
		"A session costs 1") || stderr != "" {
		t.Errorf("code %d %q, want 0 and the cost of a session:\n%s", code, stderr, stdout)
	}
}

// TestMeasureCommandsRefuse: what cannot be meant, or is not there, is one line that says what to do.
func TestMeasureCommandsRefuse(t *testing.T) {
	const dead = "http://127.0.0.1:1/mcp"
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"sessions", exitUsage, "give the URL of the server"},
		{"sessions " + dead, exitRuntime, "connection refused"},
		{"sessions " + dead + " --max 0", exitUsage, "--max must be more than zero"},
		{"sessions " + dead + " -c 4", exitUsage, "--concurrency has no meaning here"},
		{"sessions " + dead + " --storm -3", exitUsage, "cannot be negative"},
		{"sessions " + dead + " --protocol 2026-07-28", exitUsage, "has no sessions to measure"},
		{"sessions " + dead + " -o csv=x", exitUsage, "is not understood: write -o json=FILE or html=FILE"},
		{"sessions -- true", exitUsage, "must hold {addr}"},
		{"sessions -- false {addr}", exitRuntime, "ended before it listened"},
		{"sessions --server-pid 1 -- false {addr}", exitUsage, "leave --server-pid"},
		{"overhead", exitUsage, "give the gateway: --via URL"},
		{"overhead --via " + dead, exitUsage, "give what to compare the gateway with"},
		{"overhead --via " + dead + " " + dead, exitUsage, "--direct URL and --via URL"},
		{"overhead --via " + dead + " --direct " + dead, exitRuntime, "connection refused"},
		{"overhead --via " + dead + " --direct " + dead + " -u 3", exitUsage, "--users has no meaning here"},
		{"overhead --via " + dead + " --replicas 1", exitUsage, "at least 2"},
		{"overhead --via " + dead + " --direct " + dead + " --end-replica true", exitUsage, "needs --replicas"},
		{"overhead --via " + dead + " --upstream-listen 80", exitUsage, "give an address"},
		{"overhead --via " + dead + " --upstream-stats http://127.0.0.1:1/stats", exitRuntime, "counters of the upstream server cannot be read"},
		{"overhead --via " + dead + " --upstream-stats stats", exitUsage, "is no URL"},
	} {
		code, stdout, stderr := command(t.Context(), strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("%s: got code %d %q, want %d and one line with %q", c.args, code, stderr, c.code, c.want)
		}
	}
}

// TestMeasureInterrupted: an interrupt leaves complete files and code 130.
func TestMeasureInterrupted(t *testing.T) {
	t.Parallel()
	_, url := startMock(t)
	for _, args := range [][]string{
		{"sessions", url, "--idle-max", "30s"},
		{"overhead", "--direct", url, "--via", url},
	} {
		file := filepath.Join(t.TempDir(), "r.json")
		ctx, cancel := context.WithTimeout(t.Context(), 800*time.Millisecond)
		code, stdout, _ := command(ctx, append(args, "--live", "off", "-o", "json="+file)...)
		cancel()
		if code != exitInterrupted || !strings.Contains(stdout, "interrupted: what was measured until then") {
			t.Errorf("%v: got code %d, want 130 and what was measured\n%s", args, code, stdout)
		}
		if r := resultIn(t, file); !r.Interrupted {
			t.Errorf("%v: the file does not say that it was interrupted", args)
		}
	}
}
