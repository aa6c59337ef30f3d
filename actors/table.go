package actors

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// shards is how many locks the table of sessions is spread over.
const shards = 64

// sessionTable finds sessions by key.
type sessionTable struct {
	seed  maphash.Seed
	count atomic.Int64
	shard [shards]struct {
		sync.RWMutex
		byKey map[string]*Session
	}
}

func (t *sessionTable) init() {
	t.seed = maphash.MakeSeed()
	for i := range t.shard {
		t.shard[i].byKey = make(map[string]*Session)
	}
}

// get finds a session, or nil.
func (t *sessionTable) get(key string) *Session {
	s := &t.shard[maphash.String(t.seed, key)%shards]
	s.RLock()
	defer s.RUnlock()
	return s.byKey[key]
}

// add puts a session in unless its key is taken.
func (t *sessionTable) add(session *Session) error {
	s := &t.shard[maphash.String(t.seed, session.key)%shards]
	s.Lock()
	defer s.Unlock()
	if _, taken := s.byKey[session.key]; taken {
		return ErrDuplicateID
	}
	s.byKey[session.key] = session
	t.count.Add(1)
	return nil
}

// remove takes a session out, if it is in.
func (t *sessionTable) remove(session *Session) {
	s := &t.shard[maphash.String(t.seed, session.key)%shards]
	s.Lock()
	defer s.Unlock()
	if s.byKey[session.key] == session {
		delete(s.byKey, session.key)
		t.count.Add(-1)
	}
}

// all gives a copy of the sessions.
func (t *sessionTable) all() []*Session {
	list := make([]*Session, 0, t.count.Load())
	for i := range t.shard {
		s := &t.shard[i]
		s.RLock()
		for _, session := range s.byKey {
			list = append(list, session)
		}
		s.RUnlock()
	}
	return list
}
