package selfcheck

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/mcpengine/mcpengine/bench"
)

const (
	queueSigmas = 3
	tailSamples = 2500 // below it the blocks of an interval have too few samples
)

// queue is oracle 2: one server with exponential service and Poisson arrivals (M/M/1). The time in the system is
// exponential with rate µ - λ. The median of the noise floor is taken for what HTTP
// adds.
func (s *session) queue(ctx context.Context) error {
	f := s.form
	s.OnStep(fmt.Sprintf("oracle 2: M/M/1, %.0f/s at %.0f/s for %s", f.arrivalRate, f.queueRate, f.queueFor))
	machine := startProbe()
	res, err := s.against(ctx, bench.Config{Rate: f.arrivalRate, Arrivals: bench.Poisson, Duration: f.queueFor},
		"--servers", "1", "--service", fmt.Sprintf("exp:%s", time.Duration(float64(time.Second)/f.queueRate)))
	noise := machine.end().Dist()
	if err != nil {
		return err
	}
	d, floor := all(res).Response, ofMicros(float64(s.report.Noise.Response.P50US))
	mean := time.Duration(float64(time.Second) / (f.queueRate - f.arrivalRate))
	share := queueSigmas * meanDeviation(f.arrivalRate, f.queueRate, d.Count)
	s.duration(2, "mean", ofMicros(d.MeanUS), mean+floor, share, delay{ofMicros(noise.MeanUS), waits}, invalid(res))

	p99 := time.Duration(-math.Log(0.01)*float64(mean)) + floor
	if d.Count < tailSamples {
		s.holds(2, "p99 of few samples has no interval", d.P99CI95US == nil, excuse{})
		return nil
	}
	if d.P99CI95US == nil {
		s.holds(2, "p99 has an interval", false, invalid(res))
		return nil
	}
	s.add(Check{
		Oracle: 2, What: "95 % interval of p99", Unit: "us", Low: micros(p99), Expected: micros(p99), High: micros(p99),
		Measured: float64(d.P99US), Interval: d.P99CI95US,
	}, cmp.Or(invalid(res), held(delay{ofMicros(float64(noise.P99US)), waits}, p99/10)))
	return nil
}

// meanDeviation gives the relative standard deviation of the mean of n times in the system. The samples of a queue are
// correlated; for the waits of an M/M/1 the variance of the mean of n tends to ρ(2+5ρ-4ρ²+ρ³) / (µ²(1-ρ)⁴n).
func meanDeviation(lambda, mu float64, n int64) float64 {
	rho := lambda / mu
	variance := rho * (2 + 5*rho - 4*rho*rho + rho*rho*rho) / (mu * mu * math.Pow(1-rho, 4) * float64(n))
	return math.Sqrt(variance) * (mu - lambda)
}
