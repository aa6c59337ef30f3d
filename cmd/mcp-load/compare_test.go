package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/bench"
)

// measured runs against a server with a delay and gives the path of the result.
func measured(t *testing.T, dir, name string, delay time.Duration, args ...string) string {
	t.Helper()
	path := filepath.Join(dir, name+".json")
	url := (&countingServer{delay: delay}).start(t)
	code, stdout, stderr := call(append([]string{"run", url, "-c", "2", "-d", "2s", "-o", "json=" + path}, args...)...)
	if code != 0 {
		t.Fatalf("run: exit %d\n%s%s", code, stdout, stderr)
	}
	return path
}

// edited copies a result with a change.
func edited(t *testing.T, path, name string, change func(*bench.Result)) string {
	t.Helper()
	res := readResult(t, path)
	change(res)
	b, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(filepath.Dir(path), name+".json")
	if err := os.WriteFile(out, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCompare is the table of ends of the regression gate.
func TestCompare(t *testing.T) {
	dir := t.TempDir()
	base := measured(t, dir, "base", 5*time.Millisecond)
	slow := measured(t, dir, "slow", 20*time.Millisecond)
	other := edited(t, base, "other", func(r *bench.Result) { r.Conditions.Sessions = 77 })
	invalid := edited(t, base, "invalid", func(r *bench.Result) { r.Verdict.Valid, r.Verdict.Reasons = false, []string{"too late"} })
	old := edited(t, base, "old", func(r *bench.Result) {
		for i := range r.Latency {
			r.Latency[i].Blocks = nil
		}
	})
	failing := edited(t, base, "failing", func(r *bench.Result) {
		blocks := r.Latency[len(r.Latency)-1].Blocks
		for i := range blocks {
			blocks[i].Errors = 1 + blocks[i].OK/10
		}
	})
	garbage := filepath.Join(dir, "garbage.json")
	if err := os.WriteFile(garbage, []byte(`{"a":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{base, base}, 0, "no regression"},
		{[]string{base, slow}, 99, "REGRESSION in"},
		{[]string{slow, base}, 0, "improvement"},
		{[]string{base, failing}, 99, "REGRESSION"},
		{[]string{base, failing, "--max-errors", "50%"}, 0, "no regression"},
		{[]string{base, slow, "--max-change", "9000%"}, 0, "no change"},
		{[]string{base, slow, "--metric", "mean"}, 99, "mean"},
		{[]string{base + "," + base, slow + "," + slow, "--metric", "p50"}, 99, "p50"},
		{[]string{"--base", base, "--new", slow}, 99, "REGRESSION"},
		{[]string{base, other}, 2, "the conditions differ: sessions 2 and 77"},
		{[]string{base, other, "--any-conditions"}, 0, "warning: the conditions differ: sessions 2 and 77"},
		{[]string{base, invalid}, 98, "result 1 of the new state is INVALID and says nothing about the server: too late"},
		{[]string{base, old}, 2, "measure it again"},
		{[]string{base, garbage}, 2, "garbage.json: no result of mcp-load run -o json"},
		{[]string{base, filepath.Join(dir, "none.json")}, 2, "no such file"},
		{[]string{base}, 2, "give two results"},
		{[]string{base, slow, "--metric", "p42"}, 2, `unknown metric "p42": choose one of p50`},
		{[]string{base, slow, "--max-change", "much"}, 2, "write a share such as 5%"},
	} {
		code, stdout, stderr := call(append([]string{"compare"}, tt.args...)...)
		if code != tt.code || !strings.Contains(stdout+stderr, tt.want) {
			t.Errorf("compare %q = %d, want %d with %q\n%s%s", tt.args, code, tt.code, tt.want, stdout, stderr)
		}
	}
}
