package bench

import (
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

// askAfter opens a session for each of the ages, asks each when it has rested for so long, and ends at the first ages of
// which several are gone. It gives the longest rest below the shortest deadly one, and that one; 0 where none was.
func (m *sessionsRun) askAfter(ages []time.Duration, found *IdleExpiry) (alive, dead time.Duration, err error) {
	type probe struct {
		at    *place
		since time.Time
		rest  time.Duration // when it was asked
		gone  bool
	}
	c := m.hold.set.newCaller()
	defer m.hold.set.release(c)
	probes := make([]*probe, 0, len(ages))
	for range ages {
		at := &place{}
		if err = m.hold.set.openOne(at, c); err != nil {
			break
		}
		probes = append(probes, &probe{at: at, since: time.Now()})
	}
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
	pick := func(i int) time.Duration { return ages[i*(len(ages)-1)/(len(probes)-1)] } // of all ages, where fewer fitted
	var wg sync.WaitGroup
	var asked, goneCount atomic.Int64
	for i, p := range probes {
		wg.Go(func() {
			if !pauseFor(ctx, time.Until(p.since.Add(pick(i)))) {
				return
			}
			own := m.hold.set.newCaller()
			defer m.hold.set.release(own)
			rest := time.Since(p.since)
			err := m.hold.ping(p.at, own)
			if sess := p.at.sess.Load(); err == nil || sess != nil && notKnown(*sess, err) {
				p.rest, p.gone = rest, err != nil
				asked.Add(1)
			}
			if p.gone && goneCount.Add(1) == refusals {
				enough()
			}
		})
	}
	wg.Wait()
	found.Probes += int(asked.Load())
	slices.SortFunc(probes, func(a, b *probe) int { return int(a.rest - b.rest) })
	for _, p := range probes {
		switch {
		case p.rest == 0:
		case p.gone:
			return alive, p.rest, nil
		default:
			alive = p.rest
		}
	}
	return alive, 0, nil
}
