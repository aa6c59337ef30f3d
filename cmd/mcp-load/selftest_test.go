package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/bench/selfcheck"
)

// TestSelftestRefuses: flags that cannot be meant are one line and code 2, before anything is started.
func TestSelftestRefuses(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--quick --full", "--quick and --full exclude each other"},
		{"--oracle 4", "--oracle 4: there are 1, 2, 3, 6, 10, 12"},
		{"--oracle one", "invalid argument"},
		{"-o hdr=x", "write -o json=FILE"},
		{"-o json=", "write -o json=FILE"},
		{"-o json=.", "cannot write .: it is a folder"},
		{"extra", "unknown command"},
	} {
		code, stdout, stderr := call(append([]string{"selftest"}, strings.Fields(c.args)...)...)
		if code != exitUsage || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("selftest %s: got code %d, %q, %q; want 2 and one line with %q", c.args, code, stdout, stderr, c.want)
		}
	}
}

// TestSelftest runs three oracles, each with its peers in processes of their own. A busy machine may spoil one check of them,
// which is no failure.
func TestSelftest(t *testing.T) {
	t.Setenv(selfEnv, "1") // of the peers
	file := filepath.Join(t.TempDir(), "selftest.json")
	code, stdout, stderr := call("selftest", "--quick", "--oracle", "3,10,12", "-o", "json="+file)
	if code != 0 && code != exitInvalid || !strings.Contains(stdout, " passed, 0 failed, ") {
		t.Errorf("selftest: got code %d\n%s%s\nwant 0 or 98 and no failure", code, stdout, stderr)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r selfcheck.Report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if r.Schema != selfcheck.Schema || r.Passed < 10 || len(r.Checks) != 11 || r.Noise.Lag.Count != 200 {
		t.Errorf("report: got %+v, want 11 checks, but for one passed, and the lag of 200 calls", r)
	}
}

// TestSelftestCatches gives an oracle a peer that is not what it should be.
func TestSelftestCatches(t *testing.T) {
	t.Setenv(selfEnv, "1") // of the peers
	o := selfcheck.Options{Form: selfcheck.Quick, Oracles: []int{10}}
	o.Start = func(ctx context.Context, flags ...string) (*selfcheck.Peer, error) {
		flags = slices.Clone(flags)
		if i := slices.Index(flags, "--drop"); i >= 0 {
			flags[i+1] = "7,8"
		}
		return startPeer(ctx, flags...)
	}
	r, err := selfcheck.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var failed []string
	for _, c := range r.Checks {
		if c.Outcome == selfcheck.Fail {
			failed = append(failed, c.Why)
		}
	}
	want := []string{"measured 180, expected 190", "measured 20, expected 10"}
	if len(failed) < 2 || !slices.Equal(failed[:2], want) { // a busy machine may spoil a third
		t.Errorf("got failures %q, want %q\n%+v", failed, want, r.Checks)
	}
}

// TestSelftestInterrupted: an end from outside ends the peers and says so.
func TestSelftestInterrupted(t *testing.T) {
	t.Setenv(selfEnv, "1") // of the peers
	ctx, cancel := context.WithCancel(t.Context())
	var stderr strings.Builder
	f := selftestFlags{quick: true}
	o, _, err := f.options()
	if err != nil {
		t.Fatal(err)
	}
	var started []*selfcheck.Peer
	o.Start = func(ctx context.Context, flags ...string) (*selfcheck.Peer, error) {
		p, err := startPeer(ctx, flags...)
		started = append(started, p)
		cancel()
		return p, err
	}
	if r, err := selfcheck.Run(ctx, o); err == nil {
		t.Errorf("Run: got %+v, want an error", r)
	}
	if len(started) != 1 {
		t.Errorf("%d peers were started, want 1", len(started))
	}
	cancelled, stop := context.WithCancel(t.Context())
	stop()
	code := execute(cancelled, []string{"mcp-load", "selftest", "--quick"}, &stderr, &stderr)
	if code != exitInterrupted || !strings.Contains(stderr.String(), "interrupted: the self-test says nothing") {
		t.Errorf("interrupted: got code %d, %q; want 130 and a line that says so", code, stderr.String())
	}
}
