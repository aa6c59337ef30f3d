package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Think is the time that a virtual user takes between an answer and the next call. The zero value is no time at all.
type Think struct {
	Mean        time.Duration
	Exponential bool // drawn anew each time, with this mean; otherwise always Mean
}

// ParseThink reads 2s, which is constant, or exp:2s, which is exponential with that mean.
func ParseThink(s string) (Think, error) {
	text, exponential := strings.CutPrefix(s, "exp:")
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return Think{}, usage("think time %q is not understood: write 2s, or exp:2s for times of an exponential distribution",
			s)
	}
	return Think{d, exponential}, nil
}

// String writes what ParseThink reads.
func (t Think) String() string {
	if t.Exponential {
		return "exp:" + t.Mean.String()
	}
	return t.Mean.String()
}

// draw gives the next think time.
func (t Think) draw(rng *rand.Rand) time.Duration {
	if t.Exponential {
		return time.Duration(rng.ExpFloat64() * float64(t.Mean))
	}
	return t.Mean
}

// residual gives what is left of a think time that somebody looks at who comes by chance. The users of a run begin with
// it, so that they do not march in step.
func (t Think) residual(rng *rand.Rand) time.Duration {
	if t.Exponential || t.Mean <= 0 {
		return t.draw(rng) // the exponential distribution has no memory
	}
	return time.Duration(rng.Int64N(int64(t.Mean)))
}

// describe puts a think time into words.
func (t Think) describe() string {
	if t.Exponential {
		return fmt.Sprintf("exponential think time of mean %s", t.Mean)
	}
	return fmt.Sprintf("think time %s", t.Mean)
}
