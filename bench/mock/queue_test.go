package mock

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// epoch is an instant of virtual time.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func ms(f float64) time.Duration { return time.Duration(f * float64(time.Millisecond)) }

// TestDepartures: the formulas on arrivals that can be followed by hand, in milliseconds.
func TestDepartures(t *testing.T) {
	for _, c := range []struct {
		name   string
		model  Model
		arrive []float64
		depart []float64
	}{
		{"no model", Model{}, []float64{0, 5, 5}, []float64{0, 5, 5}},
		{"constant, unlimited", Model{Service: Service{Mean: ms(10)}}, []float64{0, 1, 2}, []float64{10, 11, 12}},
		{"one server", Model{Service: Service{Mean: ms(10)}, Servers: 1}, []float64{0, 1, 2, 50}, []float64{10, 20, 30, 60}},
		{"two servers", Model{Service: Service{Mean: ms(10)}, Servers: 2}, []float64{0, 1, 2, 3, 4}, []float64{10, 11, 20, 21, 30}},
		{"arrivals out of order", Model{Service: Service{Mean: ms(10)}, Servers: 1}, []float64{5, 4}, []float64{15, 25}},
		{"token bucket", Model{TokenBucket: 100}, []float64{0, 0, 0, 5, 100, 101}, []float64{0, 10, 20, 30, 100, 110}},
		{"bucket, then service", Model{TokenBucket: 100, Service: Service{Mean: ms(1)}}, []float64{0, 0}, []float64{1, 11}},
		{"bucket, then a slower server", Model{TokenBucket: 100, Service: Service{Mean: ms(15)}, Servers: 1}, []float64{0, 0, 0}, []float64{15, 30, 45}},
		{"stall", Model{Service: Service{Mean: ms(1)}, StallAt: ms(100), StallFor: ms(50)},
			[]float64{0, 98, 99, 99.5, 120, 149.5, 150}, []float64{1, 99, 150, 150, 150, 150.5, 151}},
		{"stall from the first call", Model{StallFor: ms(50)}, []float64{7, 8, 57, 58}, []float64{57, 57, 57, 58}},
		{"work goes on in a stall", Model{Service: Service{Mean: ms(100)}, StallAt: ms(50), StallFor: ms(10)}, []float64{0, 20}, []float64{100, 120}},
		{"a stalled server is not free", Model{Service: Service{Mean: ms(10)}, Servers: 1, StallAt: ms(15), StallFor: ms(85)},
			[]float64{0, 8, 9}, []float64{10, 100, 110}},
		{"scalability law", Model{USL: USL{Lambda: 100, Sigma: 0.1, Kappa: 0.05}}, // S = 10, 12, 15 ms for n = 1, 2, 3
			[]float64{0, 1, 2, 11, 100}, []float64{10, 13, 17, 26, 110}},
	} {
		q := NewQueue(c.model)
		var got []float64
		for _, a := range c.arrive {
			d := q.Arrive(epoch.Add(ms(a))).Sub(epoch)
			got = append(got, float64(d.Round(time.Microsecond))/float64(time.Millisecond))
		}
		if !slices.Equal(got, c.depart) {
			t.Errorf("%s: arrivals %v: got departures %v, want %v", c.name, c.arrive, got, c.depart)
		}
		if err := c.model.Check(); err != nil {
			t.Errorf("%s: Check: %v", c.name, err)
		}
	}
}

// near fails unless got is within a fraction of want.
func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within*want) {
		t.Errorf("%s: got %.6g, want %.6g ± %.2g %%", what, got, want, 100*within)
	}
}

// times offers arrivals with gaps and gives the times in the system, sorted, in seconds.
func times(q *Queue, n int, gap func() time.Duration) []float64 {
	var out []float64
	at := epoch
	for range n {
		out = append(out, q.Arrive(at).Sub(at).Seconds())
		at = at.Add(gap())
	}
	slices.Sort(out)
	return out
}

func mean(x []float64) (sum float64) {
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func quantile(sorted []float64, p float64) float64 { return sorted[int(p*float64(len(sorted)))] }

// TestQueueingTheory holds simulated queues against what is known of them: the time in an M/M/1 queue is exponential
// with rate µ − λ; in M/M/c the wait has a mean of C(c, a)/(cµ − λ), with Erlang's C; in M/D/1 the time in the system
// has a mean of S + λS²/(2(1 − λS)).
func TestQueueingTheory(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	poisson := func(rate float64) func() time.Duration {
		return func() time.Duration { return time.Duration(r.ExpFloat64() / rate * 1e9) }
	}
	const n = 500_000

	q := NewQueue(Model{Service: Service{Mean: ms(5), Exponential: true}, Servers: 1, Seed: 3})
	x := times(q, n, poisson(160))
	near(t, "M/M/1 mean", mean(x), 1/(200.0-160), 0.03)
	near(t, "M/M/1 p99", quantile(x, 0.99), math.Log(100)/(200-160), 0.05)

	q = NewQueue(Model{Service: Service{Mean: ms(5), Exponential: true}, Servers: 2, Seed: 4})
	x = times(q, n, poisson(320))
	near(t, "M/M/2 mean", mean(x), 0.005/(1-0.8*0.8), 0.03) // S/(1 − ρ²)

	q = NewQueue(Model{Service: Service{Mean: ms(5)}, Servers: 1})
	x = times(q, n, poisson(160))
	near(t, "M/D/1 mean", mean(x), 0.005+160*0.005*0.005/(2*(1-0.8)), 0.03)

	q = NewQueue(Model{Service: Service{Mean: ms(5), Exponential: true}, Seed: 5})
	x = times(q, n/4, poisson(1000))
	near(t, "exponential mean", mean(x), 0.005, 0.01)
	near(t, "exponential p99", quantile(x, 0.99), 0.005*math.Log(100), 0.02)
}

// TestSeeds: the same seed gives the same times, another seed others.
func TestSeeds(t *testing.T) {
	draw := func(seed uint64) string {
		q := NewQueue(Model{Service: Service{Mean: ms(5), Exponential: true}, Seed: seed})
		return fmt.Sprint(times(q, 10, func() time.Duration { return ms(1) }))
	}
	first, again, other := draw(1), draw(1), draw(2)
	if again != first {
		t.Errorf("draw(1) again: got %s, want %s", again, first)
	}
	if other == first {
		t.Errorf("draw(2): got %s, want something else than draw(1)", other)
	}
}

// TestStallTail is the first oracle of the load generator: 200 calls a second for 60 s, and a stall of 1 s after 30 s.
// P(T > x) = (1 s − x)/60 s, so p99 is 400 ms and p99.9 is 940 ms.
func TestStallTail(t *testing.T) {
	q := NewQueue(Model{Service: Service{Mean: ms(1)}, StallAt: 30 * time.Second, StallFor: time.Second})
	x := times(q, 12_000, func() time.Duration { return ms(5) })
	near(t, "p99", quantile(x, 0.99), 0.400, 0.02)
	near(t, "p99.9", quantile(x, 0.999), 0.940, 0.02)
	near(t, "p50", quantile(x, 0.5), 0.001, 0.001)
	near(t, "max", x[len(x)-1], 1, 0.002)
}

// TestStallTailWithCap: with at most 10 calls in flight the backlog drains at 10 a millisecond, so a call that is due u
// after the begin of the stall waits 1 s − u + u·200/10 ms from then on, and p99 is 412 ms.
func TestStallTailWithCap(t *testing.T) {
	q := NewQueue(Model{Service: Service{Mean: ms(1)}, StallAt: 30 * time.Second, StallFor: time.Second})
	var x []float64
	slots := make(instants, 10)
	bad := 0
	for i := range 12_000 {
		due := time.Duration(i) * ms(5)
		k := 0
		for j := range slots {
			if slots[j] < slots[k] {
				k = j
			}
		}
		sent := max(due, slots[k])
		slots[k] = q.Arrive(epoch.Add(sent)).Sub(epoch)
		x = append(x, (slots[k] - due).Seconds())
		if slots[k]-sent > ms(2) {
			bad++
		}
	}
	slices.Sort(x)
	near(t, "p99", quantile(x, 0.99), 0.412, 0.02)
	if bad < 9 || bad > 11 {
		t.Errorf("long service times: got %d, want about 10", bad)
	}
}

// TestTokenBucketRate: more than is let through departs at exactly the rate, and what fits is not held up.
func TestTokenBucketRate(t *testing.T) {
	q := NewQueue(Model{TokenBucket: 300})
	at, last := epoch, time.Time{}
	for i := range 3001 {
		d := q.Arrive(at)
		if gap := d.Sub(last); i > 0 && gap != 3333333 {
			t.Fatalf("gap before departure %d: got %v, want 3.333333ms", i, gap)
		}
		last, at = d, at.Add(ms(1))
	}
	near(t, "seconds for 3,000 tokens", last.Sub(epoch).Seconds(), 10, 1e-6)

	x := times(NewQueue(Model{TokenBucket: 300}), 3000, func() time.Duration { return time.Second / 299 })
	if got := x[len(x)-1]; got != 0 {
		t.Errorf("longest wait at 299/s: got %v s, want 0", got)
	}
}

// TestUSLClosedLoop: n callers without think time see the throughput of the law, with a little think time what the
// formula of the closed loop says.
func TestUSLClosedLoop(t *testing.T) {
	u := USL{Lambda: 40, Sigma: 0.06, Kappa: 0.002}
	for _, n := range []int{1, 2, 4, 8, 16, 32} {
		for _, think := range []time.Duration{0, ms(0.2)} {
			k := float64(n)
			want := 40 * k / (1 + 0.06*(k-1) + 0.002*k*(k-1))
			if got := u.Throughput(n); math.Abs(got-want) > 1e-4*want {
				t.Errorf("Throughput(%d): got %v, want %v", n, got, want)
			}
			within := 0.001 + think.Seconds()*40*1.5
			near(t, fmt.Sprintf("X(%d) with think time %v", n, think), closedLoop(Model{USL: u}, n, think), want, within)
		}
	}
}

// closedLoop gives the calls a second that n callers complete, measured when they have settled.
func closedLoop(m Model, n int, think time.Duration) float64 {
	q := NewQueue(m)
	next := make(instants, n) // when each caller sends its next call
	const settle, window = 10 * time.Second, 200 * time.Second
	count := 0
	for {
		k := 0
		for i := range next {
			if next[i] < next[k] {
				k = i
			}
		}
		if next[k] >= settle+window {
			return float64(count) / window.Seconds()
		}
		departed := q.Arrive(epoch.Add(next[k])).Sub(epoch)
		if departed >= settle && departed < settle+window {
			count++
		}
		next[k] = departed + think
	}
}

// TestServersClosedLoop: more callers than servers keep all servers busy.
func TestServersClosedLoop(t *testing.T) {
	m := Model{Service: Service{Mean: ms(10)}, Servers: 3}
	for n, want := range map[int]float64{1: 100, 3: 300, 10: 300} {
		near(t, fmt.Sprintf("X(%d)", n), closedLoop(m, n, 0), want, 0.001)
	}
}
