package bench

import "time"

// Phase is the part of a run that is under way.
type Phase string

// The phases in their order.
const (
	PhaseOpening   Phase = "opening"
	PhaseWarmup    Phase = "warm-up"
	PhaseMeasuring Phase = "measuring"
	PhaseDraining  Phase = "draining"
	PhaseClosing   Phase = "closing"
)

// Progress is a look at a run while it is under way, for a live view. Rate and percentiles are those of the last slot.
type Progress struct {
	Phase    Phase
	Elapsed  time.Duration // of the phase
	Total    time.Duration // that the phase will take; 0 where nobody knows
	Sessions int64         // alive
	Wanted   int           // sessions asked for
	Calls    int64         // measured calls that have ended
	Limit    int64         // measured calls asked for; 0 where the time decides
	Errors   int64         // of Calls
	InFlight int64
	RPS      float64
	P50US    int64
	P99US    int64

	Delivered float64          // calls begun a second, since the begin of the measured window
	Dropped   int64            // calls due and never begun
	Lost      int64            // sessions lost so far
	Failed    int64            // sessions that could not be opened
	Outcomes  map[string]int64 // the errors by outcome
	LagP99US  int64            // how late the generator itself began calls, so far; open loop
	CPU       float64          // the generator's share of the cores, so far
	Reasons   []string         // why the result would not be valid if the run ended now; looked at once a second
}
