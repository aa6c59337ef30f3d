package interop

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// limit bounds every single exchange of these tests, generously, because the machine may be busy.
const limit = 20 * time.Second

// server is a program that offers the demo fixture.
type server struct {
	name  string
	args  []string // arguments of both transports, before the flags
	build func(binary string) *exec.Cmd
	once  sync.Once
	path  string
	err   error

	httpFlag, stdioFlag string
}

var (
	mcpLoad = &server{name: "mcp-load", args: []string{"serve"}, httpFlag: "--http", stdioFlag: "--stdio",
		build: func(binary string) *exec.Cmd {
			return exec.Command("go", "build", "-C", "../..", "-o", binary, "./cmd/mcp-load")
		}}
	goSDK = &server{name: "gosdk-server", httpFlag: "-http", stdioFlag: "-stdio", build: buildStandIn}
	mcpGo = &server{name: "mcpgo-server", httpFlag: "-http", stdioFlag: "-stdio", build: buildStandIn}

	// scratch holds the built programs; TestMain makes and removes it.
	scratch string
)

func buildStandIn(binary string) *exec.Cmd {
	return exec.Command("go", "build", "-o", binary, "./cmd/"+strings.TrimSuffix(filepath.Base(binary), ".exe"))
}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if scratch, err = os.MkdirTemp("", "interop-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(scratch)
		return m.Run()
	}())
}

// binary builds the program once for all tests and returns its path.
func (s *server) binary(t *testing.T) string {
	t.Helper()
	s.once.Do(func() {
		if s == mcpLoad && os.Getenv("MCP_LOAD") != "" {
			s.path, s.err = filepath.Abs(os.Getenv("MCP_LOAD"))
			return
		}
		s.path = filepath.Join(scratch, s.name+exeSuffix())
		if out, err := s.build(s.path).CombinedOutput(); err != nil {
			s.err = fmt.Errorf("building %s: %w\n%s", s.name, err, out)
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.path
}

func exeSuffix() string {
	if filepath.Separator == '\\' {
		return ".exe"
	}
	return ""
}

// stdioCommand returns the command line that serves stdin and stdout.
func (s *server) stdioCommand(t *testing.T) []string {
	t.Helper()
	argv := append([]string{s.binary(t)}, s.args...)
	return append(argv, s.stdioFlag)
}

// serveHTTP runs the program on a free port until the test ends, and returns the URL of its endpoint.
func (s *server) serveHTTP(t *testing.T, extra ...string) string {
	t.Helper()
	args := append(append([]string{}, s.args...), s.httpFlag, "127.0.0.1:0")
	cmd := exec.Command(s.binary(t), append(args, extra...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan string, 1)
	drained := make(chan struct{})
	var log bytes.Buffer // owned by the goroutine until drained is closed
	go func() {
		defer close(drained)
		readLog(stderr, &log, ready)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-drained
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("stderr of %s:\n%s", s.name, log.Bytes())
		}
	})
	select {
	case url := <-ready:
		return url
	case <-drained:
		t.Fatalf("%s ended before it was ready", s.name)
	case <-time.After(limit):
		t.Fatalf("%s printed no line \"listening URL\" on stderr within %v", s.name, limit)
	}
	return ""
}

// readLog copies the first 64 KiB of a server's stderr, drops the rest, and sends the URL of the ready line.
func readLog(stderr io.Reader, log *bytes.Buffer, ready chan<- string) {
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if log.Len() < 64<<10 {
			log.Write(append(lines.Bytes(), '\n'))
		}
		if url, ok := strings.CutPrefix(lines.Text(), "listening "); ok {
			select {
			case ready <- strings.TrimSpace(url):
			default:
			}
		}
	}
	_, _ = io.Copy(io.Discard, stderr) // after a line too long for the scanner
}

// within returns a context with the limit of one exchange.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// wantCancelled checks the error of a cancelled call and how long the caller had to wait for it.
func wantCancelled(t *testing.T, err error, took time.Duration) {
	t.Helper()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled call: got error %v, want context.Canceled", err)
	}
	if took > 2*time.Second {
		t.Errorf("cancelled call returned %v after the cancellation, want it at once", took)
	}
}
