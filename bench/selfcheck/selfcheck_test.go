package selfcheck

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestJudge: what is wrong is a failure on a calm machine, and nothing at all on a busy one.
func TestJudge(t *testing.T) {
	const ms = time.Millisecond
	interval := func(low, high int64) func(*session) {
		return func(s *session) {
			s.add(Check{Unit: "us", Low: 23e3, Expected: 23e3, High: 23e3, Interval: &[2]int64{low, high}}, excuse{})
		}
	}
	for _, tt := range []struct {
		name     string
		do       func(*session)
		want     Outcome
		expected string
		measured string
	}{
		{"time", func(s *session) { s.duration(1, "p99", 410*ms, 400*ms, 0.05, delay{0, 4}, excuse{}) }, Pass, "400ms ± 5 %", "410ms"},
		{"at the limit", func(s *session) { s.duration(1, "p99", 420*ms, 400*ms, 0.05, delay{0, 4}, excuse{}) }, Pass, "400ms ± 5 %", "420ms"},
		{"too long", func(s *session) { s.duration(1, "p99", 421*ms, 400*ms, 0.05, delay{5 * ms, 4}, excuse{}) }, Fail, "400ms ± 5 %", "421ms"},
		{"too short", func(s *session) { s.duration(1, "p99", 379*ms, 400*ms, 0.05, delay{5 * ms, 4}, excuse{}) }, Fail, "400ms ± 5 %", "379ms"},
		{"too long, noise", func(s *session) { s.duration(1, "p99", 421*ms, 400*ms, 0.05, delay{6 * ms, 4}, excuse{}) }, Busy, "400ms ± 5 %", "421ms"},
		{"too long, one wait", func(s *session) { s.duration(1, "p99", 421*ms, 400*ms, 0.05, delay{20 * ms, 1}, excuse{}) }, Fail, "400ms ± 5 %", "421ms"},
		{"too long, one long wait", func(s *session) { s.duration(1, "p99", 421*ms, 400*ms, 0.05, delay{21 * ms, 1}, excuse{}) }, Busy, "400ms ± 5 %", "421ms"},
		{"noise that did no harm", func(s *session) { s.duration(1, "p99", 401*ms, 400*ms, 0.05, delay{90 * ms, 4}, excuse{}) }, Pass, "400ms ± 5 %", "401ms"},
		{"too long, INVALID", func(s *session) {
			s.duration(1, "p99", 421*ms, 400*ms, 0.05, delay{0, 4}, excuse{"INVALID: late", true})
		}, Busy, "400ms ± 5 %", "421ms"},
		{"within, INVALID", func(s *session) {
			s.duration(1, "p99", 401*ms, 400*ms, 0.05, delay{0, 4}, excuse{"INVALID: late", true})
		}, Busy, "400ms ± 5 %", "401ms"},
		{"count", func(s *session) { s.exact(10, "events", 190, 190) }, Pass, "190", "190"},
		{"one missing", func(s *session) { s.exact(10, "events", 189, 190) }, Fail, "190", "189"},
		{"range", func(s *session) { s.count(1, "bad", 11, 9, 10, 11, excuse{}) }, Pass, "9 to 11", "11"},
		{"out of range", func(s *session) { s.count(1, "bad", 12, 9, 10, 11, excuse{}) }, Fail, "9 to 11", "12"},
		{"holds", func(s *session) { s.holds(3, "INVALID", true, excuse{}) }, Pass, "yes", "yes"},
		{"does not hold", func(s *session) { s.holds(3, "INVALID", false, excuse{}) }, Fail, "yes", "no"},
		{"covers", interval(20e3, 26e3), Pass, "covers 23ms", "20ms to 26ms"},
		{"beside", interval(23_100, 26e3), Fail, "covers 23ms", "23.1ms to 26ms"},
	} {
		s := &session{report: &Report{}}
		tt.do(s)
		c := s.report.Checks[0]
		if c.Outcome != tt.want || c.expectedText() != tt.expected || c.measuredText() != tt.measured || (c.Why == "") != (c.Outcome == Pass) {
			t.Errorf("%s: got %s, %q, %q, why %q; want %s, %q, %q", tt.name, c.Outcome, c.expectedText(), c.measuredText(), c.Why,
				tt.want, tt.expected, tt.measured)
		}
	}
}

// TestSecondTry: an oracle that does not pass is tried once more, where there is time, and the second try counts.
func TestSecondTry(t *testing.T) {
	for _, tt := range []struct {
		name     string
		limit    time.Duration
		got      []int64 // of one try after another; 1 passes
		tries    int
		outcomes []Outcome
	}{
		{"passes", time.Minute, []int64{1}, 1, []Outcome{Pass, Pass}},
		{"passes at last", time.Minute, []int64{2, 1}, 2, []Outcome{Pass, Pass}},
		{"fails twice", time.Minute, []int64{2, 3}, 2, []Outcome{Pass, Fail}},
		{"no time", 0, []int64{2}, 1, []Outcome{Pass, Fail}},
	} {
		s := &session{form: &form{limit: tt.limit}, begin: time.Now(), report: &Report{}}
		s.exact(1, "of another oracle", 1, 1)
		tries := 0
		err := s.try(t.Context(), func(context.Context) error {
			s.exact(3, "one", tt.got[tries], 1)
			tries++
			return nil
		})
		var outcomes []Outcome
		for _, c := range s.report.Checks {
			outcomes = append(outcomes, c.Outcome)
		}
		if err != nil || tries != tt.tries || !slices.Equal(outcomes, tt.outcomes) {
			t.Errorf("%s: got %d tries, %v, error %v; want %d, %v", tt.name, tries, outcomes, err, tt.tries, tt.outcomes)
		}
	}
}

// TestMeanDeviation holds the formula to the variance of the waits of an M/M/1 at 80 %, 1976 in service times squared.
func TestMeanDeviation(t *testing.T) {
	got := meanDeviation(160, 200, 1) * 25e-3 * 200
	if want := math.Sqrt(1976); math.Abs(got-want) > 0.001*want {
		t.Errorf("deviation of one mean: got %.2f service times, want %.2f", got, want)
	}
}

// TestMergingPasses is oracle 12 in the form in which selftest does it.
func TestMergingPasses(t *testing.T) {
	r, err := runWith(t, Options{Form: Quick, Oracles: []int{12}})
	if err == nil || r != nil {
		t.Errorf("Run without a peer: got %v, %v, want an error", r, err)
	}
	s := &session{Options: Options{OnStep: func(string) {}}, report: &Report{}}
	if err := s.merging(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.report.count(); s.report.Passed != 2 {
		t.Errorf("checks: got %+v, want 2 passed", s.report.Checks)
	}
}

// runWith runs with a peer that does not start.
func runWith(t *testing.T, o Options) (*Report, error) {
	o.Start = func(context.Context, ...string) (*Peer, error) { return nil, errors.New("no peer") }
	return Run(t.Context(), o)
}

// TestTable: every line fits on 80 columns, whatever came out, and the last one has the sums.
func TestTable(t *testing.T) {
	s := &session{report: &Report{Form: "short", Version: "dev"}}
	s.duration(1, "open loop: p99", 1210*time.Millisecond, 880*time.Millisecond, 0.05, delay{0, 4},
		excuse{"INVALID: the generator began calls late: schedule lag p99 152 ms, at most 44.1 ms is tolerated; other work held it up", true})
	s.exact(10, "events, 1 of 20 dropped on 10 streams", 189, 190)
	s.count(1, "10 in flight: long service times", 10, 9, 10, 11, excuse{})
	s.report.Rates = &Rates{}
	s.report.count()
	var b strings.Builder
	if err := s.report.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(line) - 1; n > 80 {
			t.Errorf("%d columns, want at most 80: %s", n, line)
		}
	}
	for _, want := range []string{"busy  1  open loop: p99 ", "fail 10  events", "pass  1  10 in flight", "1 passed, 1 failed, 1 not to be told"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("table: got\n%s\nwant a line with %q", b.String(), want)
		}
	}
}

// TestShort writes times with three digits.
func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 7: "7ns", 64_321: "64.3µs", 1_234_567: "1.23ms", 880_000_000: "880ms", 75_250_000_000: "1m15.3s", -1_234_567: "-1.23ms",
	} {
		if got := short(d); got != want {
			t.Errorf("short(%d): got %q, want %q", d, got, want)
		}
	}
}
