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
}

func newStdioPeer(c *Config) *stdioPeer {
	return &stdioPeer{argv: c.Command, params: initializeParams(c.Protocol, c.Version)}
}

func (p *stdioPeer) transport() string { return "stdio" }

func (p *stdioPeer) caller(ids *atomic.Uint64) *caller { return &caller{ids: ids} }

func (p *stdioPeer) maxInFlight(int, bool) int { return 100_000 } // frames in a pipe need no descriptors, only memory

func (p *stdioPeer) open(c *caller, deadline time.Time) (session, error) {
	proc, err := wire.Start(p.argv, &wire.ProcessOptions{OnMessage: answerProcess})
	if err != nil {
		return nil, err
	}
	s := &stdioSession{proc: proc}
	if err := s.shakeHands(c, p.params, deadline); err != nil {
		_ = proc.Close() // the handshake error is the one to report
		return nil, err
	}
	return s, nil
}

// stdioSession is a session with a spawned process.
type stdioSession struct {
	proc   *wire.Process
	agreed handshake
}

func (s *stdioSession) info() *handshake { return &s.agreed }

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

func (s *stdioSession) request(c *caller, method string, params []byte, deadline time.Time) error {
	c.build(method, params)
	err := s.proc.Call(c.id, c.frame, deadline, &c.reply)
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

// answerProcess answers a request of the process.
func answerProcess(p *wire.Process, m *codec.Message) {
	if m.Kind == codec.KindRequest {
		_ = p.Send(answerTo(nil, m)) // the call in flight will tell when the process is gone
	}
}
