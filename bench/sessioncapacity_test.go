package bench

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/transport/client/wire"
)

// costlyPeer is a virtual server whose sessions cost memory, are limited, and end when they are idle.
type costlyPeer struct {
	virtualPeer
	bytes, most int
	ttl         time.Duration
	deaf        bool // DELETE does nothing

	mu     sync.Mutex
	rng    *rand.Rand                   // guarded by mu
	used   map[*costlySession]time.Time // guarded by mu: of every session, when it was last used
	opened int                          // guarded by mu
}

type costlySession struct {
	virtualSession
	of *costlyPeer
}

func newCostlyPeer(bytes, most int, ttl time.Duration) *costlyPeer {
	return &costlyPeer{
		virtualPeer: virtualPeer{serve: func(now time.Time) time.Time { return now.Add(time.Millisecond) }},
		bytes:       bytes, most: most, ttl: ttl, rng: rand.New(rand.NewPCG(3,
			3)), used: map[*costlySession]time.Time{},
	}
}

// sweep forgets what is idle. The caller holds mu.
func (p *costlyPeer) sweep() {
	for s, at := range p.used {
		if p.ttl > 0 && time.Since(at) >= p.ttl {
			delete(p.used, s)
		}
	}
}

func (p *costlyPeer) open(*caller, time.Time) (session, error) {
	time.Sleep(2 * time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sweep(); p.most > 0 && len(p.used) >= p.most {
		return nil, &wire.StatusError{Status: 503, Body: []byte("full")}
	}
	s := &costlySession{virtualSession{peer: &p.virtualPeer}, p}
	p.used[s] = time.Now()
	p.opened++
	return s, nil
}

// memory is that of a process with a base of 30 MiB and pages that come and go.
func (p *costlyPeer) memory() (uint64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep()
	return uint64(30<<20 + len(p.used)*p.bytes + p.rng.IntN(16)*4096), nil
}

func (s *costlySession) request(c *caller, q *query, deadline time.Time) error {
	p := s.of
	p.mu.Lock()
	p.sweep()
	_, known := p.used[s]
	if known {
		p.used[s] = time.Now()
	}
	p.mu.Unlock()
	if !known {
		return &wire.StatusError{Status: wire.StatusNotFound}
	}
	return s.virtualSession.request(c, q, deadline)
}

func (s *costlySession) lost(err error) bool {
	var status *wire.StatusError
	return errors.As(err, &status) && status.Status == wire.StatusNotFound
}

func (s *costlySession) close(*caller, time.Time) error {
	p := s.of
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep()
	if _, known := p.used[s]; !known {
		return &wire.StatusError{Status: wire.StatusNotFound}
	}
	if !p.deaf {
		delete(p.used, s)
	}
	return nil
}

// sessionsInVirtualTime measures a virtual server, and checks that no session is left behind.
func sessionsInVirtualTime(t *testing.T, p *costlyPeer, c SessionsConfig) (res *Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c.peer, c.memory, c.pause, c.InProcess, c.Seed = p, p.memory, time.Sleep, true, 1
		var err error
		if res, err = MeasureSessions(context.Background(), c); err != nil {
			t.Fatal(err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.sweep(); len(p.used) > 0 && !p.deaf {
			t.Errorf("%d sessions are left on the server", len(p.used))
		}
	})
	return res
}

// TestSessionCapacity is oracle 6 in virtual time: the slope within 5 %, the limit exactly, the idle expiry within a
// second at 20 s.
func TestSessionCapacity(t *testing.T) {
	for _, c := range []struct {
		bytes, most int
		ttl         time.Duration
		cfg         SessionsConfig
	}{
		{1 << 20, 500, 20 * time.Second, SessionsConfig{}},
		{64 << 10, 997, 7 * time.Second, SessionsConfig{}},
		{16 << 10, 60, 0, SessionsConfig{Max: 64, Steps: 32, IdleMax: 30 * time.Second}},
		{8 << 10, 0, 90 * time.Second, SessionsConfig{Max: 300}},
	} {
		res := sessionsInVirtualTime(t, newCostlyPeer(c.bytes, c.most, c.ttl), c.cfg)
		n := res.SessionCapacity
		if !res.Verdict.Valid || res.Ended != "" {
			t.Errorf("%+v: verdict %+v, ended %q", c, res.Verdict, res.Ended)
		}
		if math.Abs(n.BytesPerSession-float64(c.bytes)) > 0.05*float64(c.bytes) {
			t.Errorf("%+v: %.0f bytes per session, want %d ± 5 %%", c, n.BytesPerSession, c.bytes)
		}
		if ci := n.BytesPerSessionCI95; ci == nil || ci[0] > float64(c.bytes) || ci[1] < float64(c.bytes) {
			t.Errorf("%+v: interval %v, want one around %d", c, ci, c.bytes)
		}
		if n.MaxSessions != c.most || n.Confirmed != (c.most > 0) {
			t.Errorf("%+v: limit %d, confirmed %v, want %d", c, n.MaxSessions, n.Confirmed, c.most)
		}
		expires := c.ttl > 0 && c.ttl <= time.Minute
		if n.Idle.Found != expires || expires && math.Abs(n.Idle.ExpiryS-c.ttl.Seconds()) > 0.02*c.ttl.Seconds() {
			t.Errorf("%+v: idle expiry %+v, want %v within 2 %%", c, n.Idle, c.ttl)
		}
		if s := n.Storm; s == nil || s.Failures > 0 || s.NeverBack > 0 || s.Clients < 20 || s.Before.P99US == nil ||
			*s.Before.P99US > 2000 {
			t.Errorf("%+v: storm %+v, want one without failures", c, s)
		}
		wantShare(t, "deleted", n.Released.DeletedShare, 1)
		if expires {
			wantShare(t, "abandoned", n.Released.AbandonedShare, 1)
		} else {
			wantShare(t, "abandoned and never expired", n.Released.AbandonedShare, 0)
		}
	}
}

func wantShare(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > 0.3 {
		t.Errorf("share of the memory of what was %s = %v, want about %.0f", what, got, want)
	}
}

// TestStormFailures: where the server has no room for all who come back, that is counted.
func TestStormFailures(t *testing.T) {
	p := newCostlyPeer(4096, 40, 0)
	res := sessionsInVirtualTime(t, p, SessionsConfig{Max: 30, Storm: 30, IdleMax: -1, StormTime: time.Second})
	s := res.SessionCapacity.Storm
	if s == nil || s.Failures == 0 || s.NeverBack == 0 || !strings.Contains(s.FirstError, "full") {
		t.Errorf("storm = %+v, want failures and clients that never came back", s)
	}
}

// TestLimitNotConfirmed: a server on which ending a session makes no room has its limit reported as not confirmed.
func TestLimitNotConfirmed(t *testing.T) {
	p := newCostlyPeer(4096, 20, 0)
	p.deaf = true
	res := sessionsInVirtualTime(t, p, SessionsConfig{Max: 50, Storm: -1, IdleMax: -1})
	if n := res.SessionCapacity; n.Confirmed || n.Tried == 0 {
		t.Errorf("limit %d, confirmed %v, tried %d: want it not confirmed", n.MaxSessions, n.Confirmed, n.Tried)
	}
}

// TestSessionsInterrupted: an interrupt gives what was found until then, and ends the sessions.
func TestSessionsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newCostlyPeer(1<<20, 500, 0)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		c := SessionsConfig{IdleMax: -1, memory: p.memory}
		c.peer, c.pause, c.InProcess = p, time.Sleep, true
		res, err := MeasureSessions(ctx, c)
		if err != nil || !res.Interrupted || len(res.SessionCapacity.Points) < 3 || len(p.used) > 0 {
			t.Errorf("MeasureSessions = %+v, %v with %d sessions left; want an interrupted result with points", res,
				err, len(p.used))
		}
	})
}

func TestSessionsRefuses(t *testing.T) {
	for _, c := range []struct {
		c    SessionsConfig
		want string
	}{
		{SessionsConfig{Config: Config{URL: "http://h/mcp", Protocol: Stateless}},
			"protocol 2026-07-28 has no sessions to measure"},
		{SessionsConfig{Config: Config{URL: "http://h/mcp", Users: 3}},
			"leave out concurrency, users, stages and requests"},
		{SessionsConfig{Config: Config{URL: "http://h/mcp", ServerPID: 1 << 30}},
			"there is no process 1073741824 (--server-pid)"},
		{SessionsConfig{Config: Config{URL: "http://h/mcp"}, Cgroup: "/nowhere"},
			"the memory of cgroup /nowhere cannot be read"},
	} {
		_, err := MeasureSessions(context.Background(), c.c)
		if _, ok := err.(*UsageError); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("MeasureSessions(%+v): got %v, want a usage error with %q", c.c, err, c.want)
		}
	}
}
