package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
)

// sealing is what a session knows that has a sealed id.
type sealing struct {
	ref  SessionRef
	turn chan struct{} // capacity 1: whose turn it is to save the state
}

// newSealing makes what a session knows of its id.
func newSealing(id *sealedID) *sealing {
	return &sealing{
		ref: SessionRef{
			Name: id.name(), Created: time.UnixMilli(id.created), Expires: time.UnixMilli(id.expires),
		},
		turn: make(chan struct{}, 1),
	}
}

// ErrPassivated is the cause of the end of a session that can come back under
// the same id: it made room, nobody used it, or the process shuts down.
var ErrPassivated = errors.New("engine: session passivated")

// storeTimeout is how long a SessionStore may take.
const storeTimeout = 5 * time.Second

// sessionCounters count what becomes of session ids, and what sessions refuse by
// themselves.
type sessionCounters struct{ unknown, revived, storeFailures, dropped, batches atomic.Int64 }

// OpenFor begins the session of an initialize that came over HTTP, on behalf of
// whoever ctx tells (Options.Principal), and gives it in use: Release ends that.
// The message must have passed CheckInitialize, and is what the session is to
// receive first. With Options.SessionKeys the session's key is sealed and holds
// what the handshake settles; otherwise it is random. The error is
// ErrShuttingDown, or one that WireError turns into an answer.
func (e *Engine) OpenFor(ctx context.Context, m *codec.Message) (*Session, error) {
	principal, fault := e.principalOf(ctx)
	if fault != nil {
		return nil, fault
	}
	s := &Session{engine: e, principal: principal, bound: true}
	s.level.Store(uint32(LevelInfo))
	key := ""
	if e.ids == nil {
		key = rand.Text()
	} else {
		s.planned = e.negotiate(m, principal).sealable()
		var id *sealedID
		id, key = e.newSealedID(s.planned)
		s.sealing = newSealing(id)
	}
	if err := e.open(s, key, 0); err != nil {
		return nil, err
	}
	return s, nil
}

// open opens the actor of a session over HTTP.
func (e *Engine) open(s *Session, key string, firstOutgoing uint64) error {
	if e.options.Audit != nil {
		s.audited = auditName(key)
	}
	_, err := e.system.Open(actors.SessionSpec{
		Key: key, Value: s, Principal: s.principal, Evictable: true, Acquired: true, FirstOutgoing: firstOutgoing,
		OnOpen: func(a *actors.Session) { s.actor = a }, OnClose: s.closed,
	})
	if errors.Is(err, actors.ErrShutdown) {
		return ErrShuttingDown
	}
	return err
}

// Acquire finds the session of a key for a request whose principal ctx tells,
// and keeps it from ending for want of use until Release. One with a sealed id
// that is not here comes back. It gives nil where there is no such session, and
// where it is another principal's. The error means that it cannot be told now:
// ErrShuttingDown, or one that WireError turns into an answer.
func (e *Engine) Acquire(ctx context.Context, key string) (*Session, error) {
	principal, fault := e.principalOf(ctx)
	if fault != nil {
		return nil, fault
	}
	if s, found := e.acquire(key, principal); found {
		return s, nil
	}
	id := e.openID(key, principal)
	if id == nil {
		e.sessions.unknown.Add(1)
		return nil, nil
	}
	for {
		done, others := e.revivals.begin(id.identity)
		if done != nil {
			defer done()
			return e.revive(ctx, key, id)
		}
		select {
		case <-others:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if s, found := e.acquire(key, principal); found {
			return s, nil
		}
	}
}

// revivals has one request at a time bring a session back, while the others for
// it wait.
type revivals struct {
	mu    sync.Mutex // guards what follows
	going map[[16]byte]chan struct{}
}

// begin gives done to whoever is to bring the session back, and to the others a
// channel that is closed when that has been tried.
func (r *revivals) begin(identity [16]byte) (done func(), others <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if going, ok := r.going[identity]; ok {
		return nil, going
	}
	if r.going == nil {
		r.going = make(map[[16]byte]chan struct{})
	}
	going := make(chan struct{})
	r.going[identity] = going
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.going, identity)
		close(going)
	}, nil
}

// acquire finds a session that is here. found is set, and s nil, where it is
// here and not for the principal, or its time is over.
func (e *Engine) acquire(key, principal string) (s *Session, found bool) {
	a := e.system.Acquire(key)
	if a == nil {
		return nil, false
	}
	s, _ = a.Value.(*Session)
	switch {
	case s.Expired():
		a.Close(actors.ErrSessionExpired)
	case !s.bound || s.principal == principal:
		return s, true
	}
	a.Release()
	e.sessions.unknown.Add(1)
	return nil, true
}

// Release ends what Acquire and OpenFor began.
func (s *Session) Release() { s.actor.Release() }

// Expired reports whether the time of a sealed session is over.
func (s *Session) Expired() bool {
	return s.sealing != nil && !s.engine.now().Before(s.sealing.ref.Expires)
}

// revive brings a session back.
func (e *Engine) revive(ctx context.Context, key string, id *sealedID) (*Session, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	s := &Session{engine: e, principal: id.negotiated.principal, bound: true, sealing: newSealing(id)}
	s.level.Store(uint32(LevelInfo))
	n := id.negotiated
	n.seen = e.announcer.seen()
	s.negotiated.Store(&n)
	s.operating.Store(true)
	if revoked, err := e.revoked(ctx, s.sealing.ref); revoked || err != nil {
		return nil, err
	}
	state, err := e.options.Sessions.Load(ctx, s.sealing.ref)
	if err != nil {
		e.storeFailed("loading the state of a session", err)
	}
	err = e.open(s, key, firstOutgoing())
	if errors.Is(err, actors.ErrDuplicateID) {
		// Another request has brought it back between our look and our turn.
		if other, found := e.acquire(key, s.principal); found {
			return other, nil
		}
		return nil, codec.ErrOverloaded // and it is ending already
	}
	if err != nil {
		return nil, err
	}
	s.resume(state)
	// It may have been deleted since we looked, by somebody who did not find it.
	if revoked, err := e.revoked(ctx, s.sealing.ref); revoked || err != nil {
		s.actor.Close(actors.ErrCancelled)
		s.Release()
		return nil, err
	}
	e.sessions.revived.Add(1)
	return s, nil
}

// firstOutgoing gives where the ids of our requests begin in a session that
// comes back, so that an answer to one of before is taken for no other's.
func firstOutgoing() uint64 {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails
	first := uint64(1)
	for _, x := range b {
		first = first<<8 | uint64(x)
	}
	return first << 8 // below 2^53, and with room before the next one
}

// errStore answers what cannot be decided without the store.
var errStore = codec.NewError(codec.CodeOverloaded, "The store of sessions cannot be reached, try again later")

// revoked asks the store, counts a session that was deleted as unknown, and
// gives errStore where that cannot be told.
func (e *Engine) revoked(ctx context.Context, ref SessionRef) (bool, error) {
	revoked, err := e.options.Sessions.Revoked(ctx, ref)
	if err != nil {
		e.storeFailed("looking for a revoked session", err)
		return false, errStore
	}
	if revoked {
		e.sessions.unknown.Add(1)
	}
	return revoked, nil
}

// storeFailed notes that the store did not do what it should.
func (e *Engine) storeFailed(what string, err error) {
	e.sessions.storeFailures.Add(1)
	e.log.Error(what+" failed", "error", err)
}

// Delete ends the session of a key for good, as its client asks. It reports
// false where Acquire would find none. Where the error is not nil the end of a
// sealed session could not be noted, and the session goes on.
func (e *Engine) Delete(ctx context.Context, key string) (found bool, err error) {
	principal, fault := e.principalOf(ctx)
	if fault != nil {
		return false, fault
	}
	if s, here := e.acquire(key, principal); here {
		if s == nil {
			return false, nil
		}
		defer s.Release()
		return true, s.end(ctx)
	}
	id := e.openID(key, principal)
	if id == nil {
		e.sessions.unknown.Add(1)
		return false, nil
	}
	ref := newSealing(id).ref
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if revoked, err := e.revoked(ctx, ref); revoked || err != nil {
		return false, err
	}
	if err := e.revoke(ctx, ref); err != nil {
		return true, err
	}
	if a := e.system.Session(key); a != nil {
		a.Close(actors.ErrCancelled) // it has come back meanwhile
	}
	return true, nil
}

// end ends a session for good.
func (s *Session) end(ctx context.Context) error {
	if s.sealing != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		if err := s.engine.revoke(ctx, s.sealing.ref); err != nil {
			return err
		}
	}
	s.actor.Close(actors.ErrCancelled)
	return nil
}

// revoke notes in the store that a session is over.
func (e *Engine) revoke(ctx context.Context, ref SessionRef) error {
	if err := e.options.Sessions.Revoke(ctx, ref); err != nil {
		e.storeFailed("revoking a session", err)
		return errStore
	}
	return nil
}

// cause gives the cause of a session's end as those hear it who asked for it.
func (s *Session) cause(cause error) error {
	if s.sealing == nil || errors.Is(cause, actors.ErrCancelled) || errors.Is(cause, actors.ErrSessionExpired) {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrPassivated, cause)
}

// PrincipalOf gives who makes a request, as Options.Principal tells, for a
// transport that binds a session to it by itself.
func (e *Engine) PrincipalOf(ctx context.Context) (string, error) {
	principal, fault := e.principalOf(ctx)
	if fault != nil {
		return "", fault
	}
	return principal, nil
}
