package bench

import (
	"context"
	"slices"

	"github.com/mcpengine/mcpengine/bench/plan"
)

// TryLoad offers a load once and judges it as a step of a capacity search is judged: by its thresholds, which are
// DefaultObjectives where there are none, by the calls begun and by the backlog. A load that is far too much is ended
// early. The error is that of Run, or the end of ctx.
func TryLoad(ctx context.Context, c Config) (*plan.Trial, error) {
	if len(c.Thresholds) == 0 {
		c.Thresholds = slices.Clone(DefaultObjectives)
	}
	full, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	j := newJudge(&CapacityConfig{Config: full})
	trying, stop := context.WithCancel(ctx)
	defer stop()
	w := j.watch(&full, stop)
	show := full.OnProgress
	full.OnProgress = func(p Progress) {
		w.progress(p)
		show(p)
	}
	res, err := Run(trying, full)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	t, why := j.judge(res, w)
	return &plan.Trial{
		OK: t.ok, Valid: !t.generator, CompletedRPS: res.Verdict.CompletedRPS, Why: why,
		P99US: res.Latency[len(res.Latency)-1].Response.P99US,
	}, nil
}
