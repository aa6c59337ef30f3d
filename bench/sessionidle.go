package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	idleFirst   = 250 * time.Millisecond // the shortest rest that is looked at
	idleProbes  = 48                     // of the first round
	idleRefined = 16                     // of the second
	idleMargin  = 0.1                    // by which the second round reaches beyond what the first one found
)

// idle finds when sessions end that nobody uses. Sessions are opened and left, and each is asked once, after a time of its
// own; the first round takes times that grow by the same factor, the second one divides the bracket that was found.
func (m *sessionsRun) idle() error {
	if m.cfg.IdleMax <= 0 {
		return nil
	}
	found := &IdleExpiry{}
	m.found.Idle = found
	n := float64(idleProbes - 1)
	ages := make([]time.Duration, idleProbes)
	first := min(idleFirst, m.cfg.IdleMax/10)
	for i := range ages {
		ages[i] = time.Duration(float64(first) * math.Pow(float64(m.cfg.IdleMax)/float64(first), float64(i)/n))
	}
	alive, dead, err := m.askAfter(ages, found)
	if err != nil || dead == 0 {
		found.AliveS = round(alive.Seconds(), 3)
		return err
	}
	from := time.Duration(float64(alive) * (1 - idleMargin/2))
	to := min(time.Duration(float64(dead)*(1+idleMargin/2)), m.cfg.IdleMax)
	ages = make([]time.Duration, idleRefined)
	for i := range ages {
		ages[i] = from + time.Duration(float64(to-from)*(float64(i)+0.5)/idleRefined)
	}
	m.phase(fmt.Sprintf("idle sessions end after %.3g to %.3g s, looking closer", alive.Seconds(), dead.Seconds()))
	alive2, dead2, err := m.askAfter(ages, found)
	if err != nil || m.ctx.Err() != nil {
		return err
	}
	if alive2 > 0 {
		alive = alive2
	}
	if dead2 > 0 {
		dead = dead2
	}
	found.Found = true
	found.AliveS, found.DeadS = round(alive.Seconds(), 3), round(dead.Seconds(), 3)
	found.ExpiryS = round((alive+dead).Seconds()/2, 3)
	return nil
}

// idleProbe is a session that is left alone and asked once.
type idleProbe struct {
	at    *place
	since time.Time     // when it was last used
	rest  time.Duration // after which it was asked; 0 where it was not, or gave no answer
	gone  bool
}

// askAfter opens a session for each of the ages and asks each when it has rested for so long, until several are gone. It
// gives the longest rest below the shortest deadly one, and that one; 0 where none was.
func (m *sessionsRun) askAfter(ages []time.Duration, found *IdleExpiry) (alive, dead time.Duration, err error) {
	probes, err := m.leave(len(ages))
	defer func() {
		places := make([]*place, len(probes))
		for i, p := range probes {
			places[i] = p.at
		}
		m.hold.end(places)
	}()
	if len(probes) < 2 {
		return 0, 0, fmt.Errorf("no sessions to leave idle could be opened: %w", err)
	}
	ctx, enough := context.WithCancel(m.ctx)
	defer enough()
	var wg sync.WaitGroup
	var gone atomic.Int64
	for i, p := range probes {
		age := ages[i*(len(ages)-1)/(len(probes)-1)] // of all ages, where fewer sessions fitted
		wg.Go(func() {
			if !pauseFor(ctx, time.Until(p.since.Add(age))) {
				return
			}
			m.ask(p)
			if p.gone && gone.Add(1) == refusals {
				enough()
			}
		})
	}
	wg.Wait()
	slices.SortFunc(probes, func(a, b *idleProbe) int { return cmp.Compare(a.rest, b.rest) })
	for _, p := range probes {
		switch {
		case p.rest == 0:
			continue
		case p.gone && dead == 0:
			dead = p.rest
		case dead == 0:
			alive = p.rest
		}
		found.Probes++
	}
	return alive, dead, nil
}

// leave opens up to n sessions to be left alone.
func (m *sessionsRun) leave(n int) ([]*idleProbe, error) {
	c := m.hold.set.newCaller()
	defer m.hold.set.release(c)
	var probes []*idleProbe
	for range n {
		at := &place{}
		if err := m.hold.set.openOne(at, c); err != nil {
			return probes, err
		}
		probes = append(probes, &idleProbe{at: at, since: time.Now()})
	}
	return probes, nil
}

// ask finds out whether a session is still known.
func (m *sessionsRun) ask(p *idleProbe) {
	c := m.hold.set.newCaller()
	defer m.hold.set.release(c)
	sess := p.at.sess.Load()
	rest := time.Since(p.since)
	if err := m.hold.ping(p.at, c); err == nil || notKnown(*sess, err) {
		p.rest, p.gone = rest, err != nil
	}
}
