package selfcheck

import (
	"context"
	"time"

	"github.com/mcpengine/mcpengine/bench"
)

const (
	rateMost   = 128_000.0
	trialWarm  = 200 * time.Millisecond
	trialsEach = 2 // a rate is too high when so many trials say so: one may have met a busy moment
)

// Rates are the highest rates at which a run was VALID, against a peer that answers at once and shares the machine.
type Rates struct {
	ClosedRPS         float64 `json:"closed_rps"` // 0 where no run was VALID
	ClosedConcurrency int     `json:"closed_concurrency"`
	ClosedCPUUS       float64 `json:"closed_cpu_per_call_us"` // the generator's own
	OpenRPS           float64 `json:"open_rps"`               // asked for and delivered
	OpenCPUUS         float64 `json:"open_cpu_per_call_us"`
	Trials            []Trial `json:"trials"`
}

// Trial is one run of the search.
type Trial struct {
	Loop         string  `json:"loop"`
	RateRPS      float64 `json:"rate_rps"` // asked for; 0 in a closed loop
	Concurrency  int     `json:"concurrency"`
	CompletedRPS float64 `json:"completed_rps"`
	CPUUS        float64 `json:"cpu_per_call_us"`
	Valid        bool    `json:"valid"`
	Why          string  `json:"why,omitempty"`
}

// rates finds the highest rates.
func (s *session) rates(ctx context.Context) error {
	p, err := s.Start(ctx)
	if err != nil {
		return err
	}
	defer p.Stop()
	r := &Rates{}
	s.report.Rates = r
	s.OnStep("highest rates")
	for _, c := range []int{8, 64} {
		t, err := s.trial(ctx, p, bench.Config{Concurrency: c})
		if err != nil {
			return err
		}
		if t.Valid && t.CompletedRPS > r.ClosedRPS {
			r.ClosedRPS, r.ClosedConcurrency, r.ClosedCPUUS = t.CompletedRPS, c, t.CPUUS
		}
	}
	return s.openRate(ctx, p)
}

// openRate raises the rate until it and the next are too high, and halves the bracket that is left.
func (s *session) openRate(ctx context.Context, p *Peer) error {
	r := s.report.Rates
	high := 0.0
	for rate := s.form.first; rate <= rateMost; rate *= s.form.factor {
		ok, err := s.keeps(ctx, p, rate)
		if err != nil {
			return err
		}
		switch {
		case ok:
			high = 0
		case high == 0:
			high = rate
		default:
			rate = rateMost // two rates in a row were too high
		}
	}
	for range s.form.halves {
		if r.OpenRPS == 0 || high == 0 {
			return nil
		}
		middle := (r.OpenRPS + high) / 2
		ok, err := s.keeps(ctx, p, middle)
		if err != nil {
			return err
		}
		if !ok {
			high = middle
		}
	}
	return nil
}

// keeps tells whether the generator keeps a rate.
func (s *session) keeps(ctx context.Context, p *Peer, rate float64) (bool, error) {
	for range trialsEach {
		t, err := s.trial(ctx, p, bench.Config{Rate: rate, MaxInFlight: 1000})
		if err != nil {
			return false, err
		}
		if t.Valid {
			s.report.Rates.OpenRPS, s.report.Rates.OpenCPUUS = rate, t.CPUUS
			return true, nil
		}
	}
	return false, nil
}

// trial makes one trial.
func (s *session) trial(ctx context.Context, p *Peer, c bench.Config) (*Trial, error) {
	c.Duration, c.Warmup = s.form.trial, trialWarm
	res, err := s.offer(ctx, p, c)
	if err != nil {
		return nil, err
	}
	t := Trial{
		Loop: res.Conditions.Loop, RateRPS: c.Rate, Concurrency: c.Concurrency, CompletedRPS: res.Verdict.CompletedRPS,
		CPUUS: cpuPerCall(res), Valid: res.Verdict.Valid, Why: invalid(res).text,
	}
	s.report.Rates.Trials = append(s.report.Rates.Trials, t)
	return &t, nil
}
