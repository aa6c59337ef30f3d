//go:build unix

package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/transport/client"
)

func spawn(t *testing.T, kind string, o client.Options) (*client.Client, error) {
	t.Helper()
	noLeaks(t)
	// The race detector would have the child wait a second at its end.
	o.Env = append(os.Environ(), childVar+"="+kind, "GORACE=atexit_sleep_ms=0")
	return client.Spawn(context.Background(), []string{os.Args[0]}, &o)
}

// gone reports whether no process has the id, not even as a zombie.
func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestSpawn(t *testing.T) {
	for _, kind := range []string{"is normal", "prints garbage"} {
		t.Run(kind, func(t *testing.T) {
			var stderr bytes.Buffer
			c, err := spawn(t, kind, client.Options{Stderr: &stderr})
			if err != nil {
				t.Fatal(err)
			}
			want := `{"x":"` + strings.Repeat("long ", 400_000) + `"}`
			got, err := c.Request(context.Background(), "echo", []byte(want), nil)
			if err != nil || string(got) != want {
				t.Errorf("Request: got %d bytes, %v, want %d", len(got), err, len(want))
			}
			pid := c.PID()
			begun := time.Now()
			closeClient(t, c)
			if took := time.Since(begun); took > time.Second || pid == 0 || !gone(pid) {
				t.Errorf("Close: took %v, pid %d, gone %v; want a prompt end", took, pid, gone(pid))
			}
			if got, want := stderr.String(), "hello from "+kind+"\n"; got != want {
				t.Errorf("Stderr: got %q, want %q", got, want)
			}
		})
	}
}

// TestSpawnStubborn: a child that ends neither with its stdin nor with SIGTERM
// is killed after two graces, or at once when the context of Close ends.
func TestSpawnStubborn(t *testing.T) {
	for _, test := range []struct {
		kind        string
		grace       time.Duration
		patience    time.Duration // of the context of Close
		least, most time.Duration
	}{
		{"ignores the end of stdin", 100 * time.Millisecond, time.Minute, 100 * time.Millisecond, 3 * time.Second},
		{"ignores SIGTERM", 100 * time.Millisecond, time.Minute, 200 * time.Millisecond, 3 * time.Second},
		{"ignores SIGTERM", time.Minute, 100 * time.Millisecond, 100 * time.Millisecond, 3 * time.Second},
	} {
		t.Run(fmt.Sprint(test.kind, test.grace), func(t *testing.T) {
			c, err := spawn(t, test.kind, client.Options{CloseGrace: test.grace})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), test.patience)
			defer cancel()
			pid := c.PID()
			begun := time.Now()
			err = c.Close(ctx)
			if took := time.Since(begun); err != nil || took < test.least || took > test.most || !gone(pid) {
				t.Errorf("Close: got %v after %v, gone %v; want nil after %v to %v", err, took, gone(pid), test.least, test.most)
			}
		})
	}
}

func TestSpawnDies(t *testing.T) {
	_, err := spawn(t, "dies at once", client.Options{})
	var exit *client.ExitError
	if !errors.As(err, &exit) || exit.State != "exit status 3" || exit.Stderr != "hello from dies at once" || !errors.Is(err, client.ErrDisconnected) {
		t.Errorf("Spawn: got %v, want an *ExitError with status 3 and stderr", err)
	}
}

func TestSpawnDiesInCall(t *testing.T) {
	c, err := spawn(t, "is normal", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Request(context.Background(), "die", nil, nil)
	var exit *client.ExitError
	if !errors.As(err, &exit) || exit.State != "exit status 5" {
		t.Errorf("Request: got %v, want an *ExitError with status 5", err)
	}
	<-c.Done()
	closeClient(t, c)
	if !gone(c.PID()) {
		t.Errorf("process %d is still there", c.PID())
	}
}

func TestSpawnFails(t *testing.T) {
	noLeaks(t)
	for _, argv := range [][]string{nil, {"/nonexistent/program"}} {
		if _, err := client.Spawn(context.Background(), argv, nil); err == nil {
			t.Errorf("Spawn(%v): got no error", argv)
		}
	}
}

// TestSpawnChatty: of much text on stderr the end is kept, and a writer that
// fails does not stop the child.
func TestSpawnChatty(t *testing.T) {
	out, in := io.Pipe()
	_ = out.Close() // each write fails from now on
	_, err := spawn(t, "is chatty", client.Options{Stderr: in})
	var exit *client.ExitError
	if !errors.As(err, &exit) || len(exit.Stderr) > 4<<10 || len(exit.Stderr) < 4000 || !strings.HasSuffix(exit.Stderr, "line 9998\nline 9999") {
		t.Errorf("Spawn: got %v, want an *ExitError with the last 4 KiB of stderr", err)
	}
}

// TestSpawnOrphan: a process that the server leaves behind holds its pipes
// open, and Close does not wait for it.
func TestSpawnOrphan(t *testing.T) {
	c, err := spawn(t, "leaves a child", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	closeClient(t, c)
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("Close: took %v, want no wait for the orphan", took)
	}
}

func TestSpawnSilent(t *testing.T) {
	_, err := spawn(t, "says nothing", client.Options{CallTimeout: 1500 * time.Millisecond, CloseGrace: 50 * time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "hello from says nothing") {
		t.Errorf("Spawn: got %v, want context.DeadlineExceeded and the end of stderr", err)
	}
}

func TestSpawnLeavesNoDescriptor(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("counts descriptors in /proc")
	}
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	cycle := func(kind string) {
		c, err := spawn(t, kind, client.Options{})
		if err == nil {
			closeClient(t, c)
		}
	}
	cycle("is normal")
	before := open()
	for range 5 {
		cycle("is normal")
		cycle("dies at once")
	}
	if after := open(); after != before {
		t.Errorf("descriptors: got %d, want %d as before", after, before)
	}
}
