// Package plan turns what was measured of one server into the number of replicas, the memory and the processors that a
// wanted load needs. It is arithmetic: it measures nothing, and every assumption that it makes is part of the plan.
package plan

import (
	"fmt"
	"math"
	"strings"
)

// mostReplicas bounds a plan. A larger one is a wrong input.
const mostReplicas = 100_000

// Measured is what is known of one replica. Zero means not known.
type Measured struct {
	RateRPS   float64 // calls a second that it holds with the objectives met
	Users     int     // users that it holds, each with a think time of ThinkS
	ThinkS    float64
	ResponseS float64 // mean response time at that load
	Sessions  int     // most sessions that it holds

	CPUPerCall      float64 // seconds
	BaseBytes       float64 // memory without its sessions
	BytesPerSession float64

	Objectives  []string // that the rate, or the users, were found with
	LowerBounds bool     // the generator was the limit, so the replica may hold more
}

// Options are what a plan assumes. The zero value means the defaults.
type Options struct {
	ThinkS      float64 // of a user between an answer and the next call; default that of the measurement, or 10 s
	Utilisation float64 // share of what a replica holds that the plan uses; default 1
	Contention  float64 // σ between replicas: k of them hold k / (1 + σ(k−1)) times what one does; default 0
	Spare       int     // replicas beyond those that carry the load; default 1
	NoSpare     bool    // Spare is 0
}

// Need is one side of the target: what is wanted in all, what a replica holds, and how many replicas that makes.
type Need struct {
	What       string  `json:"what"` // rate, users or sessions
	Wanted     float64 `json:"wanted"`
	PerReplica float64 `json:"per_replica"` // 0 where it is not known
	Replicas   int     `json:"replicas"`    // 0 where it is not known
}

// Share is what falls to one replica when those without the spare ones carry the load, which is what it is sized for.
type Share struct {
	RateRPS     float64 `json:"rate_rps"`
	Sessions    int     `json:"sessions"`
	Utilisation float64 `json:"utilisation"`  // of what a replica holds
	CPUCores    float64 `json:"cpu_cores"`    // 0 where it is not known
	MemoryBytes float64 `json:"memory_bytes"` // 0 where it is not known
}

// Resources are the requests and limits of one replica: processors in thousandths, memory in MiB. Zero means not known.
type Resources struct {
	CPURequestMillis int `json:"cpu_request_millis"`
	CPULimitMillis   int `json:"cpu_limit_millis"`
	MemoryRequestMiB int `json:"memory_request_mib"`
	MemoryLimitMiB   int `json:"memory_limit_mib"`
}

// Verification is what came out when the plan was tried.
type Verification struct {
	OfferedRPS float64 `json:"offered_rps"`
	Users      int     `json:"users"`
	Enough     Trial   `json:"enough"` // with the planned number, without the spare ones
	OneLess    *Trial  `json:"one_less"`
	OK         bool    `json:"ok"` // the planned number was enough, and one less was not
	Text       string  `json:"text"`
}

// Trial is one load test of a number of replicas.
type Trial struct {
	Replicas     int     `json:"replicas"`
	OK           bool    `json:"ok"`
	Valid        bool    `json:"valid"` // the generator was not at fault
	CompletedRPS float64 `json:"completed_rps"`
	P99US        int64   `json:"p99_us"`
	Why          string  `json:"why"`
}

// Plan is how many replicas a target needs, and of what size.
type Plan struct {
	Target     Target   `json:"target"`
	ThinkS     float64  `json:"think_s"` // of a user between an answer and the next call
	Objectives []string `json:"objectives"`
	Needs      []Need   `json:"needs"`

	Replicas     int    `json:"replicas"`               // that carry the load
	WithHeadroom int    `json:"replicas_with_headroom"` // with the spare ones: to run
	DecidedBy    string `json:"decided_by"`             // What of the largest need

	PerReplica Share     `json:"per_replica"`
	Resources  Resources `json:"resources"`
	CPUCores   float64   `json:"cpu_cores"`    // of all to run
	Memory     float64   `json:"memory_bytes"` // of all to run

	Assumptions  []string      `json:"assumptions"`
	Unknown      []string      `json:"unknown"`
	Answer       string        `json:"answer"`
	Verification *Verification `json:"verification"`
}

// Make plans. The error says what is missing: a target, or a measurement that can be set against it.
func Make(t Target, m Measured, o Options) (*Plan, error) {
	if err := o.complete(&m); err != nil {
		return nil, err
	}
	if t.empty() {
		return nil, fmt.Errorf("give a target such as --target 5000users, 2000/s or 10000sessions")
	}
	p := &Plan{Target: t, ThinkS: o.ThinkS, Objectives: m.Objectives, Assumptions: []string{}, Unknown: []string{}}
	load := p.load(&m, &o)
	p.Needs = p.needs(load, &m, &o)
	for i := range p.Needs {
		n := &p.Needs[i]
		if n.PerReplica == 0 {
			continue
		}
		var ok bool
		if n.Replicas, ok = replicas(n.Wanted, n.PerReplica*o.Utilisation, o.contentionOf(n.What)); !ok {
			return nil, fmt.Errorf("no number of replicas holds %s: with a contention of %g between them, %g is the most that they reach",
				amount(n.What, n.Wanted), o.Contention, n.PerReplica*o.Utilisation/o.Contention)
		}
		if n.Replicas > p.Replicas {
			p.Replicas, p.DecidedBy = n.Replicas, n.What
		}
	}
	if p.Replicas == 0 {
		return nil, fmt.Errorf("the results do not say what a replica holds of this target: measure it with mcp-load capacity%s", p.hint())
	}
	p.WithHeadroom = p.Replicas + o.Spare
	p.share(load, &m)
	p.size()
	p.assume(load, &m, &o)
	p.Answer = p.sentence(load)
	return p, nil
}

// complete fills in the defaults.
func (o *Options) complete(m *Measured) error {
	switch {
	case o.Utilisation == 0:
		o.Utilisation = 1
	case o.Utilisation < 0 || o.Utilisation > 1:
		return fmt.Errorf("the utilisation must lie between 0 and 1, and is %g", o.Utilisation)
	}
	if o.Contention < 0 || o.Contention >= 1 || o.ThinkS < 0 || o.Spare < 0 {
		return fmt.Errorf("contention (0 to 1), think time and spare replicas cannot be negative")
	}
	if o.ThinkS == 0 {
		o.ThinkS = m.ThinkS
	}
	if o.ThinkS == 0 {
		o.ThinkS = 10
	}
	if o.Spare == 0 && !o.NoSpare {
		o.Spare = 1
	}
	return nil
}

// contentionOf gives σ for one side: memory for sessions is not shared between replicas.
func (o *Options) contentionOf(what string) float64 {
	if what == "sessions" {
		return 0
	}
	return o.Contention
}

// replicas gives the smallest k for which k·each / (1 + σ(k−1)) reaches wanted; false where none does.
func replicas(wanted, each, sigma float64) (int, bool) {
	const nothing = 1e-9 // what rounding may add
	if d := each - sigma*wanted; d > 0 {
		k := math.Ceil(wanted*(1-sigma)/d*(1-nothing) - nothing)
		return max(int(k), 1), k <= mostReplicas
	}
	return 0, false
}

// load is what a target comes to.
type load struct {
	rate     float64 // calls a second; 0 where the target says nothing of calls
	users    int
	sessions int
}

// load turns the target into calls a second and sessions.
func (p *Plan) load(m *Measured, o *Options) load {
	l := load{rate: p.Target.RateRPS, users: p.Target.Users, sessions: max(p.Target.Sessions, p.Target.Users)}
	if l.users > 0 {
		l.rate += float64(l.users) / (o.ThinkS + m.ResponseS)
	}
	return l
}

// needs lists the sides of the target. Users count as users where they were measured with the same think time, and as the
// calls that they make otherwise.
func (p *Plan) needs(l load, m *Measured, o *Options) []Need {
	var needs []Need
	asUsers := l.users > 0 && m.Users > 0 && m.ThinkS == o.ThinkS && p.Target.RateRPS == 0
	switch {
	case asUsers:
		needs = append(needs, Need{What: "users", Wanted: float64(l.users), PerReplica: float64(m.Users)})
	case l.rate > 0:
		needs = append(needs, Need{What: "rate", Wanted: l.rate, PerReplica: m.RateRPS})
	}
	if l.sessions > 0 {
		needs = append(needs, Need{What: "sessions", Wanted: float64(l.sessions), PerReplica: float64(m.Sessions)})
	}
	return needs
}

// share says what falls to a replica.
func (p *Plan) share(l load, m *Measured) {
	k := float64(p.Replicas)
	s := &p.PerReplica
	s.RateRPS = l.rate / k
	s.Sessions = int(math.Ceil(float64(l.sessions) / k))
	for _, n := range p.Needs {
		if n.PerReplica > 0 {
			s.Utilisation = max(s.Utilisation, n.Wanted/k/n.PerReplica)
		}
	}
	s.CPUCores = s.RateRPS * m.CPUPerCall
	p.CPUCores = s.CPUCores * float64(p.Replicas)                      // the load is the same, however many share it
	if m.BaseBytes > 0 && (l.sessions == 0 || m.BytesPerSession > 0) { // half of it would be worse than nothing
		s.MemoryBytes = m.BaseBytes + m.BytesPerSession*float64(s.Sessions)
		p.Memory = float64(p.WithHeadroom)*m.BaseBytes + m.BytesPerSession*float64(l.sessions)
	}
}

const (
	cpuLimitTimes    = 2.0
	memoryLimitTimes = 1.5
	mib              = 1 << 20
)

// size rounds what a replica needs to requests and limits.
func (p *Plan) size() {
	if c := p.PerReplica.CPUCores; c > 0 {
		p.Resources.CPURequestMillis = int(math.Ceil(c*100)) * 10
		p.Resources.CPULimitMillis = int(cpuLimitTimes * float64(p.Resources.CPURequestMillis))
	}
	if b := p.PerReplica.MemoryBytes; b > 0 {
		p.Resources.MemoryRequestMiB = int(math.Ceil(b / mib))
		p.Resources.MemoryLimitMiB = int(math.Ceil(memoryLimitTimes * b / mib))
	}
}

// assume lists what the plan takes for granted, and what the results did not tell.
func (p *Plan) assume(l load, m *Measured, o *Options) {
	say := func(format string, args ...any) { p.Assumptions = append(p.Assumptions, fmt.Sprintf(format, args...)) }
	missing := func(format string, args ...any) { p.Unknown = append(p.Unknown, fmt.Sprintf(format, args...)) }
	if l.users > 0 {
		say("a user makes one call, waits for the answer (%s on average), thinks for %s, and keeps one session",
			seconds(m.ResponseS), seconds(o.ThinkS))
	}
	if o.Contention == 0 {
		say("k replicas hold k times what one holds: nothing behind them (a database, another service) is shared and saturates")
	} else {
		say("k replicas hold k / (1 + %g(k-1)) times what one holds", o.Contention)
	}
	say("the load is spread evenly: stateless calls in turn, sessions by their number")
	say("a replica runs on a machine like that of the measurement, and does calls like those of the measurement")
	if o.Utilisation == 1 {
		say("a replica may be used up to the load that it was shown to hold (100 %% of it)")
	} else {
		say("a replica is used up to %.0f %% of the load that it was shown to hold", 100*o.Utilisation)
	}
	say("%s: when that many are down or restarted, the others still carry the load", plural(o.Spare, "spare replica"))
	if p.Resources.CPURequestMillis > 0 {
		say("CPU grows in proportion to the calls; its limit is %g times the request", cpuLimitTimes)
	}
	if p.Resources.MemoryRequestMiB > 0 {
		say("memory grows in proportion to the sessions; its limit is %g times the request", memoryLimitTimes)
	}
	if m.LowerBounds {
		say("what a replica holds is a lower bound, because the generator was the limit: fewer may be enough")
	}
	if l.rate > 0 && m.RateRPS == 0 && m.Users == 0 {
		missing("the calls a second that a replica holds: mcp-load capacity finds them")
	}
	if l.sessions > 0 && m.Sessions == 0 {
		missing("the most sessions of a replica: mcp-load sessions, or capacity --find sessions, finds them")
	}
	if m.CPUPerCall == 0 && l.rate > 0 {
		missing("the CPU of a call: give the measurement the server's process with --server-pid")
	}
	if m.BaseBytes == 0 {
		missing("the memory of a replica: give the measurement the server's process with --server-pid")
	}
	if l.sessions > 0 && m.BytesPerSession == 0 {
		missing("the memory of a session, so that of a replica is left out: mcp-load sessions finds it")
	}
}

// hint names the flag of the measurement that is missing.
func (p *Plan) hint() string {
	if p.Target.RateRPS == 0 && p.Target.Users == 0 {
		return " --find sessions"
	}
	return ""
}

// sentence is the answer.
func (p *Plan) sentence(l load) string {
	spare := p.WithHeadroom - p.Replicas
	what := strings.Join(p.Target.parts(), " and ")
	if spare == 0 {
		return fmt.Sprintf("Run %s for %s.", plural(p.Replicas, "replica"), what)
	}
	verb := "carry"
	if p.Replicas == 1 {
		verb = "carries"
	}
	return fmt.Sprintf("Run %s for %s: %d %s the load, %d to spare.", plural(p.WithHeadroom, "replica"), what, p.Replicas, verb, spare)
}
