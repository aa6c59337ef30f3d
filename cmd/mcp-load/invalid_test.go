package main

import (
	"bytes"
	"errors"
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
