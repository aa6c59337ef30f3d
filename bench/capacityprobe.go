package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	stepAuto      = 5 * time.Second
	stepStretch   = 2 // how many times as long a step may be held for the sake of its percentile
	exploreTime   = 2 * time.Second
	exploreCalls  = 10 // without which not even a short step says anything
	confirmTimes  = 2  // as long as a step
	stepWarmup    = time.Second
	calibrateTime = time.Second
	calmCalls     = 3
	calmMost      = 30 * time.Second
	calmShare     = 3 // how many times its usual time a single call may take before the next step
)

// errGone ends a search whose server does not answer any more.
var errGone = errors.New("the server does not answer any more")

// prober holds levels for a search, all on the same sessions.
type prober struct {
	ctx    context.Context
	cfg    CapacityConfig
	keeper *keeper
	judge  judge
	end    time.Time // of the search
	began  time.Time

	base     time.Duration // mean service time of a single caller
	hopeless bool          // a single caller does not see the objectives met
	upset    bool          // the last step was too much, and the server may still be busy with it
	runs     uint64        // made so far, for their seeds
	perLevel float64       // calls a second that one more user makes, from the last step

	cap      Capacity
	accepted []*Result // good steps, the latest last
	last     *Result
}

// newProber checks the configuration, connects, and sees how fast the server answers a single caller.
func newProber(ctx context.Context, c *CapacityConfig) (*prober, error) {
	setDefault(&c.Find, FindRate)
	setDefault(&c.MaxTime, capacityTime)
	if err := c.prepare(); err != nil {
		return nil, err
	}
	p := &prober{ctx: ctx, cfg: *c, began: time.Now(), cap: Capacity{
		Find: c.Find, Objectives: c.Thresholds, ThinkS: c.ThinkTime.Mean.Seconds(), Steps: []CapacityStep{},
	}}
	p.end = p.began.Add(c.MaxTime)
	p.judge = newJudge(&p.cfg)
	if p.cfg.peer == nil {
		var err error
		if p.cfg.peer, err = newPeer(&p.cfg.Config); err != nil {
			return nil, err
		}
	}
	p.keeper = newKeeper(p.cfg.peer)
	p.cfg.peer = p.keeper
	if err := p.calibrate(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// prepare refuses what has no meaning here, and completes the objectives and the defaults that all steps share.
func (c *CapacityConfig) prepare() error {
	switch {
	case c.Find != FindRate && c.Find != FindUsers && c.Find != FindSessions:
		return usage("a capacity of %q is not known: choose rate, users or sessions", string(c.Find))
	case c.Concurrency > 0 || c.Users > 0 || len(c.Stages) > 0:
		return usage("a capacity search chooses the load itself: leave out concurrency, users and stages")
	case c.Step < 0 || c.MaxTime < 0:
		return usage("the time of a step and that of the search cannot be negative")
	case c.Find == FindRate && c.ThinkTime.Mean > 0 && c.Levels == nil:
		return usage("a think time needs users: look for users, or sweep")
	}
	errors := slices.ContainsFunc(c.Thresholds, func(expr string) bool { return strings.Contains(expr, "errors") })
	switch {
	case len(c.Thresholds) == 0:
		c.Thresholds = slices.Clone(DefaultObjectives)
	case !errors: // a server that refuses quickly would be the best of all
		c.Thresholds = append(slices.Clone(c.Thresholds), DefaultObjectives[1])
	}
	if c.Find == FindSessions {
		setDefault(&c.Rate, sessionsRate)
	}
	c.Duration, c.Requests = 0, 0
	likeStep := c.Config
	if c.ThinkTime.Mean > 0 {
		likeStep.Rate, likeStep.Users, likeStep.Sessions = 0, 1, 1
	}
	defaults, err := likeStep.withDefaults()
	if err != nil {
		return err
	}
	c.Seed, c.Timeout, c.OnWarning, c.OnProgress = defaults.Seed, defaults.Timeout, defaults.OnWarning, defaults.OnProgress
	c.Protocol = defaults.Protocol // the peer is made of c, and an empty version is no version to ask a server for
	if c.Sessions == 0 && c.Find == FindRate {
		c.Sessions = defaults.Sessions
	}
	return nil
}

// calibrate has one caller make calls for a second.
func (p *prober) calibrate() error {
	c := p.cfg.Config
	c.Rate, c.ThinkTime, c.Thresholds = 0, Think{}, nil
	c.Concurrency, c.Sessions, c.Duration, c.Warmup = 1, 1, calibrateTime, 0
	res, err := p.run(&c)
	if err != nil {
		return err
	}
	p.last = res
	all := &res.Latency[len(res.Latency)-1]
	if res.Requests.OK == 0 {
		why := "it was interrupted"
		for _, text := range res.Requests.Examples {
			why = text
		}
		return fmt.Errorf("a single caller got no answer that is a success: %s", why)
	}
	p.base = time.Duration(all.Service.MeanUS * float64(time.Microsecond))
	if p.cfg.OnStart != nil {
		p.cfg.OnStart(&p.cfg, res.Conditions, all.Service)
	}
	if limit := p.judge.slowest; limit > 0 && float64(all.Service.P50US) > limit {
		p.hopeless = true
		t := trial{}
		p.note("single", &c, res, &t, fmt.Sprintf("a single caller waits %s already", microsText(float64(all.Service.P50US))))
	}
	return nil
}

// run makes one run with a seed of its own.
func (p *prober) run(c *Config) (*Result, error) {
	c.Seed = p.cfg.Seed + p.runs
	p.runs++
	return Run(p.ctx, *c)
}

// begin gives the level to begin with: half of what a single caller gets through, or one.
func (p *prober) begin() float64 {
	switch {
	case p.cfg.Find != FindRate:
		return 1
	case p.cfg.Rate > 0:
		return p.cfg.Rate
	}
	return min(0.5/max(p.base.Seconds(), 1e-6), 2000)
}

// rateOf estimates the calls a second at a level.
func (p *prober) rateOf(level float64) float64 {
	switch {
	case p.cfg.Find == FindSessions:
		return p.cfg.Rate
	case p.cfg.Find == FindRate:
		return level
	case p.perLevel > 0:
		return level * p.perLevel
	}
	return level / (p.base + p.cfg.ThinkTime.Mean).Seconds()
}

// sessionsOf gives the sessions of a step.
func (p *prober) sessionsOf(level float64) int {
	if p.cfg.Find == FindRate {
		return p.cfg.Sessions
	}
	return int(level)
}

// hold gives the time of a step, and of what goes before it.
func (p *prober) hold(level float64, e effort) (hold, warmup time.Duration) {
	base := p.cfg.Step
	setDefault(&base, stepAuto)
	cycle := p.base + p.cfg.ThinkTime.Mean
	enough := func(samples float64) time.Duration {
		return time.Duration(samples / p.rateOf(level) * float64(time.Second))
	}
	if e == exploring {
		return max(min(base, exploreTime), 4*cycle, enough(exploreCalls)), max(2*p.base, base/20)
	}
	hold = base
	if p.cfg.Find != FindSessions { // sessions that are refused need no percentile
		hold = max(min(max(base, enough(p.judge.wanted)), stepStretch*base), enough(p.judge.least))
	}
	hold = max(hold, 4*cycle)
	if e == confirming && time.Now().Add(confirmTimes*hold+2*stepWarmup).Before(p.end) {
		hold *= confirmTimes
	}
	warmup = p.cfg.Warmup
	if warmup == 0 {
		warmup = max(min(stepWarmup, hold/5), 2*p.base)
	}
	return hold, warmup
}

// room reports whether there is time for a trial; before the confirmation, also for that.
func (p *prober) room(level float64, e effort) bool {
	if p.ctx.Err() != nil {
		return false
	}
	hold, warmup := p.hold(level, e)
	if e == narrowing {
		hold, warmup = 2*hold, 2*warmup
	}
	return time.Now().Add(hold + warmup).Before(p.end)
}

// try holds a level.
func (p *prober) try(level float64, e effort) (trial, error) {
	if err := p.calm(); err != nil {
		return trial{}, err
	}
	hold, warmup := p.hold(level, e)
	return p.step(level, e, e.String(), p.load(level, hold, warmup))
}

// load gives the configuration of a step.
func (p *prober) load(level float64, hold, warmup time.Duration) *Config {
	c := p.cfg.Config
	c.brief = true
	c.Duration, c.Warmup, c.Sessions = hold, warmup, p.sessionsOf(level)
	switch p.cfg.Find {
	case FindRate:
		c.Rate, c.ThinkTime = level, Think{}
	case FindUsers:
		c.Rate, c.Users = 0, int(level)
	}
	return &c
}

// step makes the run of a step, ends it early where its backlog shows that it fails, and judges it.
func (p *prober) step(level float64, e effort, phase string, c *Config) (trial, error) {
	p.keeper.trim(p.ctx, c.Sessions)
	ctx, stop := context.WithCancel(p.ctx)
	defer stop()
	w := p.judge.watch(c, stop)
	show := c.OnProgress
	c.OnProgress = func(now Progress) {
		w.progress(now)
		show(now)
	}
	c.Seed = p.cfg.Seed + p.runs
	p.runs++
	res, err := Run(ctx, *c)
	if err != nil {
		return trial{}, err
	}
	if p.ctx.Err() == nil {
		res.Interrupted = false // it was ended by the watch, or not at all
	}
	p.last = res
	t, why := p.judge.judge(res, w)
	t.level, t.effort = level, e
	p.upset = !t.ok
	if c.Users > 0 {
		p.perLevel = res.Verdict.CompletedRPS / level
	}
	p.note(phase, c, res, &t, why)
	switch {
	case p.ctx.Err() != nil:
		return t, p.ctx.Err()
	case res.Ended != "":
		return t, fmt.Errorf("%w: %s", errGone, res.Ended)
	}
	return t, nil
}

// note keeps a step and tells it.
func (p *prober) note(phase string, c *Config, res *Result, t *trial, why string) {
	all := &res.Latency[len(res.Latency)-1]
	s := CapacityStep{
		Phase: phase, RateRPS: round(c.Rate, 3), Users: max(c.Users, c.Concurrency), Sessions: c.Sessions, OK: t.ok, Why: why,
		HoldS: res.Conditions.DurationS, DeliveredRPS: res.Verdict.DeliveredRPS, CompletedRPS: res.Verdict.CompletedRPS,
		P50US: all.Response.P50US, P99US: all.Response.P99US, Errors: round(errorShare(res), 6),
	}
	if res.LittlesLaw != nil {
		s.InFlight = res.LittlesLaw.Observed
	}
	if c.Rate == 0 {
		s.RateRPS = res.Verdict.CompletedRPS
	}
	p.cap.Steps = append(p.cap.Steps, s)
	if t.ok {
		p.accepted = append(p.accepted, res)
	}
	if p.cfg.OnStep != nil {
		p.cfg.OnStep(s)
	}
}

// calm waits, after a step that was too much, until a single call takes its usual time again.
func (p *prober) calm() error {
	until := minTime(time.Now().Add(calmMost), p.end)
	for p.upset && time.Now().Before(until) {
		c := p.cfg.Config
		c.Rate, c.ThinkTime, c.Thresholds = 0, Think{}, nil
		c.Concurrency, c.Sessions, c.Requests, c.OnProgress = 1, 1, calmCalls, nil
		res, err := p.run(&c)
		if err != nil {
			return fmt.Errorf("%w: %w", errGone, err)
		}
		mean := time.Duration(res.Latency[len(res.Latency)-1].Response.MeanUS * float64(time.Microsecond))
		p.upset = res.Requests.OK == 0 || mean > calmShare*p.base+10*time.Millisecond
	}
	p.upset = false
	return nil
}
