package layers

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/engine"
)

// TestMillion opens a million sessions in this process and leaves them idle, as
// actors alone or, with MILLION=engine, as sessions of an engine after their
// handshake. It takes gigabytes, and is therefore run by hand:
//
//	MILLION=actors go test ./bench/layers -run Million -v
func TestMillion(t *testing.T) {
	what := os.Getenv("MILLION")
	if what == "" {
		t.Skip("set MILLION to actors or engine")
	}
	const (
		sessions = 1_000_000
		most     = 2_500_000_000 // bytes
	)
	limits := actors.Limits{MaxSessions: sessions}
	var open func(key string) error
	switch what {
	case "actors":
		s := actors.NewSystem(actors.Config{Limits: limits})
		defer s.Shutdown()
		open = func(key string) error { _, err := s.OpenSession(key, nil, nil); return err }
	case "engine":
		e := engine.New(engine.Info{}, &engine.Options{Limits: limits})
		open = func(key string) error {
			s, err := e.OpenSession(key, nil)
			if err == nil {
				receiver(e, s, initializeFrame)()
			}
			return err
		}
		defer func() { _ = e.Shutdown(t.Context()) }()
	default:
		t.Fatalf("MILLION: got %q, want actors or engine", what)
	}
	before, began := memory(t, "VmRSS"), time.Now()
	for i := range sessions {
		if err := open(strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(began)
	runtime.GC()
	time.Sleep(2 * time.Second)
	after, peak := memory(t, "VmRSS"), memory(t, "VmHWM")
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	t.Logf("%d %s sessions in %v: %d MB resident, %d bytes each; %d MB at most; %d MB of heap in use; %d goroutines",
		sessions, what, took.Round(time.Millisecond), after/1e6, (after-before)/sessions, peak/1e6, heap.HeapInuse/1e6, runtime.NumGoroutine())
	if peak > most {
		t.Errorf("resident memory: got %d MB at most, want under %d MB", peak/1e6, most/int(1e6))
	}
}

// memory reads a figure of this process, in bytes.
func memory(t *testing.T, name string) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); fields[0] == name+":" {
			kib, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatalf("no %s in /proc/self/status", name)
	return 0
}
