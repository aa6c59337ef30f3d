package bench

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client/wire"
)

// virtualPeer is a server without sockets, for virtual time: serve gives the moment at which a call that arrives now is
// answered.
type virtualPeer struct {
	mu    sync.Mutex
	serve func(now time.Time) time.Time // called under mu
	calls atomic.Int64

	// answer gives the result of a request; nil answers tools/list and tools/call. Serving takes time except for
	// tools/list.
	answer func(s *virtualSession, method, params string) string
}

func (p *virtualPeer) answerTime(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.serve(now)
}

func (p *virtualPeer) transport() string                 { return "virtual" }
func (p *virtualPeer) caller(ids *atomic.Uint64) *caller { return &caller{ids: ids} }
func (p *virtualPeer) maxInFlight(int, bool) int         { return 100_000 }
func (p *virtualPeer) open(*caller, time.Time) (session, error) {
	return &virtualSession{peer: p}, nil
}

type virtualSession struct {
	peer  *virtualPeer
	heard notices
}

func (s *virtualSession) query(method, _ string, params []byte, _ wire.Header) (*query, error) {
	return &query{method: method, params: slices.Clone(params)}, nil
}

func (s *virtualSession) request(c *caller, q *query, deadline time.Time) error {
	c.build(q.method, q.params)
	c.reply.Sent = time.Now()
	result := []byte(`{"tools":` + echoTool + `}`)
	if q.method != "tools/list" {
		s.peer.calls.Add(1)
		at := s.peer.answerTime(c.reply.Sent)
		if at.After(deadline) {
			time.Sleep(time.Until(deadline))
			c.reply.Done = time.Time{}
			return &wire.Error{Kind: wire.KindTimeout, Op: "read", Err: errors.New("deadline")}
		}
		time.Sleep(time.Until(at))
		result = []byte(`{"content":[]}`)
	}
	if s.peer.answer != nil {
		result = []byte(s.peer.answer(s, q.method, string(q.params)))
	}
	c.reply.FirstByte, c.reply.Done = time.Now(), time.Now()
	c.reply.Message = codec.Message{Kind: codec.KindResponse, ID: c.id, Result: result}
	return nil
}

func (s *virtualSession) notify(*caller, string, []byte, time.Time) error { return nil }
func (s *virtualSession) lost(error) bool                                 { return false }
func (s *virtualSession) close(*caller, time.Time) error                  { return nil }
func (s *virtualSession) abort()                                          {}
func (s *virtualSession) reap()                                           {}
func (s *virtualSession) info() *handshake                                { return &handshake{protocol: Revisions[0]} }
func (s *virtualSession) notices() *notices                               { return &s.heard }

// runVirtual runs a configuration in virtual time.
func runVirtual(t *testing.T, c Config, serve func(now time.Time) time.Time) (res *Result, seen int64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &virtualPeer{serve: serve}
		c.peer, c.pause = p, time.Sleep
		c.InProcess = true // its CPU time is real, and that of the server as well
		var err error
		if res, err = Run(context.Background(), c); err != nil {
			t.Fatal(err)
		}
		seen = p.calls.Load()
	})
	return res, seen
}

// stalling serves in a constant time, and nothing from one moment after the first call to another.
func stalling(service, from, to time.Duration) func(time.Time) time.Time {
	var first time.Time
	return func(now time.Time) time.Time {
		if first.IsZero() {
			first = now
		}
		done := now.Add(service)
		if off := done.Sub(first); off >= from && now.Sub(first) < to {
			return first.Add(to)
		}
		return done
	}
}

func wantNear(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*want {
		t.Errorf("%s = %.0f, want %.0f within %.0f %%", what, got, want, 100*share)
	}
}

// all gives the latency row of all calls.
func all(r *Result) *Latency { return &r.Latency[len(r.Latency)-1] }

// TestOpenLoopStall is oracle 1: in an open loop a stall of one second shows in the percentiles with the weight that it
// has for users, and a closed loop shows one bad sample.
func TestOpenLoopStall(t *testing.T) {
	base := Config{Rate: 200, Duration: 60 * time.Second, Seed: 1}
	res, seen := runVirtual(t, base, stalling(time.Millisecond, 30*time.Second, 31*time.Second))
	if res.Requests.Total != 12000 || res.Requests.OK != 12000 || seen != 12000 || !res.Verdict.Valid {
		t.Errorf("requests = %+v, %d seen, verdict %+v; want 12000 and VALID", res.Requests, seen, res.Verdict)
	}
	d := all(res).Response
	t.Logf("no cap: p99 %d µs, p99.9 %d µs", d.P99US, *d.P999US)
	wantNear(t, "p99 µs", float64(d.P99US), 400e3, 0.05)
	wantNear(t, "p99.9 µs", float64(*d.P999US), 940e3, 0.05)
	wantNear(t, "p50 µs", float64(d.P50US), 1000, 0.01)

	capped := base
	capped.MaxInFlight = 10
	res, _ = runVirtual(t, capped, stalling(time.Millisecond, 30*time.Second, 31*time.Second))
	t.Logf("10 in flight: p99 %d µs", all(res).Response.P99US)
	wantNear(t, "p99 µs with 10 in flight", float64(all(res).Response.P99US), 412e3, 0.05)
	service, err := decodeDist(all(res).Service)
	if err != nil {
		t.Fatal(err)
	}
	if bad := service.TotalCount() - countUpTo(sparse(service), 10_000); bad < 9 || bad > 11 {
		t.Errorf("%d service times were bad, want about 10", bad)
	}
	if !res.Verdict.Valid || res.Requests.Dropped != 0 {
		t.Errorf("verdict with 10 in flight = %+v, %d dropped; want VALID, 0", res.Verdict, res.Requests.Dropped)
	}

	res, _ = runVirtual(t, Config{Concurrency: 1, Duration: 60 * time.Second}, stalling(time.Millisecond, 30*time.Second, 31*time.Second))
	closed, err := decodeDist(all(res).Response)
	if err != nil {
		t.Fatal(err)
	}
	if bad := closed.TotalCount() - countUpTo(sparse(closed), 10_000); bad != 1 {
		t.Errorf("the closed loop has %d bad samples, want 1", bad)
	}
}

// TestStallCase is the case load-stall-shows-in-percentiles.
func TestStallCase(t *testing.T) {
	res, _ := runVirtual(t, Config{Rate: 100, Duration: 3 * time.Second}, stalling(time.Millisecond, time.Second, 2*time.Second))
	d := all(res).Response
	if d.Count != 300 || d.P50US > 50e3 || d.P90US < 600e3 || d.P90US > 800e3 || d.P99US < 950e3 || d.MaxUS < 990e3 {
		t.Errorf("response = %+v, want 300 samples, p50 < 50 ms, p90 600 to 800 ms, p99 > 950 ms, max > 990 ms", d)
	}
}

// TestOverflow is the cases of saturation: what is due is begun or dropped, and never disappears.
func TestOverflow(t *testing.T) {
	slow := func(now time.Time) time.Time { return now.Add(100 * time.Millisecond) }
	for _, tt := range []struct {
		name        string
		c           Config
		scheduled   int64
		least, most int64 // begun
		valid       bool
	}{
		{"wait", Config{Rate: 100, Duration: 2 * time.Second, MaxInFlight: 1}, 200, 20, 21, false},
		{"skip", Config{Rate: 1000, Duration: time.Second, MaxInFlight: 10, Overflow: Skip}, 1000, 100, 110, false},
		{"wait, no end", Config{Rate: 100, Requests: 50, MaxInFlight: 1}, 50, 50, 50, true},
		{"no cap", Config{Rate: 1000, Duration: time.Second}, 1000, 1000, 1000, true},
	} {
		res, seen := runVirtual(t, tt.c, slow)
		q := &res.Requests
		if q.Total < tt.least || q.Total > tt.most || q.Total+q.Dropped != tt.scheduled || seen != q.Total {
			t.Errorf("%s: %d begun, %d dropped, %d seen; want %d to %d begun, %d in all", tt.name, q.Total, q.Dropped, seen, tt.least, tt.most, tt.scheduled)
		}
		if res.Verdict.Valid != tt.valid {
			t.Errorf("%s: verdict = %+v, want valid %v", tt.name, res.Verdict, tt.valid)
		}
		if d := all(res).Service; d.P50US < 95e3 || d.P50US > 150e3 {
			t.Errorf("%s: service p50 = %d µs, want 95 to 150 ms", tt.name, d.P50US)
		}
	}
	res, _ := runVirtual(t, Config{Rate: 100, Requests: 50, MaxInFlight: 1}, slow)
	if got := all(res).Response.MaxUS; got < 4.4e6 { // the last is due at 0.49 s and answered at 5 s
		t.Errorf("the wait for room is not in the response time: max %d µs, want 4.5 s", got)
	}
	if res.Verdict.LagP99US > 1000 {
		t.Errorf("the wait for room counts as lag of the generator: %d µs", res.Verdict.LagP99US)
	}
}

// TestTimeoutsAndDrain shows that calls in flight at the end are seen out, and that a timeout is one only after its time.
func TestTimeoutsAndDrain(t *testing.T) {
	slow := func(now time.Time) time.Time { return now.Add(3 * time.Second) }
	res, _ := runVirtual(t, Config{Rate: 10, Duration: 2 * time.Second, Timeout: 4 * time.Second}, slow)
	if res.Requests.OK != 20 || res.Requests.Total != 20 {
		t.Errorf("requests = %+v, want 20 ok", res.Requests)
	}
	if res.Verdict.CompletedRPS != 0 || res.Verdict.DeliveredRPS != 10 {
		t.Errorf("verdict = %+v, want delivered 10/s and nothing completed in the window", res.Verdict)
	}
	res, _ = runVirtual(t, Config{Rate: 10, Duration: 2 * time.Second, Timeout: time.Second}, slow)
	if res.Requests.Timeout != 20 || res.Requests.Total != 20 || all(res).Response.Count != 0 {
		t.Errorf("requests = %+v, want 20 timeouts and no latency of a success", res.Requests)
	}
	if d := res.Requests.Outcomes["timeout"]; d == nil || d.Count != 20 || d.P50US < 999e3 || d.P50US > 1001e3 {
		t.Errorf("distribution of the timeouts = %+v, want 20 of 1 s", d)
	}
}

// TestWarmupIsLeftOut counts the calls of the measured window only.
func TestWarmupIsLeftOut(t *testing.T) {
	quick := func(now time.Time) time.Time { return now.Add(10 * time.Millisecond) }
	for _, tt := range []struct {
		name        string
		c           Config
		total, warm int64
	}{
		{"open", Config{Rate: 100, Duration: 2 * time.Second, Warmup: time.Second}, 200, 100},
		{"open, number", Config{Rate: 100, Requests: 30, Warmup: time.Second}, 30, 100},
		{"closed", Config{Concurrency: 2, Duration: 2 * time.Second, Warmup: time.Second}, 400, 200},
		{"closed, number", Config{Concurrency: 2, Requests: 30, Warmup: time.Second}, 30, 200},
	} {
		res, seen := runVirtual(t, tt.c, quick)
		q := &res.Requests
		if q.Total != tt.total || q.Warmup != tt.warm || seen != tt.total+tt.warm || all(res).Response.Count != tt.total {
			t.Errorf("%s: total %d, warm-up %d, seen %d, measured %d; want %d and %d", tt.name, q.Total, q.Warmup, seen, all(res).Response.Count, tt.total, tt.warm)
		}
		if l := res.LittlesLaw; l == nil || !l.OK {
			t.Errorf("%s: Little's law = %+v, want it to hold", tt.name, l)
		}
	}
}

// TestIntervals sums up to the whole.
func TestIntervals(t *testing.T) {
	res, _ := runVirtual(t, Config{Rate: 100, Duration: 7 * time.Second}, func(now time.Time) time.Time { return now.Add(500 * time.Microsecond) })
	if len(res.Intervals) != 7 {
		t.Fatalf("intervals = %+v, want 7", res.Intervals)
	}
	for i, iv := range res.Intervals {
		if iv.TS != float64(i) || iv.RPS < 98 || iv.RPS > 102 || iv.Errors != 0 || iv.P50US < 500 || iv.P50US > 501 {
			t.Errorf("interval %d = %+v, want t %d, 100/s, 500 µs", i, iv, i)
		}
	}
}

// TestMM1 is oracle 2: the queue M/M/1 has a mean of 25 ms and a p99 of 115 ms at these rates.
func TestMM1(t *testing.T) {
	if raceDetector {
		t.Skip("too many calls")
	}
	const mu, lambda = 200.0, 160.0
	rng := rand.New(rand.NewPCG(1, 99))
	var free time.Time
	res, _ := runVirtual(t, Config{Rate: lambda, Arrivals: Poisson, Seed: 4, Duration: 4 * time.Minute, Warmup: 10 * time.Second},
		func(now time.Time) time.Time {
			if free.Before(now) {
				free = now
			}
			free = free.Add(time.Duration(rng.ExpFloat64() / mu * float64(time.Second)))
			return free
		})
	d := all(res).Response
	t.Logf("M/M/1: mean %.0f µs, p99 %d µs, interval %v", d.MeanUS, d.P99US, d.P99CI95US)
	wantNear(t, "mean µs", d.MeanUS, 25_000, 0.15)
	wantNear(t, "p99 µs", float64(d.P99US), 115_129, 0.25)
	if ci := d.P99CI95US; ci == nil || ci[0] >= d.P99US || ci[1] <= d.P99US {
		t.Errorf("interval of p99 = %v, want one around %d", ci, d.P99US)
	}
	if !res.Verdict.Valid || !res.LittlesLaw.OK {
		t.Errorf("verdict %+v, Little's law %+v; want both good", res.Verdict, res.LittlesLaw)
	}
}

// TestIntervalCoverage is the other half of oracle 2: over ten minutes of the same queue the 95 % interval of p99 covers
// the truth in at least 90 of 100 seeds, although the samples are correlated.
func TestIntervalCoverage(t *testing.T) {
	if raceDetector {
		t.Skip("nothing but arithmetic")
	}
	const mu, lambda, truth, minutes = 200.0, 160.0, 115_129, 10
	covered := 0
	hists := make([]*hdr.Histogram, intervalBlocks)
	for i := range hists {
		hists[i] = newHist()
	}
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 99))
		for i := range hists {
			hists[i].Reset()
		}
		wait, now := 0.0, -10.0 // the first ten seconds are discarded
		for {
			gap := rng.ExpFloat64() / lambda
			now += gap
			wait = max(0, wait-gap)
			if now >= minutes*60 {
				break
			}
			wait += rng.ExpFloat64() / mu
			if now >= 0 {
				record(hists[int(now/(minutes*60)*intervalBlocks)], time.Duration(wait*float64(time.Second)))
			}
		}
		blocks := make([][]bucket, intervalBlocks)
		for i, h := range hists {
			blocks[i] = sparse(h)
		}
		if ci := blockInterval(blocks, 0.99); ci != nil && ci[0] <= truth && truth <= ci[1] {
			covered++
		}
	}
	t.Logf("covered in %d of 100 seeds", covered)
	if covered < 90 {
		t.Errorf("the interval of p99 covers the truth in %d of 100 seeds, want at least 90", covered)
	}
}
