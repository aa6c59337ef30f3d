package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

const (
	defaultMaxSessions = 1000
	defaultIdleMax     = 60 * time.Second
	defaultStormTime   = 5 * time.Second
	defaultStorm       = 500 // clients at most
	stormRate          = 100 // steady calls a second
	stormSteady        = 8   // sessions that make them
	expiryWait         = 1.1 // times the idle expiry, until the abandoned are gone
	expirySlack        = 500 * time.Millisecond
)

// SessionsConfig says what to find out about the sessions of a server. Config names the target and the calls that go on
// during a storm; its Rate is theirs. It must be an HTTP server of the era with sessions.
type SessionsConfig struct {
	Config
	Cgroup string // folder of the server's cgroup, instead of Config.ServerPID

	Max       int           // sessions that are tried; default 1,000
	Steps     int           // that they are opened in; default 24
	Settle    time.Duration // least time after a step before the memory is read; default 300 ms
	IdleMax   time.Duration // how long an idle expiry is waited for; 0 means 60 s, less than 0 leaves it out
	Storm     int           // clients of a reconnect storm; 0 means half of what fits, at most 500; less than 0 none
	StormTime time.Duration // steady calls before and after; default 5 s

	// OnPhase is told what is being done.
	OnPhase func(string)

	memory func() (uint64, error) // tests replace it
}

// sessionsRun is a measurement under way.
type sessionsRun struct {
	ctx     context.Context
	cfg     SessionsConfig
	hold    *holder
	call    *query // of the steady calls
	tool    string
	read    func() (uint64, error)
	found   SessionCapacity
	reasons []string
	lag     int64 // p99 of the steady calls, µs
}

// MeasureSessions finds out what sessions cost a server, how many it holds, when idle ones end, what comes back when they
// are ended or abandoned, and what a reconnect storm does. Ending ctx ends it; the result tells what was found until
// then.
func MeasureSessions(ctx context.Context, c SessionsConfig) (*Result, error) {
	m, err := newSessionsRun(ctx, &c)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	for _, part := range []struct {
		name string
		do   func() error
	}{
		{"leaving sessions idle", m.idle}, {"opening sessions", m.keepAndRamp},
		{"ending and abandoning sessions", m.release}, {"reconnecting all clients at once", m.storm},
	} {
		if m.ctx.Err() != nil {
			break
		}
		m.phase(part.name)
		if err = part.do(); err != nil {
			break
		}
	}
	m.hold.close()
	res := m.result(started)
	if err != nil && m.ctx.Err() == nil {
		res.Ended = err.Error()
	}
	return res, nil
}

// newSessionsRun checks the configuration, connects, and chooses the tool of the steady calls.
func newSessionsRun(ctx context.Context, c *SessionsConfig) (*sessionsRun, error) {
	if err := c.prepare(); err != nil {
		return nil, err
	}
	m := &sessionsRun{cfg: *c, found: SessionCapacity{Points: []MemoryPoint{}}}
	var err error
	if m.read, m.found.MemoryOf, err = memoryOf(c); err != nil {
		return nil, err
	}
	if m.cfg.peer == nil {
		if m.cfg.peer, err = newHTTPPeer(&m.cfg.Config); err != nil {
			return nil, err
		}
	}
	m.ctx, m.hold = ctx, newHolder(ctx, &m.cfg.Config)
	if err := m.connect(); err != nil {
		m.hold.close()
		return nil, err
	}
	return m, nil
}

// prepare refuses what cannot be meant, and fills in the defaults.
func (c *SessionsConfig) prepare() error {
	switch {
	case len(c.Command) > 0:
		return usage("sessions are those of Streamable HTTP: give a URL, or -- and a command with {addr} where it has to listen")
	case c.Protocol == Stateless:
		return usage("protocol %s has no sessions to measure", Stateless)
	case c.Users > 0 || len(c.Stages) > 0 || c.Requests > 0 || c.Concurrency > 0:
		return usage("sessions are measured under steady calls of a rate (-r): leave out concurrency, users, stages and requests")
	case c.Max < 0 || c.Steps < 0 || c.Settle < 0 || c.StormTime < 0:
		return usage("the numbers of sessions and steps and the times cannot be negative")
	case c.ServerPID != 0 && c.Cgroup != "":
		return usage("the memory is that of a process or of a cgroup: give one of them")
	}
	setDefault(&c.Rate, stormRate)
	setDefault(&c.Max, defaultMaxSessions)
	setDefault(&c.Steps, defaultSteps)
	setDefault(&c.Settle, defaultSettle)
	setDefault(&c.IdleMax, defaultIdleMax)
	setDefault(&c.StormTime, defaultStormTime)
	full, err := c.Config.withDefaults()
	if err != nil {
		return err
	}
	c.Config = full
	if c.OnPhase == nil {
		c.OnPhase = func(string) {}
	}
	return nil
}

// connect opens a session, chooses the tool with it, and ends it.
func (m *sessionsRun) connect() error {
	c := m.hold.set.newCaller()
	defer m.hold.set.release(c)
	r := run{cfg: m.cfg.Config}
	at, err := m.hold.add(c)
	if err != nil {
		return r.connectError(err)
	}
	sess := *at.sess.Load()
	if http, ok := sess.(*httpSession); ok && http.id == "" {
		return usage("%s gives its clients no session ids, so there are no sessions to measure", m.cfg.target())
	}
	if _, ok := sess.(*statelessSession); ok {
		return usage("%s speaks %s, which has no sessions to measure", m.cfg.target(), Stateless)
	}
	listed, err := listTools(sess, c, m.cfg.Timeout)
	if err != nil {
		return r.connectError(err)
	}
	m.hold.end(m.hold.take(1))
	if m.cfg.Storm < 0 {
		return nil
	}
	tools, err := chooseTools(&m.cfg.Config, listed)
	if err != nil {
		return err
	}
	if err := tools[0].prepare(sess); err != nil {
		return err
	}
	m.tool, m.call = tools[0].name, tools[0].queries[0]
	return nil
}

// phase tells what is being done.
func (m *sessionsRun) phase(text string) { m.cfg.OnPhase(text) }

// keepAndRamp opens sessions while those that are open are kept alive.
func (m *sessionsRun) keepAndRamp() error {
	if i := m.found.Idle; i != nil && i.Found {
		m.hold.keepAlive(time.Duration(i.AliveS * float64(time.Second)))
	}
	return m.ramp()
}

// release abandons half of the sessions and ends the other half, and looks at the memory after each.
func (m *sessionsRun) release() error {
	n := m.hold.size()
	if n < 2 {
		m.hold.end(m.hold.take(n))
		return nil
	}
	r := &Released{Abandoned: n / 2}
	m.found.Released = r
	left := m.hold.take(n / 2)
	begin := time.Now()
	full, err := m.settled()
	if err != nil {
		return err
	}
	if i := m.found.Idle; i != nil && i.Found {
		pauseFor(m.ctx, time.Duration(i.DeadS*expiryWait*float64(time.Second))+expirySlack)
	}
	without, err := m.settled()
	if err != nil {
		return err
	}
	r.WaitedS = round(time.Since(begin).Seconds(), 3)
	r.AbandonedShare = m.givenBack(full, without, r.Abandoned)
	rest := m.hold.take(n)
	r.Deleted = m.hold.end(rest)
	empty, err := m.settled()
	if err != nil {
		return err
	}
	r.DeletedShare = m.givenBack(without, empty, r.Deleted)
	m.hold.end(left) // where they have not expired
	return nil
}

// givenBack gives the memory that came back as a share of what so many sessions cost; nil where that is not known.
func (m *sessionsRun) givenBack(before, after uint64, n int) *float64 {
	cost := m.found.BytesPerSession * float64(n)
	if m.read == nil || cost <= 0 || m.ctx.Err() != nil {
		return nil
	}
	share := round((float64(before)-float64(after))/cost, 3)
	return &share
}

// conditions are those of all parts.
func (m *sessionsRun) conditions() Conditions {
	c := &m.cfg
	agreed := m.hold.set.agreed()
	out := Conditions{
		Target: c.target(), Transport: "http", Protocol: agreed.protocol, Loop: "open", RateRPS: c.Rate, Arrivals: string(Constant),
		Sessions: m.found.Tried, Seed: c.Seed, Host: Host{CPUs: runtime.GOMAXPROCS(0), OS: runtime.GOOS,
			Go: runtime.Version()},
		Server: agreed.server, Tools: []string{}, TimeoutS: c.Timeout.Seconds(), Overflow: string(Wait), HTTP2: c.HTTP2,
		InProcess: c.InProcess,
	}
	if m.tool != "" {
		out.Tools = []string{m.tool}
	}
	return out
}

// result puts together what was found.
func (m *sessionsRun) result(started time.Time) *Result {
	res := emptyResult(&m.cfg.Config, started)
	res.Conditions = m.conditions()
	res.Conditions.DurationS = round(time.Since(started).Seconds(), 3)
	res.Interrupted = m.ctx.Err() != nil
	set := m.hold.set
	set.mu.Lock()
	res.Sessions = Sessions{Opened: set.opened.Load(), Failed: set.failed.Load(), Lost: set.lost.Load(),
		Closed: set.closed.Load(), Setup: distOf(set.setup, nil)}
	set.mu.Unlock()
	m.found.Answer = m.found.sentence()
	res.SessionCapacity = &m.found
	if !res.Interrupted && m.read != nil && m.found.BytesPerSessionCI95 == nil {
		m.reasons = append(m.reasons, fmt.Sprintf(
			"%s of memory are too few for an interval, at least %d are needed: "+
				"more --steps, or a --max nearer to what the server holds",
			plural(int64(len(m.found.Points)), "step"), pointsNeed))
	}
	res.Verdict.LagP99US = m.lag
	res.Verdict.Reasons = append(res.Verdict.Reasons, m.reasons...)
	res.Verdict.Valid = len(res.Verdict.Reasons) == 0
	return res
}
