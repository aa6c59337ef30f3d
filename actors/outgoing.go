package actors

import (
	"github.com/asynkron/protoactor-go/actor"
)

// Outgoing is a request that this side sent to the peer.
type Outgoing struct {
	// ID is a number that no other request of the session has had.
	ID uint64
	// Done is closed when the answer is there, or will never be.
	Done chan struct{}
	// Alive gets a value when the peer reported progress.
	Alive  chan struct{}
	answer any
	err    error
}

// Answer gives what Resolve was given, or why there is none. It is valid after
// Done.
func (o *Outgoing) Answer() (any, error) { return o.answer, o.err }

func (o *Outgoing) resolve(answer any, err error) {
	o.answer, o.err = answer, err
	close(o.Done)
}

// Ask registers a request to the peer. Ids are a counter, so that they are
// never reused. The error is one of the refusals.
func (s *Session) Ask() (o *Outgoing, err error) {
	s.do(func(_ actor.Context, refusal error) {
		switch {
		case refusal != nil:
			err = refusal
		case len(s.outgoing) >= s.system.limits.MaxOutgoing:
			err = ErrOverloaded
			s.system.refusals.outgoing.Add(1)
		default:
			if s.outgoing == nil {
				s.outgoing = make(map[uint64]*Outgoing)
			}
			s.nextOutgoing++
			o = &Outgoing{ID: s.nextOutgoing, Done: make(chan struct{}), Alive: make(chan struct{}, 1)}
			s.outgoing[o.ID] = o
		}
	})
	return o, err
}

// Resolve hands the peer's answer to whoever asked. It reports false for an id
// that nobody waits for.
func (s *Session) Resolve(id uint64, answer any) (found bool) {
	s.do(func(_ actor.Context, refusal error) {
		if refusal != nil {
			return
		}
		if o := s.outgoing[id]; o != nil {
			delete(s.outgoing, id)
			o.resolve(answer, nil)
			found = true
		}
	})
	return found
}

// KeepWaiting tells whoever waits for the answer that the peer is at work.
func (s *Session) KeepWaiting(id uint64) {
	s.do(func(_ actor.Context, refusal error) {
		if refusal != nil {
			return
		}
		if o := s.outgoing[id]; o != nil {
			select {
			case o.Alive <- struct{}{}:
			default:
			}
		}
	})
}

// Forget drops a request to the peer whose answer is no longer wanted.
func (s *Session) Forget(o *Outgoing) {
	s.do(func(_ actor.Context, refusal error) {
		if refusal == nil && s.outgoing[o.ID] == o {
			delete(s.outgoing, o.ID)
		}
	})
}

// PendingOutgoing tells how many requests the peer has not answered.
func (s *Session) PendingOutgoing() (n int) {
	s.do(func(_ actor.Context, refusal error) {
		if refusal == nil {
			n = len(s.outgoing)
		}
	})
	return n
}
