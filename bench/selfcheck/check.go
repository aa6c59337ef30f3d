package selfcheck

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/mcpengine/mcpengine/bench"
)

// Outcome is what became of a check.
type Outcome string

const (
	// Pass is a value within its limits.
	Pass Outcome = "pass"
	// Fail is a value outside of its limits on a machine that was calm enough to tell.
	Fail Outcome = "fail"
	// Busy is a value of which nothing can be said, because the machine was too busy.
	Busy Outcome = "busy"
)

// excuse is why a value may be wrong without a fault of the generator. The zero value is none.
type excuse struct {
	text string
	void bool // nothing may be said of the value, even where it is as expected
}

// Check is one value that is known beforehand, and what was measured. Low and High are the limits, both allowed.
type Check struct {
	Oracle   int     `json:"oracle"`
	What     string  `json:"what"`
	Unit     string  `json:"unit"` // "us", "bool" for what is so (1) or not (0), or "" for a count
	Low      float64 `json:"low"`
	Expected float64 `json:"expected"`
	High     float64 `json:"high"`
	Measured float64 `json:"measured"`
	// Interval is set where the check is whether an interval that was measured covers what is expected.
	Interval *[2]int64 `json:"interval,omitempty"`
	Outcome  Outcome   `json:"outcome"`
	Why      string    `json:"why,omitempty"` // set where it is not a pass
}

// waits is how often a call waits for a processor that other work may have: to be begun, to arrive, to leave, to be read.
const waits = 4

// duration adds a check of a time: it must be within share of want. The noise is what this machine has added to one
// wait while it was measured; where that could explain the difference, the check says nothing.
func (s *session) duration(oracle int, what string, got, want time.Duration, share float64, noise delay, why excuse) {
	tolerance := time.Duration(share * float64(want))
	s.add(Check{
		Oracle: oracle, What: what, Unit: "us", Low: micros(want - tolerance), Expected: micros(want),
		High: micros(want + tolerance), Measured: micros(got),
	}, cmp.Or(why, held(noise, tolerance)))
}

// count adds a check of a number, which must be between low and high.
func (s *session) count(oracle int, what string, got, low, expected, high int64, why excuse) {
	s.add(Check{
		Oracle: oracle, What: what, Low: float64(low), Expected: float64(expected), High: float64(high), Measured: float64(got),
	}, why)
}

// exact adds a check of a number that can only be one.
func (s *session) exact(oracle int, what string, got, want int64) {
	s.count(oracle, what, got, want, want, want, excuse{})
}

// holds adds a check of something that is so or is not.
func (s *session) holds(oracle int, what string, ok bool, why excuse) {
	got := 0.0
	if ok {
		got = 1
	}
	s.add(Check{Oracle: oracle, What: what, Unit: "bool", Low: 1, Expected: 1, High: 1, Measured: got}, why)
}

// delay is how long this machine has let the generator wait, and how often a value may have met that.
type delay struct {
	length time.Duration
	times  int
}

// held says that this machine let the generator wait too long for a tolerance. The waits of the peer are its own and not
// known; they are taken to be as long.
func held(noise delay, tolerance time.Duration) excuse {
	most := tolerance / time.Duration(noise.times)
	if noise.length <= most {
		return excuse{}
	}
	return excuse{text: fmt.Sprintf("this machine let the generator wait %s, at most %s is tolerated", short(noise.length), short(most))}
}

// add judges a check.
func (s *session) add(c Check, why excuse) {
	c.Outcome = Pass
	switch {
	case c.within() && !why.void:
	case why.text != "":
		c.Outcome, c.Why = Busy, why.text
	default:
		c.Outcome, c.Why = Fail, fmt.Sprintf("measured %s, expected %s", c.measuredText(), c.expectedText())
	}
	s.report.Checks = append(s.report.Checks, c)
}

// within reports whether the value is as expected.
func (c *Check) within() bool {
	if c.Interval != nil {
		return float64(c.Interval[0]) <= c.High && c.Low <= float64(c.Interval[1])
	}
	return c.Low <= c.Measured && c.Measured <= c.High
}

// invalid says why a run cannot be trusted.
func invalid(res *bench.Result) excuse {
	if res.Verdict.Valid {
		return excuse{}
	}
	return excuse{text: "INVALID: " + res.Verdict.Reasons[0], void: true}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func ofMicros(us float64) time.Duration { return time.Duration(us * float64(time.Microsecond)) }

// expectedText writes what is expected, with the limits.
func (c *Check) expectedText() string {
	switch {
	case c.Interval != nil:
		return "covers " + short(ofMicros(c.Expected))
	case c.Unit == "us":
		return fmt.Sprintf("%s ± %.0f %%", short(ofMicros(c.Expected)), 100*(c.High-c.Expected)/c.Expected)
	case c.Unit == "bool":
		return yesNo(c.Expected)
	case c.Low == c.High:
		return number(c.Expected)
	}
	return number(c.Low) + " to " + number(c.High)
}

// measuredText writes what was measured.
func (c *Check) measuredText() string {
	switch {
	case c.Interval != nil:
		return short(ofMicros(float64(c.Interval[0]))) + " to " + short(ofMicros(float64(c.Interval[1])))
	case c.Unit == "us":
		return short(ofMicros(c.Measured))
	case c.Unit == "bool":
		return yesNo(c.Measured)
	}
	return number(c.Measured)
}

func yesNo(f float64) string {
	if f == 0 {
		return "no"
	}
	return "yes"
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// short writes a time with three digits.
func short(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	unit := time.Duration(math.Pow(10, math.Floor(math.Log10(math.Abs(float64(d))))-2))
	return d.Round(max(unit, 1)).String()
}
