package bench

import (
	"math"
	"math/rand/v2"
	"time"
)

// schedule gives the intended starts of an open loop as offsets from its begin. They depend on the configuration and
// the seed alone: what happens while the run is under way cannot move them.
type schedule struct {
	rate   float64       // a second
	rng    *rand.Rand    // nil for constant arrivals
	warmup time.Duration // offsets before it are not measured
	end    time.Duration // offsets from it on are not due; 0 means no end
	limit  int64         // measured starts; 0 means no limit

	given    int64   // starts given
	measured int64   // of these, after the warm-up
	at       float64 // Poisson: the last offset in seconds
}

func newSchedule(c *Config) *schedule {
	s := &schedule{rate: c.Rate, warmup: c.Warmup, limit: c.Requests}
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
	toolsStream // the last: closed workers count on from here
)

// next gives the next offset, or false when there is none.
func (s *schedule) next() (time.Duration, bool) {
	if s.limit > 0 && s.measured >= s.limit {
		return 0, false
	}
	seconds := float64(s.given) / s.rate // not a sum of gaps, which would add up their rounding
	if s.rng != nil {
		s.at += s.rng.ExpFloat64() / s.rate
		seconds = s.at
	}
	offset := time.Duration(math.Round(seconds * float64(time.Second)))
	if s.end > 0 && offset >= s.end {
		return 0, false
	}
	s.given++
	if offset >= s.warmup {
		s.measured++
	}
	return offset, true
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
