package actors

import (
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
	dirty []string   // topics, each once
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
		return nil, ErrOverloaded
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

// Take gives the topics that had something happen since the last time.
func (l *Listener) Take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	dirty := l.dirty
	l.dirty = nil
	return dirty
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
func (l *Listener) post(event *topicEvent) { l.box.PostUserMessage(event) }

// Receive is the actor's behaviour.
func (l *Listener) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *topicEvent:
		l.note(m.topic)
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

// note adds a topic to those that Take gives.
func (l *Listener) note(topic string) {
	l.mu.Lock()
	known := false
	for _, t := range l.dirty {
		known = known || t == topic
	}
	if !known {
		l.dirty = append(l.dirty, topic)
	}
	l.mu.Unlock()
	if !known {
		select {
		case l.ready <- struct{}{}:
		default:
		}
	}
}
