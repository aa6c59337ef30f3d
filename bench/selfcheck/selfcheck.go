package selfcheck

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/mcpengine/mcpengine/bench"
)

// Schema names the layout of Report; scripts rely on its names.
const Schema = "mcp-load-selftest/v1"

// Oracles are the numbers of the oracles that there are, as docs/selftest.md has them.
var Oracles = []int{1, 2, 3, 6, 10, 12}

// Peer is a calibrated peer, which runs in a process of its own.
type Peer struct {
	URL  string
	PID  int
	Stop func() // ends the process and waits for its end
}

// Options says what to do.
type Options struct {
	// Start starts a peer; flags are those of mcp-load mock, without an address.
	Start func(ctx context.Context, flags ...string) (*Peer, error)
	// Form is how long it may take: Quick, Short or Full.
	Form Form
	// Oracles are those to try; where some are named the highest rates are not looked for. Empty means all.
	Oracles []int
	// Version is that of the program, for the report.
	Version string
	// OnStep is told what begins, in a few words. Nil tells nobody.
	OnStep func(what string)
}

// Report is what came out. Times are microseconds where the name ends in _us, seconds where it ends in _s.
type Report struct {
	Schema  string     `json:"schema"`
	Version string     `json:"version"`
	Started time.Time  `json:"started"`
	Host    bench.Host `json:"host"`
	Form    string     `json:"form"`
	TookS   float64    `json:"took_s"`
	Noise   Noise      `json:"noise"`
	Rates   *Rates     `json:"rates"` // null where they were not looked for
	Checks  []Check    `json:"checks"`
	Passed  int        `json:"passed"`
	Failed  int        `json:"failed"`
	TooBusy int        `json:"too_busy"`
}

// session is one self-test under way.
type session struct {
	Options
	form   *form
	begin  time.Time
	report *Report
}

// Run does what o says. The error is for what kept it from being done at all, such as a peer that did not start, and for
// a context that has ended; a check that fails is in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	f, ok := forms[o.Form]
	if !ok {
		return nil, fmt.Errorf("selfcheck: there is no form %q", o.Form)
	}
	if o.OnStep == nil {
		o.OnStep = func(string) {}
	}
	begin := time.Now()
	s := &session{Options: o, form: f, begin: begin, report: &Report{
		Schema: Schema, Version: o.Version, Started: begin.UTC().Truncate(time.Millisecond), Form: string(o.Form),
		Host: bench.Host{CPUs: runtime.GOMAXPROCS(0), OS: runtime.GOOS, Go: runtime.Version()}, Checks: []Check{},
	}}
	steps := []func(context.Context) error{s.noise}
	if len(o.Oracles) == 0 {
		steps = append(steps, s.rates)
	}
	for i, oracle := range []func(context.Context) error{s.stall, s.queue, s.impossible, s.sessions, s.streams, s.merging} {
		if len(o.Oracles) == 0 || slices.Contains(o.Oracles, Oracles[i]) {
			steps = append(steps, func(ctx context.Context) error { return s.try(ctx, oracle) })
		}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	s.report.TookS = time.Since(begin).Round(100 * time.Millisecond).Seconds()
	s.report.count()
	return s.report, nil
}

// try does an oracle, and does it once more where it has not passed and there is time: a defect shows again, a busy moment
// of the machine may not.
func (s *session) try(ctx context.Context, oracle func(context.Context) error) error {
	begin, before := time.Now(), len(s.report.Checks)
	if err := oracle(ctx); err != nil {
		return err
	}
	passed := !slices.ContainsFunc(s.report.Checks[before:], func(c Check) bool { return c.Outcome != Pass })
	if passed || time.Since(s.begin)+time.Since(begin) > s.form.limit {
		return nil
	}
	s.report.Checks = s.report.Checks[:before]
	return oracle(ctx)
}

func (r *Report) count() {
	for _, c := range r.Checks {
		switch c.Outcome {
		case Pass:
			r.Passed++
		case Fail:
			r.Failed++
		case Busy:
			r.TooBusy++
		}
	}
}

// against starts a peer and offers it the load that c describes.
func (s *session) against(ctx context.Context, c bench.Config, flags ...string) (*bench.Result, error) {
	p, err := s.Start(ctx, flags...)
	if err != nil {
		return nil, err
	}
	defer p.Stop()
	return s.offer(ctx, p, c)
}

// offer runs c against a peer that is there.
func (s *session) offer(ctx context.Context, p *Peer, c bench.Config) (*bench.Result, error) {
	c.URL, c.Version, c.Seed = p.URL, s.Version, seed
	res, err := bench.Run(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("a run against a calibrated peer: %w", err)
	}
	return res, nil
}

// seed makes every self-test offer the same calls at the same intended instants.
const seed = 1

// all gives the latency of all calls.
func all(r *bench.Result) *bench.Latency { return &r.Latency[len(r.Latency)-1] }
