package actors

import (
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// Listener is the actor of a subscription of the stateless era: it belongs to no
// session, and gathers which of its topics had something happen until whoever
// holds its stream takes them.
type Listener struct {
	system *System
	topics []string
	pid    *actor.PID
	box    mailbox
	ready  chan struct{} // capacity 1
	done   chan struct{}

	mu    sync.Mutex // guards dirty
	dirty []*Event   // the last one of each topic
}

var _ actor.Actor = (*Listener)(nil)

// Listen spawns a subscription to topics. Leave ends it. The error is one of
// the refusals.
func (s *System) Listen(topics []string) (*Listener, error) {
	if err := s.Admit(); err != nil {
		return nil, err
	}
	if s.listening.Add(1) > int64(s.limits.MaxListeners) {
		s.listening.Add(-1)
		s.refused.Add(1)
		return nil, s.refusals.note(ErrOverloaded)
	}
	l := &Listener{system: s, topics: topics, ready: make(chan struct{}, 1), done: make(chan struct{})}
	l.box.system = s
	s.subscriptions.Add(1)
	l.pid = s.root.SpawnPrefix(actor.PropsFromProducer(
		func() actor.Actor { return l },
		actor.WithMailbox(func() actor.Mailbox { return &l.box }),
		actor.WithGuardian(stopFailed{})), "listener/")
	for _, topic := range topics {
		s.topics.add(topic, l)
	}
	s.listeners.Store(l, struct{}{})
	if s.closed.Load() {
		l.Leave()
	}
	return l, nil
}

// PID gives the PID of the subscription's actor.
func (l *Listener) PID() *actor.PID { return l.pid }

// Ready has a value when Take has something.
func (l *Listener) Ready() <-chan struct{} { return l.ready }

// Done is closed when the subscription has ended.
func (l *Listener) Done() <-chan struct{} { return l.done }

// Take appends what happened since the last time to events: of each topic the
// last one.
func (l *Listener) Take(events []*Event) []*Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	events = append(events, l.dirty...)
	clear(l.dirty)
	l.dirty = l.dirty[:0]
	return events
}

// Leave ends the subscription.
func (l *Listener) Leave() {
	select {
	case <-l.done:
	default:
		l.system.actors.Root.Stop(l.pid)
	}
}

// StopListeners ends all subscriptions of the stateless era.
func (s *System) StopListeners() {
	s.listeners.Range(func(l, _ any) bool {
		l.(*Listener).Leave()
		return true
	})
}

// post tells the actor that something happened.
func (l *Listener) post(event *Event) { l.box.PostUserMessage(event) }

// Receive is the actor's behaviour.
func (l *Listener) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *Event:
		l.note(m)
	case *actor.Stopping:
		for _, topic := range l.topics {
			l.system.topics.remove(topic, l)
		}
	case *actor.Stopped:
		l.box.close()
		l.system.listeners.Delete(l)
		l.system.subscriptions.Add(-1)
		l.system.listening.Add(-1)
		close(l.done)
	}
}

// note adds an event to those that Take gives, in the place of one that is older.
func (l *Listener) note(event *Event) {
	l.mu.Lock()
	at := slices.IndexFunc(l.dirty, func(e *Event) bool { return e.Topic == event.Topic })
	if at < 0 {
		l.dirty = append(l.dirty, event)
	} else {
		l.dirty[at] = event
	}
	l.mu.Unlock()
	if at < 0 {
		select {
		case l.ready <- struct{}{}:
		default:
		}
	}
}
