package bench

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// drifting serves in a time that grows and shrinks slowly, that remembers its last moments, and to which add is added. All
// peers that share it drift alike.
type drifting struct {
	mu    sync.Mutex // two peers share one
	begin time.Time  // guarded by mu
	rng   *rand.Rand // guarded by mu
	last  float64    // guarded by mu
}

// serve is a server's answer time: about 10 ms, ± 5 ms within a minute, plus noise of 1 ms that is correlated.
func (d *drifting) serve(add time.Duration) func(time.Time) time.Time {
	return func(now time.Time) time.Time {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.begin.IsZero() {
			d.begin = now
		}
		d.last = 0.9*d.last + 0.4*d.rng.NormFloat64()
		wave := 5 * math.Sin(2*math.Pi*now.Sub(d.begin).Minutes())
		ms := max(10+wave+d.last+0.3*d.rng.ExpFloat64(), 0.1)
		return now.Add(add + time.Duration(ms*float64(time.Millisecond)))
	}
}

// overheadInVirtualTime compares two virtual peers.
func overheadInVirtualTime(t *testing.T, seed uint64, c OverheadConfig, direct,
	via func(time.Time) time.Time) (res *Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c.peer, c.viaPeer = &virtualPeer{serve: direct}, &virtualPeer{serve: via}
		c.pause, c.InProcess, c.Seed, c.Via = time.Sleep, true, seed, "via"
		var err error
		if res, err = MeasureOverhead(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	})
	return res
}

func servicePhase(t *testing.T, r *Result) *OverheadPhase {
	t.Helper()
	for i := range r.Overhead.Phases {
		if p := &r.Overhead.Phases[i]; p.Phase == phaseService {
			return p
		}
	}
	t.Fatalf("no service phase in %+v", r.Overhead.Phases)
	return nil
}

// TestOverheadSameCoversZero is the first half of oracle 7: the same server on both ways, which drifts and whose times
// are correlated; the 95 % intervals cover 0 in at least 90 of 100 measurements.
func TestOverheadSameCoversZero(t *testing.T) {
	if raceDetector {
		t.Skip("nothing but arithmetic in virtual time, and much of it")
	}
	var median, mean int
	const trials = 100
	for seed := range uint64(trials) {
		d := &drifting{rng: rand.New(rand.NewPCG(seed, 1))}
		serve := d.serve(0)
		c := OverheadConfig{Config: Config{Rate: 20, Duration: 20 * time.Second, Sessions: 1, Concurrency: 4}}
		p := servicePhase(t, overheadInVirtualTime(t, seed+1, c, serve, serve))
		if ci := p.Median.CI95; ci != nil && ci[0] <= 0 && 0 <= ci[1] {
			median++
		}
		if ci := p.Mean.CI95; ci != nil && ci[0] <= 0 && 0 <= ci[1] {
			mean++
		}
	}
	if median < 90 || mean < 90 {
		t.Errorf("the interval of the median covered 0 in %d, that of the mean in %d of %d; want at least 90", median,
			mean, trials)
	}
}

// TestOverheadDelay is the second half of oracle 7: a delay of 5 ms and one of 0 differ by 5 ± 0.2 ms, while both ways
// drift by far more.
func TestOverheadDelay(t *testing.T) {
	if raceDetector {
		t.Skip("nothing but arithmetic in virtual time, and much of it")
	}
	reading := func(seed uint64, delay time.Duration) *OverheadPhase {
		d := &drifting{rng: rand.New(rand.NewPCG(seed, 2))}
		c := OverheadConfig{Config: Config{Duration: 60 * time.Second, Sessions: 1}}
		return servicePhase(t, overheadInVirtualTime(t, seed, c, d.serve(0), d.serve(delay+400*time.Microsecond)))
	}
	for seed := range uint64(3) {
		with, without := reading(seed+1, 5*time.Millisecond), reading(seed+11, 0)
		for _, got := range []struct {
			what string
			ms   float64
		}{{"median", (with.Median.US - without.Median.US) / 1000}, {"mean", (with.Mean.US - without.Mean.US) / 1000}} {
			if math.Abs(got.ms-5) > 0.2 {
				t.Errorf("seed %d: the %ss differ by %.3f ms, want 5 ± 0.2", seed, got.what, got.ms)
			}
		}
		if ci := with.Median.CI95; ci == nil || ci[0] > 5400 || ci[1] < 5400 || ci[1]-ci[0] > 500 {
			t.Errorf("seed %d: interval of the median = %v µs, want a narrow one around 5400", seed, ci)
		}
	}
}

// TestOverheadOrder: a server that is slower when it has rested, as caches are, is so for whichever way comes first; a fixed
// order would show that as a difference of 2 ms.
func TestOverheadOrder(t *testing.T) {
	var last time.Time
	serve := func(now time.Time) time.Time {
		took := time.Millisecond
		if now.Sub(last) > 5*time.Millisecond {
			took += 2 * time.Millisecond
		}
		last = now.Add(took)
		return last
	}
	c := OverheadConfig{Config: Config{Rate: 20, Duration: 20 * time.Second, Sessions: 1, Concurrency: 1}}
	p := servicePhase(t, overheadInVirtualTime(t, 3, c, serve, serve))
	if ci := p.Mean.CI95; math.Abs(p.Mean.US) > 400 || ci[0] > 0 || ci[1] < 0 {
		t.Errorf("mean of the differences %.0f µs with interval %v, want about 0", p.Mean.US, ci)
	}
}

// TestOverheadVerdict: a comparison that could not keep its schedule, or is too short, says so.
func TestOverheadVerdict(t *testing.T) {
	slow := func(now time.Time) time.Time { return now.Add(100 * time.Millisecond) }
	for _, c := range []struct {
		name  string
		rate  float64
		d     time.Duration
		valid bool
	}{
		{"enough lanes", 20, 10 * time.Second, true},
		{"more pairs than lanes can make", 200, 10 * time.Second, false},
		{"too few pairs", 20, 2 * time.Second, false},
	} {
		res := overheadInVirtualTime(t, 1, OverheadConfig{Config: Config{Rate: c.rate, Duration: c.d, Sessions: 1}},
			slow, slow)
		if res.Verdict.Valid != c.valid || (len(res.Verdict.Reasons) == 0) != c.valid {
			t.Errorf("%s: verdict = %+v, want valid = %v", c.name, res.Verdict, c.valid)
		}
	}
}

func TestNameBehind(t *testing.T) {
	for _, c := range []struct {
		listed []string
		want   string
	}{
		{[]string{"a_echo", "echo"}, "echo"},
		{[]string{"a_echo", "b"}, "a_echo"},
		{[]string{"a_echo", "b_echo"}, "echo"},
		{[]string{"other"}, "echo"},
	} {
		var listed []listedTool
		for _, name := range c.listed {
			listed = append(listed, listedTool{name: name})
		}
		if got := nameBehind(listed, "echo"); got != c.want {
			t.Errorf("nameBehind(%v, echo) = %q, want %q", c.listed, got, c.want)
		}
	}
}

func TestHistogramOf(t *testing.T) {
	x := []float64{-1e6, 1e6}
	for i := range 998 {
		x = append(x, float64(i))
	}
	n := 0
	for _, b := range histogramOf(x) {
		n += b.Count
	}
	if n != len(x) {
		t.Errorf("histogramOf counts %d of %d values", n, len(x))
	}
	if got := histogramOf([]float64{3, 3, 3}); len(got) != 1 || got[0].Count != 3 {
		t.Errorf("histogramOf of one value = %+v, want one bar of 3", got)
	}
}

func TestShareInterval(t *testing.T) {
	same := make([]float64, 50)
	if got := shareInterval(same, 20); got == nil || got[0] != 0 || got[1] != 0.06 {
		t.Errorf("shareInterval of nothing lost in 50 sessions = %v, want 0 to 0.06", got)
	}
	if got := shareInterval(same[:5], 20); got != nil {
		t.Errorf("shareInterval of 5 sessions = %v, want none", got)
	}
}

func TestOverheadRefuses(t *testing.T) {
	for _, c := range []struct {
		c    OverheadConfig
		want string
	}{
		{OverheadConfig{}, "give the gateway: --via URL"},
		{OverheadConfig{Via: "http://h/mcp"}, "give what to compare the gateway with (--direct URL), " +
			"or what lies behind it (--replicas N, --upstream-stats URL)"},
		{OverheadConfig{Via: "http://h/mcp", Replicas: 1}, "--replicas is how many there are: at least 2"},
		{OverheadConfig{Via: "ftp://h", Config: Config{URL: "http://h/mcp"}},
			`"ftp://h" is not an http:// or https:// URL`},
	} {
		_, err := MeasureOverhead(context.Background(), c.c)
		if _, ok := err.(*UsageError); !ok || err.Error() != c.want {
			t.Errorf("MeasureOverhead(via %q): got %v, want the usage error %q", c.c.Via, err, c.want)
		}
	}
}
