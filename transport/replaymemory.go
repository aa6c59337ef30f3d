package transport

import (
	"context"
	"slices"
	"sync"
)

// Defaults of NewMemoryEvents, in bytes.
const (
	defaultSessionEvents = 1 << 20
	defaultAllEvents     = 256 << 20
)

// eventOverhead is what an event counts besides its frame, so that many small
// ones are bounded as well.
const eventOverhead = 128

// MemoryEvents is an EventStore in memory. It is bounded for each session and
// in all; what came first is dropped first.
type MemoryEvents struct {
	perSession, total int

	mu             sync.Mutex // guards what follows
	bytes          int
	oldest, newest *memoryEvent // of all sessions
	sessions       map[string]*memorySession
}

var _ EventStore = (*MemoryEvents)(nil)

// memorySession holds the events of one session, oldest first.
type memorySession struct {
	key            string
	bytes          int
	oldest, newest *memoryEvent
}

// memoryEvent is an event in two lists: that of all, which can be left
// anywhere, and that of its session, which is left at its head.
type memoryEvent struct {
	Event
	session      *memorySession
	older, newer *memoryEvent // of all sessions
	next         *memoryEvent // newer, of the same session
}

func (e *memoryEvent) size() int { return len(e.Frame) + eventOverhead }

// NewMemoryEvents makes a store that holds at most perSession bytes for one
// session and total bytes for all of them. Zero means the defaults, 1 MiB and
// 256 MiB. An event counts its frame and 128 bytes.
func NewMemoryEvents(perSession, total int) *MemoryEvents {
	if perSession <= 0 {
		perSession = defaultSessionEvents
	}
	if total <= 0 {
		total = defaultAllEvents
	}
	return &MemoryEvents{perSession: perSession, total: total, sessions: make(map[string]*memorySession)}
}

// Append implements EventStore.
func (m *MemoryEvents) Append(session string, e Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[session]
	if s == nil {
		s = &memorySession{key: session}
		m.sessions[session] = s
	}
	event := &memoryEvent{Event: e, session: s}
	size := event.size()
	for s.oldest != nil && s.bytes+size > m.perSession {
		m.dropOldest(s)
	}
	for m.oldest != nil && m.bytes+size > m.total {
		m.dropOldest(m.oldest.session)
	}
	if size <= min(m.perSession, m.total) {
		event.Frame = slices.Clone(e.Frame)
		m.add(s, event)
	}
	if s.oldest == nil {
		delete(m.sessions, session)
	} else {
		m.sessions[session] = s
	}
}

// add puts an event at the end of both lists. m.mu is held.
func (m *MemoryEvents) add(s *memorySession, e *memoryEvent) {
	if s.newest == nil {
		s.oldest = e
	} else {
		s.newest.next = e
	}
	s.newest = e
	if e.older = m.newest; e.older == nil {
		m.oldest = e
	} else {
		e.older.newer = e
	}
	m.newest = e
	s.bytes += e.size()
	m.bytes += e.size()
}

// dropOldest takes the oldest event of a session out of both lists. m.mu is held.
func (m *MemoryEvents) dropOldest(s *memorySession) {
	e := s.oldest
	if s.oldest = e.next; s.oldest == nil {
		s.newest = nil
		delete(m.sessions, s.key)
	}
	if e.older == nil {
		m.oldest = e.newer
	} else {
		e.older.newer = e.newer
	}
	if e.newer == nil {
		m.newest = e.older
	} else {
		e.newer.older = e.older
	}
	s.bytes -= e.size()
	m.bytes -= e.size()
}

// After implements EventStore. It never fails.
func (m *MemoryEvents) After(_ context.Context, session string, stream, seq uint64) (events []Event, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[session]
	if s == nil {
		return nil, nil
	}
	for e := s.oldest; e != nil; e = e.next {
		if e.Stream == stream && e.Seq > seq {
			events = append(events, e.Event)
		}
	}
	return events, nil
}

// Drop implements EventStore.
func (m *MemoryEvents) Drop(session string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[session]
	for s != nil && s.oldest != nil {
		m.dropOldest(s)
	}
}

// LargestSession gives the bytes that the session with the most holds.
func (m *MemoryEvents) LargestSession() (most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sessions {
		most = max(most, s.bytes)
	}
	return most
}
