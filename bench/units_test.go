package bench

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

func decodeDist(d *Dist) (*hdr.Histogram, error) { return hdr.Decode([]byte(d.HDR)) }

// TestSchedule is exact for constant arrivals, and for Poisson arrivals depends on the seed alone.
func TestSchedule(t *testing.T) {
	take := func(c Config) []time.Duration {
		s := newSchedule(&c)
		var out []time.Duration
		for {
			at, ok := s.next()
			if !ok {
				return out
			}
			out = append(out, at)
		}
	}
	got := take(Config{Rate: 3, Duration: time.Second, Warmup: time.Second})
	want := []time.Duration{0, 333333333, 666666667, 1000000000, 1333333333, 1666666667}
	if !slices.Equal(got, want) {
		t.Errorf("3/s = %v, want %v", got, want)
	}
	if got := take(Config{Rate: 999.9, Duration: 100 * time.Second}); len(got) != 99990 {
		t.Errorf("999.9/s for 100 s has %d starts, want 99990", len(got))
	}
	if got := take(Config{Rate: 10, Requests: 7, Warmup: time.Second}); len(got) != 17 {
		t.Errorf("10/s, 7 calls after 1 s has %d starts, want 17", len(got))
	}
	poisson := Config{Rate: 100, Arrivals: Poisson, Duration: 100 * time.Second, Seed: 5}
	a, b := take(poisson), take(poisson)
	poisson.Seed = 6
	if c := take(poisson); !slices.Equal(a, b) || slices.Equal(a, c) || !slices.IsSorted(a) {
		t.Error("Poisson arrivals do not depend on the seed alone, or are not in order")
	}
	if n := len(a); n < 9600 || n > 10400 {
		t.Errorf("100/s for 100 s has %d Poisson starts, want 10000 ± 400", n)
	}
	s := newSchedule(&Config{Rate: 10, Duration: 2 * time.Second, Warmup: time.Second})
	for range 15 {
		s.next()
	}
	if n := s.skipUntil(2 * time.Second); n != 5 {
		t.Errorf("skipUntil(2 s) at 1.5 s = %d, want 5", n)
	}
	if at, ok := s.next(); !ok || at != 2*time.Second {
		t.Errorf("next after skipUntil(2 s) = %v, %v; want 2 s", at, ok)
	}
	if n := s.skipUntil(s.end); n != 9 {
		t.Errorf("skipUntil(end) = %d, want 9", n)
	}
}

// TestMergedEqualsSingle is oracle 12: samples that were spread over workers and time give, after merging, the same
// histogram bit for bit as one histogram of all.
func TestMergedEqualsSingle(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	rec, total, single := newRecorder(2), newBatch(2), newHist()
	cur := newBatch(2)
	var times timeline
	for i := range 50_000 {
		s := sample{series: i % 2, response: time.Duration(rng.ExpFloat64() * float64(20*time.Millisecond)), inTime: true}
		s.service, s.ttfb = s.response/2, s.response/3
		record(single, s.response)
		rec.shardOf(i).add(&s)
		if i%997 == 0 {
			rec.collectInto(cur)
			total.merge(cur)
			times.add(slot{series: [][]bucket{sparse(cur.series[0].response), nil, sparse(cur.series[1].response)}})
			cur.reset()
		}
	}
	rec.collectInto(total)
	merged := total.all(len(total.series)).response
	if !merged.Equals(single) || total.ended != 50_000 {
		t.Errorf("merged histogram of %d differs from the single one of %d", merged.TotalCount(), single.TotalCount())
	}
	got, err := distEncoding(merged)
	if err != nil {
		t.Fatal(err)
	}
	want, err := distEncoding(single)
	if err != nil || got != want {
		t.Errorf("encodings differ (%v)", err)
	}
	var blocks int64
	for _, b := range times.blocks(0, 2) {
		blocks += countOf(b)
	}
	if blocks != 49_851 { // up to the last collection
		t.Errorf("the blocks hold %d samples, want 49851", blocks)
	}
}

func distEncoding(h *hdr.Histogram) (string, error) {
	b, err := h.EncodeV2()
	return string(b), err
}

// TestMergeCase is the case load-percentiles-from-merged-histograms: counts are merged, and then ranked.
func TestMergeCase(t *testing.T) {
	rec, total := newRecorder(1), newBatch(1)
	for i := range 1000 {
		s := sample{response: time.Millisecond}
		if i >= 900 {
			s.response = 100 * time.Millisecond
		}
		rec.shards[i/900].add(&s)
	}
	rec.collectInto(total)
	d := distOf(total.all(len(total.series)).response, nil)
	if d.Count != 1000 || d.P50US != 1000 || d.P90US != 1000 || d.P95US/1000 != 100 || d.P99US/1000 != 100 {
		t.Errorf("merged = %+v, want p50 and p90 of 1 ms, p95 and p99 of 100 ms", d)
	}
	if d.P999US != nil || d.P99CI95US != nil {
		t.Errorf("p99.9 = %v and interval = %v from 1000 samples, want neither", d.P999US, d.P99CI95US)
	}
}

// TestTimelineIsBounded keeps every sample while slots are merged.
func TestTimelineIsBounded(t *testing.T) {
	var tl timeline
	for i := range 5000 {
		tl.add(slot{from: time.Duration(i), to: time.Duration(i + 1), series: [][]bucket{{{value: int64(i % 7), count: 1}}}})
	}
	var n int64
	for _, b := range tl.blocks(0) {
		n += countOf(b)
	}
	if len(tl.slots) > maxSlots || n != 5000 {
		t.Errorf("%d slots with %d samples, want at most %d with 5000", len(tl.slots), n, maxSlots)
	}
	for i := 1; i < len(tl.slots); i++ {
		if tl.slots[i].from != tl.slots[i-1].to {
			t.Fatalf("slot %d begins at %d, the one before ends at %d", i, tl.slots[i].from, tl.slots[i-1].to)
		}
	}
}

// TestBlockInterval refuses too few samples and covers independent ones.
func TestBlockInterval(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	blocksOf := func(n, samples int) [][]bucket {
		out := make([][]bucket, n)
		h := newHist()
		for i := range out {
			h.Reset()
			for range samples {
				record(h, time.Duration(rng.ExpFloat64()*float64(time.Millisecond)))
			}
			out[i] = sparse(h)
		}
		return out
	}
	if got := blockInterval(blocksOf(19, 1000), 0.99); got != nil {
		t.Errorf("interval from 19 blocks = %v, want none", got)
	}
	if got := blockInterval(blocksOf(20, 99), 0.99); got != nil {
		t.Errorf("interval from blocks of 99 = %v, want none", got)
	}
	if raceDetector {
		t.Skip("the rest is nothing but arithmetic")
	}
	covered := 0
	for range 100 {
		if ci := blockInterval(blocksOf(20, 500), 0.99); ci != nil && ci[0] <= 4605 && 4605 <= ci[1] {
			covered++
		}
	}
	if covered < 90 {
		t.Errorf("the interval covers the truth %d times in 100, want at least 90", covered)
	}
}

// TestReasons lists what makes a result invalid.
func TestReasons(t *testing.T) {
	good := evidence{open: true, paced: true, scheduled: 1000, begun: 1000, window: time.Minute, lagP99: time.Millisecond, serviceP99: 5 * time.Millisecond, cpu: 0.2}
	for _, tt := range []struct {
		name   string
		change func(*evidence)
		want   string // part of the one reason, or "" for none
	}{
		{"good", func(*evidence) {}, ""},
		{"99 %", func(e *evidence) { e.begun = 990 }, ""},
		{"below 99 %", func(e *evidence) { e.begun = 989 }, "delivered 989 of 1,000 calls (98.9 %; at least 99 % are needed): the generator could not keep"},
		{"cap", func(e *evidence) { e.begun, e.held, e.maxInFlight, e.overflow = 10, 5, 3, Wait }, "--max-in-flight 3 held calls back"},
		{"skip", func(e *evidence) { e.begun, e.held, e.maxInFlight, e.overflow = 10, 5, 3, Skip }, "calls were skipped"},
		{"machine", func(e *evidence) { e.begun, e.held, e.limit = 10, 5, 900 }, "900 calls were in flight"},
		{"lag", func(e *evidence) { e.lagP99 = 11 * time.Millisecond }, "schedule lag p99 11.0 ms, at most 10.0 ms"},
		{"lag against slow calls", func(e *evidence) { e.lagP99, e.serviceP99 = 11*time.Millisecond, time.Second }, ""},
		{"CPU", func(e *evidence) { e.cpu = 0.91 }, "used 91 % of the CPU"},
		{"CPU in one process", func(e *evidence) { e.cpu, e.inProcess = 0.91, true }, ""},
		{"CPU of a short run", func(e *evidence) { e.cpu, e.window = 0.91, time.Second-1 }, ""},
		{"late for memory management", func(e *evidence) { e.lagP99, e.stopped = 11*time.Millisecond, 2*time.Second }, "memory management stopped it for 3.3 %"},
		{"late, at any rate", func(e *evidence) { e.lagP99, e.stopped = 11*time.Millisecond, time.Second/2 }, "other work on this machine"},
		{"stopped now and then", func(e *evidence) { e.stopped = 15 * time.Second }, ""},
		{"stopped most of the time", func(e *evidence) { e.stopped = 16 * time.Second }, "memory management stopped the generator for 27 % of the time"},
		{"stopped with its server", func(e *evidence) { e.stopped, e.inProcess = 16*time.Second, true }, ""},
		{"closed loop", func(e *evidence) { e.open, e.paced, e.begun, e.lagP99 = false, false, 5, time.Second }, ""},
		{"users", func(e *evidence) { e.open, e.begun = false, 5 }, ""},
		{"users late", func(e *evidence) { e.open, e.lagP99 = false, 11*time.Millisecond }, "schedule lag p99 11.0 ms"},
		{"nothing", func(e *evidence) { e.scheduled, e.begun = 0, 0 }, "no call was begun"},
		{"descriptors", func(e *evidence) { e.starved = 3 }, "ulimit -n"},
	} {
		e := good
		tt.change(&e)
		got := e.reasons()
		if tt.want == "" && len(got) != 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
			t.Errorf("%s: reasons = %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestArguments makes arguments from schemas.
func TestArguments(t *testing.T) {
	for _, tt := range []struct{ schema, want string }{
		{``, `{}`},
		{`{"type":"object"}`, `{}`},
		{`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"]}`, `{"a":"x"}`},
		{`{"properties":{"s":{"type":"string","minLength":3},"i":{"type":"integer","minimum":5},"n":{"type":"number","maximum":0.5},"b":{"type":"boolean"},` +
			`"e":{"enum":["p","q"]},"d":{"type":"integer","default":9},"c":{"const":null},"l":{"type":"array","items":{"type":"integer"},"minItems":2},` +
			`"o":{"type":"object","properties":{"k":{"type":["null","string"],"format":"email"}},"required":["k"]},"u":{}},` +
			`"required":["s","i","n","b","e","d","c","l","o","u"]}`,
			`{"s":"xxx","i":5,"n":0.5,"b":false,"e":"p","d":9,"c":null,"l":[1,1],"o":{"k":"x@example.com"},"u":"x"}`},
		{`{"type":"object","$defs":{"p":{"type":"object","properties":{"q":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"required":["q"]}},"properties":{"p":{"$ref":"#/$defs/p"}},"required":["p"]}`, `{"p":{"q":1}}`},
		{`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`, ``}, // endless: valid JSON is enough
	} {
		got := string(argumentsFor([]byte(tt.schema)))
		if tt.want != "" && got != tt.want || !json.Valid([]byte(got)) {
			t.Errorf("argumentsFor(%s) = %s, want %s", tt.schema, got, tt.want)
		}
	}
}

// TestThresholds reads expressions and holds a result against them.
func TestThresholds(t *testing.T) {
	h := newHist()
	for i := range 100 {
		record(h, time.Duration(i+1)*time.Millisecond)
	}
	d := distOf(h, nil)
	res := &Result{Requests: Requests{Total: 1000, OK: 998}, Latency: []Latency{
		{Method: "tools/call", Tool: "a b", Response: d}, {Method: "*", Response: d},
	}}
	for _, tt := range []struct {
		expr  string
		ok    bool
		value float64
	}{
		{"p(99)<200ms", true, 99e3}, {"p(99) < 90ms", false, 99e3}, {"p(99.9)>=99ms", true, 100e3}, {"max<=1s", true, 100e3},
		{"mean>1ms", true, 50.5e3}, {"errors<0.1%", false, 0.002}, {"errors<=0.2%", true, 0.002}, {"errors<0.003", true, 0.002},
		{"tools/call{tool=a b} p(50)<51ms", true, 50e3}, {"tools/call{tool=c} p(50)<51ms", false, 0},
	} {
		if _, err := parseThreshold(tt.expr); err != nil {
			t.Errorf("parseThreshold(%q) = %v", tt.expr, err)
			continue
		}
		got := evaluate([]string{tt.expr}, res)[0]
		if got.OK != tt.ok || got.Value < tt.value*0.99 || got.Value > tt.value*1.01 {
			t.Errorf("evaluate(%q) = %+v, want %v with %v", tt.expr, got, tt.ok, tt.value)
		}
	}
	for _, expr := range []string{"", "p(0)<1s", "p(101)<1s", "p(99)<5", "p(99)=1s", "errors<x", "tools/call errors<1%", "foo<1s", "p(99)<-1s"} {
		if _, err := parseThreshold(expr); err == nil {
			t.Errorf("parseThreshold(%q) succeeded", expr)
		}
	}
}

// TestWriteFile leaves the old file alone when writing fails.
func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b.json")
	if err := WriteFile(path, (&Result{Schema: Schema}).WriteJSON); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(before, []byte(`"schema": "mcp-load/v1"`)) {
		t.Fatalf("file = %.80s, %v", before, err)
	}
	if err := WriteFile(path, (&Result{Verdict: Verdict{AskedRPS: inf()}}).WriteJSON); err == nil {
		t.Error("a result that JSON cannot hold was written")
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file changed to %.80s (%v)", after, err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("%d files are left, want 1", len(left))
	}
}

func inf() float64 {
	var zero float64
	return 1 / zero
}

// TestFormat writes numbers for people.
func TestFormat(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{thousands(0), "0"}, {thousands(999), "999"}, {thousands(-1234567), "-1,234,567"},
		{microsText(0), "0"}, {microsText(7), "7.00 µs"}, {microsText(999), "999 µs"}, {microsText(999.6), "1.00 ms"},
		{microsText(1234), "1.23 ms"}, {microsText(99_960), "100 ms"}, {microsText(12_345_678), "12.3 s"},
		{rateText(2000), "2,000"}, {rateText(12.34), "12.3"}, {bytesText(1536), "1.5 KiB"}, {bytesText(512 << 20), "512 MiB"},
		{plural(1, "session"), "1 session"}, {plural(1000, "session"), "1,000 sessions"},
		{pad("abcdef", 4), "abc…"}, {pad("ab", 4), "ab  "}, {clip([]byte("a\x1b[31m\nb")), "a\ufffd[31m b"},
		{commandLine([]string{"node", "a b"}), `node "a b"`},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
