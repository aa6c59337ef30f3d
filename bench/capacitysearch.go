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

const (
	// resolution is how far, relative to its value, the answer may lie below the lowest level that failed.
	resolution = 0.01
	// nearby is how close, relative to the best good level, a bad one must be to need a second trial however clear it is.
	nearby = 1.1
	// likely is the share of what came through a backlog that a short trial may claim to hold.
	likely = 0.96
	// spoiledMost is the number of trials of a level that the generator may spoil.
	spoiledMost = 3
	// mostDoubts bounds how often an end of the search is looked at again.
	mostDoubts = 8
)

// trial is what came out when a level was held.
type trial struct {
	level     float64
	effort    effort
	ok        bool
	clear     bool    // so far from the objectives that a repeat would not change it
	generator bool    // it failed because of the generator
	saturated float64 // calls a second that came through while the backlog grew; 0 where it did not
	votes     int     // trials that agreed on it
}

// search looks for the highest level at which a trial is good: upwards by doubling, then between the highest that was
// good and the lowest that was not. It knows nothing of what a level is.
type search struct {
	start, least, most float64
	whole              bool                                         // levels are whole numbers
	try                func(level float64, e effort) (trial, error) // an error ends the search
	room               func(level float64, e effort) bool           // whether there is time for a trial

	low, high *trial    // the best good one and the lowest bad one
	lower     []trial   // good ones before low
	guesses   []float64 // levels to try before halving
	doubts    int       // ends that were looked at again
	late      bool      // there was no time for a trial that was wanted
	confirmed bool      // low has been confirmed
}

// run searches. The fields low, high, late and confirmed are the answer, also where it ends with an error.
func (s *search) run() error {
	level := s.rounded(s.start)
	for again := true; again; {
		if err := s.climb(level); err != nil {
			return err
		}
		if err := s.narrow(); err != nil {
			return err
		}
		var err error
		if level, again, err = s.doubt(); err != nil {
			return err
		}
	}
	return s.confirm()
}

// doubt looks again at ends that rest on short trials, or on a single one. Where it was wrong, the search goes on from
// level.
func (s *search) doubt() (level float64, again bool, err error) {
	if s.late || s.low == nil || s.high == nil || s.doubts == mostDoubts {
		return 0, false, nil
	}
	end := s.high
	switch {
	case s.low.effort == exploring:
		end = s.low
	case s.high.effort != exploring && s.high.votes > 1:
		return 0, false, nil
	}
	s.doubts++
	if !s.room(end.level, narrowing) {
		s.late = true
		return 0, false, nil
	}
	t, err := s.decide(end.level, narrowing)
	switch {
	case err != nil:
		return 0, false, err
	case t.ok == end.ok:
		*end = t
		return s.doubt()
	case t.ok:
		s.note(t)
		s.high = nil
		return s.rounded(min(2*t.level, s.most)), true, nil
	}
	s.high, s.low = &t, nil
	if n := len(s.lower); n > 0 {
		s.low, s.lower = &s.lower[n-1], s.lower[:n-1]
	}
	return s.rounded(max(t.level/4, s.least)), true, nil
}

// decide tries a level until two trials agree. One is enough where it is clear and not near the limit, or where it is a
// good one that is short: what a short one says is looked at again. So a disturbance of one step decides nothing. A trial
// that the generator has spoiled says nothing of the server, so beside a good one it takes three of those.
func (s *search) decide(level float64, e effort) (trial, error) {
	good, bad, spoiled := 0, 0, 0
	for {
		t, err := s.try(level, e)
		if err != nil {
			return t, err
		}
		enough := t.clear || e == exploring
		switch {
		case t.ok:
			good++
			t.votes = good
		case t.generator:
			spoiled++
			enough = spoiled > 1 && good == 0 || spoiled == spoiledMost
			t.votes = spoiled
		default:
			bad++
			enough = t.clear && (s.low == nil || level > nearby*s.low.level)
			t.votes = bad
		}
		if enough && min(good, bad) == 0 || good == 2 || bad == 2 || spoiled == spoiledMost {
			return t, nil
		}
		if !s.room(level, e) {
			t.ok = t.ok && bad+spoiled == 0 // undecided counts as not good
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

// note moves the ends. Where a backlog has shown what comes through, short trials that seemed to hold more are forgotten.
func (s *search) note(t trial) {
	if t.ok {
		if s.low != nil {
			s.lower = append(s.lower, *s.low)
		}
		s.low = &t
		return
	}
	s.high = &t
	if t.saturated <= 0 {
		return
	}
	s.guesses = []float64{likely * t.saturated, 1.02 * t.saturated}
	for s.low != nil && len(s.lower) > 0 && s.low.effort == exploring && s.low.level > likely*t.saturated {
		s.low = &s.lower[len(s.lower)-1]
		s.lower = s.lower[:len(s.lower)-1]
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
	return max(round(level, 3-int(math.Floor(math.Log10(level)))), s.least) // four digits can be quoted
}

// confirm holds the level that was found once more. Where it fails, lower levels are tried, in growing strides.
func (s *search) confirm() error {
	for stride := resolution; s.low != nil; stride *= 2 {
		level := s.low.level
		if !s.room(level, confirming) {
			s.late = true
			s.low = s.held(level)
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
		s.low = &trial{level: s.rounded(max(lower, s.least)), effort: exploring, ok: true} // good only if it is confirmed
	}
	return nil
}

// held gives the highest level up to the given one that a trial has shown to be good, or nil.
func (s *search) held(level float64) *trial {
	if s.low.votes > 0 {
		return s.low
	}
	var best *trial
	for i := range s.lower {
		if t := &s.lower[i]; t.level <= level && (best == nil || t.level > best.level) {
			best = t
		}
	}
	return best
}
