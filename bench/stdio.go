package bench

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client/wire"
)

// stdioPeer spawns a process for each session.
type stdioPeer struct {
	argv   []string
	params []byte // of initialize
	meta   []byte // of every request of the stateless era
	era    eraChoice

	tally   *streamTally
	answers *answerer
	watch   []string // resources that every session subscribes to
}

func newStdioPeer(c *Config) *stdioPeer {
	p := &stdioPeer{
		argv: c.Command, params: initializeParams(c.session(), c.Version, c.capabilities()),
		meta:  statelessMeta(c.Version, c.capabilities()),
		tally: newStreamTally(), answers: newAnswerer(c), watch: c.Subscribe,
	}
	p.era.ask(c.Protocol)
	return p
}

func (p *stdioPeer) transport() string { return "stdio" }

func (p *stdioPeer) caller(ids *atomic.Uint64) *caller { return &caller{ids: ids} }

func (p *stdioPeer) maxInFlight(int, bool) int { return 100_000 } // frames in a pipe need no descriptors, only memory

func (p *stdioPeer) open(c *caller, deadline time.Time) (session, error) {
	s := &stdioSession{tally: p.tally, answers: p.answers}
	var err error
	if s.proc, err = s.spawn(p.argv); err != nil {
		return nil, err
	}
	ended := false
	sess, err := p.era.open(
		func() (session, error) {
			err := s.discover(c, p.meta, deadline)
			var we *wire.Error
			ended = errors.As(err, &we) && we.Kind == wire.KindTransport
			return s, err
		},
		func() (session, error) {
			if ended { // some servers end at the first thing that is not initialize
				_ = s.proc.Close() // it has ended: nothing to report
				if s.proc, err = s.spawn(p.argv); err != nil {
					return nil, err
				}
			}
			if err := s.shakeHands(c, p.params, deadline); err != nil {
				return nil, err
			}
			return s, subscribe(s, c, p.watch, deadline)
		})
	if err != nil {
		if s.proc != nil {
			_ = s.proc.Close() // the handshake error is the one to report
		}
		return nil, err
	}
	return sess, nil
}

// stdioSession is a session with a spawned process.
type stdioSession struct {
	proc   *wire.Process
	agreed handshake
	meta   []byte // of the stateless era, nil in a session
	heard  notices

	tally   *streamTally // of the run
	answers *answerer    // of the run
}

func (s *stdioSession) notices() *notices {
	if s.meta != nil {
		return nil
	}
	return &s.heard
}

func (s *stdioSession) info() *handshake { return &s.agreed }

// discover asks what the server can do, in the stateless era.
func (s *stdioSession) discover(c *caller, meta []byte, deadline time.Time) error {
	if probe := time.Now().Add(probeWait); probe.Before(deadline) {
		deadline = probe
	}
	c.build(codec.MethodDiscover, withMeta(meta, []byte("{}")))
	err := s.proc.Call(c.id, c.frame, deadline, &c.reply)
	var we *wire.Error
	if errors.As(err, &we) && (we.Kind == wire.KindTimeout || we.Kind == wire.KindTransport) {
		return &legacyError{err}
	}
	h, err := readDiscover(err, &c.reply)
	if err != nil {
		return err
	}
	s.agreed, s.meta = *h, meta
	s.agreed.pid = s.proc.PID()
	return nil
}

func (s *stdioSession) query(method, _ string, params []byte, _ wire.Header) (*query, error) {
	if s.meta != nil {
		params = withMeta(s.meta, params)
	}
	return &query{method: method, params: params}, nil
}

func (s *stdioSession) shakeHands(c *caller, params []byte, deadline time.Time) error {
	c.build("initialize", params)
	if err := s.proc.Call(c.id, c.frame, deadline, &c.reply); err != nil {
		return err
	}
	h, err := readHandshake(&c.reply)
	if err != nil {
		return err
	}
	s.agreed = *h
	s.agreed.pid = s.proc.PID()
	return s.notify(c, "notifications/initialized", nil, deadline)
}

func (s *stdioSession) request(c *caller, q *query, deadline time.Time) error {
	once := func(params []byte) error {
		c.build(q.method, params)
		return s.proc.Call(c.id, c.frame, deadline, &c.reply)
	}
	var err error
	if s.meta != nil {
		err = s.answers.rounds(c, q.params, once)
	} else {
		err = once(q.params)
	}
	var we *wire.Error
	if err != nil && errors.As(err, &we) && we.Kind == wire.KindTimeout {
		_ = s.proc.Send(codec.AppendCancelled(nil, c.id, "timeout")) // best effort
	}
	return err
}

func (s *stdioSession) notify(c *caller, method string, params []byte, _ time.Time) error {
	c.frame = codec.AppendNotification(c.frame[:0], method, params)
	return s.proc.Send(c.frame)
}

// lost: a process whose standard output has ended answers nothing more.
func (s *stdioSession) lost(error) bool {
	select {
	case <-s.proc.Done():
		return true
	default:
		return false
	}
}

// close ends the process. That a signal was needed is the server's fault, not a session left behind.
func (s *stdioSession) close(*caller, time.Time) error {
	_ = s.proc.Close()
	return nil
}

func (s *stdioSession) abort() { s.proc.Abort() }

func (s *stdioSession) reap() { _ = s.proc.Close() } // it has ended: nothing to report

// spawn starts the process. What it says of its own accord is counted and passed on, and what it asks is answered.
func (s *stdioSession) spawn(argv []string) (*wire.Process, error) {
	t := track{tally: s.tally}
	return wire.Start(argv, &wire.ProcessOptions{OnMessage: func(proc *wire.Process, m *codec.Message) {
		switch m.Kind {
		case codec.KindNotification:
			t.note(nil, m, time.Now())
			s.heard.deliver(m)
		case codec.KindRequest: // which the stateless era does not have
			t.note(nil, m, time.Now())
			s.answers.send(proc, m)
		}
	}})
}

func (p *stdioPeer) streams() *streamTally { return p.tally }

func (p *stdioPeer) asked() *answerer { return p.answers }
