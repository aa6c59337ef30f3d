//go:build unix

package transport_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// childVar makes TestStdoutChild the server that other tests run as a process.
const childVar = "TRANSPORT_TEST_CHILD"

// TestStdoutChild serves on the real standard streams with a tool that prints
// wherever it can. What is printed after the end goes to standard output again.
func TestStdoutChild(t *testing.T) {
	if os.Getenv(childVar) == "" {
		t.Skip("it is the process of another test")
	}
	f := newFixture(t, nil)
	f.add(t, "print", func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
		fmt.Println("by fmt")
		_, _ = os.Stdout.WriteString("by os\n")
		_, _ = unix.Write(1, []byte("by descriptor\n"))
		return engine.AppendTextResult(out, "printed"), nil
	})
	err := transport.ServeStdio(context.Background(), f.Engine, os.Stdin, os.Stdout,
		&transport.LineOptions{DrainTimeout: 500 * time.Millisecond})
	fmt.Fprintf(os.Stderr, "served: %v\n", err)
	fmt.Printf("served: %v\n", err)
	os.Exit(0)
}

// child is this test binary as a server.
func child(t *testing.T) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, exe, "-test.run=^TestStdoutChild$")
	cmd.Env = append(os.Environ(), childVar+"=1")
	return cmd
}

func TestStdoutIsTheWire(t *testing.T) {
	cmd := child(t)
	cmd.Stdin = strings.NewReader(handshake + call("1", "print", "") + "\n" + ping("2") + "\n")
	var out, logs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &logs
	if err := cmd.Run(); err != nil {
		t.Fatalf("the server: %v, %s", err, logs.String())
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	last := lines[len(lines)-1]
	if last != "served: <nil>" {
		t.Errorf("what ServeStdio gave at the end of the input: got %q, want served: <nil>", last)
	}
	var frames []string
	for _, line := range lines[:len(lines)-1] {
		frames = append(frames, brief([]byte(line)))
	}
	slices.Sort(frames)
	if want := []string{`"init" ok`, "1 printed", "2 ok"}; !slices.Equal(frames, want) {
		t.Errorf("standard output: got %q, want %q", frames, want)
	}
	for _, want := range []string{"by fmt\n", "by os\n", "by descriptor\n"} {
		if !strings.Contains(logs.String(), want) {
			t.Errorf("standard error: got %q, want it to hold %q", logs.String(), want)
		}
	}
}

// TestStdoutIsNeverRead: a server whose standard output is full, and whose input
// has ended, is done within its drain timeout.
func TestStdoutIsNeverRead(t *testing.T) {
	cmd := child(t)
	full, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	logs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = strings.NewReader(handshake + call("1", "big", `"n":1000000,`+text("x")) + "\n")
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(logs).ReadString('\n')
	if took := time.Since(begin); err != nil || line != "served: <nil>\n" || took > 10*time.Second {
		t.Errorf("standard error: got %q, %v after %v, want served: <nil> after about 1 s", line, err, took)
	}
	if _, err := io.Copy(io.Discard, full); err != nil {
		t.Errorf("standard output: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server: %v", err)
	}
}
