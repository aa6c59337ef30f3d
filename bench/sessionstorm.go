package bench

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	stormWaves  = 30  // at most
	stormCalls  = 100 // steady calls that should fall into the waves
	stormTime   = 30 * time.Second
	stormFirst  = 50 * time.Millisecond // before the second attempt of a client; it doubles
	stormMost   = 2 * time.Second
	pulseMakers = 32 // steady calls at once
)

// beat is one steady call.
type beat struct {
	due            time.Time
	late, response time.Duration
	ok             bool
}

// pulse makes steady calls on a schedule until it is stopped.
type pulse struct {
	run  *sessionsRun
	over chan struct{}
	wg   sync.WaitGroup

	mu    sync.Mutex
	beats []beat // guarded by mu
}

// startPulse makes calls on the sessions in turn.
func (m *sessionsRun) startPulse(places []*place) *pulse {
	p := &pulse{run: m, over: make(chan struct{})}
	due := make(chan beatAt, 4096)
	for range pulseMakers {
		p.wg.Go(func() {
			c := m.hold.set.newCaller()
			defer m.hold.set.release(c)
			for b := range due {
				p.call(c, b)
			}
		})
	}
	p.wg.Go(func() {
		defer close(due)
		origin := time.Now()
		for i := 0; ; i++ {
			at := origin.Add(time.Duration(float64(i) / m.cfg.Rate * float64(time.Second)))
			for d := time.Until(at); d > 0; d = time.Until(at) {
				m.cfg.pause(min(d, 20*time.Millisecond))
			}
			select {
			case <-p.over:
				return
			case <-m.ctx.Done():
				return
			case due <- beatAt{at, places[i%len(places)]}:
			}
		}
	})
	return p
}

// beatAt is a steady call that is due.
type beatAt struct {
	due time.Time
	on  *place
}

func (p *pulse) call(c *caller, b beatAt) {
	out := beat{due: b.due, late: time.Since(b.due)}
	sess := b.on.sess.Load()
	err := errNoSession
	if sess != nil {
		err = (*sess).request(c, p.run.call, time.Now().Add(p.run.cfg.Timeout))
	}
	out.response = time.Since(b.due)
	if err == nil {
		o, _ := verdictOf(nil, &c.reply, c.id)
		out.ok = o == outcomeOK
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beats = append(p.beats, out)
}

// stop sees out the calls in flight and gives all of them.
func (p *pulse) stop() []beat {
	close(p.over)
	p.wg.Wait()
	return p.beats
}

// client is one of those that reconnect, on a connection of its own.
type client struct {
	c    *caller
	at   *place // nil while it has no session
	took time.Duration
}

// storm has many clients lose their connections and open a session anew, all at once, while others go on calling.
func (m *sessionsRun) storm() error {
	n := m.cfg.Storm
	if n == 0 {
		n = min(m.found.Tried/2, defaultStorm)
	}
	if room := m.found.MaxSessions; room > 0 {
		n = min(n, (room-stormSteady)/2) // the old sessions are still there when the new ones come
	}
	n = min(n, m.cfg.peer.maxInFlight(0, false)/2)
	if m.cfg.Storm < 0 || n < 1 {
		return nil
	}
	s := &ReconnectStorm{Clients: n, SteadyRPS: m.cfg.Rate}
	if err := m.hold.open(stormSteady); err != nil {
		return fmt.Errorf("no sessions for the steady calls could be opened: %s", describe(err, nil))
	}
	steady := m.hold.take(stormSteady)
	defer func() { m.hold.end(steady) }()
	clients := make([]*client, n)
	for i := range clients {
		clients[i] = &client{c: m.hold.set.newCaller()}
		defer func() { m.hold.set.release(clients[i].c) }()
	}
	m.found.Storm = s
	m.connectAll(clients, s, stepsAtOnce)
	s.Attempts, s.Failures, s.NeverBack, s.FirstError = 0, 0, 0, "" // this was not the storm

	p := m.startPulse(steady)
	before := time.Now()
	pauseFor(m.ctx, m.cfg.StormTime)
	var waves [][2]time.Time
	setup := NewHistogram()
	during := func() (d time.Duration) {
		for _, w := range waves {
			d += w[1].Sub(w[0])
		}
		return d
	}
	calm := time.Now() // when the time before the storm was over
	for len(waves) < stormWaves && during().Seconds()*m.cfg.Rate < stormCalls && m.ctx.Err() == nil {
		waves = append(waves, m.wave(clients, s, setup))
	}
	after := time.Now()
	pauseFor(m.ctx, m.cfg.StormTime)
	beats := p.stop()
	s.Waves, s.Setup, s.AllBackS = len(waves), setup.Dist(), round(s.AllBackS, 4)
	s.Before = steadyCalls(beats, [][2]time.Time{{before, calm}})
	s.During = steadyCalls(beats, waves)
	s.After = steadyCalls(beats, [][2]time.Time{{after, time.Now()}})
	m.judgeLag(beats, before, calm)
	m.endClients(clients)
	return nil
}

// wave drops the connections of all clients and has them come back. Their old sessions are left, as a client leaves them
// whose network failed, and ended when all are back.
func (m *sessionsRun) wave(clients []*client, s *ReconnectStorm, setup *Histogram) [2]time.Time {
	var old []*place
	for _, cl := range clients {
		if cl.at != nil {
			old = append(old, cl.at)
		}
		m.hold.set.release(cl.c)
		cl.c, cl.at = m.hold.set.newCaller(), nil
	}
	begin := time.Now()
	m.connectAll(clients, s, len(clients))
	end := time.Now()
	s.AllBackS = max(s.AllBackS, end.Sub(begin).Seconds())
	for _, cl := range clients {
		if cl.at != nil {
			setup.Record(cl.took, 1)
		}
	}
	m.hold.end(old)
	pauseFor(m.ctx, m.cfg.Settle/2)
	return [2]time.Time{begin, end}
}

// connectAll has every client open a session, so many at once, again and again until it has one.
func (m *sessionsRun) connectAll(clients []*client, s *ReconnectStorm, atOnce int) {
	gate := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	var mu sync.Mutex // guards s
	begin := time.Now()
	for _, cl := range clients {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			for wait := stormFirst; m.ctx.Err() == nil && time.Since(begin) < stormTime; wait = min(2*wait, stormMost) {
				at := &place{}
				err := m.hold.set.openOne(at, cl.c)
				mu.Lock()
				s.Attempts++
				if err != nil {
					s.Failures++
					if s.FirstError == "" {
						s.FirstError = describe(err, &cl.c.reply)
					}
				}
				mu.Unlock()
				if err == nil {
					cl.at, cl.took = at, time.Since(begin)
					return
				}
				pauseFor(m.ctx, wait)
			}
		})
	}
	wg.Wait()
	for _, cl := range clients {
		if cl.at == nil {
			s.NeverBack++
		}
	}
}

func (m *sessionsRun) endClients(clients []*client) {
	var places []*place
	for _, cl := range clients {
		if cl.at != nil {
			places = append(places, cl.at)
		}
	}
	m.hold.end(places)
}

// judgeLag notes how late the steady calls began while nothing else was going on.
func (m *sessionsRun) judgeLag(beats []beat, from, to time.Time) {
	var late []float64
	for _, b := range beats {
		if !b.due.Before(from) && b.due.Before(to) {
			late = append(late, float64(b.late)/float64(time.Microsecond))
		}
	}
	if len(late) == 0 || m.ctx.Err() != nil {
		return
	}
	slices.Sort(late)
	m.lag = int64(between(late, 0.99))
	if lag := time.Duration(m.lag) * time.Microsecond; lag > lagMost {
		m.reasons = append(m.reasons, fmt.Sprintf(
			"before the storm the generator began steady calls %s late (p99), at most %s is tolerated: "+
				"lower the rate (-r), or give it more CPU",
			durationText(lag), durationText(lagMost)))
	}
}

// steadyCalls describes the calls that were due in some stretches of time.
func steadyCalls(beats []beat, within [][2]time.Time) SteadyCalls {
	var out SteadyCalls
	h := NewHistogram()
	for _, b := range beats {
		if !slices.ContainsFunc(within, func(w [2]time.Time) bool {
			return !b.due.Before(w[0]) &&
				b.due.Before(w[1])
		}) {
			continue
		}
		out.Calls++
		if !b.ok {
			out.Failed++
			continue
		}
		h.Record(b.response, 1)
	}
	if h.Count() == 0 {
		return out
	}
	out.P50US, out.MaxUS = h.At(50).Microseconds(), h.At(100).Microseconds()
	if h.Count() >= blockNeeds {
		p99 := h.At(99).Microseconds()
		out.P99US = &p99
	}
	return out
}
