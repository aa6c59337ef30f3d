package actors

import (
	"strconv"
)

// SessionSpec says how a session begins.
type SessionSpec struct {
	// Key finds the session. No other open session has it.
	Key string
	// Value is the embedder's own state of the session. Where it has a method
	// Expired() bool, and Config.SessionsExpire is set, the session is ended
	// with ErrSessionExpired within 30 s after that has become true, in use or
	// not.
	Value any
	// Principal is whose session it is, for Limits.MaxSessionsPerPrincipal.
	// The empty one is nobody in particular, whom that limit does not concern.
	Principal string
	// Evictable sessions make room, the least recently used one first, where a
	// limit on sessions is reached. It is for sessions that a peer can do
	// without: those of a connection end with it and are not evicted.
	Evictable bool
	// Acquired counts as a use that Release ends, so that the session is not
	// evicted before its first request.
	Acquired bool
	// FirstOutgoing is the id after which those of requests to the peer begin.
	FirstOutgoing uint64
	// OnOpen is called before the session can be found. It must not block.
	OnOpen func(*Session)
	// OnClose is called once, when the actor has stopped, with the cause; it
	// must not block.
	OnClose func(cause error)
}

// Open spawns the actor of a new session. Where a limit is reached, the least
// recently used session that can be evicted, and is not in use, is ended with
// ErrSessionEvicted. The error is one of the refusals: ErrDuplicateID where the
// key is taken.
func (s *System) Open(spec SessionSpec) (*Session, error) {
	if err := s.admit(); err != nil {
		return nil, err
	}
	if s.Session(spec.Key) != nil {
		return nil, ErrDuplicateID
	}
	now := s.now()
	session := &Session{
		system: s, key: spec.Key, principal: spec.Principal, evictable: spec.Evictable, Value: spec.Value,
		onClose: spec.OnClose, done: make(chan struct{}), nextOutgoing: spec.FirstOutgoing,
	}
	session.box.system = s
	session.active.Store(1) // nobody evicts it before it is open
	session.lastActive.Store(now)
	evicted, err := s.admission.add(session, now)
	for _, victim := range evicted {
		s.refusals.evicted.Add(1)
		victim.Close(ErrSessionEvicted)
	}
	if err != nil {
		s.refused.Add(1)
		return nil, s.refusals.note(err)
	}
	if err := s.spawn(session); err != nil {
		s.admission.remove(session)
		return nil, err
	}
	if spec.OnOpen != nil {
		spec.OnOpen(session)
	}
	if err := s.sessions.add(session); err != nil {
		session.onClose = nil
		session.Close(err)
		return nil, err
	}
	if s.closed.Load() {
		// Shutdown has begun meanwhile and may not have seen the session.
		session.Close(ErrShutdown)
	}
	if !spec.Acquired {
		session.Release()
	}
	return session, nil
}

// spawn spawns the session's actor. One whose session can come back after its
// end has a number for a name: the actor before it may not be quite gone, and
// the keys of such sessions are secrets, which names of actors are not.
func (s *System) spawn(session *Session) (err error) {
	name := session.key
	if session.evictable {
		name = "#" + strconv.FormatUint(s.named.Add(1), 10)
	}
	s.spawning.Lock()
	defer s.spawning.Unlock()
	s.spawning.session = session
	session.pid, err = s.root.SpawnNamed(s.sessionProps, "session/"+name)
	s.spawning.session = nil
	if err != nil {
		return ErrDuplicateID
	}
	return nil
}

// leave takes a session that ends out of what finds and counts it.
func (s *Session) leave() {
	s.system.sessions.remove(s)
	s.system.admission.remove(s)
}
