package main

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestImpossibleRate asks for more calls than one processor can make, with a threshold that every run passes: whatever
// the machine has made of it, the run does not pass.
func TestImpossibleRate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	cmd := exec.Command(os.Args[0], "run", (&countingServer{}).start(t), "-r", "2000000", "--max-in-flight", "50", "-d", "1s", "--live", "off",
		"--threshold", "p(99)<10m", "-o", "json="+path)
	cmd.Env = append(os.Environ(), selfEnv+"=1", "GOMAXPROCS=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitInvalid || !strings.Contains(stdout.String(), "INVALID") {
		t.Fatalf("got %v, want exit %d and INVALID\n%s%s", err, exitInvalid, stdout.String(), stderr.String())
	}
	v := readResult(t, path).Verdict
	if v.Valid || v.DeliveredRPS >= 0.99*v.AskedRPS || !strings.Contains(strings.Join(v.Reasons, "\n"), "at least 99 % are needed") {
		t.Errorf("verdict = %+v, want it to say that less than 99 %% was delivered", v)
	}
}

// TestDescriptors gives the generator fewer descriptors than it needs streams, which is no finding about the server.
func TestDescriptors(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell to lower the limit with")
	}
	streaming := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			(&countingServer{}).ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(streaming.Close)
	cmd := exec.Command(shell, "-c", `ulimit -n 60 && exec "$0" "$@"`, os.Args[0], "run", streaming.URL+"/mcp", "--sessions", "80", "--streams",
		"-r", "20", "-d", "300ms", "--live", "off")
	cmd.Env = append(os.Environ(), selfEnv+"=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitInvalid || !strings.Contains(string(out), "descriptors or ports used up") {
		t.Errorf("got %v, want exit %d and why\n%s", err, exitInvalid, out)
	}
}
