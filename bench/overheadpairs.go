package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const (
	phaseSetup   = "setup"
	phaseTTFB    = "ttfb"
	phaseService = "service"

	pairStream  = 0x70616972 // of the seed: which way comes first
	mostPairs   = 1_000_000
	setupBudget = 15 * time.Second
)

// overheadRun is a measurement of an overhead under way.
type overheadRun struct {
	ctx         context.Context
	cfg         OverheadConfig
	direct, via *way // direct is nil where nothing is compared
	found       Overhead
	lags        []float64 // microseconds by which pairs began late
	due         int       // pairs of the schedule
	unwatch     func()    // of ctx
	closing     sync.Once
}

// newOverheadRun checks the configuration, connects on both ways, and chooses the tool.
func newOverheadRun(ctx context.Context, c *OverheadConfig) (*overheadRun, error) {
	if err := c.prepare(); err != nil {
		return nil, err
	}
	m := &overheadRun{ctx: ctx, cfg: *c, found: Overhead{Phases: []OverheadPhase{}, Histogram: []DifferenceBar{}}}
	var err error
	if m.via, err = newWay(c.Config, c.Via, c.viaPeer); err != nil {
		return nil, err
	}
	if c.compares() {
		if m.direct, err = newWay(c.Config, c.URL, c.peer); err != nil {
			return nil, err
		}
	}
	if c.Upstream != nil {
		if _, err := c.Upstream(); err != nil {
			return nil, errCounters(err)
		}
	}
	m.unwatch = abortAfter(ctx, m.abort)
	if err := m.connect(); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// connect opens a first session on each way and finds the tool there.
func (m *overheadRun) connect() error {
	until := time.Now().Add(m.cfg.Wait)
	chosen := ""
	for _, w := range m.ways() {
		choice := w.cfg
		switch {
		case w == m.via && m.cfg.ViaTool != "":
			choice.Tools = []ToolChoice{{Name: m.cfg.ViaTool, Weight: 1}}
		case w == m.via && chosen != "":
			choice.Tools = []ToolChoice{{Name: chosen, Weight: 1}}
		}
		var err error
		for {
			err = w.choose(&choice, w == m.via && m.cfg.ViaTool == "", m.cfg.Replicas > 0 && w == m.via)
			if err == nil || m.ctx.Err() != nil || w == m.direct || time.Now().After(until) {
				break
			}
			pauseFor(m.ctx, 100*time.Millisecond)
		}
		if err != nil {
			return err
		}
		chosen = w.tool
	}
	return nil
}

// ways lists those that there are, the direct one first.
func (m *overheadRun) ways() []*way {
	if m.direct == nil {
		return []*way{m.via}
	}
	return []*way{m.direct, m.via}
}

// setups compares how long a session takes on each way. Every session is ended before the next one is opened.
func (m *overheadRun) setups() error {
	callers := map[*way]*caller{}
	for _, w := range m.ways() {
		callers[w] = w.set.newCaller()
		defer w.set.release(callers[w])
	}
	rng := rand.New(rand.NewPCG(m.cfg.Seed, pairStream+1))
	until := time.Now().Add(setupBudget)
	var p phasePairs
	for i := -1; i < m.cfg.Sessions && m.ctx.Err() == nil && time.Now().Before(until); i++ {
		var took [2]time.Duration
		good := true
		for _, k := range order(rng) {
			w := m.ways()[k]
			at := &place{}
			start := time.Now()
			err := w.set.openOne(at, callers[w])
			took[k] = time.Since(start)
			if err != nil {
				good = false
				continue
			}
			if (*at.sess.Load()).close(callers[w], time.Now().Add(closeTimeout)) == nil {
				w.set.closed.Add(1)
			}
		}
		if good && i >= 0 { // the first pair makes the connections
			p.add(took[0], took[1])
		}
	}
	m.found.Phases = append(m.found.Phases, p.phase(phaseSetup))
	return nil
}

// order says which way comes first.
func order(rng *rand.Rand) [2]int {
	first := rng.IntN(2)
	return [2]int{first, 1 - first}
}

// pair is what two calls took; ok tells that both were successes.
type pair struct {
	index         int
	ttfb, service [2]time.Duration
	ok            bool
}

// lane makes pairs of calls, one after another, on a session and a connection of its own on each way.
type lane struct {
	run      *overheadRun
	callers  [2]*caller
	sessions [2]session
}

func (m *overheadRun) newLane() (*lane, error) {
	l := &lane{run: m}
	for k, w := range m.ways() {
		l.callers[k] = w.set.newCaller()
		var err error
		if l.sessions[k], _, err = w.openOn(l.callers[k]); err != nil {
			l.release()
			r := run{cfg: w.cfg}
			return nil, r.connectError(err)
		}
	}
	l.pair(-1, [2]int{0, 1}) // what is done only once, on either side, is not part of a difference
	return l, nil
}

func (l *lane) release() {
	for k, w := range l.run.ways() {
		if l.callers[k] != nil {
			w.set.release(l.callers[k])
		}
	}
}

// pair makes a call on each way.
func (l *lane) pair(index int, order [2]int) pair {
	p := pair{index: index, ok: true}
	for _, k := range order {
		w, c := l.run.ways()[k], l.callers[k]
		err := l.sessions[k].request(c, w.query, time.Now().Add(w.cfg.Timeout))
		if o, _ := verdictOf(err, &c.reply, c.id); o != outcomeOK {
			p.ok = false
			l.run.failed(k, o, err, c)
			continue
		}
		p.ttfb[k], p.service[k] = c.reply.FirstByte.Sub(c.reply.Sent), c.reply.Done.Sub(c.reply.Sent)
	}
	return p
}

// failed keeps the first failure of each way for the reader.
func (m *overheadRun) failed(k int, o outcome, err error, c *caller) {
	w := m.ways()[k]
	w.set.mu.Lock()
	defer w.set.mu.Unlock()
	if w.set.firstErr == nil {
		w.set.firstErr = fmt.Errorf("%s: %s", o, describe(err, &c.reply))
	}
}

// calls makes the pairs on their schedule, in lanes.
func (m *overheadRun) calls() error {
	var lanes []*lane
	defer func() {
		for _, l := range lanes {
			l.release()
		}
	}()
	for range m.cfg.lanes {
		l, err := m.newLane()
		if err != nil {
			return err
		}
		lanes = append(lanes, l)
	}
	total := min(int((m.cfg.Warmup+m.cfg.Duration).Seconds()*m.cfg.Rate), mostPairs)
	warm := int(m.cfg.Warmup.Seconds() * m.cfg.Rate)
	origin := time.Now()
	end := origin.Add(m.cfg.Warmup + m.cfg.Duration + lateGrace)
	rng := rand.New(rand.NewPCG(m.cfg.Seed, pairStream))
	orders := make([][2]int, total)
	for i := range orders {
		orders[i] = order(rng)
	}
	pairs := make([]pair, total)
	lags := make([]float64, total)
	var next atomic.Int64
	var wg sync.WaitGroup
	for _, l := range lanes {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= total {
					return
				}
				due := origin.Add(time.Duration(float64(i) / m.cfg.Rate * float64(time.Second)))
				if !m.sleepUntil(due) || time.Now().After(end) {
					return
				}
				lags[i] = float64(time.Since(due)) / float64(time.Microsecond)
				pairs[i] = l.pair(i+1, orders[i]) // 0 is none
			}
		})
	}
	wg.Wait()
	m.due = total - warm
	m.conclude(pairs[warm:], lags[warm:])
	return nil
}

// sleepUntil waits for an instant; false when the measurement is over first.
func (m *overheadRun) sleepUntil(at time.Time) bool {
	for m.ctx.Err() == nil {
		d := time.Until(at)
		if d <= 0 {
			return true
		}
		m.cfg.pause(min(d, 20*time.Millisecond))
	}
	return false
}

// conclude makes the phases from the pairs, which are in the order of their schedule.
func (m *overheadRun) conclude(pairs []pair, lags []float64) {
	var ttfb, service phasePairs
	for i, p := range pairs {
		switch {
		case p.index == 0:
			continue
		case !p.ok:
			m.found.Failed++
		default:
			ttfb.add(p.ttfb[0], p.ttfb[1])
			service.add(p.service[0], p.service[1])
		}
		m.lags = append(m.lags, lags[i])
	}
	m.found.Pairs = len(service.difference)
	m.found.Phases = append(m.found.Phases, ttfb.phase(phaseTTFB), service.phase(phaseService))
	m.found.Histogram = histogramOf(service.difference)
}
