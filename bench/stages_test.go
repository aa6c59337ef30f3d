package bench

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// starts lists the schedule of a configuration.
func starts(c Config) []time.Duration {
	c.Duration = max(c.Duration, c.stagesTime())
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

// TestRamp holds every start of a ramp to the integral of its rate: start k is due when the integral reaches k.
func TestRamp(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		name   string
		c      Config
		n      int
		within map[int]time.Duration // start number: when it is due
	}{
		{"from 0", Config{Stages: []Stage{{10 * s, 100}}}, 500, map[int]time.Duration{0: 0, 125: 5 * s, 499: 9989995 * time.Microsecond}},
		{"from -r", Config{Rate: 100, Stages: []Stage{{10 * s, 100}}}, 1000, map[int]time.Duration{1: 10 * time.Millisecond, 999: 9990 * time.Millisecond}},
		{"down to 0", Config{Rate: 100, Stages: []Stage{{10 * s, 0}}}, 500, map[int]time.Duration{375: 5 * s}},
		{"up, level, down", Config{Stages: []Stage{{10 * s, 100}, {10 * s, 100}, {10 * s, 0}}}, 2000, map[int]time.Duration{500: 10 * s, 1000: 15 * s, 1500: 20 * s, 1875: 25 * s}},
		{"jump", Config{Stages: []Stage{{0, 100}, {1 * s, 100}, {0, 10}, {1 * s, 10}}}, 110, map[int]time.Duration{50: 500 * time.Millisecond, 100: s, 109: 1900 * time.Millisecond}},
		{"a pause", Config{Rate: 10, Stages: []Stage{{s, 10}, {0, 0}, {5 * s, 0}, {0, 10}, {s, 10}}}, 20, map[int]time.Duration{9: 900 * time.Millisecond, 10: 6 * s, 19: 6900 * time.Millisecond}},
		{"warm-up", Config{Rate: 10, Warmup: s, Stages: []Stage{{s, 20}}}, 25, map[int]time.Duration{10: s}},
		{"slow", Config{Stages: []Stage{{100 * s, 0.1}}}, 5, map[int]time.Duration{0: 0, 4: 89442719100}},
	} {
		got := starts(tt.c)
		if len(got) != tt.n || !slices.IsSorted(got) {
			t.Errorf("%s: %d starts, want %d in order", tt.name, len(got), tt.n)
			continue
		}
		for k, want := range tt.within {
			if off := got[k] - want; off < -time.Microsecond || off > time.Microsecond {
				t.Errorf("%s: start %d is due at %v, want %v", tt.name, k, got[k], want)
			}
		}
	}
}

// TestRampPoisson holds the number of starts in each second of a Poisson ramp to the integral of the rate.
func TestRampPoisson(t *testing.T) {
	c := Config{Arrivals: Poisson, Seed: 3, Stages: []Stage{{10 * time.Second, 1000}, {10 * time.Second, 200}}}
	got := starts(c)
	list := ramps(&c)
	perSecond := make([]float64, 20)
	for _, at := range got {
		perSecond[int(at.Seconds())]++
	}
	for i, n := range perSecond {
		want := dueBy(list, float64(i+1)) - dueBy(list, float64(i))
		if math.Abs(n-want) > 4*math.Sqrt(want) {
			t.Errorf("second %d has %.0f starts, want %.0f within four standard deviations", i, n, want)
		}
	}
	if again := starts(c); !slices.Equal(got, again) {
		t.Error("the starts do not depend on the seed alone")
	}
}

// TestStages runs stages in virtual time: all of the schedule is begun, and what was asked is the mean over the window.
func TestStages(t *testing.T) {
	c := Config{Stages: []Stage{{10 * time.Second, 200}, {10 * time.Second, 200}, {10 * time.Second, 0}}}
	res, seen := runVirtual(t, c, func(now time.Time) time.Time { return now.Add(5 * time.Millisecond) })
	v, k := res.Verdict, res.Conditions
	if seen != 4000 || !v.Valid || v.AskedRPS != 133.33 || v.DeliveredRPS != 133.33 {
		t.Errorf("%d calls, verdict %+v; want 4000 and 133.33/s asked and delivered", seen, v)
	}
	if k.Loop != "open" || k.RateRPS != 200 || len(k.Stages) != 3 || k.Stages[0] != (StageCondition{10, 200}) || k.DurationS != 30 {
		t.Errorf("conditions = %+v, want an open loop of three stages in 30 s with a peak of 200/s", k)
	}
	if iv := res.Intervals; len(iv) != 30 || iv[4].RPS < 80 || iv[4].RPS > 100 || iv[15].RPS < 198 || iv[15].RPS > 202 {
		t.Errorf("intervals = %+v, want a ramp of 20/s each second, then 200/s", iv)
	}
}

// TestUsers holds users with think time to the response-time law, and each to a session of its own.
func TestUsers(t *testing.T) {
	for _, tt := range []struct {
		name  string
		c     Config
		rate  float64
		share float64
	}{
		{"constant", Config{Users: 50, ThinkTime: Think{Mean: 2 * time.Second}, Duration: time.Minute}, 20, 0.02},
		{"exponential", Config{Users: 50, ThinkTime: Think{2 * time.Second, true}, Duration: time.Minute, Seed: 1}, 20, 0.06},
		{"none", Config{Users: 5, Duration: 10 * time.Second}, 10, 0.01},
		{"warm-up", Config{Users: 50, ThinkTime: Think{Mean: 2 * time.Second}, Warmup: 5 * time.Second, Duration: time.Minute}, 20, 0.02},
	} {
		res, _ := runVirtual(t, tt.c, func(now time.Time) time.Time { return now.Add(500 * time.Millisecond) })
		v, d := res.Verdict, all(res).Response
		wantNear(t, tt.name+": rate in mHz", 1000*v.CompletedRPS, 1000*tt.rate, tt.share)
		if d.P50US < 499e3 || d.P50US > 501e3 || d.MaxUS > 501e3 {
			t.Errorf("%s: response time %+v, want 500 ms", tt.name, d)
		}
		if l := res.LittlesLaw; !l.OK || l.Warning != "" || l.Observed != float64(tt.c.Users) {
			t.Errorf("%s: X(R+Z) = N gives %+v, want it to hold with N = %d", tt.name, l, tt.c.Users)
		}
		if k := res.Conditions; k.Loop != "closed" || k.Users != tt.c.Users || k.Sessions != tt.c.Users || k.Concurrency != 0 || k.ThinkTime != tt.c.ThinkTime.String() {
			t.Errorf("%s: conditions = %+v", tt.name, k)
		}
	}
}

// TestUsersDoNotMarchInStep spreads the first calls over the think time.
func TestUsersDoNotMarchInStep(t *testing.T) {
	var first time.Time
	early := 0
	res, _ := runVirtual(t, Config{Users: 1000, ThinkTime: Think{Mean: 10 * time.Second}, Duration: 10 * time.Second}, func(now time.Time) time.Time {
		if first.IsZero() {
			first = now
		}
		if now.Sub(first) < time.Second {
			early++
		}
		return now.Add(time.Millisecond)
	})
	if early < 60 || early > 140 || res.Requests.Total < 900 {
		t.Errorf("%d of %d calls came in the first second, want about 100 of 1000", early, res.Requests.Total)
	}
}

// TestUsersEndInTime: nobody finishes a long thought for nothing, neither at the end of the time nor when all calls are
// made, and the window ends with the last answer.
func TestUsersEndInTime(t *testing.T) {
	for name, tt := range map[string]struct {
		c            Config
		most, window time.Duration
	}{
		"time":        {Config{Users: 5, ThinkTime: Think{Mean: time.Hour}, Duration: 10 * time.Second}, 11 * time.Second, 10 * time.Second},
		"calls":       {Config{Users: 2, ThinkTime: Think{Mean: 100 * time.Second}, Requests: 1, Seed: 1}, 101 * time.Second, 0},
		"flow's time": {Config{Rate: 1, Duration: 5 * time.Second, Flows: []Flow{{"a", 1, []Step{call(`{}`), think(time.Hour), call(`{}`)}}}}, 6 * time.Second, 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			var answered time.Time
			c := tt.c
			c.InProcess, c.pause = true, time.Sleep
			c.peer = &virtualPeer{serve: func(now time.Time) time.Time { answered = now.Add(time.Second); return answered }}
			res, err := Run(context.Background(), c)
			if err != nil {
				t.Fatal(err)
			}
			took, window := time.Since(begin), tt.window
			if window == 0 {
				window = answered.Sub(begin)
			}
			if took > tt.most || math.Abs(res.Conditions.DurationS-window.Seconds()) > 0.01 {
				t.Errorf("%s: the run took %v with a window of %v s, want at most %v and %v", name, took, res.Conditions.DurationS, tt.most, window)
			}
		})
	}
}

// TestUsersStopAtOnce ends users in the middle of a long thought.
func TestUsersStopAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(90*time.Second, cancel)
		begin := time.Now()
		c := Config{Users: 3, ThinkTime: Think{Mean: time.Minute}, Duration: time.Hour, InProcess: true, pause: time.Sleep}
		c.peer = &virtualPeer{serve: func(now time.Time) time.Time { return now.Add(time.Second) }}
		res, err := Run(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 95*time.Second || !res.Interrupted || res.Requests.Cancelled != 0 {
			t.Errorf("the run took %v, interrupted %v, requests %+v", took, res.Interrupted, res.Requests)
		}
	})
}

// TestLittlesLaw fails where the sides differ by more than chance, also at a low load.
func TestLittlesLaw(t *testing.T) {
	for _, tt := range []struct {
		name string
		f    flights
		ok   bool
	}{
		{"open", flights{window: 10 * time.Second, ended: 1000, busy: 20 * time.Second, observed: 2, samples: 1000}, true},
		{"open, far off", flights{window: 10 * time.Second, ended: 1000, busy: 20 * time.Second, observed: 3, samples: 1000}, false},
		{"open, low load", flights{window: 10 * time.Second, ended: 2000, busy: 2 * time.Second, observed: 0.22, samples: 1000}, true},
		{"open, low load, far off", flights{window: 10 * time.Second, ended: 2000, busy: 2 * time.Second, observed: 0.4, samples: 1000}, false},
		{"open, nothing seen", flights{window: 10 * time.Second, ended: 2000, busy: 2 * time.Second, samples: 1000}, false},
		{"closed", flights{window: 10 * time.Second, ended: 1000, busy: 98 * time.Second, population: 10}, true},
		{"closed, times too short", flights{window: 10 * time.Second, ended: 10_000, busy: 80 * time.Second, population: 10}, false},
		{"users", flights{window: 10 * time.Second, ended: 1000, busy: 10 * time.Second, think: 190 * time.Second, population: 20}, true},
		{"users, long thoughts", flights{window: time.Minute, ended: 2000, busy: 20 * time.Second, think: 4000 * time.Second, population: 50}, false},
		{"too few calls", flights{window: 10 * time.Second, ended: 99, busy: 20 * time.Second, observed: 9, samples: 1000}, true},
	} {
		l := tt.f.law()
		if l.OK != tt.ok || (l.Warning == "") != tt.ok {
			t.Errorf("%s: %+v = %+v, want ok %v and a warning otherwise", tt.name, tt.f, l, tt.ok)
		}
	}
	if l := (&flights{window: time.Second}).law(); l != nil {
		t.Errorf("a law without calls = %+v, want none", l)
	}
}

// TestLoopsExclude refuses what cannot be meant, with the flags to change.
func TestLoopsExclude(t *testing.T) {
	stages := []Stage{{time.Second, 10}}
	for _, tt := range []struct {
		c    Config
		want string
	}{
		{Config{Rate: 1, Users: 1}, "(-u) exclude"}, {Config{Stages: stages, Concurrency: 1}, "exclude each other"},
		{Config{Users: 2, Sessions: 3}, "leave --sessions out"}, {Config{ThinkTime: Think{Mean: 1}}, "needs users"},
		{Config{Users: 2, Concurrency: 2}, "exclude each other"}, {Config{Users: 1, MaxInFlight: 1}, "needs a rate"},
		{Config{Stages: stages, Duration: 1}, "leave -d out"}, {Config{Stages: stages, Requests: 1}, "exclude"},
		{Config{Stages: []Stage{{0, 10}}}, "no time at all"}, {Config{Stages: []Stage{{1, 0}}}, "no stage leads"},
		{Config{Stages: []Stage{{1, math.NaN()}}}, "a stage takes"}, {Config{Rate: math.NaN()}, "the rate must lie"},
		{Config{Stages: stages, Warmup: 1}, "needs -r"}, {Config{Args: []byte("{}"), ArgsRows: []json.RawMessage{[]byte("{}")}}, "--args-file"},
	} {
		tt.c.URL = "http://127.0.0.1:1/mcp"
		_, err := tt.c.withDefaults()
		var u *UsageError
		if !errors.As(err, &u) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.c, err, tt.want)
		}
	}
}

// TestArgsFile reads rows and names the line that is wrong.
func TestArgsFile(t *testing.T) {
	rows, err := ReadArgs(strings.NewReader("{\"a\":1}\n\n  {\"b\": [2]}\r\n{}"))
	if err != nil || len(rows) != 3 || string(rows[1]) != "  {\"b\": [2]}" {
		t.Errorf("rows = %q, %v; want three", rows, err)
	}
	for text, want := range map[string]string{
		"{}\n\n[1]\n":     "line 3 is not a JSON object: [1]",
		"{}\n{\"a\":1":    "line 2 is not a JSON object",
		"{}{}\n":          "line 1 is not a JSON object",
		"\n\n":            "holds no line",
		"{\"a\":NaN}\n{}": "line 1 is not",
	} {
		if _, err := ReadArgs(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ReadArgs(%q) = %v, want %q", text, err, want)
		}
	}
}

// TestArgsRows uses every row in turn.
func TestArgsRows(t *testing.T) {
	f := &fakeServer{}
	rows := []json.RawMessage{[]byte(`{"message":"a"}`), []byte(`{"message":"b"}`), []byte(`{"message":"c"}`)}
	if _, err := Run(context.Background(), Config{URL: f.start(t), Requests: 301, Concurrency: 4, ArgsRows: rows}); err != nil {
		t.Fatal(err)
	}
	for i, row := range []string{"a", "b", "c"} {
		want := 100
		if i == 0 {
			want = 101
		}
		if got := f.tokens[`{"name":"echo","arguments":{"message":"`+row+`"}}`]; got != want {
			t.Errorf("%d calls with %s, want %d", got, row, want)
		}
	}
}

// TestParseThink reads both forms and writes them back.
func TestParseThink(t *testing.T) {
	for text, want := range map[string]Think{"2s": {Mean: 2 * time.Second}, "exp:1m0s": {time.Minute, true}, "0s": {}} {
		if got, err := ParseThink(text); err != nil || got != want || got.String() != text {
			t.Errorf("ParseThink(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "2", "-1s", "exp:", "gauss:1s"} {
		if got, err := ParseThink(text); err == nil {
			t.Errorf("ParseThink(%q) = %v, want an error", text, got)
		}
	}
}
