package actors

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/asynkron/protoactor-go/actor"
)

// Causes that an Owner is told when its request is ended from outside.
var (
	// ErrCancelled means that the peer cancelled the request. It gets no answer.
	ErrCancelled = errors.New("actors: cancelled by the peer")
	// ErrStopped means that a Stop was sent to the request's actor. It is answered with an error.
	ErrStopped = errors.New("actors: request stopped")
)

// Owner is whoever runs a request. End tells it to cancel the call's context
// and to see to its answer, as the cause demands. It may be called as soon as
// the lease begins, and must not block. The generation is that of the lease.
type Owner interface {
	End(r *Request, generation uint32, cause error)
}

// Request is the actor of one request in flight: a process in the registry of
// the actor system, leased from a pool. A Stop that reaches its PID, and a
// cancellation that names its id, end it through its Owner.
//
// What is sent for a request goes between TryEmit or Claim and Unlock, so that
// nothing of it can follow its answer and there is exactly one answer.
type Request struct {
	system *System
	name   string     // in the registry
	pid    *actor.PID // without generation

	noted   atomic.Int32  // whether the session has taken note
	ready   chan struct{} // it has, while somebody waits; capacity 1
	session *Session      // nil for a stateless request
	id      []byte        // the exact token, borrowed from the frame
	ending  bool          // which of the two messages to the session this is
	refusal error         // set by the session before ready

	generation atomic.Uint32 // odd while leased

	mu       sync.Mutex // guards what follows; held while a frame is queued, never across I/O
	owner    Owner
	answered bool
}

var _ actor.Process = (*Request)(nil)

// Lease admits a request: first in all, then in its session, where the id must
// not be in flight already. session is nil for a stateless request, which
// touches no session actor. id is borrowed until Release. The error is one of
// the refusals.
func (s *System) Lease(session *Session, id []byte, owner Owner) (*Request, error) {
	if err := s.admit(); err != nil {
		return nil, err
	}
	if s.inFlight.Add(1) > int64(s.limits.MaxRequests) {
		s.inFlight.Add(-1)
		s.refused.Add(1)
		return nil, s.refusals.note(ErrOverloaded)
	}
	r := s.pool.get(s)
	r.mu.Lock()
	r.owner, r.answered = owner, false
	r.generation.Add(1)
	r.mu.Unlock()
	r.session, r.id = session, id
	if session != nil {
		if err := r.register(); err != nil {
			s.refused.Add(1)
			r.session = nil
			r.Release()
			return nil, s.refusals.note(err)
		}
	}
	return r, nil
}

// register has the session take note of the request.
func (r *Request) register() error {
	r.session.begin()
	r.ending, r.refusal = false, nil
	r.tell()
	if r.refusal != nil {
		r.session.end()
	}
	return r.refusal
}

// refuse is called by a mailbox that does not take the message.
func (r *Request) refuse(err error) { r.note(err) }

// urgent makes a full mailbox take the end of a request.
func (r *Request) urgent() bool { return r.ending }

// States of noted.
const (
	notYet  int32 = iota
	taken         // the session has taken note
	waiting       // the sender waits on ready for that
)

// tell sends the request to its session and waits until it has taken note,
// which mostly it has when send returns, having run on this goroutine.
func (r *Request) tell() {
	r.noted.Store(notYet)
	r.session.send(r)
	if r.noted.CompareAndSwap(notYet, waiting) {
		<-r.ready
	}
}

// note ends the wait of tell.
func (r *Request) note(err error) {
	r.refusal = err
	if r.noted.Swap(taken) == waiting {
		r.ready <- struct{}{}
	}
}

// Release gives the request back, after its handler has returned. Every later
// use of this lease's generation is without effect.
func (r *Request) Release() {
	r.mu.Lock()
	r.owner = nil
	r.answered = true
	r.generation.Add(1)
	r.mu.Unlock()
	if r.session != nil {
		r.Forget()
		r.session.end()
	}
	r.session, r.id = nil, nil
	r.system.inFlight.Add(-1)
	r.system.pool.put(r.system, r)
}

// Forget takes the id out of the session's table, so that the peer may use it
// again as soon as it has the answer. It is called by the handler's goroutine,
// before the answer goes out; Release does so at the latest.
func (r *Request) Forget() {
	if r.session == nil || r.ending {
		return
	}
	r.ending = true
	r.tell()
}

// Generation names this lease. It differs for each.
func (r *Request) Generation() uint32 { return r.generation.Load() }

// TryEmit reports whether the lease is not answered yet. If so it holds the
// request's lock, and the caller queues its frame and calls Unlock.
func (r *Request) TryEmit(generation uint32) bool {
	r.mu.Lock()
	if r.answered || r.generation.Load() != generation {
		r.mu.Unlock()
		return false
	}
	return true
}

// Claim is TryEmit for the answer: the first caller gets true, and nobody else
// after it.
func (r *Request) Claim(generation uint32) bool {
	if !r.TryEmit(generation) {
		return false
	}
	r.answered = true
	return true
}

// Unlock ends what TryEmit or Claim began.
func (r *Request) Unlock() { r.mu.Unlock() }

// PID gives the request's PID for this lease. It reaches nothing once the lease
// is over, even while another request runs on the same actor.
func (r *Request) PID() *actor.PID {
	return &actor.PID{Address: r.pid.Address, Id: r.pid.Id, RequestId: r.generation.Load()}
}

// Fail reports a panic of the handler to the supervisor: the session, or the
// guardian for a stateless request. The caller has answered already.
func (r *Request) Fail(reason any) {
	parent := r.system.guardian
	if r.session != nil {
		parent = r.session.pid
	}
	failure := &actor.Failure{Who: r.PID(), Reason: reason, RestartStats: actor.NewRestartStatistics()}
	if p, ok := r.system.actors.ProcessRegistry.Get(parent); ok {
		p.SendSystemMessage(parent, failure)
	}
}

// EndLease ends the request from outside, for a cause of the caller's, unless
// the lease of that generation is over. It reports whether there was one.
func (r *Request) EndLease(generation uint32, cause error) bool { return r.end(generation, cause) }

// end calls the owner of the lease of a generation, or of whatever lease there
// is where generation is 0.
func (r *Request) end(generation uint32, cause error) bool {
	r.mu.Lock()
	owner, current := r.owner, r.generation.Load()
	r.mu.Unlock()
	if owner == nil || generation != 0 && generation != current {
		return false
	}
	owner.End(r, current, cause)
	return true
}

// SendUserMessage handles a PoisonPill; a request takes no other message.
func (r *Request) SendUserMessage(pid *actor.PID, message any) {
	if _, ok := actor.UnwrapEnvelopeMessage(message).(*actor.PoisonPill); ok {
		r.Stop(pid)
		return
	}
	r.system.actors.EventStream.Publish(&actor.DeadLetterEvent{PID: pid, Message: message})
}

// SendSystemMessage handles a Stop.
func (r *Request) SendSystemMessage(pid *actor.PID, message any) {
	switch message.(type) {
	case *actor.Stop:
		r.Stop(pid)
	case *actor.Watch:
		r.system.actors.EventStream.Publish(&actor.DeadLetterEvent{PID: pid, Message: message})
	}
}

// Stop ends the request that is in flight under pid.
func (r *Request) Stop(pid *actor.PID) {
	if !r.end(pid.RequestId, ErrStopped) {
		r.system.actors.EventStream.Publish(&actor.DeadLetterEvent{PID: pid, Message: "Stop"})
	}
}

// key is the id as a map key without a copy. It lives as long as the lease, and
// the session forgets it before.
func (r *Request) key() string { return unsafe.String(unsafe.SliceData(r.id), len(r.id)) }

// requestPool keeps request actors that are free. Each stays registered.
type requestPool struct {
	made atomic.Uint64

	mu    sync.Mutex // guards what follows
	free  []*Request
	known map[*Request]struct{} // all that are registered, free or leased
}

func (p *requestPool) get(s *System) *Request {
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		r := p.free[n-1]
		p.free[n-1] = nil
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return r
	}
	p.mu.Unlock()
	r := &Request{
		system:   s,
		name:     "request/" + strconv.FormatUint(p.made.Add(1), 10),
		ready:    make(chan struct{}, 1),
		answered: true,
	}
	r.pid, _ = s.actors.ProcessRegistry.Add(r, r.name)
	p.mu.Lock()
	if p.known == nil {
		p.known = make(map[*Request]struct{})
	}
	p.known[r] = struct{}{}
	p.mu.Unlock()
	return r
}

// endAll ends every request that is in flight.
func (p *requestPool) endAll(cause error) {
	p.mu.Lock()
	known := slices.Collect(maps.Keys(p.known))
	p.mu.Unlock()
	for _, r := range known {
		r.end(0, cause)
	}
}

func (p *requestPool) put(s *System, r *Request) {
	p.mu.Lock()
	keep := len(p.free) < s.limits.PooledRequests && !s.closed.Load()
	if keep {
		p.free = append(p.free, r)
	} else {
		delete(p.known, r)
	}
	p.mu.Unlock()
	if !keep {
		s.actors.ProcessRegistry.Remove(r.pid)
	}
}

// drain unregisters all that are free.
func (p *requestPool) drain(s *System) {
	p.mu.Lock()
	free := p.free
	p.free = nil
	for _, r := range free {
		delete(p.known, r)
	}
	p.mu.Unlock()
	for _, r := range free {
		s.actors.ProcessRegistry.Remove(r.pid)
	}
}
