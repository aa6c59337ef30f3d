package bench

import (
	"fmt"
	"time"
)

const (
	deliveredLeast = 0.99                  // of what was asked
	lagMost        = 10 * time.Millisecond // at p99, where the calls themselves do not take much longer
	lagShare       = 0.1                   // of the p99 of the service time
	stoppedNoted   = 0.01                  // of the measured time, by the garbage collector: it may be why calls began late
	stoppedMost    = 0.25                  // beyond it no time that was measured says much about the target
	cpuMost        = 0.9                   // of the cores that the generator can use
	cpuIdle        = 0.5                   // below it the generator's own work is not what made it late
	cpuNeeds       = time.Second           // of measured time, below which the start is all that one sees
)

// evidence is what the verdict is made from.
type evidence struct {
	open        bool
	paced       bool // calls are due at moments of their own: an open loop, or users who think
	inProcess   bool // the generator's processor time holds the server's
	scheduled   int64
	begun       int64
	window      time.Duration
	lagP99      time.Duration
	serviceP99  time.Duration
	cpu         float64 // share of the cores
	held        int64   // calls that the cap has held back
	maxInFlight int     // that the user has set; 0 for none
	limit       int     // that this machine has set
	overflow    Overflow
	starved     int64
	stopped     time.Duration // by the garbage collector, in all
}

// reasons lists why a result cannot be trusted; none means that it is valid. A server that is slow or fails is a finding
// and no reason: what counts is whether the load was offered as asked, and whether the generator was the limit.
func (e *evidence) reasons() []string {
	out := []string{}
	if e.begun == 0 {
		out = append(out, "no call was begun in the measured window")
	}
	if e.open && e.scheduled > 0 {
		if share := float64(e.begun) / float64(e.scheduled); share < deliveredLeast {
			out = append(out, fmt.Sprintf("delivered %s of %s calls (%.1f %%; at least %.0f %% are needed): %s",
				thousands(e.begun), thousands(e.scheduled), 100*share, 100*deliveredLeast, e.blame()))
		}
	}
	if limit := max(lagMost, time.Duration(lagShare*float64(e.serviceP99))); e.paced && e.lagP99 > limit {
		out = append(out, fmt.Sprintf("the generator began calls late: schedule lag p99 %s, at most %s is tolerated; %s",
			durationText(e.lagP99), durationText(limit), e.advice()))
	}
	if e.cpu > cpuMost && !e.inProcess && e.window >= cpuNeeds {
		out = append(out, fmt.Sprintf("the generator used %.0f %% of the CPU that it can have, so it was the limit itself", 100*e.cpu))
	}
	if share := e.stoppedShare(); share > stoppedMost && e.window >= cpuNeeds {
		out = append(out, fmt.Sprintf("memory management stopped the generator for %.0f %% of the time, at most %.0f %% is tolerated: "+
			"give it more CPU, or fewer sessions",
			100*share, 100*stoppedMost))
	}
	if e.starved > 0 {
		out = append(out, fmt.Sprintf("this machine refused %s connections (descriptors or ports used up): raise ulimit -n, or cap with --max-in-flight", thousands(e.starved)))
	}
	return out
}

// stoppedShare is the part of the window for which the garbage collector has stopped the generator. A server in the same
// process makes the garbage too, and nobody is to blame.
func (e *evidence) stoppedShare() float64 {
	if e.inProcess || e.window <= 0 {
		return 0
	}
	return float64(e.stopped) / float64(e.window)
}

// advice says what would help against a late start.
func (e *evidence) advice() string {
	if share := e.stoppedShare(); share > stoppedNoted {
		return fmt.Sprintf("memory management stopped it for %.1f %% of the time, so give it more CPU, or fewer sessions", 100*share)
	}
	if e.cpu < cpuIdle && !e.inProcess {
		return fmt.Sprintf("it used only %.0f %% of the CPU, so other work on this machine held it up", 100*e.cpu)
	}
	return "lower the rate, or give it more CPU"
}

// starvedConnections counts the connections for which this machine had no descriptor or port left: of calls, of sessions
// that were to be opened, and of GET streams.
func (r *run) starvedConnections() int64 {
	n := r.starved.Load() + r.set.starved.Load()
	if s := r.set.streams; s != nil {
		n += s.starved.Load()
	}
	return n
}

// blame says what kept calls from being begun.
func (e *evidence) blame() string {
	switch {
	case e.held > 0 && e.maxInFlight > 0 && e.overflow == Skip:
		return fmt.Sprintf("--max-in-flight %d was reached and calls were skipped", e.maxInFlight)
	case e.held > 0 && e.maxInFlight > 0:
		return fmt.Sprintf("--max-in-flight %d held calls back until the end", e.maxInFlight)
	case e.held > 0:
		return fmt.Sprintf("%d calls were in flight, as many as this machine allows", e.limit)
	}
	return "the generator could not keep the schedule"
}
