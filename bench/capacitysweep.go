package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mcpengine/mcpengine/bench/usl"
)

const (
	sweepStep   = 3 * time.Second // how long each of the two visits to a level lasts
	sweepEnough = 8               // levels, after which an automatic sweep may end
	sweepFlat   = 3               // levels without growth that end it
	sweepGrowth = 1.03            // what counts as growth
	littleShare = 0.10            // how far X·(R+Z) may lie from N
)

// sweepLevels are those of an automatic sweep.
var sweepLevels = []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}

// ladderLimits are the objectives that a sweep answers besides its own.
var ladderLimits = []time.Duration{10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond}

// USL is the Universal Scalability Law as it was fitted to a sweep: X(N) = λN / (1 + σ(N−1) + κN(N−1)). Intervals hold 95 %.
type USL struct {
	Lambda   float64  `json:"lambda"` // calls a second of a single caller
	Sigma    float64  `json:"sigma"`  // contention
	Kappa    float64  `json:"kappa"`  // coherency
	NMax     *float64 `json:"n_max"`  // callers at the highest throughput; null where it grows for ever
	PeakRPS  *float64 `json:"peak_rps"`
	Residual float64  `json:"residual"` // relative, root mean square

	LambdaCI95 [2]float64  `json:"lambda_ci95"`
	SigmaCI95  [2]float64  `json:"sigma_ci95"`
	KappaCI95  [2]float64  `json:"kappa_ci95"`
	NMaxCI95   [2]*float64 `json:"n_max_ci95"` // an end that the data do not give is null

	Extrapolated bool     `json:"extrapolated"` // NMax lies beyond the highest level of the sweep
	Warnings     []string `json:"warnings"`
}

// Rung is the highest level of a sweep that meets one objective. Level is 0 where none does.
type Rung struct {
	Objective string  `json:"objective"`
	Level     int     `json:"level"`
	RateRPS   float64 `json:"rate_rps"` // calls answered at that level
	Highest   bool    `json:"highest"`  // no higher level was tried
}

// visit is one of the two measurements of a level.
type visit struct {
	level     int
	x         float64 // calls a second
	inService float64 // mean number of calls at the server
	p99       int64
	ok        bool // meets the objectives
	usable    bool // the generator was not at fault, and there was an answer
}

// Sweep holds the levels, of concurrent callers or of users with think time, in a closed loop, and fits the scalability
// curve to their throughputs. Every level is visited twice, once on the way up and once on the way down, so that a slow
// drift of the server does not look like a curve. The fit is refused with fewer than six levels; the result then has no
// USL and Answer says why.
func Sweep(ctx context.Context, c CapacityConfig) (*Result, error) {
	c.Find = FindUsers
	automatic := len(c.Levels) == 0
	if automatic {
		c.Levels = sweepLevels
	}
	levels := slices.Clone(c.Levels)
	slices.Sort(levels)
	if levels = slices.Compact(levels); levels[0] < 1 || levels[len(levels)-1] > mostUsers {
		return nil, usage("the levels of a sweep lie between 1 and %s", thousands(mostUsers))
	}
	if len(levels) < usl.MinLevels {
		return nil, usage("a sweep needs at least %d different levels, and got %d", usl.MinLevels, len(levels))
	}
	p, err := newProber(ctx, &c)
	if err != nil {
		return nil, err
	}
	defer p.close()
	visits, err := p.sweep(levels, automatic)
	p.sweepAnswer(visits)
	return p.finish(err)
}

// sweep makes the visits.
func (p *prober) sweep(levels []int, automatic bool) ([]visit, error) {
	var visits []visit
	best, flat := 0.0, 0
	for i, level := range levels {
		v, err := p.visit(level)
		if err != nil {
			return visits, err
		}
		visits = append(visits, v)
		if flat++; v.x > sweepGrowth*best {
			flat = 0
		}
		best = max(best, v.x)
		late := i+1 < len(levels) && 2*time.Since(p.began) > p.cfg.MaxTime
		if (automatic && i+1 >= sweepEnough && flat >= sweepFlat) || late {
			p.cap.TimedOut = late
			break
		}
	}
	for _, v := range slices.Backward(slices.Clone(visits)) {
		again, err := p.visit(v.level)
		if err != nil {
			return visits, err
		}
		visits = append(visits, again)
	}
	return visits, nil
}

// visit holds one level.
func (p *prober) visit(level int) (visit, error) {
	c := p.cfg.Config
	c.Rate, c.Sessions = 0, level
	c.Duration = p.cfg.Step
	setDefault(&c.Duration, sweepStep)
	c.Duration = max(c.Duration, 4*(p.base+c.ThinkTime.Mean))
	setDefault(&c.Warmup, max(c.Duration/10, 2*p.base))
	if c.ThinkTime.Mean > 0 {
		c.Users = level
	} else {
		c.Concurrency = level
	}
	t, err := p.step(float64(level), narrowing, "sweep", &c)
	if err != nil {
		return visit{}, err
	}
	p.upset = false // callers that wait leave no backlog behind
	all := &p.last.Latency[len(p.last.Latency)-1]
	x := p.last.Verdict.CompletedRPS
	return visit{
		level: level, x: x, inService: x * all.Service.MeanUS / 1e6, p99: all.Response.P99US,
		ok: t.ok, usable: !t.generator && x > 0 && p.last.Requests.OK > 0,
	}, nil
}

// sweepAnswer fits the curve, and finds the best level for the objectives and for each rung of the ladder.
func (p *prober) sweepAnswer(visits []visit) {
	c := &p.cap
	if rung := highest(visits, func(v *visit) bool { return v.ok }); rung.Level > 0 {
		c.Users, c.Sessions, c.RateRPS = rung.Level, rung.Level, rung.RateRPS
	}
	for _, limit := range ladderLimits {
		rung := highest(visits, func(v *visit) bool { return v.usable && v.p99 < limit.Microseconds() })
		rung.Objective = fmt.Sprintf("p(99)<%s", limit)
		c.Ladder = append(c.Ladder, rung)
	}
	var points []usl.Point
	var warnings []string
	for i := range visits {
		v := &visits[i]
		if !v.usable {
			c.LimitedBy = limitedSelf
			if w := fmt.Sprintf("level %d is left out: the generator was the limit, or no call succeeded", v.level); !slices.Contains(warnings, w) {
				warnings = append(warnings, w)
			}
			continue
		}
		n := float64(v.level)
		if z := p.cfg.ThinkTime.Mean.Seconds(); z > 0 {
			n = v.inService // the law is about calls at the server; users who think are not there
		}
		points = append(points, usl.Point{N: n, X: v.x})
		if w := p.littleWarning(v); w != "" && !slices.Contains(warnings, w) {
			warnings = append(warnings, w)
		}
	}
	m, err := usl.Fit(points, p.cfg.Seed)
	if err != nil {
		c.Answer = "No scalability curve: " + err.Error() + "."
		return
	}
	c.USL = describeUSL(m, warnings)
	c.Answer = c.USL.sentence(m)
}

// littleWarning says where a level contradicts Little's law: X·(R+Z) calls, or users, must be there.
func (p *prober) littleWarning(v *visit) string {
	z := p.cfg.ThinkTime.Mean.Seconds()
	n := v.inService + v.x*z
	if math.Abs(n-float64(v.level)) <= littleShare*float64(v.level) {
		return ""
	}
	return fmt.Sprintf("at level %d X·(R+Z) is %.3g: it was not in a steady state, or calls failed", v.level, n)
}

// highest gives the highest level of which every visit is good.
func highest(visits []visit, good func(*visit) bool) Rung {
	var best Rung
	most := 0
	for i := range visits {
		level := visits[i].level
		most = max(most, level)
		sum, n, all := 0.0, 0, true
		for j := range visits {
			if visits[j].level == level {
				sum, n, all = sum+visits[j].x, n+1, all && good(&visits[j])
			}
		}
		if all && level > best.Level {
			best.Level, best.RateRPS = level, round(sum/float64(n), 2)
		}
	}
	best.Highest = best.Level > 0 && best.Level == most
	return best
}

// describeUSL puts a fit into the form of a result.
func describeUSL(m *usl.Model, warnings []string) *USL {
	u := &USL{
		Lambda: m.Lambda, Sigma: m.Sigma, Kappa: m.Kappa, Residual: round(m.Residual, 5), Warnings: warnings,
		LambdaCI95: [2]float64{m.LambdaCI.Low, m.LambdaCI.High}, SigmaCI95: [2]float64{m.SigmaCI.Low, m.SigmaCI.High},
		KappaCI95: [2]float64{m.KappaCI.Low, m.KappaCI.High},
	}
	if u.Warnings == nil {
		u.Warnings = []string{}
	}
	if m.Residual > littleShare {
		u.Warnings = append(u.Warnings, fmt.Sprintf("the points lie %.0f %% from the curve: the law does not describe this server", 100*m.Residual))
	}
	n, ok := m.NMax()
	if !ok {
		return u
	}
	peak := m.At(n)
	u.NMax, u.PeakRPS, u.Extrapolated = &n, &peak, n > m.Highest
	for i, end := range []float64{m.NMaxCI.Low, m.NMaxCI.High} {
		if !math.IsInf(end, 0) {
			u.NMaxCI95[i] = &end
		}
	}
	return u
}

// sentence puts the curve into words.
func (u *USL) sentence(m *usl.Model) string {
	switch {
	case u.NMax == nil && u.Sigma > 0:
		return fmt.Sprintf("Throughput grows with every caller, towards %s/s (λ/σ); contention is %.2g %%.", levelText(u.Lambda/u.Sigma), 100*u.Sigma)
	case u.NMax == nil:
		return fmt.Sprintf("Throughput grows in proportion to the callers, %s/s each, up to %g.", levelText(u.Lambda), m.Highest)
	case u.Extrapolated:
		return fmt.Sprintf("Throughput still grows at %g callers; the curve has its peak, %s/s, at about %.0f.", m.Highest, levelText(*u.PeakRPS), *u.NMax)
	}
	return fmt.Sprintf("Throughput has its peak, %s/s, at about %.0f callers; more callers get less.", levelText(*u.PeakRPS), *u.NMax)
}
