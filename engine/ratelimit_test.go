package engine

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// TestRateLimiter plays calls against buckets, each at a number of
// milliseconds, and looks at which have to wait and for how long.
func TestRateLimiter(t *testing.T) {
	for _, c := range []struct {
		name string
		rate Rate
		at   []int // when a call comes
		wait []int // milliseconds, 0 where it passes
	}{
		{"a burst", Rate{PerSecond: 10, Burst: 3}, []int{0, 0, 0, 0}, []int{0, 0, 0, 100}},
		{"one comes back in time", Rate{PerSecond: 10, Burst: 3}, []int{0, 0, 0, 50, 100, 100}, []int{0, 0, 0, 50, 0, 100}},
		{"all come back", Rate{PerSecond: 10, Burst: 2}, []int{0, 0, 5000, 5000, 5000}, []int{0, 0, 0, 0, 100}},
		{"a refusal costs nothing", Rate{PerSecond: 1, Burst: 1}, []int{0, 1, 2, 3, 1000}, []int{0, 999, 998, 997, 0}},
		{"burst by itself", Rate{PerSecond: 3}, []int{0, 0, 0, 0}, []int{0, 0, 0, 334}},
		{"slow", Rate{PerSecond: 0.5}, []int{0, 500, 2000}, []int{0, 1500, 0}},
		{"no limit", Rate{}, []int{0, 0, 0}, []int{0, 0, 0}},
		{"not a number", Rate{PerSecond: math.NaN()}, []int{0, 0, 0}, []int{0, 0, 0}},
		{"next to nothing", Rate{PerSecond: math.SmallestNonzeroFloat64}, []int{0, 0}, []int{0, 86_400_000}},
		{"no end", Rate{PerSecond: math.Inf(1), Burst: math.MaxInt}, []int{0, 0, 0}, []int{0, 0, 0}},
	} {
		l := newRateLimiter(func(string, string) Rate { return c.rate }, 16)
		start := time.Now()
		for i, at := range c.at {
			got := l.take("p", "t", start.Add(time.Duration(at)*time.Millisecond))
			if ms := int((got + time.Millisecond - 1) / time.Millisecond); ms != c.wait[i] {
				t.Errorf("%s: call %d at %d ms: got a wait of %d ms, want %d", c.name, i, at, ms, c.wait[i])
			}
		}
	}
}

// TestRateKeys checks that principals and tools have accounts of their own, and
// that there is no end to who comes but one to what is kept.
func TestRateKeys(t *testing.T) {
	l := newRateLimiter(func(_, tool string) Rate {
		if tool == "free" {
			return Rate{}
		}
		return Rate{PerSecond: 1, Burst: 1}
	}, 64)
	now := time.Now()
	for _, c := range []struct {
		principal, tool string
		passes          bool
	}{
		{"a", "x", true}, {"a", "x", false}, {"a", "y", true}, {"b", "x", true}, {"", "x", true}, {"", "x", false},
		{"a", "free", true}, {"a", "free", true},
	} {
		if got := l.take(c.principal, c.tool, now) == 0; got != c.passes {
			t.Errorf("take(%q, %q): got %t, want %t", c.principal, c.tool, got, c.passes)
		}
	}
	if got := l.refused.Load(); got != 2 {
		t.Errorf("refused: got %d, want 2", got)
	}
	for i := range 10_000 {
		l.take(fmt.Sprint("p", i), "x", now.Add(time.Duration(i)*time.Millisecond))
	}
	kept := 0
	for i := range l.part {
		kept += len(l.part[i].full)
	}
	if kept == 0 || kept > 64 {
		t.Errorf("accounts: got %d, want 1 to 64", kept)
	}
}
