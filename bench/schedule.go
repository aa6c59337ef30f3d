package bench

import (
	"math"
	"math/rand/v2"
	"time"
)

// schedule gives the intended starts of an open loop as offsets from its begin. They depend on the configuration and
// the seed alone: what happens while the run is under way cannot move them.
//
// Start number k is due when the rate, integrated over time, reaches k (constant arrivals), or the sum of k exponential
// variables of mean 1 (Poisson arrivals, also where the rate changes). Nothing is added up from start to start but that
// sum, so the schedule does not drift.
type schedule struct {
	ramps  []ramp
	rng    *rand.Rand    // nil for constant arrivals
	warmup time.Duration // offsets before it are not measured
	end    time.Duration // offsets from it on are not due; 0 means no end
	limit  int64         // measured starts; 0 means no limit

	ramp     int     // the ramp that the last start was in
	given    int64   // starts given
	measured int64   // of these, after the warm-up
	sum      float64 // Poisson: of the exponential variables
}

func newSchedule(c *Config) *schedule {
	s := &schedule{ramps: ramps(c), warmup: c.Warmup, limit: c.Requests}
	if c.Duration > 0 {
		s.end = c.Warmup + c.Duration
	}
	if c.Arrivals == Poisson {
		s.rng = rand.New(rand.NewPCG(c.Seed, arrivalsStream))
	}
	return s
}

// Streams of random numbers that a run draws from its seed.
const (
	arrivalsStream = iota + 1
	flightStream
	thinkStream // users count on from here, each in a stride of its own
	flowStream  // workers that run flows count on from here
	toolsStream // the last: closed workers count on from here
)

// next gives the next offset, or false when there is none.
func (s *schedule) next() (time.Duration, bool) {
	if s.limit > 0 && s.measured >= s.limit {
		return 0, false
	}
	due := float64(s.given)
	if s.rng != nil {
		s.sum += s.rng.ExpFloat64()
		due = s.sum
	}
	seconds, ok := s.when(due)
	offset := time.Duration(math.Round(seconds * float64(time.Second)))
	if !ok || s.end > 0 && offset >= s.end {
		return 0, false
	}
	s.given++
	if offset >= s.warmup {
		s.measured++
	}
	return offset, true
}

// when gives the seconds at which so many starts have been due; false where the schedule ends before. Where the rate is
// 0 for a time, that is the end of this time.
func (s *schedule) when(due float64) (seconds float64, ok bool) {
	for ; s.ramp < len(s.ramps); s.ramp++ {
		p := &s.ramps[s.ramp]
		if due < p.before+p.due(p.length) {
			return p.from + p.when(due-p.before), true
		}
	}
	return 0, false
}

// skipUntil counts, and passes over, the measured starts that are left before the offset until.
func (s *schedule) skipUntil(until time.Duration) int64 {
	var n int64
	for {
		before := *s
		offset, ok := s.next()
		if !ok {
			return n
		}
		if offset >= until {
			*s = before
			return n
		}
		if offset >= s.warmup {
			n++
		}
	}
}
