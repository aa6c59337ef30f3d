package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

const (
	amplifiedSessions = 10
	amplifiedCalls    = 100
	amplifiedLists    = 20
	countsEvery       = 150 * time.Millisecond // between two readings of the counters
	countsMost        = 3 * time.Second        // that the gateway may take to finish what it does behind an answer
)

// UpstreamCounts is what the server behind a gateway has counted since it began.
type UpstreamCounts struct {
	Sessions   int64 // opened
	Initialize int64
	Discover   int64 // server/discover, which stands for initialize in the era without sessions
	List       int64 // tools/list
	Call       int64 // tools/call
}

// Amplification is what a gateway does upstream for what its clients do.
type Amplification struct {
	Sessions   int64    `json:"sessions"` // of clients, opened while counting
	Calls      int64    `json:"calls"`    // of clients
	Lists      int64    `json:"lists"`    // tools/list of clients
	Failed     int64    `json:"failed"`   // of all these
	PerSession Upstream `json:"per_session"`
	PerCall    Upstream `json:"per_call"`
	PerList    Upstream `json:"per_list"`
}

// Upstream is what reached the upstream server for one session, call or list of a client, on average.
type Upstream struct {
	Sessions   float64 `json:"sessions"`
	Initialize float64 `json:"initialize"`
	Discover   float64 `json:"discover"`
	List       float64 `json:"tools_list"`
	Call       float64 `json:"tools_call"`
}

// amplification opens sessions, makes calls, and lists tools, and reads the upstream server's counters after each.
func (m *overheadRun) amplification() error {
	a := &Amplification{}
	w := m.via
	c := w.set.newCaller()
	defer w.set.release(c)
	before, err := m.upstreamAtRest()
	if err != nil {
		return err
	}
	count := func(n *int64, per *Upstream) error {
		after, err := m.upstreamAtRest()
		if err == nil {
			*per = perClient(before, after, *n)
			before = after
		}
		return err
	}
	var sessions []session
	for range amplifiedSessions {
		if s, _, err := w.openOn(c); err == nil {
			sessions = append(sessions, s)
		} else {
			a.Failed++
		}
	}
	if len(sessions) == 0 {
		r := run{cfg: w.cfg}
		return r.connectError(w.set.failure())
	}
	a.Sessions = int64(len(sessions))
	if err := count(&a.Sessions, &a.PerSession); err != nil {
		return err
	}
	ask := func(n int, n64 *int64, q *query) {
		for i := 0; i < n && m.ctx.Err() == nil; i++ {
			err := sessions[i%len(sessions)].request(c, q, time.Now().Add(w.cfg.Timeout))
			if o, _ := verdictOf(err, &c.reply, c.id); o != outcomeOK {
				a.Failed++
			}
			*n64++
		}
	}
	ask(amplifiedCalls, &a.Calls, w.query)
	if err := count(&a.Calls, &a.PerCall); err != nil {
		return err
	}
	list, err := sessions[0].query(codec.MethodToolsList, "", []byte("{}"), nil)
	if err != nil {
		return err
	}
	ask(amplifiedLists, &a.Lists, list)
	if err := count(&a.Lists, &a.PerList); err != nil {
		return err
	}
	m.found.Amplification = a
	return nil
}

// upstreamAtRest reads the counters when they have stopped to move: a gateway may end a session after it has answered.
func (m *overheadRun) upstreamAtRest() (UpstreamCounts, error) {
	last, err := m.cfg.Upstream()
	for until := time.Now().Add(countsMost); err == nil && time.Now().Before(until); {
		if !pauseFor(m.ctx, countsEvery) {
			return last, m.ctx.Err()
		}
		var now UpstreamCounts
		if now, err = m.cfg.Upstream(); now == last {
			break
		}
		last = now
	}
	if err != nil {
		return last, errCounters(err)
	}
	return last, nil
}

func errCounters(err error) error {
	return fmt.Errorf("the counters of the upstream server cannot be read: %w", err)
}

// pauseFor waits; false when ctx ends first.
func pauseFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// perClient divides what was counted by what the clients did.
func perClient(before, after UpstreamCounts, n int64) Upstream {
	share := func(a, b int64) float64 { return round(float64(b-a)/float64(max(n, 1)), 4) }
	return Upstream{
		Sessions: share(before.Sessions, after.Sessions), Initialize: share(before.Initialize, after.Initialize),
		Discover: share(before.Discover, after.Discover), List: share(before.List,
			after.List), Call: share(before.Call, after.Call),
	}
}

// sentence puts into words what matters most.
func (a *Amplification) sentence() string {
	p := &a.PerCall
	text := fmt.Sprintf("It sends %.3g %s upstream for each call", p.Call, codec.MethodToolsCall)
	if p.Sessions == 0 && p.Initialize == 0 {
		return text + fmt.Sprintf(" and opens no session for it (%.3g for each session of a client)",
			a.PerSession.Sessions)
	}
	noun := "sessions"
	if p.Sessions == 1 {
		noun = "session"
	}
	return text + fmt.Sprintf(" and opens %.3g %s (%.3g initialize)", p.Sessions, noun, p.Initialize)
}
