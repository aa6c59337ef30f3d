package bench

import "math"

// effort is how long a level is held.
type effort int

const (
	// exploring holds a level for so short a time that it only says where to look.
	exploring effort = iota
	// narrowing holds it long enough for its percentile.
	narrowing
	// confirming holds the level that was found once more, and longer.
	confirming
)

// String gives the word for a step of this effort.
func (e effort) String() string { return [...]string{"explore", "search", "confirm"}[e] }

// resolution is how far, relative to its value, the answer may lie below the lowest level that failed.
const resolution = 0.01

// trial is what came out when a level was held.
type trial struct {
	level     float64
	effort    effort
	ok        bool
	clear     bool    // so far from the objectives that a repeat would not change it
	generator bool    // it failed because of the generator
	saturated float64 // calls a second that came through while the backlog grew; 0 where it did not
}

// search looks for the highest level at which a trial is good: upwards by doubling, then between the highest that was
// good and the lowest that was not. It knows nothing of what a level is.
type search struct {
	start, least, most float64
	whole              bool                                         // levels are whole numbers
	try                func(level float64, e effort) (trial, error) // an error ends the search
	room               func(level float64, e effort) bool           // whether there is time for a trial

	low, high *trial    // the best good one and the lowest bad one
	guesses   []float64 // levels to try before halving
	late      bool      // there was no time for a trial that was wanted
	confirmed bool      // low has been confirmed
}

// run searches. The fields low, high, late and confirmed are the answer, also where it ends with an error.
func (s *search) run() error {
	level := s.start
	for range 4 { // a bad level that was held for a short time only is tried again when it has become the limit
		if err := s.climb(level); err != nil {
			return err
		}
		if err := s.narrow(); err != nil {
			return err
		}
		if s.late || s.low == nil || s.high == nil || s.high.effort != exploring {
			break
		}
		again, err := s.decide(s.high.level, narrowing)
		if err != nil {
			return err
		}
		if !again.ok {
			s.high = &again
			break
		}
		s.low, s.high = &again, nil
		level = min(2*again.level, s.most)
	}
	return s.confirm()
}

// decide tries a level until two trials agree, or one is clear. So a disturbance of one step decides nothing.
func (s *search) decide(level float64, e effort) (trial, error) {
	good, bad := 0, 0
	var last trial
	for {
		if good+bad > 0 && !s.room(level, e) {
			last.ok = false // undecided counts as not good
			return last, nil
		}
		t, err := s.try(level, e)
		if err != nil {
			return t, err
		}
		last = t
		if t.ok {
			good++
		} else {
			bad++
		}
		if t.clear || max(good, bad) == 2 {
			return t, nil
		}
	}
}

// climb doubles the level until one is bad; where the first is bad already, it goes down until one is good.
func (s *search) climb(level float64) error {
	for s.low == nil || s.high == nil {
		if !s.room(level, exploring) {
			s.late = true
			return nil
		}
		t, err := s.decide(level, exploring)
		if err != nil {
			return err
		}
		s.note(t)
		switch {
		case t.ok && level >= s.most, !t.ok && level <= s.least:
			return nil
		case t.ok:
			level = s.rounded(min(2*level, s.most))
		default:
			level = s.rounded(max(level/4, s.least))
		}
	}
	return nil
}

// note moves the ends.
func (s *search) note(t trial) {
	if t.ok {
		s.low = &t
		return
	}
	s.high = &t
	if t.saturated > 0 { // the limit is likely to lie near what came through
		s.guesses = []float64{0.96 * t.saturated, 1.02 * t.saturated}
	}
}

// narrow halves the distance until it is small.
func (s *search) narrow() error {
	for s.low != nil && s.high != nil && s.apart() {
		level := s.next()
		if !s.room(level, narrowing) {
			s.late = true
			return nil
		}
		t, err := s.decide(level, narrowing)
		if err != nil {
			return err
		}
		s.note(t)
	}
	return nil
}

// apart reports whether the ends are further apart than the answer may be wrong.
func (s *search) apart() bool {
	if s.whole && s.high.level-s.low.level <= 1 {
		return false
	}
	return s.high.level > s.low.level*(1+resolution)*(1+1e-9)
}

// next gives the level to try: a guess where there is one between the ends, else their geometric middle.
func (s *search) next() float64 {
	for len(s.guesses) > 0 {
		g := s.rounded(s.guesses[0])
		s.guesses = s.guesses[1:]
		if g > s.low.level*(1+resolution) && g < s.high.level/(1+resolution) {
			return g
		}
	}
	middle := s.rounded(math.Sqrt(s.low.level * s.high.level))
	if s.whole {
		middle = max(middle, s.low.level+1)
	}
	return middle
}

func (s *search) rounded(level float64) float64 {
	if s.whole {
		return max(math.Floor(level), s.least)
	}
	return level
}

// confirm holds the level that was found once more. Where it fails, lower levels are tried, in growing strides.
func (s *search) confirm() error {
	for stride := 2 * resolution; s.low != nil; stride *= 2 {
		level := s.low.level
		if !s.room(level, confirming) {
			s.late = true
			return nil
		}
		t, err := s.decide(level, confirming)
		if err != nil {
			return err
		}
		if t.ok {
			s.low, s.confirmed = &t, true
			return nil
		}
		s.high = &t
		if level <= s.least {
			s.low = nil
			return nil
		}
		lower := level * (1 - stride)
		if s.whole {
			lower = min(math.Floor(lower), level-1)
		}
		s.low = &trial{level: max(lower, s.least), effort: exploring, ok: true} // good only if it is confirmed
	}
	return nil
}
