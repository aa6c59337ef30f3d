package bench

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// stepFunction is a server that holds every level up to a limit, and trials that now and then are wrong.
func stepFunction(limit float64, wrong func(n int) bool) (try func(float64, effort) (trial, error), levels *[]float64) {
	levels = &[]float64{}
	return func(level float64, e effort) (trial, error) {
		n := len(*levels)
		*levels = append(*levels, level)
		return trial{level: level, effort: e, ok: (level <= limit) != (wrong != nil && wrong(n))}, nil
	}, levels
}

func always(float64, effort) bool { return true }

// TestSearchFinds: whatever the limit and the start, the answer lies within 1 % below the limit, or one for whole levels.
func TestSearchFinds(t *testing.T) {
	for _, tt := range []struct {
		limit, start float64
		whole        bool
	}{
		{300, 150, false}, {300, 1, false}, {300, 5000, false}, {0.7, 10, false}, {12345, 3, false},
		{7, 1, true}, {1, 1, true}, {500, 1, true}, {37, 64, true},
	} {
		try, levels := stepFunction(tt.limit, nil)
		s := &search{start: tt.start, least: 0.01, most: 1e6, whole: tt.whole, try: try, room: always}
		if tt.whole {
			s.least = 1
		}
		if err := s.run(); err != nil {
			t.Fatal(err)
		}
		if s.low == nil || s.low.level > tt.limit || s.low.level < tt.limit*(1-resolution) || !s.confirmed || s.late {
			t.Errorf("limit %g from %g: low %+v, confirmed %v, late %v; want within 1 %% below", tt.limit, tt.start, s.low, s.confirmed, s.late)
		}
		if s.high == nil || s.high.level <= tt.limit {
			t.Errorf("limit %g from %g: high %+v, want one above the limit", tt.limit, tt.start, s.high)
		}
		if tt.whole && slices.ContainsFunc(*levels, func(l float64) bool { return l != math.Floor(l) }) {
			t.Errorf("limit %g from %g: levels %v, want whole numbers", tt.limit, tt.start, *levels)
		}
		if len(*levels) > 80 {
			t.Errorf("limit %g from %g: %d trials, want at most 80", tt.limit, tt.start, len(*levels))
		}
	}
}

// TestSearchNoise: one trial that is wrong decides nothing, wherever it falls.
func TestSearchNoise(t *testing.T) {
	const limit = 300
	for bad := range 40 {
		try, seen := stepFunction(limit, func(n int) bool { return n == bad })
		s := &search{start: 10, least: 0.01, most: 1e6, try: try, room: always}
		if err := s.run(); err != nil {
			t.Fatal(err)
		}
		if s.low == nil || math.Abs(s.low.level-limit) > resolution*limit {
			t.Errorf("trial %d is wrong: low %+v after %d trials, want within 1 %% of %d", bad, s.low, len(*seen), limit)
		}
	}
}

// TestSearchEnds: what the search says where there is no limit, nothing good, no time, an error, or a failed confirmation.
func TestSearchEnds(t *testing.T) {
	run := func(limit float64, room func(float64, effort) bool) (*search, int) {
		try, levels := stepFunction(limit, nil)
		s := &search{start: 10, least: 1, most: 1000, try: try, room: room}
		if err := s.run(); err != nil {
			t.Fatal(err)
		}
		return s, len(*levels)
	}
	if s, _ := run(1e9, always); s.low == nil || s.low.level != 1000 || s.high != nil || !s.confirmed {
		t.Errorf("no limit: low %+v, high %+v, confirmed %v; want 1000, none, true", s.low, s.high, s.confirmed)
	}
	if s, _ := run(0.5, always); s.low != nil || s.high == nil || s.high.level != 1 {
		t.Errorf("nothing good: low %+v, high %+v; want none, 1", s.low, s.high)
	}
	left := 6
	if s, n := run(300, func(float64, effort) bool { left--; return left >= 0 }); !s.late || s.confirmed || s.low == nil || n > 6 {
		t.Errorf("no time: late %v, confirmed %v, low %+v after %d trials; want true, false, one, at most 6", s.late, s.confirmed, s.low, n)
	}
	broken := errors.New("gone")
	s := &search{start: 1, least: 1, most: 9, room: always, try: func(float64, effort) (trial, error) { return trial{}, broken }}
	if err := s.run(); !errors.Is(err, broken) {
		t.Errorf("run = %v, want %v", err, broken)
	}
	s = &search{start: 10, least: 1, most: 1000, room: always}
	s.try = func(level float64, e effort) (trial, error) { // a server that tires: long trials show less than short ones
		return trial{level: level, effort: e, clear: true, ok: level <= 300 && (e != confirming || level <= 270)}, nil
	}
	if err := s.run(); err != nil || s.low == nil || !s.confirmed || s.low.level > 270 || s.low.level < 240 {
		t.Errorf("confirmation fails above 270: low %+v, confirmed %v, %v; want 240 to 270", s.low, s.confirmed, err)
	}
}

// queueTrial simulates the queue M/M/1 by Lindley's recursion and holds its p99 against a limit, without a run around it.
func queueTrial(mu, limit, seconds float64, rng *rand.Rand) func(float64, effort) (trial, error) {
	return func(level float64, e effort) (trial, error) {
		hold := seconds * []float64{0.1, 1, 2}[e]
		var wait, now, above, all float64
		for now < hold {
			gap := rng.ExpFloat64() / level
			now += gap
			wait = max(0, wait-gap) + rng.ExpFloat64()/mu
			all++
			if wait > limit {
				above++
			}
		}
		share := above / all
		return trial{level: level, effort: e, ok: share < 0.01, clear: share > 0.03 || share < 0.003}, nil
	}
}

// TestSearchQueue is oracle 4 for the search alone: λ* = µ − ln 100 / 0.02 s = 769.7/s within 3 % in nine of ten seeds.
func TestSearchQueue(t *testing.T) {
	if raceDetector {
		t.Skip("nothing but arithmetic")
	}
	const mu, limit = 1000, 0.02
	want := mu - math.Log(100)/limit
	hits, sum := 0, 0.0
	const seeds = 10
	for seed := range uint64(seeds) {
		s := &search{start: 500, least: 1, most: 1e6, room: always, try: queueTrial(mu, limit, 120, rand.New(rand.NewPCG(seed, 4)))}
		if err := s.run(); err != nil {
			t.Fatal(err)
		}
		if s.low == nil {
			t.Fatalf("seed %d: nothing found", seed)
		}
		sum += s.low.level
		if math.Abs(s.low.level-want) <= 0.03*want {
			hits++
		}
	}
	t.Logf("mean %.1f, %d of %d within 3 %% of %.1f", sum/seeds, hits, seeds, want)
	if hits < 9 || math.Abs(sum/seeds-want) > 0.02*want {
		t.Errorf("%d of %d seeds within 3 %% of %.1f/s, mean %.1f/s; want at least 9, and a mean within 2 %%", hits, seeds, want, sum/seeds)
	}
}

// TestSearchUnconfirmed: where the time ends before a failed confirmation is made good, the answer is a level that was held,
// and not one that was only to be tried next.
func TestSearchUnconfirmed(t *testing.T) {
	held := map[float64]bool{}
	confirmations := 0
	s := &search{
		start: 100, least: 1, most: 1e6,
		try: func(level float64, e effort) (trial, error) {
			ok := level <= 300 && e != confirming
			held[level] = held[level] || ok
			if e == confirming {
				confirmations++
			}
			return trial{level: level, effort: e, ok: ok, clear: true}, nil
		},
		room: func(float64, effort) bool { return confirmations < 2 },
	}
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
	if s.low == nil || !held[s.low.level] || s.confirmed || s.high == nil || s.low.level >= s.high.level {
		t.Errorf("low %+v, high %+v, confirmed %v; want a level that was held, below the one that failed, and false", s.low, s.high, s.confirmed)
	}
}
