package actors

import (
	"container/heap"
	"sync"
	"time"
)

// evicting is what Session.active is set to by whoever ends a session that is
// not in use. It is so low that no number of users makes it positive again:
// those who come too late see it and look for the session anew.
const evicting = -1 << 30

// Acquire finds a session by its key and counts as a use of it until Release,
// so that it is neither evicted nor ended as idle meanwhile. It gives nil where
// there is none.
func (s *System) Acquire(key string) *Session {
	session := s.Session(key)
	if session == nil || session.active.Add(1) < 0 {
		return nil
	}
	return session
}

// Release ends what Acquire began.
func (s *Session) Release() { s.end() }

// retire ends a session unless it is in use.
func (s *Session) retire(cause error) {
	if s.active.CompareAndSwap(0, evicting) {
		s.Close(cause)
	}
}

// expired reports whether the session's time is over, in use or not.
func (s *Session) expired() bool {
	e, ok := s.Value.(interface{ Expired() bool })
	return ok && e.Expired()
}

// admission bounds the sessions of a System, in all and for each principal.
// Where a limit is reached the least recently used one makes room: exactly that
// one, and never one that is in use.
//
// Requests know nothing of it. The sessions are in a heap by the time of last
// use as it was when somebody last looked, which is not later than the true
// one; whoever opens a session puts right what comes up until the first one is
// true. That is at most one step for each session that was used since.
type admission struct {
	limits *Limits

	mu        sync.Mutex // guards what follows, and what Session says
	count     int
	all       usage
	principal map[string]*principalUsage
}

// principalUsage is what one principal has open.
type principalUsage struct {
	usage
	count int
}

func (a *admission) init(limits *Limits) {
	a.limits = limits
	a.principal = make(map[string]*principalUsage)
}

// add admits a session. Those who make room for it are out of the books, and
// the caller ends them, also where there is an error.
func (a *admission) add(s *Session, now int64) (evicted []*Session, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var p *principalUsage
	if s.principal != "" {
		if p = a.principal[s.principal]; p == nil {
			p = &principalUsage{usage: usage{kind: heapPrincipal}}
		}
		for p.count >= a.limits.MaxSessionsPerPrincipal {
			victim := p.take(now)
			if victim == nil {
				return evicted, ErrTooManySessionsOfPrincipal
			}
			a.drop(victim)
			evicted = append(evicted, victim)
		}
	}
	for a.count >= a.limits.MaxSessions {
		victim := a.all.take(now)
		if victim == nil {
			return evicted, ErrTooManySessions
		}
		a.drop(victim)
		evicted = append(evicted, victim)
	}
	a.count++
	s.admitted = true
	if s.evictable {
		heap.Push(&a.all, usageEntry{session: s, used: now})
	}
	if p != nil {
		p.count++
		a.principal[s.principal] = p
		if s.evictable {
			heap.Push(p, usageEntry{session: s, used: now})
		}
	}
	return evicted, nil
}

// remove takes a session out of the books, if it is in them.
func (a *admission) remove(s *Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.admitted {
		a.drop(s)
	}
}

// drop is remove. a.mu is held.
func (a *admission) drop(s *Session) {
	s.admitted = false
	a.count--
	if s.evictable {
		heap.Remove(&a.all, int(s.heapIndex[heapAll]))
	}
	p := a.principal[s.principal]
	if p == nil {
		return
	}
	if s.evictable {
		heap.Remove(p, int(s.heapIndex[heapPrincipal]))
	}
	if p.count--; p.count == 0 {
		delete(a.principal, s.principal)
	}
}

// The heaps that a session may be in: indexes of Session.heapIndex.
const (
	heapAll = iota
	heapPrincipal
	heapKinds
)

// usage is a heap of sessions that may be evicted, the least recently used one
// first.
type usage struct {
	kind      int
	list      []usageEntry
	search    uint32 // counts the calls of take
	busyUntil int64  // System.now until when all are taken to be in use
}

type usageEntry struct {
	session *Session
	used    int64  // System.now, about
	seen    uint32 // the search that last saw it in use
}

var _ heap.Interface = (*usage)(nil)

// Len implements heap.Interface.
func (u *usage) Len() int { return len(u.list) }

// Less implements heap.Interface. What this search has seen in use comes last
// of its time.
func (u *usage) Less(i, j int) bool {
	a, b := &u.list[i], &u.list[j]
	return a.used < b.used || a.used == b.used && a.seen < b.seen
}

// Swap implements heap.Interface.
func (u *usage) Swap(i, j int) {
	u.list[i], u.list[j] = u.list[j], u.list[i]
	u.list[i].session.heapIndex[u.kind] = int32(i)
	u.list[j].session.heapIndex[u.kind] = int32(j)
}

// Push implements heap.Interface.
func (u *usage) Push(x any) {
	e := x.(usageEntry)
	e.session.heapIndex[u.kind] = int32(len(u.list))
	u.list = append(u.list, e)
}

// Pop implements heap.Interface.
func (u *usage) Pop() any {
	last := len(u.list) - 1
	e := u.list[last]
	u.list[last] = usageEntry{}
	u.list = u.list[:last]
	return e
}

// manySessions is from how many sessions on a search that found all of them in
// use is not repeated at once; each then counts as a microsecond of patience.
// Otherwise whoever is refused could keep everybody else from opening.
const manySessions = 1000

// take finds the least recently used session that is not in use and marks it
// as evicted, or gives nil. The session stays in the heap.
func (u *usage) take(now int64) *Session {
	if now < u.busyUntil {
		return nil
	}
	u.search++
	looked := 0
	for len(u.list) > 0 {
		first := &u.list[0]
		session := first.session
		if first.seen == u.search || first.used > now {
			break
		}
		looked++
		switch used := session.lastActive.Load(); {
		case session.active.Load() == 0 && used > first.used:
			first.used = used
		case session.active.CompareAndSwap(0, evicting):
			return session
		default:
			first.used, first.seen = now, u.search
		}
		heap.Fix(u, 0)
	}
	if looked >= manySessions {
		u.busyUntil = now + int64(looked)*int64(time.Microsecond)
	}
	return nil
}
