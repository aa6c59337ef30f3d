package mock

import (
	"crypto/rand"
	"errors"
	"sync"
	"time"
)

// outboxSize is how many updates wait for a stream whose reader is slow; more are counted as missed.
const outboxSize = 1024

var (
	errSessionLimit  = errors.New("the limit of sessions is reached")
	errSessionMemory = errors.New("no memory for another session")
)

// session is a session of the legacy era.
type session struct {
	id     string
	memory []byte        // its ballast; written by the table alone
	ended  chan struct{} // closed when the session has ended

	// Guarded by the table's mutex.
	uses       int       // requests in flight and open streams
	idleSince  time.Time // where uses is 0
	expiry     *time.Timer
	armed      bool // expiry is going to fire
	subscribed bool
	stream     *outbox // of the newest stream, nil where none is open
}

// outbox is what waits to be sent on one stream.
type outbox struct {
	frames   chan []byte
	replaced chan struct{} // closed when the session has a newer stream
}

func newOutbox() *outbox {
	return &outbox{frames: make(chan []byte, outboxSize), replaced: make(chan struct{})}
}

// table is the sessions of a server.
type table struct {
	limits Sessions
	count  *counters

	mu       sync.Mutex
	sessions map[string]*session // guarded by mu
	reserved int                 // guarded by mu: sessions being opened
}

func newTable(limits Sessions, count *counters) *table {
	return &table{limits: limits, count: count, sessions: map[string]*session{}}
}

// open begins a session, with one use that the caller has to give back.
func (t *table) open() (*session, error) {
	t.mu.Lock()
	if t.limits.Max > 0 && len(t.sessions)+t.reserved >= t.limits.Max {
		t.mu.Unlock()
		t.count.refused.Add(1)
		return nil, errSessionLimit
	}
	t.reserved++
	t.mu.Unlock()
	memory, err := allocate(t.limits.Bytes)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reserved--
	if err != nil {
		t.count.refused.Add(1)
		return nil, errSessionMemory
	}
	s := &session{id: rand.Text(), memory: memory, ended: make(chan struct{}), uses: 1}
	t.sessions[s.id] = s
	t.count.opened.Add(1)
	t.count.sessions.up()
	return s, nil
}

// use finds a session and keeps it until release; nil where there is none of that id.
func (t *table) use(id string) *session {
	t.mu.Lock()
	s := t.sessions[id]
	var freed []byte
	if s != nil && t.isExpired(s, time.Now()) {
		t.count.expired.Add(1)
		freed = t.remove(s)
		s = nil
	}
	if s != nil {
		s.uses++
	}
	t.mu.Unlock()
	deallocate(freed)
	if s == nil {
		t.count.unknown.Add(1)
	}
	return s
}

// isExpired reports whether the time of a session is over. The caller holds mu.
func (t *table) isExpired(s *session, now time.Time) bool {
	return t.limits.IdleTTL > 0 && s.uses == 0 && now.Sub(s.idleSince) >= t.limits.IdleTTL
}

// release ends a use.
func (t *table) release(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.uses--
	if s.uses > 0 || t.limits.IdleTTL == 0 || t.sessions[s.id] != s {
		return
	}
	s.idleSince = time.Now()
	if s.armed {
		return // it fires too early and then looks at idleSince
	}
	s.armed = true
	if s.expiry == nil {
		s.expiry = time.AfterFunc(t.limits.IdleTTL, func() { t.expire(s) })
	} else {
		s.expiry.Reset(t.limits.IdleTTL)
	}
}

// expire ends a session whose time is over, and otherwise looks again when it may be.
func (t *table) expire(s *session) {
	var freed []byte
	t.mu.Lock()
	now := time.Now()
	switch {
	case t.sessions[s.id] != s || s.uses > 0:
		s.armed = false // release arms it again
	case t.isExpired(s, now):
		s.armed = false
		t.count.expired.Add(1)
		freed = t.remove(s)
	default:
		s.expiry.Reset(s.idleSince.Add(t.limits.IdleTTL).Sub(now))
	}
	t.mu.Unlock()
	deallocate(freed)
}

// delete ends a session at the wish of its client.
func (t *table) delete(s *session) {
	t.mu.Lock()
	var freed []byte
	if t.sessions[s.id] == s {
		t.count.deleted.Add(1)
		freed = t.remove(s)
	}
	t.mu.Unlock()
	deallocate(freed)
}

// remove takes a session out of the table and gives its memory, which the caller deallocates. The caller holds mu.
func (t *table) remove(s *session) (memory []byte) {
	delete(t.sessions, s.id)
	close(s.ended)
	if s.expiry != nil {
		s.expiry.Stop()
	}
	t.count.sessions.down()
	memory, s.memory = s.memory, nil
	return memory
}

// closeAll ends every session.
func (t *table) closeAll() {
	var freed [][]byte
	t.mu.Lock()
	for _, s := range t.sessions {
		freed = append(freed, t.remove(s))
	}
	t.mu.Unlock()
	for _, memory := range freed {
		deallocate(memory)
	}
}

// attach gives a session a new stream, which takes the place of an older one.
func (t *table) attach(s *session) *outbox {
	o := newOutbox()
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.stream != nil {
		close(s.stream.replaced)
	}
	s.stream = o
	return o
}

// detach ends a stream.
func (t *table) detach(s *session, o *outbox) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.stream == o {
		s.stream = nil
	}
}

// subscribe notes whether a session wants to hear of changes.
func (t *table) subscribe(s *session, wanted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.subscribed = wanted
}

// publish hands a frame to the streams of all subscribers and gives the number of subscribers, and of those whose stream
// takes it.
func (t *table) publish(frame []byte) (subscribers, sent int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.sessions {
		if !s.subscribed {
			continue
		}
		subscribers++
		if s.stream == nil {
			continue
		}
		select {
		case s.stream.frames <- frame:
			sent++
		default:
		}
	}
	t.count.missed.Add(int64(subscribers - sent))
	return subscribers, sent
}
