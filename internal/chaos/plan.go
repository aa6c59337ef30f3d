package chaos

import (
	"math/rand/v2"
	"time"
)

// Kind is what goes wrong on a connection.
type Kind uint8

// The kinds of faults. Reset, Cut and HalfClose lose what was under way, in the
// middle of a message as a rule. Stall, Trickle and Delay lose nothing.
const (
	None      Kind = iota
	Refuse         // it is reset as soon as it is there
	Reset          // both sides get a reset
	Cut            // both sides are closed
	HalfClose      // one direction is closed, and what would still come that way is lost
	Stall          // one direction stands still for a while, and is not read meanwhile
	Trickle        // one direction gets through a few bytes at a time
	Delay          // each portion of one direction is late
	kinds
)

// String names the kind.
func (k Kind) String() string {
	return [...]string{"none", "refuse", "reset", "cut", "half-close", "stall", "trickle", "delay"}[k]
}

// Fault is what happens to one connection.
type Fault struct {
	Kind     Kind
	ToServer bool          // the direction that is counted, and that suffers
	After    int           // how many bytes of that direction get through before
	For      time.Duration // how long it stalls; how late each portion is
	Portion  int           // how many bytes trickle through at a time
}

// Plan says what happens to the connections of a Proxy.
type Plan struct {
	// Seed makes the plan. The same seed makes the same one.
	Seed uint64
	// Longest is how long one stall may take.
	Longest time.Duration
}

// weights are how often, of 100, a connection meets a kind of fault.
var weights = [kinds]int{None: 44, Refuse: 4, Reset: 12, Cut: 10, HalfClose: 8, Stall: 8, Trickle: 7, Delay: 7}

// Of gives the fault of the connection of a number.
func (p Plan) Of(n int) Fault {
	r := rand.New(rand.NewPCG(p.Seed, uint64(n)))
	var f Fault
	for at := r.IntN(100); at >= weights[f.Kind]; f.Kind++ {
		at -= weights[f.Kind]
	}
	f.ToServer = r.IntN(3) == 0
	// Offsets of all magnitudes: in the first line, in a body, many requests later.
	f.After = r.IntN(16 << r.IntN(12))
	f.Portion = 1 + r.IntN(64)
	switch f.Kind {
	case Stall:
		f.For = p.Longest/8 + time.Duration(r.Int64N(int64(p.Longest*7/8)+1))
	case Trickle:
		f.For = time.Duration(1+r.IntN(4)) * time.Millisecond
	case Delay:
		f.For = time.Duration(1+r.IntN(80)) * time.Millisecond
	}
	return f
}
