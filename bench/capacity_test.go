package bench

import (
	"context"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var fullOracles = flag.Bool("full-oracles", false, "run the oracles of capacity at their full length, which takes minutes")

// boundedPeer is a virtual peer that refuses sessions beyond a number.
type boundedPeer struct {
	virtualPeer
	most         int
	mu           sync.Mutex
	open_, total int // guarded by mu
}

func (p *boundedPeer) open(*caller, time.Time) (session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open_ == p.most {
		return nil, errors.New("full")
	}
	p.open_++
	p.total++
	return &boundedSession{virtualSession{peer: &p.virtualPeer}, p}, nil
}

type boundedSession struct {
	virtualSession
	of *boundedPeer
}

func (s *boundedSession) close(*caller, time.Time) error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.open_--
	return nil
}

// inVirtualTime looks for a capacity, or sweeps, in virtual time.
func inVirtualTime(t *testing.T, do func(context.Context, CapacityConfig) (*Result, error), c CapacityConfig, p peer) (res *Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c.peer, c.InProcess = p, true // its CPU time is real, and that of the server as well
		if c.pause == nil {
			c.pause = time.Sleep
		}
		if c.Seed == 0 {
			c.Seed = 1
		}
		begin := time.Now()
		var err error
		if res, err = do(context.Background(), c); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s (%s, %d steps)", res.Capacity.Answer, time.Since(begin).Round(time.Second), len(res.Capacity.Steps))
		for _, s := range res.Capacity.Steps {
			t.Logf("  %-8s %8.1f/s %4d users %5.1f s %-5v %s", s.Phase, s.RateRPS, s.Users, s.HoldS, s.OK, s.Why)
		}
	})
	return res
}

// tokenBucket lets rate calls a second through, first in first out.
func tokenBucket(rate float64) *virtualPeer {
	var last time.Time
	gap := time.Duration(float64(time.Second) / rate)
	return &virtualPeer{serve: func(now time.Time) time.Time {
		if last = last.Add(gap); last.Before(now) {
			last = now
		}
		return last
	}}
}

// oneServer has exponential service times: with Poisson arrivals the queue M/M/1.
func oneServer(mu float64, seed uint64) *virtualPeer {
	rng := rand.New(rand.NewPCG(seed, 99))
	var free time.Time
	return &virtualPeer{serve: func(now time.Time) time.Time {
		if free.Before(now) {
			free = now
		}
		free = free.Add(time.Duration(rng.ExpFloat64() / mu * float64(time.Second)))
		return free
	}}
}

// TestCapacityTokenBucket is the exact half of oracle 4, for rates that the search cannot hit by chance.
func TestCapacityTokenBucket(t *testing.T) {
	if raceDetector {
		t.Skip("too many calls; TestCapacityEnds takes the same ways")
	}
	for _, rate := range []float64{91.7, 200} {
		res := inVirtualTime(t, FindCapacity, CapacityConfig{Config: Config{Thresholds: []string{"p(99)<100ms"}}, Step: 2 * time.Second}, tokenBucket(rate))
		c := res.Capacity
		if math.Abs(c.RateRPS-rate) > 0.015*rate || !c.Confirmed || c.LimitedBy != limitedServer || c.TimedOut {
			t.Errorf("bucket of %g/s: capacity %+v, want within 1.5 %%, confirmed, limited by the server", rate, c)
		}
		if res.Conditions.RateRPS != c.RateRPS || len(res.Thresholds) != 2 || !res.Thresholds[0].OK || !res.Thresholds[1].OK || !res.Verdict.Valid {
			t.Errorf("the result is that of %g/s with %+v; want that of %g/s, which holds", res.Conditions.RateRPS, res.Thresholds, c.RateRPS)
		}
		if res.Sessions.Opened != 10 || res.Sessions.Closed != 10 {
			t.Errorf("sessions = %+v, want 10 that were kept over all steps", res.Sessions)
		}
	}
}

// TestCapacityQueue is the other half: λ* = µ − ln 100 / 20 ms = 769.7/s. The short form has short steps and a looser check.
func TestCapacityQueue(t *testing.T) {
	if raceDetector {
		t.Skip("too many calls")
	}
	const mu, limit = 1000, 0.02
	c := CapacityConfig{Config: Config{Arrivals: Poisson, Thresholds: []string{"p(99)<20ms"}}, Step: 3 * time.Second}
	share := 0.1
	if *fullOracles {
		c.Step, c.MaxTime, share = 120*time.Second, 2*time.Hour, 0.03
	}
	want := mu - math.Log(100)/limit
	res := inVirtualTime(t, FindCapacity, c, oneServer(mu, 1))
	if got := res.Capacity.RateRPS; math.Abs(got-want) > share*want || !res.Capacity.Confirmed {
		t.Errorf("capacity %.1f/s, confirmed %v; want %.1f/s within %.0f %%", got, res.Capacity.Confirmed, want, 100*share)
	}
}

// slots is a server with so many places that each take a constant time.
func slots(places int, service time.Duration) *virtualPeer {
	free := make([]time.Time, places)
	return &virtualPeer{serve: func(now time.Time) time.Time {
		first := 0
		for i := range free {
			if free[i].Before(free[first]) {
				first = i
			}
		}
		if free[first].Before(now) {
			free[first] = now
		}
		free[first] = free[first].Add(service)
		return free[first]
	}}
}

// TestCapacityUsers: four places of 50 ms hold N users without a think time when N · 12.5 ms < 110 ms, and about 22 with
// 200 ms of thinking.
func TestCapacityUsers(t *testing.T) {
	if raceDetector {
		t.Skip("too many calls; TestCapacityEnds takes the same ways")
	}
	for _, tt := range []struct {
		think       time.Duration
		least, most int
	}{{0, 8, 8}, {200 * time.Millisecond, 19, 24}} {
		c := CapacityConfig{Find: FindUsers, Config: Config{Thresholds: []string{"p(99)<110ms"}, ThinkTime: Think{Mean: tt.think}}, Step: time.Second, MaxTime: 10 * time.Minute}
		res := inVirtualTime(t, FindCapacity, c, slots(4, 50*time.Millisecond))
		got := res.Capacity
		if got.Users < tt.least || got.Users > tt.most || got.Sessions != got.Users || !got.Confirmed {
			t.Errorf("think %s: capacity %+v, want %d to %d users", tt.think, got, tt.least, tt.most)
		}
		if x := 80.0; tt.think == 0 && math.Abs(got.RateRPS-x) > 0.05*x {
			t.Errorf("think %s: %.1f calls a second, want about %.1f", tt.think, got.RateRPS, x)
		}
	}
}

// TestCapacitySessions finds the limit of a server exactly where it is low, and leaves nothing open.
func TestCapacitySessions(t *testing.T) {
	p := &boundedPeer{virtualPeer: virtualPeer{serve: func(now time.Time) time.Time { return now.Add(time.Millisecond) }}, most: 37}
	res := inVirtualTime(t, FindCapacity, CapacityConfig{Find: FindSessions, Config: Config{Rate: 50}}, p)
	if c := res.Capacity; c.Sessions != 37 || !c.Confirmed || c.LimitedBy != limitedServer || c.FailedAt != 38 {
		t.Errorf("capacity = %+v, want 37 sessions, 38 failed", c)
	}
	if p.open_ != 0 || res.Sessions.Opened != res.Sessions.Closed || res.Sessions.Opened != int64(p.total) {
		t.Errorf("%d sessions left open, counted %+v of %d; want all closed", p.open_, res.Sessions, p.total)
	}
}

// TestCapacityGenerator: where the pacer oversleeps at high rates, the answer is a lower bound that blames the generator.
func TestCapacityGenerator(t *testing.T) {
	if raceDetector {
		t.Skip("too many calls; TestCapacityEnds takes the same ways")
	}
	late := func(d time.Duration) {
		if d < 5*time.Millisecond {
			d += 120 * time.Millisecond
		}
		time.Sleep(d)
	}
	p := &virtualPeer{serve: func(now time.Time) time.Time { return now.Add(5 * time.Millisecond) }}
	res := inVirtualTime(t, FindCapacity, CapacityConfig{Config: Config{pause: late}, Step: time.Second}, p)
	c := res.Capacity
	if c.LimitedBy != limitedSelf || c.RateRPS < 180 || c.RateRPS > 200 || !strings.HasPrefix(c.Answer, "At least ") || !strings.Contains(c.Answer, "limited by the generator") {
		t.Errorf("capacity = %+v, want at least about 200/s, limited by the generator", c)
	}
}

// TestCapacityEnds: nothing holds; no limit within the time; every call fails; a single caller gets nothing.
func TestCapacityEnds(t *testing.T) {
	after := func(d time.Duration) *virtualPeer {
		return &virtualPeer{serve: func(now time.Time) time.Time { return now.Add(d) }}
	}
	res := inVirtualTime(t, FindCapacity, CapacityConfig{}, after(200*time.Millisecond))
	if c := res.Capacity; c.RateRPS != 0 || c.LimitedBy != limitedServer || !strings.HasPrefix(c.Answer, "No rate meets p(99)<100ms and errors<1%") {
		t.Errorf("nothing holds: capacity = %+v", c)
	}
	res = inVirtualTime(t, FindCapacity, CapacityConfig{MaxTime: 30 * time.Second}, tokenBucket(100))
	if c := res.Capacity; !c.TimedOut || c.RateRPS == 0 || c.RateRPS > 102 || !strings.Contains(c.Answer, "the time was over") {
		t.Errorf("30 s: capacity = %+v, want a lower bound and the word that the time was over", c)
	}
	synctest.Test(t, func(t *testing.T) {
		c := CapacityConfig{Config: Config{peer: after(time.Minute), pause: time.Sleep, InProcess: true}}
		if res, err := FindCapacity(t.Context(), c); err == nil || !strings.Contains(err.Error(), "a single caller got no answer") {
			t.Errorf("all time out: FindCapacity = %v, %v; want an error", res, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		steps := 0
		c = CapacityConfig{Config: Config{peer: tokenBucket(300), pause: time.Sleep, InProcess: true}, OnStep: func(CapacityStep) {
			if steps++; steps == 3 {
				cancel()
			}
		}}
		res, err := FindCapacity(ctx, c)
		if err != nil || !res.Interrupted || len(res.Capacity.Steps) < 3 {
			t.Errorf("interrupted: FindCapacity = %+v, %v; want the steps until then", res, err)
		}
	})
	for _, c := range []CapacityConfig{
		{Find: "colour"}, {Config: Config{Concurrency: 3}}, {Config: Config{ThinkTime: Think{Mean: 1}}},
		{Step: -1}, {Config: Config{Thresholds: []string{"p99"}}}, {Config: Config{Users: 3}},
	} {
		c.peer = after(0)
		var u *UsageError
		if _, err := FindCapacity(t.Context(), c); !errors.As(err, &u) {
			t.Errorf("FindCapacity(%+v) = %v, want a UsageError", c, err)
		}
	}
}

// TestCapacityNoise: a stall of two seconds, in whichever step it falls, does not move the answer.
func TestCapacityNoise(t *testing.T) {
	if raceDetector {
		t.Skip("too many calls; TestCapacityEnds takes the same ways")
	}
	for _, at := range []time.Duration{4 * time.Second, 12 * time.Second} {
		bucket, begin := tokenBucket(150), time.Time{}
		inner := bucket.serve
		bucket.serve = func(now time.Time) time.Time {
			if begin.IsZero() {
				begin = now
			}
			done := inner(now)
			if stall := begin.Add(at); now.After(stall) && done.Before(stall.Add(2*time.Second)) {
				return stall.Add(2 * time.Second)
			}
			return done
		}
		res := inVirtualTime(t, FindCapacity, CapacityConfig{Step: 2 * time.Second}, bucket)
		if got := res.Capacity.RateRPS; math.Abs(got-150) > 0.02*150 {
			t.Errorf("stall at %s: capacity %.1f/s, want 150/s within 2 %%", at, got)
		}
	}
}

// scalable is a server whose service time depends on the number of calls in it, as the scalability law says.
func scalable(lambda, sigma, kappa, noise float64) *virtualPeer {
	rng := rand.New(rand.NewPCG(1, 5))
	var inside []time.Time
	return &virtualPeer{serve: func(now time.Time) time.Time {
		n := 1
		for i := 0; i < len(inside); {
			if inside[i].After(now) {
				n++
				i++
				continue
			}
			inside[i] = inside[len(inside)-1]
			inside = inside[:len(inside)-1]
		}
		c := float64(n)
		s := (1 + sigma*(c-1) + kappa*c*(c-1)) / lambda * (1 + noise*rng.NormFloat64())
		done := now.Add(time.Duration(s * float64(time.Second)))
		inside = append(inside, done)
		return done
	}}
}

// TestSweep is oracle 5: σ, κ and λ come back within 5 % from a sweep of a server that follows the law.
func TestSweep(t *testing.T) {
	if raceDetector {
		t.Skip("too many calls; TestCapacityEnds takes the same ways")
	}
	c := CapacityConfig{Levels: []int{1, 2, 4, 8, 16, 32, 64}, Step: 10 * time.Second}
	res := inVirtualTime(t, Sweep, c, scalable(50, 0.05, 0.002, 0.05))
	u := res.Capacity.USL
	if u == nil || u.NMax == nil {
		t.Fatalf("no fit: %+v", res.Capacity)
	}
	for _, v := range []struct {
		name      string
		got, want float64
	}{{"λ", u.Lambda, 50}, {"σ", u.Sigma, 0.05}, {"κ", u.Kappa, 0.002}, {"N_max", *u.NMax, math.Sqrt(0.95 / 0.002)}} {
		if math.Abs(v.got-v.want) > 0.05*v.want {
			t.Errorf("%s = %.4g, want %.4g within 5 %%", v.name, v.got, v.want)
		}
	}
	if len(u.Warnings) > 0 || u.Extrapolated {
		t.Errorf("warnings %v, extrapolated %v; want none", u.Warnings, u.Extrapolated)
	}
	if got := res.Capacity.Users; got != 16 {
		t.Errorf("%d callers meet p(99)<100ms, want 16 of the levels tried", got)
	}
	var rungs []int
	for _, rung := range res.Capacity.Ladder {
		rungs = append(rungs, rung.Level)
	}
	if want := []int{0, 2, 16, 16}; !slices.Equal(rungs, want) {
		t.Errorf("the ladder holds %v callers, want %v", rungs, want)
	}
	var us *UsageError
	if _, err := Sweep(t.Context(), CapacityConfig{Levels: []int{1, 2, 4, 8, 8, 16}}); !errors.As(err, &us) || !strings.Contains(err.Error(), "at least 6 different levels, and got 5") {
		t.Errorf("Sweep of five levels = %v, want a refusal", err)
	}
}

// TestGrowth tells a backlog from the noise of a queue.
func TestGrowth(t *testing.T) {
	series := func(f func(at float64) float64) []flightSample {
		var out []flightSample
		for i := range 100 {
			out = append(out, flightSample{float64(i) / 10, f(float64(i) / 10)})
		}
		return out
	}
	rng := rand.New(rand.NewPCG(1, 6))
	for _, tt := range []struct {
		name        string
		samples     []flightSample
		least, most float64
	}{
		{"constant", series(func(float64) float64 { return 7 }), 0, 0},
		{"noise", series(func(float64) float64 { return 7 + 3*rng.NormFloat64() }), 0, 0},
		{"falls", series(func(at float64) float64 { return 100 - 5*at }), 0, 0},
		{"grows", series(func(at float64) float64 { return 2 * at }), 1.99, 2.01},
		{"grows with noise", series(func(at float64) float64 { return 10 + 2*at + rng.NormFloat64() }), 1.8, 2.2},
		{"a peak", series(func(at float64) float64 { return 50 * math.Exp(-(at-5)*(at-5)) }), 0, 0},
		{"too few", series(func(at float64) float64 { return at })[:19], 0, 0},
	} {
		got, sure := growth(tt.samples)
		if sure != (tt.most > 0) || sure && (got < tt.least || got > tt.most) {
			t.Errorf("%s: growth = %g, %v; want %g to %g", tt.name, got, sure, tt.least, tt.most)
		}
	}
}

// TestKeeperIDs: sessions that outlive a run never see an id twice.
func TestKeeperIDs(t *testing.T) {
	k := newKeeper(tokenBucket(1000))
	a, b := k.caller(&atomic.Uint64{}), k.caller(&atomic.Uint64{})
	a.build("ping", nil)
	b.build("ping", nil)
	if string(a.id) == string(b.id) {
		t.Errorf("two callers of two runs use the id %s, want different ones", a.id)
	}
}

// TestCapacityAsksForRevision: the sessions of a search ask for the revision that those of a run ask for. Servers answer an
// empty one with what they like.
func TestCapacityAsksForRevision(t *testing.T) {
	for _, tt := range []struct{ asked, want string }{{"", Revisions[0]}, {"2025-06-18", "2025-06-18"}} {
		c := CapacityConfig{Config: Config{URL: "http://127.0.0.1:1/mcp", Protocol: tt.asked}, Find: FindRate}
		if err := c.prepare(); err != nil || c.Protocol != tt.want {
			t.Errorf("prepare with protocol %q: got %q, %v; want %q", tt.asked, c.Protocol, err, tt.want)
		}
	}
}

// TestShowsMore: of the results of a level, the one that the answer is quoted with.
func TestShowsMore(t *testing.T) {
	result := func(valid bool, seconds float64) *Result {
		return &Result{Verdict: Verdict{Valid: valid}, Conditions: Conditions{DurationS: seconds}}
	}
	for _, tt := range []struct {
		later, earlier *Result
		want           bool
	}{
		{result(true, 2), result(false, 10), true},
		{result(false, 10), result(true, 2), false},
		{result(true, 10), result(true, 5), true},
		{result(true, 5), result(true, 5), true},
		{result(true, 2), result(true, 5), false},
	} {
		if got := showsMore(tt.later, tt.earlier); got != tt.want {
			t.Errorf("showsMore(%v %g s, %v %g s) = %v, want %v", tt.later.Verdict.Valid, tt.later.Conditions.DurationS,
				tt.earlier.Verdict.Valid, tt.earlier.Conditions.DurationS, got, tt.want)
		}
	}
}
