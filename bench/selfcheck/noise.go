package selfcheck

import (
	"context"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/bench"
)

const (
	probeSleep   = 2 * time.Millisecond
	noiseService = 5 * time.Millisecond
	noiseRate    = 200
)

// Noise is what this machine adds to times, measured with nothing else to do: 200 calls a second to an idle peer that
// takes 5 ms for each.
type Noise struct {
	Timer *bench.Dist `json:"timer"` // how late a goroutine wakes from a sleep of 2 ms
	Lag   *bench.Dist `json:"lag"`   // how late the generator began calls
	// Response is that from the intended start, less the 5 ms that the peer takes.
	Response Excess `json:"response"`
	// CPUPerCallUS is the generator's processor time for a call; the threads that keep the schedule are in it.
	CPUPerCallUS float64 `json:"cpu_per_call_us"`
}

// Excess is what times have beyond the least that they could have been.
type Excess struct {
	MeanUS float64 `json:"mean_us"`
	P50US  int64   `json:"p50_us"`
	P99US  int64   `json:"p99_us"`
	MaxUS  int64   `json:"max_us"`
}

// noise measures the noise floor.
func (s *session) noise(ctx context.Context) error {
	s.OnStep("noise floor")
	timer := startProbe()
	res, err := s.against(ctx, bench.Config{Rate: noiseRate, Duration: s.form.noise, Warmup: 200 * time.Millisecond},
		"--service", noiseService.String())
	found := timer.end()
	if err != nil {
		return err
	}
	const served = int64(noiseService / time.Microsecond)
	d := all(res).Response
	s.report.Noise = Noise{
		Timer: found.Dist(), Lag: res.Lag, CPUPerCallUS: cpuPerCall(res),
		Response: Excess{d.MeanUS - float64(served), d.P50US - served, d.P99US - served, d.MaxUS - served},
	}
	return nil
}

// cpuPerCall is the generator's processor time for a call, in microseconds.
func cpuPerCall(res *bench.Result) float64 {
	used := res.Verdict.GeneratorCPU * float64(res.Conditions.Host.CPUs) * res.Conditions.DurationS
	return used * 1e6 / float64(max(res.Requests.Total, 1))
}

// probe finds how long this process waits for a processor while something else is measured: how much later than it
// wanted a goroutine wakes from a short sleep.
type probe struct {
	stop chan struct{}
	wg   sync.WaitGroup
	late *bench.Histogram
}

func startProbe() *probe {
	p := &probe{stop: make(chan struct{}), late: bench.NewHistogram()}
	p.wg.Go(func() {
		for {
			begin := time.Now()
			select {
			case <-p.stop:
				return
			case <-time.After(probeSleep):
				p.late.Record(time.Since(begin)-probeSleep, 1)
			}
		}
	})
	return p
}

// end ends the probe and gives what it has found. It may be called once.
func (p *probe) end() *bench.Histogram {
	close(p.stop)
	p.wg.Wait()
	return p.late
}
