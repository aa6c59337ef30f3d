package report

import (
	"bytes"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/bench"
)

// hostile is what a server may call itself.
const hostile = `</script><script>alert(1)</script>"'><img src=x onerror=alert(2)>`

// sample makes a result of so many seconds.
func sample(seconds int) *bench.Result {
	r := &bench.Result{
		Schema: bench.Schema, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Version: "test", Command: []string{"mcp-load", "run", hostile},
		Conditions: bench.Conditions{
			Target: "http://127.0.0.1:1/mcp", Server: hostile, Transport: "http", Protocol: "2025-11-25", Loop: "open", RateRPS: 100,
			Arrivals: "constant", DurationS: float64(seconds), Sessions: 10, Tools: []string{hostile},
		},
		Verdict:    bench.Verdict{Valid: false, Reasons: []string{"late: " + hostile}, AskedRPS: 100, DeliveredRPS: 99},
		Requests:   bench.Requests{Total: 100, OK: 90, ToolError: 10, Examples: map[string]string{"tool_error": hostile}, RPCCodes: map[string]int64{}},
		Server:     &bench.Server{Processes: 1, CPUSeconds: 2, RSSEndBytes: 3 << 20},
		LittlesLaw: &bench.LittlesLaw{Predicted: 1, Observed: 2},
		Thresholds: []bench.Threshold{{Expr: "errors<0.1%", Value: 0.1}, {Expr: "p(99)<1s", Value: 5e5, OK: true}},
	}
	h := bench.NewHistogram()
	for i := range 20_000 {
		h.Record(time.Duration(i)*time.Microsecond, 1)
	}
	for _, tool := range []string{hostile, "other", ""} {
		method := "tools/call"
		if tool == "" {
			method = "*"
		}
		r.Latency = append(r.Latency, bench.Latency{Method: method, Tool: tool, Response: h.Dist(), Service: h.Dist(), TTFB: h.Dist()})
	}
	for i := range seconds {
		r.Intervals = append(r.Intervals, bench.Interval{
			TS: float64(i), RPS: 100, Errors: int64(i % 3), P50US: 1000, P99US: int64(2000 + i), Sessions: 10, InFlight: 3,
			ServerCPU: 0.5, ServerRSS: 1 << 20,
		})
	}
	return r
}

func draw(t *testing.T, results ...*bench.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, results...); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPage draws an hour with hostile texts: nothing of them is markup, nothing is loaded, and the page stays small.
func TestPage(t *testing.T) {
	html := draw(t, sample(3600))
	if len(html) > 2<<20 {
		t.Errorf("the page has %d bytes, want at most 2 MB", len(html))
	}
	for _, bad := range []string{"<img", "alert(1)</script>", "<link", "@import", "url(", "ZgotmplZ", "NaN", ">-0"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	if loads := regexp.MustCompile(`(?i)\s(src|href)="[^#]`).FindAllString(html, -1); loads != nil {
		t.Errorf("the page refers to %q", loads)
	}
	if n := strings.Count(html, "<script"); n != 1 {
		t.Errorf("%d scripts, want 1", n)
	}
	for _, want := range []string{
		"INVALID", "late: &lt;/script", "Response time over time", "Percentile spectrum", "Throughput", "asked 100/s", "Errors", "Calls in flight",
		"Sessions", "Server CPU", "Server memory", "errors&lt;0.1%", "crossed", "10 %", "500 ms", "they do not agree", "prefers-color-scheme: dark", "@media print",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestMatrix draws several results below each other.
func TestMatrix(t *testing.T) {
	html := draw(t, sample(3), sample(3))
	for _, want := range []string{`href="#run2"`, `id="run2"`} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if err := Write(&bytes.Buffer{}); err == nil {
		t.Error("no result was drawn without an error")
	}
}

// TestSparse draws what has hardly anything in it.
func TestSparse(t *testing.T) {
	html := draw(t, &bench.Result{})
	for _, bad := range []string{"NaN", "Inf", "<svg"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page of an empty result contains %q", bad)
		}
	}
}

// TestPeaks shows that thinning out hides no peak.
func TestPeaks(t *testing.T) {
	l := series{}
	for i := range 10_000 {
		l.x, l.y = append(l.x, float64(i)), append(l.y, 1)
	}
	l.y[4321] = 9
	c := chart{x: linear(0, 10_000, 5, digits), y: linear(0, 10, 5, digits), lines: []series{l}}
	var b strings.Builder
	c.line(&b, &c.lines[0])
	at := strings.TrimRight(strings.TrimRight(strings.TrimSpace(formatY(c.py(9))), "0"), ".")
	if !strings.Contains(b.String(), " "+at) {
		t.Errorf("the peak at y %s is not drawn", at)
	}
	if n := strings.Count(b.String(), "L"); n > mostPoints {
		t.Errorf("%d points drawn, want at most %d", n, mostPoints)
	}
}

func formatY(y float64) string { return digits(math.Round(10*y) / 10) }

func TestScales(t *testing.T) {
	for _, tt := range []struct {
		name string
		s    *scale
		want string
		high float64
	}{
		{"linear", linear(0, 97, 5, digits), "0 20 40 60 80 100", 100},
		{"nothing", linear(0, 0, 5, digits), "0 0.2 0.4 0.6 0.8 1", 1},
		{"log", logarithmic(3, 800, digits), "1 10 100 1000", 1000},
		{"latency, wide", latencyScale(100, 1e6), "100 µs 1 ms 10 ms 100 ms 1 s", 1e6},
		{"latency, narrow", latencyScale(100, 200), "0 50 µs 100 µs 150 µs 200 µs", 200},
		{"memory", memoryScale(45 << 20), "0 B 10 MiB 20 MiB 30 MiB 40 MiB 50 MiB", 50 << 20},
		{"spectrum", logarithmic(1, 1000, percentile), "0 % 90 % 99 % 99.9 %", 1000},
	} {
		var ticks []string
		for _, v := range tt.s.ticks {
			ticks = append(ticks, tt.s.format(v))
		}
		if got := strings.Join(ticks, " "); got != tt.want || math.Abs(tt.s.high-tt.high) > 1e-6*tt.high {
			t.Errorf("%s: ticks %s up to %v, want %s up to %v", tt.name, got, tt.s.high, tt.want, tt.high)
		}
		if lo, hi := tt.s.at(tt.s.low), tt.s.at(tt.s.high); math.Abs(lo) > 1e-9 || math.Abs(hi-1) > 1e-9 {
			t.Errorf("%s: ends at %v and %v, want 0 and 1", tt.name, lo, hi)
		}
	}
}

func TestFormats(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{micros(0), "0"}, {micros(999), "999 µs"}, {micros(1234), "1.23 ms"}, {micros(12_345), "12.3 ms"}, {micros(1e6), "1 s"}, {micros(600e6), "10 min"},
		{count(1234567), "1,234,567"}, {count(-1234), "-1,234"}, {count(12), "12"}, {perSecond(397.84), "398/s"}, {perSecond(1000), "1,000/s"},
		{bytesText(1536), "1.5 KiB"}, {bytesText(12), "12 B"}, {seconds(90), "90 s"}, {seconds(600), "10m0s"}, {percentile(1e5), "99.999 %"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
