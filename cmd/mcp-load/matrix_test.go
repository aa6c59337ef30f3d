package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/bench"
)

// TestMatrix runs several protocols one after another against a server with sessions: one summary each, one JSON file,
// and a histogram log for each.
func TestMatrix(t *testing.T) {
	url := (&countingServer{}).start(t)
	dir := t.TempDir()
	code, stdout, stderr := call("run", url, "-n", "10", "--protocol", "auto", "--protocol", "2025-11-25", "--live", "off",
		"-o", "json="+filepath.Join(dir, "m.json"), "-o", "hdr="+filepath.Join(dir, "m.hlog"))
	if code != 0 || strings.Count(stdout, "10: 10 ok") != 2 {
		t.Fatalf("exit %d, want 0 and two summaries:\n%s%s", code, stdout, stderr)
	}
	data, err := os.ReadFile(filepath.Join(dir, "m.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Schema string
		Runs   []bench.Result
	}
	if err := json.Unmarshal(data, &got); err != nil || got.Schema != bench.Schema || len(got.Runs) != 2 || got.Runs[0].Conditions.Seed != got.Runs[1].Conditions.Seed {
		t.Errorf("m.json: %v, schema %q, %d runs; want %s and two runs of one seed", err, got.Schema, len(got.Runs), bench.Schema)
	}
	for _, name := range []string{"m-auto.hlog", "m-2025-11-25.hlog"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil || !strings.Contains(stdout, name) {
			t.Errorf("%s: %v, want it written and named", name, err)
		}
	}
}

// TestMatrixEnds: the worst run decides the exit code, and what was measured is reported in any case.
func TestMatrixEnds(t *testing.T) {
	url := (&countingServer{}).start(t)
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--protocol", "2026-07-28"}, 1, "does not serve protocol 2026-07-28"},
		{[]string{"--protocol", "2025-11-25", "--protocol", "2026-07-28"}, 1, "10: 10 ok"},
		{[]string{"--protocol", "2025-11-25", "--protocol", "auto", "--threshold", "p(50)<0ms"}, 99, "CROSSED"},
		{[]string{"--protocol", "2025-11-25", "--protocol", "2025-11-25"}, 2, "given twice"},
		{[]string{"--protocol", "2025-11-25", "--protocol", "later"}, 2, `protocol "later" is not supported`},
	} {
		code, stdout, stderr := call(append([]string{"run", url, "-n", "10", "--live", "off"}, tt.args...)...)
		if code != tt.code || !strings.Contains(stdout+stderr, tt.want) {
			t.Errorf("run %v: exit %d, want %d and %q:\n%s%s", tt.args, code, tt.code, tt.want, stdout, stderr)
		}
	}
}

// TestWorstOf ranks the ends of the runs of a matrix.
func TestWorstOf(t *testing.T) {
	good := &bench.Result{Verdict: bench.Verdict{Valid: true}}
	crossed := &bench.Result{Verdict: bench.Verdict{Valid: true}, Thresholds: []bench.Threshold{{}}}
	invalid, ended, interrupted := &bench.Result{}, &bench.Result{Ended: "gone"}, &bench.Result{Interrupted: true}
	for _, tt := range []struct {
		runs []*bench.Result
		want int
	}{
		{[]*bench.Result{good, good}, 0}, {[]*bench.Result{good, crossed}, exitThreshold}, {[]*bench.Result{invalid, crossed}, exitInvalid},
		{[]*bench.Result{ended, invalid}, exitRuntime}, {[]*bench.Result{ended, interrupted, good}, exitInterrupted},
	} {
		got := 0
		if e := (*exitError)(nil); errors.As(worstOf(tt.runs), &e) {
			got = e.code
		}
		if got != tt.want {
			t.Errorf("worstOf = %d, want %d", got, tt.want)
		}
	}
}
