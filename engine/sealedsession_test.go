package engine_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

var sessionKey = bytes.Repeat([]byte{7}, 32)

// sealed gives options with a key, whose principal is what the context holds.
func sealed(store engine.SessionStore) *engine.Options {
	return &engine.Options{
		SessionKeys: [][]byte{sessionKey}, Sessions: store,
		Principal: principal,
	}
}

// newServer makes an engine with something of every kind.
func newServer(t *testing.T, o *engine.Options) (*engine.Engine, *logs) {
	t.Helper()
	e, l := newEngine(t, o)
	echo(t, e, "echo")
	for _, uri := range []string{"test://a", "test://b"} {
		must(t, e.AddResource(engine.Resource{URI: uri, Name: uri},
			func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) {
				return []engine.ResourceContents{{Text: "x"}}, nil
			}))
	}
	return e, l
}

// openFor opens a session as a POST does, and gives it out of use.
func openFor(t *testing.T, e *engine.Engine, who string, rev engine.Revision) *peer {
	t.Helper()
	var m codec.Message
	frame := request("1", codec.MethodInitialize, `{"protocolVersion":"`+rev.String()+
		`","capabilities":{"sampling":{}},"clientInfo":{"name":"c","version":"7"}}`)
	if err := codec.Decode([]byte(frame), &m); err != nil {
		t.Fatal(err)
	}
	s, err := e.OpenFor(as(who), &m)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	r := new(reply)
	s.Receive(as(who), &m, nil, r)
	if frames := r.take(); len(frames) != 1 || !strings.Contains(frames[0], rev.String()) {
		t.Fatalf("initialize: got %v", frames)
	}
	p := &peer{t: t, session: s, notes: new(reply)}
	p.notify(codec.NotifyInitialized, `{}`)
	return p
}

// acquire finds a session as a request does, and gives it out of use, or nil.
func acquire(t *testing.T, e *engine.Engine, who, key string) *peer {
	t.Helper()
	s, err := e.Acquire(as(who), key)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	if s == nil {
		return nil
	}
	s.Release()
	return &peer{t: t, session: s, notes: new(reply)}
}

// TestSessionsOutliveTheProcess opens sessions with one engine and goes on with
// another that has the same key: as they were negotiated.
func TestSessionsOutliveTheProcess(t *testing.T) {
	first, _ := newServer(t, sealed(nil))
	opened := make(map[engine.Revision]string)
	for _, rev := range legacy {
		opened[rev] = openFor(t, first, "ann", rev).session.Key()
	}
	must(t, first.Shutdown(t.Context()))

	second, _ := newServer(t, sealed(nil))
	for rev, key := range opened {
		p := acquire(t, second, "ann", key)
		if p == nil {
			t.Errorf("%v: the session is gone", rev)
			continue
		}
		if got := p.session.Revision(); got != rev {
			t.Errorf("revision: got %v, want %v", got, rev)
		}
		if name, version := p.session.ClientInfo(); name != "c" || version != "7" {
			t.Errorf("ClientInfo: got %q %q, want c 7", name, version)
		}
		if got := p.call("echo", `{"message":"x"}`); !strings.HasPrefix(got, `{"content":[`) {
			t.Errorf("%v: a call: got %s, want a result", rev, got)
		}
		if got := p.result(codec.MethodInitialize, `{"protocolVersion":"2025-11-25","capabilities":{}}`); !strings.HasPrefix(got, "-32600") {
			t.Errorf("%v: a second initialize: got %s, want -32600", rev, got)
		}
		r := new(reply)
		p.session.ReceiveBatch(as("ann"), []byte("["+request("1", "ping", "")+"]"), r)
		if got := strings.Join(r.take(), ""); strings.Contains(got, `"error"`) != (rev != engine.Rev20250326) {
			t.Errorf("%v: a batch: got %s", rev, got)
		}
		if again := acquire(t, second, "ann", key); again == nil || again.session != p.session {
			t.Errorf("%v: the session came back twice", rev)
		}
		if acquire(t, second, "bob", key) != nil || acquire(t, second, "", key) != nil {
			t.Errorf("%v: the session is another principal's too", rev)
		}
	}
	if got := second.Stats().Refusals; got.Revived != int64(len(legacy)) {
		t.Errorf("Stats.Refusals.Revived: got %d, want %d", got.Revived, len(legacy))
	}
}

// TestForeignPrincipal checks that nobody gets at another's session where it
// came back for, or was never out of, its owner.
func TestForeignPrincipal(t *testing.T) {
	for _, keys := range [][][]byte{nil, {sessionKey}} {
		o := sealed(nil)
		o.SessionKeys = keys
		e, _ := newServer(t, o)
		key := openFor(t, e, "ann", engine.Rev20251125).session.Key()
		if acquire(t, e, "bob", key) != nil {
			t.Errorf("%d keys: bob has ann's session", len(keys))
		}
		if found, err := e.Delete(as("bob"), key); found || err != nil {
			t.Errorf("%d keys: Delete by bob: got %t, %v; want false", len(keys), found, err)
		}
		if acquire(t, e, "ann", key) == nil {
			t.Errorf("%d keys: ann has lost her session", len(keys))
		}
		if got := e.Stats().Refusals.UnknownSessions; got != 2 {
			t.Errorf("%d keys: UnknownSessions: got %d, want 2", len(keys), got)
		}
	}
}

// TestStateComesBack checks that a session has its log level and subscriptions
// after an eviction, and what was unsubscribed not.
func TestStateComesBack(t *testing.T) {
	o := sealed(nil)
	o.Limits = actors.Limits{MaxSessions: 1}
	e, _ := newServer(t, o)
	p := openFor(t, e, "ann", engine.Rev20251125)
	key := p.session.Key()
	p.result(codec.MethodSetLevel, `{"level":"error"}`)
	p.result(codec.MethodResourcesSubscribe, `{"uri":"test://a"}`)
	p.result(codec.MethodResourcesSubscribe, `{"uri":"test://b"}`)
	p.result(codec.MethodResourcesUnsubscribe, `{"uri":"test://b"}`)
	var cause atomic.Value
	p.session.OnClose(func(err error) { cause.Store(err) })
	openFor(t, e, "bob", engine.Rev20251125)
	<-p.session.Done()
	if err, _ := cause.Load().(error); !errors.Is(err, engine.ErrPassivated) || !errors.Is(err, actors.ErrSessionEvicted) {
		t.Errorf("OnClose: got %v, want that it was evicted and can come back", err)
	}
	if got := e.Stats(); got.Subscriptions != 0 || got.Sessions != 1 {
		t.Errorf("Stats after the eviction: got %+v", got)
	}
	back := acquire(t, e, "ann", key)
	if back == nil || back.session == p.session {
		t.Fatal("the session did not come back")
	}
	if got := back.session.Level(); got != engine.LevelError {
		t.Errorf("level: got %v, want error", got)
	}
	if got := e.Stats().Subscriptions; got != 1 {
		t.Errorf("subscriptions: got %d, want 1", got)
	}
	back.session.Attach(back.notes)
	e.ResourceUpdated("test://b")
	e.ResourceUpdated("test://a")
	checkFrames(t, "updates", back.notes.take(),
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://a"}}`)
}

// TestDeletedStaysDeleted deletes sessions that are here and that are not: none
// comes back, with whichever engine that shares the store.
func TestDeletedStaysDeleted(t *testing.T) {
	store := engine.NewMemorySessions(0)
	e, _ := newServer(t, sealed(store))
	here := openFor(t, e, "ann", engine.Rev20251125)
	closed := openFor(t, e, "ann", engine.Rev20251125)
	closed.session.Close()
	away := openFor(t, e, "ann", engine.Rev20251125)
	kept := openFor(t, e, "ann", engine.Rev20251125)
	if found, err := e.Delete(as("ann"), here.session.Key()); !found || err != nil {
		t.Errorf("Delete: got %t, %v; want true", found, err)
	}
	<-here.session.Done()
	must(t, e.Shutdown(t.Context()))
	other, _ := newServer(t, sealed(store))
	if found, err := other.Delete(as("ann"), away.session.Key()); !found || err != nil {
		t.Errorf("Delete of one that is not here: got %t, %v; want true", found, err)
	}
	if got := other.Stats().Sessions; got != 0 {
		t.Errorf("sessions after a Delete: got %d, want 0", got)
	}
	for name, p := range map[string]*peer{"here": here, "closed": closed, "away": away} {
		if acquire(t, other, "ann", p.session.Key()) != nil {
			t.Errorf("the session that was %s has come back", name)
		}
		if found, err := other.Delete(as("ann"), p.session.Key()); found || err != nil {
			t.Errorf("a second Delete of %s: got %t, %v; want false", name, found, err)
		}
	}
	if acquire(t, other, "ann", kept.session.Key()) == nil {
		t.Error("the session that nobody deleted is gone")
	}
}

// TestExpiry moves the clock: the session ends, here and everywhere, in use or
// not.
func TestExpiry(t *testing.T) {
	var now atomic.Pointer[time.Time]
	start := time.Now()
	now.Store(&start)
	o := sealed(nil)
	o.Clock, o.SessionLifetime = func() time.Time { return *now.Load() }, time.Hour
	e, _ := newServer(t, o)
	p := openFor(t, e, "ann", engine.Rev20251125)
	later := start.Add(time.Hour - time.Second)
	now.Store(&later)
	if acquire(t, e, "ann", p.session.Key()) == nil {
		t.Error("the session ended before its time")
	}
	later = start.Add(time.Hour)
	now.Store(&later)
	for range 2 {
		if acquire(t, e, "ann", p.session.Key()) != nil {
			t.Error("the session goes on after its time")
		}
	}
	<-p.session.Done()
}

// TestForgedIDs checks that what is no id of ours costs nothing that lasts.
func TestForgedIDs(t *testing.T) {
	e, _ := newServer(t, sealed(nil))
	key := openFor(t, e, "", engine.Rev20251125).session.Key()
	o := sealed(nil)
	o.SessionKeys = [][]byte{bytes.Repeat([]byte{8}, 32)}
	foreign, _ := newServer(t, o)
	forged := []string{"", "x", strings.Repeat("A", 1<<16), openFor(t, foreign, "", engine.Rev20251125).session.Key()}
	for i := range len(key) {
		b := []byte(key)
		b[i] ^= 1
		forged = append(forged, string(b))
	}
	for _, f := range forged {
		if acquire(t, e, "", f) != nil {
			t.Errorf("the id %q was taken", f)
		}
	}
	if got := e.Stats(); got.Sessions != 1 || got.Refusals.UnknownSessions != int64(len(forged)) || got.Refusals.Revived != 0 {
		t.Errorf("Stats: got %+v, want one session and %d unknown", got, len(forged))
	}
	names := sessionActors(e)
	if len(names) != 1 {
		t.Errorf("actors of sessions: got %v, want one", names)
	}
	if strings.Contains(strings.Join(names, " "), key[:32]) {
		t.Errorf("the name of an actor holds a session id: %v", names)
	}
}

// sessionActors gives the names of the actors of sessions.
func sessionActors(e *engine.Engine) (names []string) {
	for _, part := range e.System().ActorSystem().ProcessRegistry.LocalPIDs.LocalPIDs {
		for _, name := range part.Keys() {
			if strings.HasPrefix(name, "session/") {
				names = append(names, name)
			}
		}
	}
	return names
}

// brokenStore fails where it is told to.
type brokenStore struct {
	*engine.MemorySessions
	revoke, revoked, save, load atomic.Bool
}

var errBroken = errors.New("broken")

func (b *brokenStore) Revoke(ctx context.Context, r engine.SessionRef) error {
	if b.revoke.Load() {
		return errBroken
	}
	return b.MemorySessions.Revoke(ctx, r)
}

func (b *brokenStore) Revoked(ctx context.Context, r engine.SessionRef) (bool, error) {
	if b.revoked.Load() {
		return false, errBroken
	}
	return b.MemorySessions.Revoked(ctx, r)
}

func (b *brokenStore) Save(ctx context.Context, r engine.SessionRef, state []byte) error {
	if b.save.Load() {
		return errBroken
	}
	return b.MemorySessions.Save(ctx, r, state)
}

func (b *brokenStore) Load(ctx context.Context, r engine.SessionRef) ([]byte, error) {
	if b.load.Load() {
		return nil, errBroken
	}
	return b.MemorySessions.Load(ctx, r)
}

// TestStoreFails checks what a store that fails does to whom: nobody comes back
// who might be deleted, and nobody is told that a session is deleted which is
// not. Everything else goes on.
func TestStoreFails(t *testing.T) {
	store := &brokenStore{MemorySessions: engine.NewMemorySessions(0)}
	o := sealed(store)
	o.Limits = actors.Limits{MaxSessions: 1}
	e, log := newServer(t, o)
	p := openFor(t, e, "ann", engine.Rev20251125)
	key := p.session.Key()

	store.save.Store(true)
	check(t, "setLevel", p.result(codec.MethodSetLevel, `{"level":"error"}`), `{}`)
	store.save.Store(false)

	store.revoke.Store(true)
	if found, err := e.Delete(as("ann"), key); !found || e.WireError(err).Code != codec.CodeOverloaded {
		t.Errorf("Delete: got %t, %v; want an error", found, err)
	}
	if acquire(t, e, "ann", key) == nil {
		t.Error("the session ended without being noted as deleted")
	}
	store.revoke.Store(false)

	openFor(t, e, "bob", engine.Rev20251125) // evicts it
	<-p.session.Done()
	store.revoked.Store(true)
	if s, err := e.Acquire(as("ann"), key); s != nil || e.WireError(err).Code != codec.CodeOverloaded {
		t.Errorf("Acquire: got %v, %v; want an error", s, err)
	}
	store.revoked.Store(false)
	store.load.Store(true)
	if acquire(t, e, "ann", key) == nil {
		t.Error("the session did not come back without its state")
	}
	if got := e.Stats().Refusals.StoreFailures; got != 4 {
		t.Errorf("StoreFailures: got %d, want 4", got)
	}
	if strings.Contains(log.String(), key) {
		t.Error("the log holds a session id")
	}
}

// TestRevivalRace has many requests bring the same session back while others
// delete it: one session at most, and none after the last Delete.
func TestRevivalRace(t *testing.T) {
	o := sealed(nil)
	o.Limits = actors.Limits{MaxSessions: 4}
	e, _ := newServer(t, o)
	for round := range 20 {
		key := openFor(t, e, "ann", engine.Rev20251125).session.Key()
		for range 4 {
			openFor(t, e, "bob", engine.Rev20251125) // evicts it
		}
		deletes := round%2 == 1
		var workers sync.WaitGroup
		var found sync.Map
		for i := range 16 {
			workers.Go(func() {
				if deletes && i == 8 {
					if ok, err := e.Delete(as("ann"), key); !ok || err != nil {
						t.Errorf("Delete: got %t, %v; want true", ok, err)
					}
					return
				}
				s, err := e.Acquire(as("ann"), key)
				if err != nil {
					t.Errorf("Acquire: %v", err)
				}
				if s != nil {
					found.Store(s, true)
					s.Release()
				}
			})
		}
		workers.Wait()
		n := 0
		found.Range(func(any, any) bool { n++; return true })
		switch {
		case deletes && acquire(t, e, "ann", key) != nil:
			t.Fatal("a deleted session has come back")
		case !deletes && n != 1:
			t.Fatalf("sessions that came back under one key: got %d, want 1", n)
		}
	}
}

// TestAskedIDsDiffer checks that requests to the client have other ids after a
// session came back, so that a late answer is taken for none of them.
func TestAskedIDsDiffer(t *testing.T) {
	o := sealed(nil)
	o.Limits = actors.Limits{MaxSessions: 1}
	e, _ := newServer(t, o)
	p := openFor(t, e, "ann", engine.Rev20251125)
	first := p.asked()
	openFor(t, e, "bob", engine.Rev20251125)
	<-p.session.Done()
	back := acquire(t, e, "ann", p.session.Key())
	second := back.asked()
	if first == "" || second == "" || first == second {
		t.Errorf("ids of requests to the client: got %q and %q, want two that differ", first, second)
	}
}

// asked has the session ask its client something, and gives the id.
func (p *peer) asked() string {
	p.t.Helper()
	s := new(reply)
	p.session.Attach(s)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_ = p.session.Ping(ctx)
	for _, frame := range s.take() {
		var m codec.Message
		if codec.Decode([]byte(frame), &m) == nil && m.Kind == codec.KindRequest {
			return string(m.ID)
		}
	}
	return ""
}
