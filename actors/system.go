package actors

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Refusals. They are admission's answers, not faults.
var (
	// ErrOverloaded means that a limit on work in all or in one session is reached.
	ErrOverloaded = errors.New("actors: overloaded")
	// ErrTooManySessions means that the limit on sessions is reached.
	ErrTooManySessions = errors.New("actors: too many sessions")
	// ErrTooManySessionsOfPrincipal means that the limit on sessions of one
	// principal is reached.
	ErrTooManySessionsOfPrincipal = errors.New("actors: too many sessions of one principal")
	// ErrDuplicateID means that a request of the same id is in flight in the session.
	ErrDuplicateID = errors.New("actors: a request with this id is in flight")
	// ErrSessionClosed means that the session has ended.
	ErrSessionClosed = errors.New("actors: session closed")
	// ErrShutdown means that the system admits no new work.
	ErrShutdown = errors.New("actors: shutting down")
	// ErrTooManySubscriptions means that the session's limit is reached.
	ErrTooManySubscriptions = errors.New("actors: too many subscriptions")
)

// Config is what NewSystem needs.
type Config struct {
	Limits Limits
	// SessionsExpire tells that values of sessions may have a method Expired
	// (SessionSpec.Value).
	SessionsExpire bool
	// Logger receives the actor library's notes, one level lower than it gives them.
	Logger *slog.Logger
	// OnFailure is told of each actor that panicked, after its supervisor decided.
	OnFailure func(who string, reason any)
}

// System owns the actors of one engine. One System holds about 40 KB.
type System struct {
	actors   *actor.ActorSystem
	limits   Limits
	root     *actor.RootContext // spawns under the guardian that stops what fails
	guardian *actor.PID         // parent of sessions and of stateless requests
	started  time.Time

	sessionProps *actor.Props

	spawning struct {
		sync.Mutex
		session *Session // the session that is being spawned
	}

	sessions  sessionTable
	admission admission
	named     atomic.Uint64 // sessions whose actors have a number for a name
	topics    topics
	listeners sync.Map // *Listener
	pool      requestPool

	closed        atomic.Bool
	inFlight      atomic.Int64
	subscriptions atomic.Int64 // of both eras
	listening     atomic.Int64 // those of the stateless era
	refused       atomic.Int64
	refusals      refusals

	stop     chan struct{} // closed by Shutdown
	stopOnce sync.Once
	sweeper  sync.WaitGroup
}

// NewSystem starts an actor system. Shutdown ends it.
func NewSystem(c Config) *System {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	quiet := slog.New(lowered{c.Logger.Handler()})
	s := &System{
		actors: actor.NewActorSystem(
			actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }),
			// The library counts dead letters on a goroutine that lives for this
			// long, and would outlive the system by a second.
			actor.WithDeadLetterThrottleInterval(time.Millisecond)),
		limits:  c.Limits.withDefaults(),
		started: time.Now(),
		stop:    make(chan struct{}),
	}
	compact(s.actors.ProcessRegistry)
	s.root = s.actors.Root.Copy().WithGuardian(stopFailed{})
	s.guardian = s.root.Self()
	s.sessions.init()
	s.admission.init(&s.limits)
	s.topics.init()
	s.sessionProps = actor.PropsFromProducer(
		func() actor.Actor { return s.spawning.session },
		actor.WithMailbox(func() actor.Mailbox { return &s.spawning.session.box }),
		actor.WithGuardian(stopFailed{}),
		actor.WithSupervisor(stopFailed{}))
	if c.OnFailure != nil {
		s.actors.EventStream.Subscribe(func(event any) {
			if f, ok := event.(*actor.SupervisorEvent); ok {
				c.OnFailure(f.Child.Id, f.Reason)
			}
		})
	}
	if s.limits.SessionIdle > 0 || c.SessionsExpire {
		s.sweeper.Go(s.sweep)
	}
	return s
}

// ActorSystem gives the protoactor system underneath, to watch its event stream
// or to reach an actor by its PID.
func (s *System) ActorSystem() *actor.ActorSystem { return s.actors }

// Counts is a snapshot of what the system holds.
type Counts struct {
	Sessions, InFlight, Subscriptions int
	// Refused counts the requests and sessions that admission turned away.
	Refused int
}

// Counts gives a snapshot.
func (s *System) Counts() Counts {
	return Counts{
		Sessions:      int(s.sessions.count.Load()),
		InFlight:      int(s.inFlight.Load()),
		Subscriptions: int(s.subscriptions.Load()),
		Refused:       int(s.refused.Load()),
	}
}

// Admit tells whether new work is taken: nil, or ErrShutdown.
func (s *System) Admit() error {
	if s.closed.Load() {
		return ErrShutdown
	}
	return nil
}

// admit is Admit for what then begins.
func (s *System) admit() error {
	if err := s.Admit(); err != nil {
		return s.refusals.note(err)
	}
	return nil
}

// StopAdmitting makes every new session and request fail with ErrShutdown. What
// is in flight goes on.
func (s *System) StopAdmitting() { s.closed.Store(true) }

// Shutdown ends every session and with them all requests and subscriptions.
func (s *System) Shutdown() {
	s.StopAdmitting()
	s.stopOnce.Do(func() {
		close(s.stop)
		s.sweeper.Wait()
		s.StopListeners()
		for _, session := range s.sessions.all() {
			session.Close(ErrShutdown)
		}
		s.pool.endAll(ErrShutdown)
		s.pool.drain(s)
		s.actors.Shutdown()
	})
}

// now is the time since the system began, from the monotonic clock.
func (s *System) now() int64 { return int64(time.Since(s.started)) }

// sweep ends idle sessions, and those whose time is over, until Shutdown.
func (s *System) sweep() {
	const longest = 30 * time.Second
	interval := longest
	if s.limits.SessionIdle > 0 {
		interval = min(max(s.limits.SessionIdle/8, 10*time.Millisecond), longest)
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
		now := s.now()
		for _, session := range s.sessions.all() {
			switch {
			case session.expired():
				session.Close(ErrSessionExpired)
			case s.limits.SessionIdle > 0 && session.idleSince(now) > s.limits.SessionIdle:
				session.retire(ErrSessionIdle)
			}
		}
	}
}

// Causes of a session's end that are nobody's wish.
var (
	// ErrSessionIdle is why a session was closed that nobody used.
	ErrSessionIdle = errors.New("actors: session idle")
	// ErrSessionEvicted is why a session was closed that made room for another.
	ErrSessionEvicted = errors.New("actors: session evicted")
	// ErrSessionExpired is why a session was closed whose time was over.
	ErrSessionExpired = errors.New("actors: session expired")
)
