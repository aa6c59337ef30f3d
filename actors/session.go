package actors

import (
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Session is the actor of one session: a stdio connection, or a legacy HTTP
// session. It owns the table of requests in flight, by exact id token, and that
// of the requests which this side sent to the peer.
type Session struct {
	system    *System
	key       string
	principal string
	evictable bool
	pid       *actor.PID
	box       mailbox

	// Value is the embedder's own state of the session. It is set before the
	// session is found by others and never changes.
	Value any

	onClose func(cause error)

	active     atomic.Int32          // users, requests in flight and open streams; evicting
	lastActive atomic.Int64          // System.now
	ended      atomic.Pointer[error] // why it closes; set once before the actor stops
	done       chan struct{}         // closed when the actor has stopped

	// Guarded by admission.mu.
	admitted  bool
	heapIndex [heapKinds]int32

	// What follows is the actor's own: only its Receive touches it.
	inFlight      inFlight
	outgoing      map[uint64]*Outgoing
	nextOutgoing  uint64
	subscriptions map[string]*Subscription
	stopped       bool
}

var _ actor.Actor = (*Session)(nil)

// task is work on the session's state that is not on the hot path.
type task struct {
	run  func(ctx actor.Context, refusal error)
	done chan struct{}
}

func (t *task) refuse(err error) {
	t.run(nil, err)
	close(t.done)
}

// OpenSession is Open for a session that is not evicted.
func (s *System) OpenSession(key string, value any, onClose func(cause error)) (*Session, error) {
	return s.Open(SessionSpec{Key: key, Value: value, OnClose: onClose})
}

// Session finds a session by its key, or gives nil.
func (s *System) Session(key string) *Session {
	session := s.sessions.get(key)
	if session == nil || session.ended.Load() != nil {
		return nil
	}
	return session
}

// EachSession calls f with every session that is open.
func (s *System) EachSession(f func(*Session)) {
	for _, session := range s.sessions.all() {
		f(session)
	}
}

// Key gives the session's key.
func (s *Session) Key() string { return s.key }

// PID gives the PID of the session's actor.
func (s *Session) PID() *actor.PID { return s.pid }

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.done }

// Cause tells why the session ended. It is valid after Done.
func (s *Session) Cause() error {
	if cause := s.ended.Load(); cause != nil {
		return *cause
	}
	return nil
}

// Close ends the session: its requests are told cause, requests to the peer
// fail, subscriptions end. It waits for none of the handlers.
func (s *Session) Close(cause error) {
	if s.ended.CompareAndSwap(nil, &cause) {
		s.leave()
		s.system.actors.Root.Stop(s.pid)
	}
}

// Hold counts something as activity, an open stream say, until release is
// called. A session with activity does not expire.
func (s *Session) Hold() (release func()) {
	s.begin()
	var once atomic.Bool
	return func() {
		if !once.Swap(true) {
			s.end()
		}
	}
}

// Busy reports whether anything is in flight or open.
func (s *Session) Busy() bool { return s.active.Load() > 0 }

// begin counts a use. When that was matters only after the last one has ended.
func (s *Session) begin() { s.active.Add(1) }

// end ends a use. The last one notes the time, and first: who is not in use is
// judged by it.
func (s *Session) end() {
	for {
		users := s.active.Load()
		if users <= 1 {
			s.Touch()
		}
		if s.active.CompareAndSwap(users, users-1) {
			return
		}
	}
}

// Touch counts as activity at this moment.
func (s *Session) Touch() { s.lastActive.Store(s.system.now()) }

// idleSince tells for how long nothing has been active.
func (s *Session) idleSince(now int64) time.Duration {
	if s.active.Load() > 0 {
		return 0
	}
	return time.Duration(now - s.lastActive.Load())
}

// send posts a message to the session's actor, whose mailbox outlives it and
// refuses what comes too late.
func (s *Session) send(message any) { s.box.PostUserMessage(message) }

// do runs f inside the actor and waits for it. refusal is set, and ctx nil,
// where the session has ended or its mailbox is full.
func (s *Session) do(f func(ctx actor.Context, refusal error)) {
	t := &task{run: f, done: make(chan struct{})}
	s.send(t)
	<-t.done
}

// Cancel ends the request in flight whose exact id token is given, without an
// answer. It reports whether there is one.
func (s *Session) Cancel(id []byte) (found bool) {
	s.do(func(ctx actor.Context, refusal error) {
		if refusal != nil {
			return
		}
		if r := s.inFlight.get(string(id)); r != nil {
			found = r.end(0, ErrCancelled)
		}
	})
	return found
}

// Receive is the actor's behaviour. Nothing in it waits.
func (s *Session) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *Request:
		s.request(m)
	case *task:
		s.task(ctx, m)
	case *actor.Terminated:
		s.lost(m.Who)
	case *actor.Stopping:
		s.stopping()
	case *actor.Stopped:
		close(s.done)
		s.box.close()
		if s.onClose != nil {
			s.onClose(s.Cause())
		}
	}
}

// lost forgets a subscription whose actor has ended by itself, by a panic say.
func (s *Session) lost(pid *actor.PID) {
	for topic, sub := range s.subscriptions {
		if sub.pid.Id == pid.Id {
			delete(s.subscriptions, topic)
			sub.leave()
			return
		}
	}
}

// task runs a task. Where that panics the session ends, and whoever waits for
// the task is told so.
func (s *Session) task(ctx actor.Context, t *task) {
	if s.stopped {
		t.refuse(ErrSessionClosed)
		return
	}
	defer func() {
		if reason := recover(); reason != nil {
			t.refuse(ErrSessionClosed)
			panic(reason)
		}
	}()
	t.run(ctx, nil)
	close(t.done)
}

// request notes the begin or the end of a request.
func (s *Session) request(r *Request) {
	switch {
	case r.ending:
		s.inFlight.remove(r)
		r.note(nil)
	case s.stopped:
		r.note(ErrSessionClosed)
	case s.inFlight.len() >= s.system.limits.MaxRequestsPerSession:
		r.note(ErrOverloaded)
	case s.inFlight.get(r.key()) != nil:
		r.note(ErrDuplicateID)
	default:
		s.inFlight.add(r)
		r.note(nil)
	}
}

// stopping ends everything that the session owns.
func (s *Session) stopping() {
	s.stopped = true
	stopped := ErrStopped
	if s.ended.CompareAndSwap(nil, &stopped) {
		s.leave()
	}
	for r := range s.inFlight.all {
		r.end(0, s.Cause())
	}
	for _, o := range s.outgoing {
		o.resolve(nil, ErrSessionClosed)
	}
	s.outgoing = nil
	for _, sub := range s.subscriptions {
		sub.leave()
	}
	s.subscriptions = nil
}
