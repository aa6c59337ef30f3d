package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOverheadOverHTTP compares a proxy with a delay, loosely, as a machine with other work allows. What the readings are
// worth is shown in virtual time.
func TestOverheadOverHTTP(t *testing.T) {
	t.Parallel()
	_, direct := startMock(t)
	_, via := startMock(t, "--proxy", direct, "--delay", "5ms")
	file, page := filepath.Join(t.TempDir(), "o.json"), filepath.Join(t.TempDir(), "o.html")
	code, stdout, stderr := command(t.Context(), "overhead", "--direct", direct, "--via", via, "-d", "1500ms",
		"--warmup", "200ms", "--sessions", "10",
		"--live", "off", "-o", "json="+file, "-o", "html="+page)
	if code != 0 && code != exitInvalid || stderr != "" {
		t.Fatalf("code %d %q, want 0, or 98 on a busy machine\n%s", code, stderr, stdout)
	}
	o := resultIn(t, file).Overhead
	if len(o.Phases) != 3 || o.Pairs < 60 {
		t.Fatalf("%d phases, %d pairs, want 3 and about 75", len(o.Phases), o.Pairs)
	}
	for i, name := range []string{"setup", "ttfb", "service"} {
		p := &o.Phases[i]
		if ms := p.Median.US / 1000; p.Phase != name || ms < 5 || ms > 40 || p.Median.CI95 == nil && name != "setup" {
			t.Errorf("phase %s: median of the differences %.2f ms with interval %v, want 5 ms or more", p.Phase, ms,
				p.Median.CI95)
		}
	}
	if !strings.Contains(o.Answer, "The gateway adds") || !strings.Contains(stdout, o.Answer) {
		t.Errorf("answer %q, want what the gateway adds, and that in the text", o.Answer)
	}
	if html, err := os.ReadFile(page); err != nil || !bytes.Contains(html, []byte("Differences of the service time")) {
		t.Errorf("the page (%v) lacks the chart of the differences", err)
	}
}

// TestAmplification is oracle 8: one upstream session for each call, and k calls for each.
func TestAmplification(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags                         string
		sessions, calls, setup, lists float64
	}{
		{"--reinit-per-call", 1, 1, 1, 1},
		{"--fan-out 3", 0, 3, 1, 1},
		{"--reinit-per-call --fan-out 3", 1, 3, 1, 1},
	} {
		_, up := startMock(t)
		_, via := startMock(t, append([]string{"--proxy", up}, strings.Fields(c.flags)...)...)
		file := filepath.Join(t.TempDir(), "o.json")
		code, stdout, stderr := command(t.Context(), "overhead", "--via", via, "--upstream-stats",
			strings.TrimSuffix(up, "mcp")+"stats", "--live", "off", "-o", "json="+file)
		if code != 0 || stderr != "" {
			t.Errorf("%s: code %d %q\n%s", c.flags, code, stderr, stdout)
			continue
		}
		a := resultIn(t, file).Overhead.Amplification
		if a.PerCall.Sessions != c.sessions || a.PerCall.Initialize != c.sessions || a.PerCall.Call != c.calls ||
			a.PerSession.Sessions != c.setup || a.PerList.List != c.lists || a.Failed != 0 {
			t.Errorf("%s: got %+v, want %v sessions and %v calls for each call", c.flags, a, c.sessions, c.calls)
		}
	}
}

// TestUpstreamListen: the counting server of our own, to which the gateway leads.
func TestUpstreamListen(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	_, via := startMock(t, "--proxy", "http://"+addr+"/mcp", "--fan-out", "2")
	file := filepath.Join(t.TempDir(), "o.json")
	code, stdout, stderr := command(t.Context(), "overhead", "--upstream-listen", addr, "--via", via, "-d", "1300ms",
		"--warmup", "100ms", "--sessions", "5",
		"--live", "off", "-o", "json="+file)
	if code != 0 && code != exitInvalid || stderr != fmt.Sprintf("listening http://%s/mcp\n", addr) {
		t.Fatalf("code %d %q\n%s", code, stderr, stdout)
	}
	if o := resultIn(t, file).Overhead; o.Direct != "http://"+addr+"/mcp" || o.Pairs == 0 || o.Amplification == nil ||
		o.Amplification.PerCall.Call != 2 {
		t.Errorf("overhead = %+v, want pairs with our server and two calls for each", o)
	}
}

// TestReplicas is oracle 9: what random routing, sticky routing and the stateless era lose, and who survives the end of a
// replica.
func TestReplicas(t *testing.T) {
	t.Parallel()
	const k = 3
	var replicas []string
	var last int
	for range k {
		cmd, url := startMock(t)
		replicas = append(replicas, "--replica", url)
		last = cmd.Process.Pid
	}
	_, random := startMock(t, append([]string{"--route", "random"}, replicas...)...)
	_, sticky := startMock(t, append([]string{"--route", "sticky"}, replicas...)...)
	for _, c := range []struct {
		name      string
		args      []string
		low, high float64 // loss
		answer    string
	}{
		{"random", []string{"--via", random}, 0.61, 0.72, "as with routing that does not know sessions"},
		{"stateless", []string{"--via", random, "--protocol", "2026-07-28"}, 0, 0, "0 % of the calls failed"},
		{"sticky", []string{"--via", sticky, "--end-replica", fmt.Sprintf("kill %d", last)}, 0, 0,
			"% of the sessions live on without one replica"},
	} {
		file := filepath.Join(t.TempDir(), "o.json")
		args := append([]string{"overhead", "--replicas", fmt.Sprint(k), "--seed", "5", "--live", "off", "-o",
			"json=" + file}, c.args...)
		code, stdout, stderr := command(t.Context(), args...)
		if code != 0 || stderr != "" || !strings.Contains(stdout, c.answer) {
			t.Errorf("%s: code %d %q, want 0 and %q\n%s", c.name, code, stderr, c.answer, stdout)
			continue
		}
		o := resultIn(t, file).Overhead.Replicas
		if o.Loss < c.low || o.Loss > c.high || o.Requests != 1000 || o.Failed != 0 {
			t.Errorf("%s: loss %.3f of %d, %d failed, want %.2f to %.2f of 1000", c.name, o.Loss, o.Requests,
				o.Failed, c.low, c.high)
		}
		if c.name == "sticky" && (o.Survived == nil || *o.Survived < 0.6 || *o.Survived > 0.74) {
			t.Errorf("survival = %+v, want that of two of three replicas", o)
		}
	}
}
