package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// gatedWriter is a standard error that nobody reads until its gate is opened.
type gatedWriter struct {
	gate chan struct{}
	text bytes.Buffer
}

func (g *gatedWriter) Write(b []byte) (int, error) {
	<-g.gate
	return g.text.Write(b)
}

// TestLogWriterNeverWaits writes to a log that nobody reads: nothing waits, what
// is beyond the queue is dropped and counted, and the end is not held up.
func TestLogWriterNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &gatedWriter{gate: make(chan struct{})}
		logs := newLogWriter(out)
		begin := time.Now()
		const written = 3 * logQueue
		for i := range written {
			if n, err := fmt.Fprintf(logs, "line %d\n", i); n == 0 || err != nil {
				t.Fatalf("Write of line %d: got %d, %v", i, n, err)
			}
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("Write waited %v for a reader that is not there", took)
		}
		logs.close()
		if took := time.Since(begin); took != logGrace {
			t.Errorf("close took %v, want %v", took, logGrace)
		}
		close(out.gate)
		synctest.Wait()
		if n, err := logs.Write([]byte("late\n")); n != 5 || err != nil {
			t.Errorf("Write after close: got %d, %v, want 5 and no error", n, err)
		}
		lines := strings.Split(strings.TrimSpace(out.text.String()), "\n")
		arrived, dropped := 0, 0
		for _, line := range lines {
			var n int
			if _, err := fmt.Sscanf(line, "%d log lines were dropped", &n); err == nil {
				dropped += n
				continue
			}
			arrived++
		}
		if dropped < written-logQueue-1 || arrived+dropped != written {
			t.Errorf("%d lines arrived and %d were told to be dropped, want %d in all", arrived, dropped, written)
		}
		logs.close()
	})
}

// TestLogWriterFlushes checks that what was logged is written when close returns.
func TestLogWriterFlushes(t *testing.T) {
	var out bytes.Buffer
	logs := newLogWriter(&out)
	for i := range 100 {
		_, _ = fmt.Fprintf(logs, "%d\n", i)
	}
	logs.close()
	if got := strings.Count(out.String(), "\n"); got != 100 {
		t.Errorf("after close: got %d lines, want 100", got)
	}
}
