package main

import (
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEveryOutput writes all kinds in one run with a threshold that is crossed, and reads them back.
func TestEveryOutput(t *testing.T) {
	dir := t.TempDir()
	url := (&countingServer{delay: 2 * time.Millisecond}).start(t)
	args := []string{"run", url, "-c", "2", "-d", "2s", "--threshold", "errors<1%", "--threshold", "tools/call{tool=echo} p(50)<1ms",
		"--threshold", "tools/call{tool=other} p(50)<1s"}
	for _, k := range outputKinds {
		if k.write != nil {
			args = append(args, "-o", k.name+"="+filepath.Join(dir, "out."+k.name))
		}
	}
	code, stdout, stderr := call(args...)
	if code != exitThreshold {
		t.Fatalf("exit %d, want 99\n%s%s", code, stdout, stderr)
	}
	for _, k := range outputKinds {
		if info, err := os.Stat(filepath.Join(dir, "out."+k.name)); k.write != nil && (err != nil || info.Size() == 0) {
			t.Errorf("%s: %v", k.name, err)
		}
	}
	if !strings.Contains(stdout, "tools/call{tool=other} p(50)<1s  CROSSED (no call to judge by)") {
		t.Errorf("the summary does not say that a tool was not called:\n%s", stdout)
	}
	checkJUnit(t, filepath.Join(dir, "out.junit"))
	file, err := os.Open(filepath.Join(dir, "out.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) < 2 || strings.Join(rows[0], ",") != "t_s,rps,errors,p50_us,p99_us" {
		t.Errorf("csv: %v, %q", err, rows)
	}
	md, _ := os.ReadFile(filepath.Join(dir, "out.md"))
	for _, want := range []string{"❌ 2 of 3 thresholds crossed", "| tools/call echo |", "| errors&lt;1% | 0 % | ✅ |", "no errors"} {
		if !strings.Contains(string(md), want) {
			t.Errorf("the Markdown lacks %q:\n%s", want, md)
		}
	}
}

func checkJUnit(t *testing.T, path string) {
	t.Helper()
	var suites struct {
		Tests  int `xml:"tests,attr"`
		Suites []struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Errors   int `xml:"errors,attr"`
			Cases    []struct {
				Name    string `xml:"name,attr"`
				Class   string `xml:"classname,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(b, &suites); err != nil || len(suites.Suites) != 1 {
		t.Fatalf("junit: %v\n%s", err, b)
	}
	s := suites.Suites[0]
	got := fmt.Sprint(suites.Tests, s.Tests, s.Failures, s.Errors)
	for _, c := range s.Cases {
		got += fmt.Sprintf("|%s %v", c.Name, c.Failure != nil)
	}
	const want = "4 4 2 0|valid false|errors<1% false|tools/call{tool=echo} p(50)<1ms true|tools/call{tool=other} p(50)<1s true"
	if got != want {
		t.Errorf("junit: got %s, want %s", got, want)
	}
}

// TestOutputRefusals are outputs that cannot be meant.
func TestOutputRefusals(t *testing.T) {
	url := (&countingServer{}).start(t)
	dir := t.TempDir()
	for _, tt := range []struct{ args, want string }{
		{"-o xml=x", "write -o json=FILE, hdr=FILE, html=FILE, csv=FILE, junit=FILE, md=FILE"},
		{"-o json=" + dir, "it is a folder"},
		{"-o json=" + dir + "/a -o md=" + dir + "/a", "two outputs"},
		{"-o prometheus=nowhere:x", "cannot serve prometheus on nowhere:x"},
		{"--threshold tools/call{tool=a}\x00errors<1%", "errors are counted for the whole run, so write 'errors<1%'"},
		{"--live web=192.0.2.1:9000", "listens on loopback only"},
		{"--live web=nowhere", "is not understood"},
	} {
		args := strings.Fields(tt.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "\x00", " ")
		}
		code, _, stderr := call(append([]string{"run", url, "-n", "5"}, args...)...)
		if code != exitUsage || !strings.Contains(stderr, tt.want) {
			t.Errorf("run %s = %d, %q; want 2 with %q", tt.args, code, stderr, tt.want)
		}
	}
}

// TestOutputToPipe: what is no plain file is written to and not replaced.
func TestOutputToPipe(t *testing.T) {
	url := (&countingServer{}).start(t)
	dir := t.TempDir()
	link := filepath.Join(dir, "link.md")
	if err := os.WriteFile(filepath.Join(dir, "real.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.md", link); err != nil {
		t.Skip(err)
	}
	code, stdout, stderr := call("run", url, "-n", "5", "-o", "json=/dev/null", "-o", "md="+link)
	if code != 0 {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	if info, err := os.Lstat("/dev/null"); err != nil || info.Mode().IsRegular() {
		t.Errorf("/dev/null is now %v, %v", info, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is now %v, %v", info, err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "real.md")); !strings.Contains(string(b), "mcp-load: ✅ VALID") {
		t.Errorf("the file behind the link holds %q", b)
	}
}

// TestPrometheus scrapes a run while it is under way.
func TestPrometheus(t *testing.T) {
	url := (&countingServer{}).start(t)
	l, err := servePrometheus("127.0.0.1:0") // finds a free port
	if err != nil {
		t.Fatal(err)
	}
	addr := strings.TrimSuffix(strings.TrimPrefix(l.where, "http://"), "/metrics")
	if err := l.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	page := make(chan string)
	go func() {
		defer close(page)
		for range 100 {
			time.Sleep(50 * time.Millisecond)
			resp, err := http.Get("http://" + addr + "/metrics")
			if err != nil {
				continue
			}
			b, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if strings.Contains(string(b), `tool="echo"`) {
				page <- string(b)
				return
			}
		}
	}()
	code, stdout, stderr := call("run", url, "-r", "50", "-d", "2s", "-o", "prometheus="+addr)
	if code != 0 && code != exitInvalid || !strings.Contains(stderr, "serving http://"+addr+"/metrics") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	got := <-page
	for _, want := range []string{
		`mcp_load_requests_total{outcome="ok"} `, `mcp_load_response_time_seconds_bucket{method="tools/call",tool="echo",le="+Inf"} `,
		"mcp_load_service_time_seconds_sum", "mcp_load_schedule_lag_seconds_count", "mcp_load_sessions 10", "mcp_load_requests_in_flight",
		"mcp_load_requests_begun_total", "mcp_load_requests_dropped_total 0",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %s:\n%s", want, got)
		}
	}
	if _, err := http.Get("http://" + addr + "/metrics"); err == nil {
		t.Error("the endpoint outlives the run")
	}
}
