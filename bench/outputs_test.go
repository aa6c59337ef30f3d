package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// TestOutputs reads back what was written with the stock reader, and holds the JSON against the names of the schema.
func TestOutputs(t *testing.T) {
	f := &fakeServer{}
	res, err := Run(context.Background(), Config{URL: f.start(t), Rate: 500, Duration: 2 * time.Second, Version: "1.2.3", Argv: []string{"mcp-load", "run"}})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	if err := res.WriteHistogramLog(&log); err != nil {
		t.Fatal(err)
	}
	reader := hdr.NewHistogramLogReader(bytes.NewReader(log.Bytes()))
	total := map[string]int64{}
	for {
		h, err := reader.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			break
		}
		total[h.Tag()] += h.TotalCount()
	}
	want := int64(res.Requests.OK) // 1,000, unless the machine was too busy to begin some
	if total["tools/call:echo:response"] != want || total["tools/call:echo:service"] != want || len(total) != 2 || want == 0 {
		t.Errorf("the log holds %v, want %d samples under two tags", total, want)
	}
	var js bytes.Buffer
	if err := res.WriteJSON(&js); err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(js.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"schema", "version", "started", "command", "conditions.target", "conditions.transport", "conditions.protocol", "conditions.loop",
		"conditions.rate_rps", "conditions.arrivals", "conditions.concurrency", "conditions.sessions", "conditions.duration_s",
		"conditions.warmup_s", "conditions.seed", "conditions.host.cpus", "conditions.host.os", "conditions.host.go",
		"verdict.valid", "verdict.reasons", "verdict.asked_rps", "verdict.delivered_rps", "verdict.completed_rps", "verdict.lag_p99_us",
		"verdict.generator_cpu", "sessions.opened", "sessions.failed", "sessions.lost", "sessions.closed", "sessions.setup.p99_us",
		"requests.total", "requests.ok", "requests.tool_error", "requests.rpc_error", "requests.http_error", "requests.transport_error",
		"requests.timeout", "requests.cancelled", "requests.dropped", "requests.rpc_codes", "requests.http_codes",
		"streams.open_peak", "streams.events", "streams.lost", "streams.duplicated", "streams.gap", "server",
		"littles_law.predicted", "littles_law.observed", "littles_law.ok", "thresholds", "intervals", "latency",
	} {
		var at any = doc
		for _, name := range strings.Split(path, ".") {
			m, _ := at.(map[string]any)
			v, ok := m[name]
			if !ok {
				t.Errorf("the JSON lacks %s", path)
			}
			at = v
		}
	}
	row := doc["latency"].([]any)[0].(map[string]any)
	for _, kind := range []string{"response", "service", "ttfb"} {
		d := row[kind].(map[string]any)
		h, err := hdr.Decode([]byte(d["hdr"].(string)))
		if err != nil || float64(h.TotalCount()) != d["count"].(float64) || float64(h.ValueAtPercentile(99)) != d["p99_us"].(float64) {
			t.Errorf("%s: the histogram says otherwise than %v (%v)", kind, d, err)
		}
	}
	var text bytes.Buffer
	if err := res.WriteSummary(&text, false); err != nil {
		t.Fatal(err)
	}
	at := -1
	for _, want := range []string{"target", "transport", "load", "verdict", "rate", "generator", "sessions", "requests", "Response time", "Service time", "server", "Little's law", "thresholds"} {
		next := strings.Index(text.String(), "\n  "+want)
		if next < at {
			t.Errorf("the summary has %q in the wrong place or not at all:\n%s", want, text.String())
		}
		at = next
	}
	if lines := strings.Count(text.String(), "\n"); lines > 35 {
		t.Errorf("the summary has %d lines, want about 30", lines)
	}
}
