package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/bench"
)

// TestPlainView writes a line every five seconds, and warnings at once.
func TestPlainView(t *testing.T) {
	p := bench.Progress{
		Phase: bench.PhaseMeasuring, Elapsed: 3 * time.Second, Total: 10 * time.Second, Sessions: 5, Calls: 7, Errors: 2,
		InFlight: 3, RPS: 1234.5, P50US: 1234, P99US: 56789,
	}
	const want = "measuring 7s left, 1234/s, 2 errors, p50 1.23ms, p99 56.8ms, 3 in flight, 5 sessions"
	if got := progressLine(p); got != want {
		t.Errorf("progressLine = %q, want %q", got, want)
	}
	var out bytes.Buffer
	v := &plainView{w: &out, last: time.Now()}
	v.progress(p)
	if out.Len() != 0 {
		t.Errorf("a line came before its time: %q", out.String())
	}
	v.last = time.Now().Add(-plainEvery)
	v.progress(p)
	v.progress(p)
	v.warning("careful")
	v.end()
	if got := out.String(); got != want+"\nmcp-load: warning: careful\n" {
		t.Errorf("plain view wrote %q", got)
	}
}

// TestLiveModes: what cannot be shown is refused in one clear line before the run.
func TestLiveModes(t *testing.T) {
	for _, tt := range []struct{ mode, name, problem string }{
		{"auto", "plain", ""},
		{"plain", "plain", ""},
		{"off", "off", ""},
		{"tui", "", "--live tui cannot be used here: standard error is not a terminal"},
		{"web", "web", ""},
		{"web=:9000", "web", ""},
		{"web=9000", "", "--live web=9000 is not understood"},
		{"web=192.0.2.1:9000", "", "--live web listens on loopback only"},
		{"webb", "", `unknown --live "webb"`},
		{"fancy", "", `unknown --live "fancy"`},
	} {
		m, _, err := findLiveMode(tt.mode, &bytes.Buffer{})
		switch {
		case tt.problem != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.problem)):
			t.Errorf("--live %s: %v, want %q", tt.mode, err, tt.problem)
		case tt.problem == "" && (err != nil || m.name != tt.name):
			t.Errorf("--live %s: %v, %v; want %s", tt.mode, m, err, tt.name)
		}
	}
}
