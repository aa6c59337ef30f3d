package bench

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/mcpengine/mcpengine/transport/client/wire"
)

const (
	replicaSessions  = 50
	replicaRequests  = 20 // of each session
	replicaCallers   = 8  // connections that they go over, in a random order
	lossyAttempts    = 200
	survivalAttempts = 3 // of which one must succeed
	survivalPause    = 500 * time.Millisecond
)

// ReplicaObservation is what becomes of sessions when several replicas stand behind one endpoint.
type ReplicaObservation struct {
	Replicas   int         `json:"replicas"`
	Sessions   int         `json:"sessions"`
	Requests   int64       `json:"requests"`
	Lost       int64       `json:"lost"`   // requests whose session the replica did not know
	Failed     int64       `json:"failed"` // requests that failed for another reason
	Loss       float64     `json:"loss"`   // lost of all
	LossCI95   *[2]float64 `json:"loss_ci95"`
	LossRandom float64     `json:"loss_random"` // what random routing to sessions that are not shared gives: 1 − 1/replicas
	Stateless  bool        `json:"stateless"`   // the protocol has no sessions to lose
	Survived   *float64    `json:"survived"`    // share of the sessions that worked, and still did when a replica was gone
	Survivors  int         `json:"survivors"`
	AtRisk     int         `json:"at_risk"` // sessions that worked before
}

// openLossy opens a session; with lossy also where the notification after initialize did not find it, as happens behind
// routers that do not know sessions.
func (w *way) openLossy(c *caller, lossy bool) (session, error) {
	deadline := time.Now().Add(w.cfg.Timeout)
	p, ok := w.cfg.peer.(*httpPeer)
	if !ok || !lossy {
		return w.cfg.peer.open(c, deadline)
	}
	return p.era.open(
		func() (session, error) { return p.discover(c, deadline) },
		func() (session, error) {
			s, err := p.begin(c, deadline)
			if err != nil {
				return nil, err
			}
			if err := s.notify(c, "notifications/initialized", nil, deadline); err != nil && !notKnown(s, err) {
				return nil, err
			}
			return s, nil
		})
}

// noteFirst remembers what the server said of itself.
func (w *way) noteFirst(s session) {
	w.set.mu.Lock()
	defer w.set.mu.Unlock()
	if w.set.first == nil {
		w.set.first = s.info()
	}
}

// notKnown reports whether err is what a server says of a session that it does not know. The protocol asks for 404, and
// some servers say 400.
func notKnown(s session, err error) bool {
	var status *wire.StatusError
	return s.lost(err) || errors.As(err, &status) && status.Status == 400
}

// replicas opens sessions, makes calls on all of them over several connections in a random order, and counts the calls
// that did not find their session. Then it ends a replica, where it can, and sees which sessions still work.
func (m *overheadRun) replicas() error {
	w := m.via
	o := &ReplicaObservation{Replicas: m.cfg.Replicas, LossRandom: round(1-1/float64(m.cfg.Replicas), 4)}
	callers := make([]*caller, replicaCallers)
	for i := range callers {
		callers[i] = w.set.newCaller()
		defer w.set.release(callers[i])
	}
	rng := rand.New(rand.NewPCG(m.cfg.Seed, pairStream+2))
	var sessions []session
	for i := range replicaSessions {
		s, err := w.openLossy(callers[i%replicaCallers], true)
		if err != nil {
			w.set.failed.Add(1)
			continue
		}
		w.set.opened.Add(1)
		sessions = append(sessions, s)
		at := &place{}
		at.sess.Store(&s)
		w.set.places = append(w.set.places, at)
	}
	if len(sessions) == 0 {
		return errors.New("no session could be opened through the router")
	}
	_, o.Stateless = sessions[0].(*statelessSession)
	o.Sessions = len(sessions)
	lost, worked := make([]float64, len(sessions)), make([]bool, len(sessions))
	for range replicaRequests {
		for _, i := range rng.Perm(len(sessions)) {
			if m.ctx.Err() != nil {
				return m.ctx.Err()
			}
			ok, gone := m.try(sessions[i], callers[rng.IntN(replicaCallers)])
			o.Requests++
			switch {
			case ok:
				worked[i] = true
			case gone:
				lost[i]++
				o.Lost++
			default:
				o.Failed++
			}
		}
	}
	o.Loss = round(float64(o.Lost)/float64(o.Requests), 4)
	o.LossCI95 = shareInterval(lost, replicaRequests)
	m.found.Replicas = o
	return m.survival(o, sessions, worked, callers)
}

// try makes one call.
func (m *overheadRun) try(s session, c *caller) (ok, gone bool) {
	err := s.request(c, m.via.query, time.Now().Add(m.via.cfg.Timeout))
	out, _ := verdictOf(err, &c.reply, c.id)
	return out == outcomeOK, err != nil && notKnown(s, err)
}

// survival ends a replica and counts the sessions that still work. Each may try a few times: a router may need a moment.
func (m *overheadRun) survival(o *ReplicaObservation, sessions []session, worked []bool, callers []*caller) error {
	if m.cfg.EndReplica == nil {
		return nil
	}
	if err := m.cfg.EndReplica(m.ctx); err != nil {
		return fmt.Errorf("the command that ends a replica failed: %w", err)
	}
	if !pauseFor(m.ctx, survivalPause) {
		return m.ctx.Err()
	}
	for i, s := range sessions {
		if !worked[i] {
			continue
		}
		o.AtRisk++
		for k := range survivalAttempts {
			if ok, _ := m.try(s, callers[(i+k)%replicaCallers]); ok {
				o.Survivors++
				break
			}
		}
	}
	if o.AtRisk > 0 {
		share := round(float64(o.Survivors)/float64(o.AtRisk), 4)
		o.Survived = &share
	}
	return nil
}

// shareInterval gives a 95 % interval of a share from the number of losses of each session among n requests. What
// differs from session to session makes its width; where nothing differs, it is that of so many independent sessions.
func shareInterval(lost []float64, n int) *[2]float64 {
	k := float64(len(lost))
	if k < 10 {
		return nil
	}
	var sum float64
	for _, l := range lost {
		sum += l / float64(n)
	}
	mean, spread := sum/k, 0.0
	for _, l := range lost {
		d := l/float64(n) - mean
		spread += d * d
	}
	half := student95(len(lost)-1) * math.Sqrt(spread/(k-1)/k)
	if spread == 0 {
		half = 3 / k // the rule of three
	}
	return &[2]float64{round(max(mean-half, 0), 4), round(min(mean+half, 1), 4)}
}

// sentence says what the routing does to sessions.
func (o *ReplicaObservation) sentence() string {
	text := fmt.Sprintf("Over %d replicas %.3g %% of the requests lose their session", o.Replicas, 100*o.Loss)
	switch {
	case o.Stateless:
		text = fmt.Sprintf(
			"Over %d replicas nothing can be lost, because the protocol has no sessions: %.3g %% of the calls failed",
			o.Replicas, 100*float64(o.Failed+o.Lost)/float64(max(o.Requests, 1)))
	case o.Lost == 0:
		text = fmt.Sprintf("Over %d replicas no request of %d loses its session", o.Replicas, o.Requests)
	case o.LossCI95 != nil && o.LossCI95[0] <= o.LossRandom && o.LossRandom <= o.LossCI95[1]:
		text += ", as with routing that does not know sessions"
	}
	if o.Survived != nil {
		text += fmt.Sprintf("; %.3g %% of the sessions live on without one replica", 100**o.Survived)
	}
	return text
}
