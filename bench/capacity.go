package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Find is what a capacity is counted in.
type Find string

// What can be looked for.
const (
	FindRate     Find = "rate"     // calls a second, offered in an open loop
	FindUsers    Find = "users"    // users who each wait for an answer, and think, before the next call
	FindSessions Find = "sessions" // sessions open at once, under a rate that stays the same
)

// DefaultObjectives are what a step must meet where nothing else was asked for.
var DefaultObjectives = []string{"p(99)<100ms", "errors<1%"}

const (
	capacityTime  = 150 * time.Second // default of MaxTime
	sessionsRate  = 100               // calls a second while sessions are looked for, unless Rate says otherwise
	leastRate     = 0.05              // calls a second, below which no search goes
	mostRate      = 1e6
	mostUsers     = 100_000
	limitedServer = "server"
	limitedSelf   = "generator"
)

// CapacityConfig says what capacity to look for, and where. Config names the target, the calls, the thresholds and the
// arrivals; its Duration and Requests are not used, its Warmup is that of every step, its ThinkTime that of the users, and
// its Rate is where a search for a rate begins, or the rate that sessions are looked for with.
type CapacityConfig struct {
	Config
	Find    Find          // default FindRate
	Step    time.Duration // how long a level is held; 0 means 5 s, or as long as the percentile needs samples
	MaxTime time.Duration // of the whole search, default 150 s; sessions are opened and closed besides
	Levels  []int         // of a Sweep; none means automatic ones

	// OnStart is told the completed configuration and the conditions when the server has answered for the first time, and
	// how fast it answers a single caller.
	OnStart func(*CapacityConfig, Conditions, *Dist)
	// OnStep is told every step when it has ended.
	OnStep func(CapacityStep)
}

// Capacity is what a search or a sweep has found.
type Capacity struct {
	Find     Find    `json:"find"`
	RateRPS  float64 `json:"rate_rps"` // the highest rate that held; in a search for users, what they made of calls
	Users    int     `json:"users"`    // the highest number that held; 0 where it was not looked for
	Sessions int     `json:"sessions"` // the highest number that held, or the sessions of the search

	Objectives []string       `json:"objectives"`
	ThinkS     float64        `json:"think_s"`    // mean think time of the users
	FailedAt   float64        `json:"failed_at"`  // the lowest level that failed; 0 where none did
	LimitedBy  string         `json:"limited_by"` // "server" or "generator"; empty where no level failed
	Confirmed  bool           `json:"confirmed"`  // the answer was held once more at the end
	TimedOut   bool           `json:"timed_out"`  // the time was over before the search was
	Answer     string         `json:"answer"`     // all that in one sentence
	Steps      []CapacityStep `json:"steps"`
	USL        *USL           `json:"usl"` // of a sweep
	Ladder     []Rung         `json:"ladder,omitempty"`
}

// CapacityStep is one level that was held. Rates are calls a second.
type CapacityStep struct {
	Phase    string  `json:"phase"`    // explore, search, confirm or sweep
	RateRPS  float64 `json:"rate_rps"` // asked for; in a closed loop, answered
	Users    int     `json:"users"`
	Sessions int     `json:"sessions"`
	OK       bool    `json:"ok"`
	Why      string  `json:"why"`

	HoldS        float64 `json:"hold_s"` // measured time
	DeliveredRPS float64 `json:"delivered_rps"`
	CompletedRPS float64 `json:"completed_rps"`
	InFlight     float64 `json:"in_flight"` // mean
	P50US        int64   `json:"p50_us"`
	P99US        int64   `json:"p99_us"`
	Errors       float64 `json:"errors"` // share of the calls
}

// FindCapacity looks for the highest level that meets the objectives, and gives the result of the step that shows it,
// with Capacity filled in. A level meets them when every threshold holds, at least 99 % of the calls were begun, no
// backlog grew, and the generator was not at fault; a step that is neither clearly good nor clearly bad is repeated, and
// two of three decide. Ending ctx ends the search; the result tells what was found until then.
func FindCapacity(ctx context.Context, c CapacityConfig) (*Result, error) {
	p, err := newProber(ctx, &c)
	if err != nil {
		return nil, err
	}
	defer p.close()
	s := &search{start: p.begin(), least: 1, most: mostUsers, whole: true, try: p.try, room: p.room}
	if c.Find == FindRate {
		s.least, s.most, s.whole = leastRate, mostRate, false
	}
	s.start = min(max(s.start, s.least), s.most)
	if !p.hopeless {
		err = s.run()
	}
	p.cap.Confirmed, p.cap.TimedOut = s.confirmed, s.late
	if s.low != nil {
		p.setAnswer(s.low.level)
	}
	if p.hopeless {
		p.cap.LimitedBy = limitedServer
	}
	if s.high != nil {
		p.cap.FailedAt, p.cap.LimitedBy = round(s.high.level, 3), limitedServer
		if s.high.generator {
			p.cap.LimitedBy = limitedSelf
		}
	}
	p.cap.Answer = p.cap.sentence(s.low != nil)
	return p.finish(err)
}

// setAnswer notes the level that was found.
func (p *prober) setAnswer(level float64) {
	c := &p.cap
	switch c.Find {
	case FindRate:
		c.RateRPS, c.Sessions = round(level, 3), p.sessionsOf(level)
	case FindUsers:
		c.Users, c.Sessions = int(level), int(level)
		if r := p.best(level); r != nil {
			c.RateRPS = r.Verdict.CompletedRPS
		}
	case FindSessions:
		c.Sessions, c.RateRPS = int(level), p.cfg.Rate
	}
}

// best gives the latest good result of a level, or nil.
func (p *prober) best(level float64) *Result {
	for _, r := range slices.Backward(p.accepted) {
		if r.Conditions.RateRPS == level && p.cfg.Find == FindRate ||
			r.Conditions.Users == int(level) && p.cfg.Find == FindUsers ||
			r.Conditions.Sessions == int(level) && p.cfg.Find == FindSessions {
			return r
		}
	}
	return nil
}

// finish puts the result together: that of the step which shows the answer.
func (p *prober) finish(err error) (*Result, error) {
	res, shown := p.last, false
	level := map[Find]float64{FindRate: p.cap.RateRPS, FindUsers: float64(p.cap.Users), FindSessions: float64(p.cap.Sessions)}[p.cap.Find]
	for _, r := range p.accepted {
		if at := p.levelOf(r); at-level < 0.001*level && level-at < 0.001*level && (!shown || showsMore(r, res)) {
			res, shown = r, true
		}
	}
	res.Started = p.began.UTC().Truncate(time.Millisecond)
	res.Interrupted = p.ctx.Err() != nil
	if err != nil && !res.Interrupted {
		if !errors.Is(err, errGone) {
			err = fmt.Errorf("%w: %w", errGone, err)
		}
		res.Ended = err.Error()
	}
	p.close()
	res.Sessions = p.keeper.sessions()
	res.Capacity = &p.cap
	return res, nil
}

// showsMore reports whether the later of two results of a level says more: one without a fault, and of these the longer.
func showsMore(later, earlier *Result) bool {
	if later.Verdict.Valid != earlier.Verdict.Valid {
		return later.Verdict.Valid
	}
	return later.Conditions.DurationS >= earlier.Conditions.DurationS
}

// levelOf gives the level that a result was made at.
func (p *prober) levelOf(r *Result) float64 {
	switch p.cap.Find {
	case FindUsers:
		return float64(max(r.Conditions.Users, r.Conditions.Concurrency))
	case FindSessions:
		return float64(r.Conditions.Sessions)
	}
	return r.Conditions.RateRPS
}

// close ends all sessions, also after an interrupt.
func (p *prober) close() { p.keeper.trim(context.WithoutCancel(p.ctx), 0) }

// sentence puts the answer into words.
func (c *Capacity) sentence(found bool) string {
	objectives := joinAnd(c.Objectives)
	failed := c.amount(c.FailedAt)
	switch {
	case !found && c.LimitedBy == limitedSelf:
		return fmt.Sprintf("No %s was found: the generator was the limit at %s already.", c.noun(), failed)
	case !found && len(c.Steps) == 1 && c.FailedAt == 0:
		return fmt.Sprintf("No %s meets %s: %s.", c.noun(), objectives, c.Steps[0].Why)
	case !found && c.FailedAt == 0:
		return "No step could be made in the time."
	case !found:
		return fmt.Sprintf("No %s meets %s: %s already.", c.noun(), objectives, c.tooMuch())
	}
	level := map[Find]float64{FindRate: c.RateRPS, FindUsers: float64(c.Users), FindSessions: float64(c.Sessions)}[c.Find]
	answer := c.amount(level)
	switch {
	case c.LimitedBy == limitedSelf:
		return fmt.Sprintf("At least %s, limited by the generator: %s could not be offered properly.", answer, failed)
	case c.FailedAt == 0:
		return fmt.Sprintf("At least %s with %s: no higher level was tried.", answer, objectives)
	case c.TimedOut:
		return fmt.Sprintf("At least %s with %s, less than %s: the time was over (--max-time).", answer, objectives, failed)
	}
	return fmt.Sprintf("The server holds %s with %s; %s.", answer, objectives, c.tooMuch())
}

// tooMuch says so of the lowest level that failed.
func (c *Capacity) tooMuch() string {
	if c.Find == FindRate || c.FailedAt == 1 {
		return c.amount(c.FailedAt) + " is too much"
	}
	return c.amount(c.FailedAt) + " are too many"
}

// noun names what was looked for.
func (c *Capacity) noun() string {
	return map[Find]string{FindRate: "rate", FindUsers: "number of users", FindSessions: "number of sessions"}[c.Find]
}

// amount writes a level with its unit.
func (c *Capacity) amount(level float64) string {
	switch c.Find {
	case FindUsers:
		return plural(int64(level), "user")
	case FindSessions:
		return plural(int64(level), "session")
	}
	return levelText(level) + "/s"
}

// joinAnd lists things in words.
func joinAnd(list []string) string {
	out := ""
	for i, s := range list {
		switch {
		case i == 0:
		case i == len(list)-1:
			out += " and "
		default:
			out += ", "
		}
		out += s
	}
	return out
}

// levelText writes a rate with three or four digits.
func levelText(r float64) string {
	switch {
	case r >= 1000:
		return thousands(int64(r + 0.5))
	case r >= 100:
		return fmt.Sprintf("%.4g", r)
	}
	return fmt.Sprintf("%.3g", r)
}
