package engine

import (
	"container/heap"
	linked "container/list"
	"context"
	"slices"
	"sync"
	"time"
)

// SessionStore keeps of sealed sessions (Options.SessionKeys) what their ids
// cannot hold: which of them are over before their time, and what was said in
// them since the handshake. Replicas that share the keys share the store, too.
// NewMemorySessions makes the one in memory; packages engine/store/bolt and
// engine/store/redis have others.
//
// A session is known to a store by a name of 32 hexadecimal digits, from which
// its id cannot be made. All methods may be called at any time from any
// goroutine; they may wait for a disk or a network, up to the end of ctx.
type SessionStore interface {
	// Revoke notes that a session is over for good, and forgets its state. When
	// the store has as many names as it can keep, it lets those go that were
	// created first, and from then on reports every session as revoked that
	// was created at that time or before: none comes back, but a few lose
	// theirs. A name whose time is over may go as well, but the store remembers
	// that time and reports what expires no later as revoked: a clock that is
	// set back brings nothing back. It returns when the note will outlive the
	// process, where the store can do that.
	Revoke(ctx context.Context, s SessionRef) error
	// Revoked reports whether Revoke was called. An error means that it cannot
	// be told, and the session is not brought back.
	Revoked(ctx context.Context, s SessionRef) (bool, error)
	// Save keeps the state of a session in place of the one before. It is
	// small, a page or so, and borrowed.
	Save(ctx context.Context, s SessionRef, state []byte) error
	// Load gives the state, or nil where there is none.
	Load(ctx context.Context, s SessionRef) ([]byte, error)
}

// SessionRef names a session to a SessionStore.
type SessionRef struct {
	Name    string
	Created time.Time // of its id
	Expires time.Time // when nothing of it need be kept any more
}

// DefaultSessionsKept is how many revoked names, and how many states, a
// SessionStore of this module keeps unless it is told otherwise.
const DefaultSessionsKept = 100_000

// MemorySessions is a SessionStore in memory. It is bounded: see Revoke; of
// states the ones that were saved first go.
type MemorySessions struct {
	max int

	mu      sync.Mutex // guards what follows
	revoked map[string]struct{}
	oldest  tombstones
	floor   time.Time // what was created by then is as good as revoked
	over    time.Time // and so is what expires by then
	states  map[string]*linked.Element
	saved   linked.List // *memoryState, the one saved first at the front
}

// tombstones are the revoked sessions, a heap whose first was created first.
type tombstones []SessionRef

var _ heap.Interface = (*tombstones)(nil)

// Len implements heap.Interface.
func (t tombstones) Len() int { return len(t) }

// Less implements heap.Interface.
func (t tombstones) Less(i, j int) bool { return t[i].Created.Before(t[j].Created) }

// Swap implements heap.Interface.
func (t tombstones) Swap(i, j int) { t[i], t[j] = t[j], t[i] }

// Push implements heap.Interface.
func (t *tombstones) Push(x any) { *t = append(*t, x.(SessionRef)) }

// Pop implements heap.Interface.
func (t *tombstones) Pop() any {
	last := len(*t) - 1
	s := (*t)[last]
	(*t)[last] = SessionRef{}
	*t = (*t)[:last]
	return s
}

type memoryState struct {
	SessionRef
	state []byte
}

var _ SessionStore = (*MemorySessions)(nil)

// NewMemorySessions makes a store that keeps up to max revoked names and as many
// states; 0 means DefaultSessionsKept. A name counts about 200 bytes.
func NewMemorySessions(max int) *MemorySessions {
	if max <= 0 {
		max = DefaultSessionsKept
	}
	return &MemorySessions{max: max, revoked: make(map[string]struct{}), states: make(map[string]*linked.Element)}
}

// Revoke implements SessionStore. It never fails.
func (m *MemorySessions) Revoke(_ context.Context, s SessionRef) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(s.Name)
	if m.isRevoked(s) {
		return nil
	}
	m.revoked[s.Name] = struct{}{}
	heap.Push(&m.oldest, s)
	now := time.Now()
	for len(m.oldest) > m.max || !m.oldest[0].Expires.After(now) {
		first := heap.Pop(&m.oldest).(SessionRef)
		delete(m.revoked, first.Name)
		if first.Expires.After(now) {
			m.floor = first.Created
		} else if first.Expires.After(m.over) {
			m.over = first.Expires
		}
		if len(m.oldest) == 0 {
			break
		}
	}
	return nil
}

// isRevoked is Revoked. m.mu is held.
func (m *MemorySessions) isRevoked(s SessionRef) bool {
	_, found := m.revoked[s.Name]
	return found || !s.Created.After(m.floor) || !s.Expires.After(m.over)
}

// Revoked implements SessionStore. It never fails.
func (m *MemorySessions) Revoked(_ context.Context, s SessionRef) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.isRevoked(s), nil
}

// Save implements SessionStore. It never fails.
func (m *MemorySessions) Save(_ context.Context, s SessionRef, state []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(s.Name)
	m.states[s.Name] = m.saved.PushBack(&memoryState{s, slices.Clone(state)})
	now := time.Now()
	for first := m.saved.Front(); first != nil; first = m.saved.Front() {
		kept := first.Value.(*memoryState)
		if m.saved.Len() <= m.max && kept.Expires.After(now) {
			break
		}
		m.drop(kept.Name)
	}
	return nil
}

// drop drops a state. m.mu is held.
func (m *MemorySessions) drop(name string) {
	if e := m.states[name]; e != nil {
		delete(m.states, name)
		m.saved.Remove(e)
	}
}

// Load implements SessionStore. It never fails.
func (m *MemorySessions) Load(_ context.Context, s SessionRef) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.states[s.Name]; e != nil {
		return e.Value.(*memoryState).state, nil
	}
	return nil, nil
}
