package report

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/bench"
)

// TestLive tells a run of three and a half seconds in slots of 100 ms, and looks at it before, during and after.
func TestLive(t *testing.T) {
	l := NewLive(bench.Result{Conditions: bench.Conditions{Target: "http://127.0.0.1:1/mcp"}})
	look := func(when string, want, never []string) {
		t.Helper()
		html, err := l.Draw()
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		for _, w := range want {
			if !strings.Contains(string(html), w) {
				t.Errorf("%s: the page lacks %q", when, w)
			}
		}
		for _, bad := range append(never, "NaN", "Inf", "<img") {
			if strings.Contains(string(html), bad) {
				t.Errorf("%s: the page contains %q", when, bad)
			}
		}
	}
	look("before", []string{"RUNNING", "connecting", "http://127.0.0.1:1/mcp"}, []string{"<svg", "figures"})
	l.Progress(bench.Progress{Phase: bench.PhaseOpening, Sessions: 3, Wanted: 1000})
	look("opening", []string{"opening: 3 of 1,000 sessions open"}, []string{"<svg"})
	l.Begin(bench.Conditions{Target: "t", Server: hostile, Loop: "open", RateRPS: 100, Arrivals: "constant", DurationS: 10})
	for i := range 35 {
		from := time.Duration(i) * 100 * time.Millisecond
		l.Slot(bench.Slot{
			From: from, To: from + 100*time.Millisecond, Outcomes: map[string]int64{"ok": 10, "timeout": 1}, Sessions: 5, InFlight: 2,
			Latency: []bench.SlotLatency{
				{Method: "tools/call", Tool: "a", Response: []bench.Bucket{{ValueUS: 4000, Count: 6}}, Service: []bench.Bucket{{ValueUS: 3000, Count: 6}}},
				{Method: "tools/call", Tool: hostile, Response: []bench.Bucket{{ValueUS: 8000, Count: 4}}, Service: []bench.Bucket{{ValueUS: 7000, Count: 4}}},
			},
		})
	}
	l.Progress(bench.Progress{
		Phase: bench.PhaseMeasuring, Elapsed: 3500 * time.Millisecond, Total: 10 * time.Second, Sessions: 5, Delivered: 110, Reasons: []string{"late " + hostile},
	})
	look("measuring", []string{
		"measuring, 7 s left", "Not valid if it ended now: late &lt;/script", "<b>110/s</b><span>delivered</span><small>asked 100/s</small>",
		"<b>35</b><span>errors</span><small>of 385 calls</small>", "<td>tools/call a</td><td>210</td>", "<td>all calls</td><td>350</td>", "<svg",
		"Response time over time", "Percentile spectrum",
	}, nil)
	if n := len(l.res.Intervals); n != 3 {
		t.Fatalf("%d rows of whole seconds, want 3", n)
	}
	for i, iv := range l.res.Intervals {
		got := fmt.Sprintf("%v %.0f %d %d %d", iv.TS, iv.RPS, iv.Errors, iv.P50US, iv.P99US)
		if want := fmt.Sprintf("%d 100 10 4001 8003", i); got != want {
			t.Errorf("row %d: got %s, want %s", i, got, want)
		}
	}
}

// TestLiveTogether tells and draws at the same time, for the race detector, and loses nothing.
func TestLiveTogether(t *testing.T) {
	l := NewLive(bench.Result{})
	var run sync.WaitGroup
	run.Go(func() {
		for i := range 200 {
			from := time.Duration(i) * 10 * time.Millisecond
			l.Progress(bench.Progress{Phase: bench.PhaseMeasuring})
			l.Slot(bench.Slot{From: from, To: from + 10*time.Millisecond, Outcomes: map[string]int64{"ok": 1}})
		}
	})
	for range 5 {
		if _, err := l.Draw(); err != nil {
			t.Fatal(err)
		}
	}
	run.Wait()
	l.Gather()
	if got := l.res.Requests.OK; got != 200 || len(l.pending) != 0 {
		t.Errorf("%d successes and %d slots that wait, want 200 and 0", got, len(l.pending))
	}
}

// TestWriteLive: the empty page is one file, and hostile names are no markup.
func TestWriteLive(t *testing.T) {
	var b bytes.Buffer
	if err := WriteLive(&b, hostile); err != nil {
		t.Fatal(err)
	}
	html := b.String()
	for _, bad := range []string{"<img", "<link", "url("} {
		if strings.Contains(html, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	if !strings.Contains(html, `new EventSource("events")`) || strings.Contains(draw(t, sample(3)), "EventSource") {
		t.Error("only the page of a run that goes on asks for events")
	}
}
