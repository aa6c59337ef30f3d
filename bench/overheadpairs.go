package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

const (
	phaseSetup   = "setup"
	phaseTTFB    = "ttfb"
	phaseService = "service"

	pairStream  = 0x70616972 // of the seed: which way comes first
	mostPairs   = 1_000_000
	bars        = 40
	setupBudget = 15 * time.Second
)

// way is one of the two ways to the server.
type way struct {
	cfg   Config
	set   *sessionSet
	tool  string
	query *query // of the era's session form; the same on all sessions
}

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
	m.unwatch = abortAfter(ctx, m.abort)
	if err := m.connect(); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func newWay(c Config, url string, p peer) (*way, error) {
	c.URL, c.peer = url, p
	if p == nil {
		if err := c.check(); err != nil {
			return nil, err
		}
		var err error
		if c.peer, err = newHTTPPeer(&c); err != nil {
			return nil, err
		}
	}
	c.Sessions = 0 // places are added as they are needed
	return &way{cfg: c, set: newSessionSet(&c)}, nil
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

// choose opens a session, lists the tools, and prepares the call. On the way through a gateway the tool may have a
// prefix; among replicas the list may take several attempts.
func (w *way) choose(c *Config, prefixed, lossy bool) error {
	caller := w.set.newCaller()
	defer w.set.release(caller)
	attempts := 1
	if lossy {
		attempts = lossyAttempts
	}
	var listed []listedTool
	var sess session
	var err error
	for range attempts {
		if sess, err = w.openLossy(caller, lossy); err != nil {
			continue
		}
		if listed, err = listTools(sess, caller, c.Timeout); err == nil {
			break
		}
	}
	if err != nil {
		r := run{cfg: w.cfg}
		return r.connectError(err)
	}
	w.noteFirst(sess)
	defer func() { _ = sess.close(caller, time.Now().Add(closeTimeout)) }() // the measurement has its own
	if prefixed && len(c.Tools) == 1 {
		c.Tools[0].Name = nameBehind(listed, c.Tools[0].Name)
	}
	tools, err := chooseTools(c, listed)
	if err != nil {
		return err
	}
	if len(tools) != 1 {
		return usage("an overhead is measured with one tool: give --tool once")
	}
	if err := tools[0].prepare(sess); err != nil {
		return err
	}
	w.tool, w.query = tools[0].name, tools[0].queries[0]
	return nil
}

// nameBehind finds the name that a gateway has given to a tool: the same, or the only one that ends with it.
func nameBehind(listed []listedTool, name string) string {
	found := name
	n := 0
	for _, t := range listed {
		if t.name == name {
			return name
		}
		if len(t.name) > len(name)+1 && t.name[len(t.name)-len(name):] == name {
			found = t.name
			n++
		}
	}
	if n == 1 {
		return found
	}
	return name
}

// openOn opens a session and keeps it among those that close ends.
func (w *way) openOn(c *caller) (session, time.Duration, error) {
	at := &place{}
	start := time.Now()
	if err := w.set.openOne(at, c); err != nil {
		return nil, 0, err
	}
	took := time.Since(start)
	w.set.mu.Lock()
	w.set.places = append(w.set.places, at)
	w.set.mu.Unlock()
	return *at.sess.Load(), took, nil
}

// setups compares how long a session takes on each way. Every session is ended before the next one is opened.
func (m *overheadRun) setups() {
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

// phasePairs gathers one phase of all pairs, in the order of time.
type phasePairs struct {
	sides      [2]*Histogram
	difference []float64 // microseconds
}

func (p *phasePairs) add(direct, via time.Duration) {
	for k, d := range [2]time.Duration{direct, via} {
		if p.sides[k] == nil {
			p.sides[k] = NewHistogram()
		}
		p.sides[k].Record(d, 1)
	}
	p.difference = append(p.difference, float64(via-direct)/float64(time.Microsecond))
}

func (p *phasePairs) phase(name string) OverheadPhase {
	out := OverheadPhase{Phase: name, Direct: &Dist{}, Via: &Dist{}}
	if len(p.difference) > 0 {
		out.Direct, out.Via = p.sides[0].Dist(), p.sides[1].Dist()
	}
	out.Median, out.Mean = differenceOf(medianOf(p.difference)), differenceOf(meanOf(p.difference))
	return out
}

func differenceOf(i interval95) Difference {
	d := Difference{US: round(i.value, 3)}
	if i.known {
		d.CI95 = &[2]float64{round(i.low, 3), round(i.high, 3)}
	}
	return d
}

// histogramOf counts differences in bars of the same width, from the first percentile to the last; what lies beyond is in
// the bars at the ends.
func histogramOf(x []float64) []DifferenceBar {
	if len(x) < 2 {
		return []DifferenceBar{}
	}
	sorted := slices.Sorted(slices.Values(x))
	low, high := between(sorted, 0.01), between(sorted, 0.99)
	width := (high - low) / bars
	if width <= 0 {
		return []DifferenceBar{{FromUS: low, ToUS: high, Count: len(x)}}
	}
	out := make([]DifferenceBar, bars)
	for i := range out {
		out[i].FromUS, out[i].ToUS = round(low+float64(i)*width, 3), round(low+float64(i+1)*width, 3)
	}
	for _, v := range x {
		i := int(math.Floor((v - low) / width))
		out[min(max(i, 0), bars-1)].Count++
	}
	return out
}

// toolsListQuery is a request for the first page of the tools.
func toolsListQuery(s session) (*query, error) {
	return s.query(codec.MethodToolsList, "", []byte("{}"), nil)
}
