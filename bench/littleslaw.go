package bench

import (
	"fmt"
	"math"
	"time"
)

const (
	steadyShare = 0.10 // how far the two sides of Little's law may lie apart
	steadyNeeds = 100  // calls, below which begin and end are all that one sees
	steadySigma = 4    // standard errors of what was sampled that are put down to chance
)

// flights is what Little's law is checked with.
type flights struct {
	window time.Duration
	ended  int64         // calls that ended in the window
	busy   time.Duration // that these calls took, summed
	think  time.Duration // that users had thought before them, summed

	population int     // calls or users that a closed loop keeps in flight; 0 in an open loop
	observed   float64 // open loop: mean of the calls in flight that were counted
	samples    float64 // how often they were
}

// law compares what is in flight with rate times time. In an open loop, the calls in flight were counted at random
// moments. In a closed loop their number is given, and with users it is that of the users, who are either in a call or
// think: X·(R+Z) = N, the response-time law.
func (f *flights) law() *LittlesLaw {
	if f.window <= 0 || f.ended == 0 {
		return nil
	}
	l := &LittlesLaw{Predicted: (f.busy + f.think).Seconds() / f.window.Seconds(), Observed: f.observed}
	if f.population > 0 {
		l.Observed = float64(f.population)
	}
	off := math.Abs(l.Predicted - l.Observed)
	l.OK = f.ended < steadyNeeds || off <= max(steadyShare*l.Observed, f.chance(l))
	if !l.OK {
		l.Warning = fmt.Sprintf("rate times time gives %.3g in flight, and %.3g were: "+
			"the run was too short or not in a steady state, or its times are wrong",
			l.Predicted, l.Observed)
	}
	l.Predicted, l.Observed = round(l.Predicted, 3), round(l.Observed, 3)
	return l
}

// chance is by how much the two sides may differ because only so much was seen.
func (f *flights) chance(l *LittlesLaw) float64 {
	if f.population > 0 { // begin and end of the window cut a call, or a think time, of each
		return l.Observed * max(l.Observed, steadySigma*math.Sqrt(float64(f.ended))) / float64(f.ended)
	}
	// Samples that lie closer together than a call takes see the same calls.
	independent := max(min(f.samples, f.window.Seconds()/(2*f.busy.Seconds()/float64(f.ended))), 1)
	return steadySigma * math.Sqrt(max(l.Predicted, l.Observed)/independent)
}
