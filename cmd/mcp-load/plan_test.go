package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/bench/plan"
)

// bucketEnv turns the test binary into a server that lets bucketRate calls a second through, first in first out.
const (
	bucketEnv  = "MCP_LOAD_TEST_BUCKET"
	bucketRate = 40
)

// serveBucket serves until the process is ended.
func serveBucket(addr string) {
	var mu sync.Mutex
	var last time.Time // guarded by mu: when the last call was let through
	s := &countingServer{prefix: addr + "-", delayed: func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if last = last.Add(time.Second / bucketRate); last.Before(now) {
			last = now
		}
		return last.Sub(now)
	}}
	fmt.Fprintln(os.Stderr, http.ListenAndServe(addr, s))
	os.Exit(1)
}

// writeCapacity writes a result that says that a server holds so many calls a second.
func writeCapacity(t *testing.T, rate float64) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "capacity.json")
	text := fmt.Sprintf(`{"schema":"mcp-load/v1","started":"2026-11-30T12:00:00Z","conditions":{"target":"http://x/mcp","server":"bucket 1","tools":["echo"],
		"timeout_s":10,"duration_s":10,"sessions":10,"protocol":"2025-11-25","arrivals":"constant","seed":7},"verdict":{"valid":true,"completed_rps":%[1]g},
		"latency":[{"method":"*","response":{"count":100,"mean_us":20000}}],
		"server":{"pid":1,"cpu_s":0.4,"rss_peak_bytes":67108864},"session_capacity":{"bytes_per_session":1024},
		"capacity":{"find":"rate","rate_rps":%[1]g,"failed_at":%[2]g,"objectives":["p(99)<100ms","errors<1%%"]}}`, rate, rate+1)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestPlan goes from a result file to the text, the JSON and the patch.
func TestPlan(t *testing.T) {
	file := writeCapacity(t, 40)
	patch, out := filepath.Join(t.TempDir(), "patch.yaml"), filepath.Join(t.TempDir(), "plan.json")
	code, stdout, stderr := call("plan", file, "--target", "1000users", "--think-time", "10s", "-o", "k8s="+patch, "-o", "json="+out)
	if code != 0 || stderr != "" {
		t.Fatalf("plan = %d, %q", code, stderr)
	}
	for _, want := range []string{"1,000 users", "3 without headroom, 4 with (N+1)", "thinks for 10s", "answer         Run 4 replicas for 1,000 users"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the text lacks %q:\n%s", want, stdout)
		}
	}
	res := readResult(t, out)
	if p := res.Plan; p == nil || p.Replicas != 3 || p.WithHeadroom != 4 || p.Target.Users != 1000 || p.Resources.MemoryRequestMiB != 65 {
		t.Errorf("plan object = %+v, want 3 and 4 replicas for 1000 users, 65 MiB", p)
	}
	yaml, err := os.ReadFile(patch)
	if err != nil || !strings.Contains(string(yaml), "replicas: 4\n") || !strings.Contains(string(yaml), "memory: 65Mi\n") {
		t.Errorf("patch = %v\n%s", err, yaml)
	}
}

func TestPlanRefuses(t *testing.T) {
	file := writeCapacity(t, 40)
	other := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(other, []byte(`{"a":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"plan"}, 2, "give the result file"},
		{[]string{"plan", file}, 2, "give a target"},
		{[]string{"plan", file, "--target", "many"}, 2, `target "many" is not understood`},
		{[]string{"plan", other, "--target", "1/s"}, 2, "no result of mcp-load"},
		{[]string{"plan", "none.json", "--target", "1/s"}, 2, "cannot read the result"},
		{[]string{"plan", file, "--target", "1/s", "-o", "pdf=x"}, 2, "write -o json=FILE, html=FILE or k8s=FILE"},
		{[]string{"plan", file, "--target", "1/s", "--verify"}, 2, "belong together"},
		{[]string{"plan", file, "--target", "1/s", "--verify", "--", "true"}, 2, "must hold {addr}"},
		{[]string{"plan", file, "--target", "1/s", "--verify", "--", "false", "{addr}"}, 1, "ended before it listened"},
		{[]string{"plan", file, "--target", "9000/s", "--verify", "--", "false", "{addr}"}, 2, "at most 64 replicas"},
		{[]string{"plan", file, "--target", "5sessions"}, 2, "capacity --find sessions"},
	} {
		if code, _, stderr := call(tt.args...); code != tt.code || !strings.Contains(stderr, tt.want) {
			t.Errorf("%v = %d, %q; want %d and %q", tt.args, code, stderr, tt.code, tt.want)
		}
	}
}

// TestPlanVerify is oracle 11 in a short form: of replicas that hold 40/s each, three are enough for 105/s and two are not.
func TestPlanVerify(t *testing.T) {
	t.Setenv(bucketEnv, "1")
	out := filepath.Join(t.TempDir(), "plan.json")
	code, stdout, stderr := call("plan", writeCapacity(t, 39.5), "--target", "105/s", "--verify", "--verify-time", "2s", "--live", "off",
		"-o", "json="+out, "--", os.Args[0], "{addr}")
	v := readResult(t, out).Plan.Verification
	if v == nil || v.Enough.Replicas != 3 || v.OneLess == nil || v.OneLess.Replicas != 2 {
		t.Fatalf("plan = %d, %q\n%s", code, stderr, stdout)
	}
	switch {
	case !v.Enough.Valid || !v.OneLess.Valid:
		t.Skipf("this machine is too busy to tell: %+v, %+v", v.Enough, v.OneLess)
	case code != 0 || !v.OK || !v.Enough.OK || v.OneLess.OK || !strings.Contains(stdout, "Verified: 3 are enough, and 2 are not."):
		t.Errorf("plan = %d, verification %+v, %+v; want 0, three enough, two not\n%s", code, v.Enough, v.OneLess, stdout)
	}
}

func TestConclude(t *testing.T) {
	good, bad, invalid := plan.Trial{Replicas: 3, OK: true, Valid: true}, plan.Trial{Replicas: 2, Valid: true}, plan.Trial{Replicas: 2}
	less := good
	less.Replicas = 2
	for _, tt := range []struct {
		name string
		v    plan.Verification
		ok   bool
		code int
	}{
		{"verified", plan.Verification{Enough: good, OneLess: &bad}, true, 0},
		{"one replica", plan.Verification{Enough: good}, true, 0},
		{"not enough", plan.Verification{Enough: bad, OneLess: &bad}, false, exitThreshold},
		{"one less is enough", plan.Verification{Enough: good, OneLess: &less}, false, exitThreshold},
		{"generator at fault", plan.Verification{Enough: invalid, OneLess: &bad}, false, exitInvalid},
		{"generator at fault with one less", plan.Verification{Enough: good, OneLess: &invalid}, false, exitInvalid},
	} {
		code := 0
		if err := conclude(&tt.v); err != nil {
			code = err.(*exitError).code
		}
		if tt.v.OK != tt.ok || code != tt.code || tt.v.Text == "" {
			t.Errorf("%s: conclude = %d, ok %v, %q; want %d, %v and a text", tt.name, code, tt.v.OK, tt.v.Text, tt.code, tt.ok)
		}
	}
}

// TestCapacityCommand searches and sweeps over HTTP for a short time: the codes, the text and the JSON.
func TestCapacityCommand(t *testing.T) {
	good := (&countingServer{}).start(t)
	slow := (&countingServer{delay: 150 * time.Millisecond}).start(t)
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"capacity"}, 2, "give the URL of the server"},
		{[]string{"capacity", good, "--live", "web"}, 2, "--live web shows a single run"},
		{[]string{"capacity", good, "-c", "3"}, 2, "--concurrency has no meaning here"},
		{[]string{"capacity", good, "--find", "colour"}, 2, `a capacity of "colour" is not known`},
		{[]string{"capacity", good, "--sweep=1,x"}, 2, "--sweep=1,x is not understood"},
		{[]string{"capacity", good, "--sweep=1,2,4"}, 2, "at least 6 different levels, and got 3"},
		{[]string{"capacity", good, "--step", "0s"}, 2, "must be more than zero"},
		{[]string{"capacity", good, "--think-time", "1s"}, 2, "a think time needs users"},
		{[]string{"capacity", good, "--threshold", "p99<1"}, 2, "is not understood"},
		{[]string{"capacity", "http://127.0.0.1:1/mcp"}, 1, "connection refused"},
		{[]string{"capacity", slow}, 99, "a single caller waits 15"},
	} {
		if code, stdout, stderr := call(tt.args...); code != tt.code || !strings.Contains(stdout+stderr, tt.want) {
			t.Errorf("%v = %d, %q; want %d and %q", tt.args, code, stdout+stderr, tt.code, tt.want)
		}
	}
	out := filepath.Join(t.TempDir(), "sweep.json")
	code, stdout, stderr := call("capacity", good, "--sweep", "1,2,3,4,5,6", "--step", "50ms", "--live", "off", "-o", "json="+out)
	if code != 0 && code != exitInvalid {
		t.Fatalf("sweep = %d, %q", code, stderr)
	}
	if c := readResult(t, out).Capacity; c == nil || len(c.Steps) != 12 || len(c.Ladder) != 4 || c.Find != bench.FindUsers {
		t.Errorf("capacity = %+v, want 12 steps and a ladder of 4\n%s", c, stdout)
	}
}
