package bench

import (
	"math"
	"time"
)

// Stage is a piece of an open loop whose rate changes: it leads in a straight line from the rate at the end of the
// stage before to Rate, and takes Duration for it. The first stage begins at Config.Rate, which is 0 where it is not
// given. A Duration of 0 is a jump.
type Stage struct {
	Duration time.Duration
	Rate     float64 // calls a second at the end of the stage
}

const (
	maxStages = 1000
	endless   = 1e12 // seconds; infinity would make integrals that are no numbers
)

// ramp is a piece of time in which the rate changes in a straight line.
type ramp struct {
	from, length float64 // seconds; the only one of a plain rate is endless
	low, slope   float64 // rate at its begin, and by how much it changes in a second
	before       float64 // starts that are due before it
}

// due gives how many starts are due in the first t seconds of the ramp: the integral of the rate.
func (p *ramp) due(t float64) float64 { return p.low*t + p.slope*t*t/2 }

// when is the inverse of due. Written this way it loses no digits when the slope is small.
func (p *ramp) when(n float64) float64 {
	if n <= 0 {
		return 0
	}
	return 2 * n / (p.low + math.Sqrt(max(p.low*p.low+2*p.slope*n, 0)))
}

// ramps lays out the rate of an open loop over time: the warm-up, then the stages, or one rate without an end.
func ramps(c *Config) []ramp {
	if len(c.Stages) == 0 {
		return []ramp{{length: endless, low: c.Rate}}
	}
	var out []ramp
	var at, due float64
	level := c.Rate
	add := func(length, to float64) {
		if length > 0 {
			p := ramp{from: at, length: length, low: level, slope: (to - level) / length, before: due}
			out = append(out, p)
			at, due = at+length, due+p.due(length)
		}
		level = to
	}
	add(c.Warmup.Seconds(), c.Rate)
	for _, s := range c.Stages {
		add(s.Duration.Seconds(), s.Rate)
	}
	return out
}

// dueBy gives how many starts are due in the first t seconds.
func dueBy(list []ramp, t float64) float64 {
	var n float64
	for i := range list {
		p := &list[i]
		if t <= p.from {
			break
		}
		n = p.before + p.due(min(t-p.from, p.length))
	}
	return n
}

// askedRate gives the mean rate that was asked for in the first part of the measured time.
func (c *Config) askedRate(window time.Duration) float64 {
	if len(c.Stages) == 0 || window <= 0 {
		return c.Rate
	}
	list := ramps(c)
	from := c.Warmup.Seconds()
	return (dueBy(list, from+window.Seconds()) - dueBy(list, from)) / window.Seconds()
}

// peakRate gives the highest rate of an open loop.
func (c *Config) peakRate() float64 {
	peak := c.Rate
	for _, s := range c.Stages {
		peak = max(peak, s.Rate)
	}
	return peak
}

// stagesTime gives the length of all stages.
func (c *Config) stagesTime() time.Duration {
	var d time.Duration
	for _, s := range c.Stages {
		d += s.Duration
	}
	return d
}
