package actors

import (
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Subscription is the actor of one subscription, a child of its session. It
// passes updates of its topic on; those that come faster than the limit's
// interval coalesce into one, which follows when the interval is over.
type Subscription struct {
	system  *System
	session *Session
	topic   string
	pid     *actor.PID
	deliver func(topic string)
	box     mailbox

	// The actor's own.
	cooling bool // the interval since the last delivery is not over
	dirty   bool // an update came meanwhile
	timer   *time.Timer
}

var _ actor.Actor = (*Subscription)(nil)

// Messages to a subscription, without state and therefore shared.
type (
	updated  struct{}
	interval struct{}
)

var (
	messageUpdated  = &updated{}
	messageInterval = &interval{}
)

// Subscribe begins a subscription of the session to a topic. deliver is called
// from the subscription's actor and must not block. A second subscription to the
// same topic is the first one. The error is one of the refusals.
func (s *Session) Subscribe(topic string, deliver func(topic string)) (err error) {
	s.do(func(ctx actor.Context, refusal error) {
		switch {
		case refusal != nil:
			err = refusal
		case s.subscriptions[topic] != nil:
		case len(s.subscriptions) >= s.system.limits.MaxSubscriptions:
			err = ErrTooManySubscriptions
		default:
			sub := &Subscription{system: s.system, session: s, topic: topic, deliver: deliver}
			sub.box.system = s.system
			sub.pid = ctx.SpawnPrefix(actor.PropsFromProducer(
				func() actor.Actor { return sub },
				actor.WithMailbox(func() actor.Mailbox { return &sub.box })), "subscription/")
			if s.subscriptions == nil {
				s.subscriptions = make(map[string]*Subscription)
			}
			s.subscriptions[topic] = sub
			s.system.subscriptions.Add(1)
			s.system.topics.add(sub)
		}
	})
	return err
}

// Unsubscribe ends the session's subscription to a topic, if there is one.
func (s *Session) Unsubscribe(topic string) (found bool) {
	s.do(func(ctx actor.Context, refusal error) {
		if sub := s.subscriptions[topic]; refusal == nil && sub != nil {
			delete(s.subscriptions, topic)
			sub.leave()
			ctx.Stop(sub.pid)
			found = true
		}
	})
	return found
}

// leave takes the subscription out of its topic.
func (sub *Subscription) leave() {
	sub.system.topics.remove(sub)
	sub.system.subscriptions.Add(-1)
}

// Receive is the actor's behaviour.
func (sub *Subscription) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *updated:
		if sub.cooling {
			sub.dirty = true
			return
		}
		sub.pass()
	case *interval:
		sub.cooling = false
		if sub.dirty {
			sub.dirty = false
			sub.pass()
		}
	case *actor.Stopping:
		if sub.timer != nil {
			sub.timer.Stop()
		}
	case *actor.Stopped:
		sub.box.close()
	}
}

// pass delivers, and begins the interval in which updates coalesce.
func (sub *Subscription) pass() {
	sub.cooling = true
	if sub.timer == nil {
		sub.timer = time.AfterFunc(sub.system.limits.SubscriptionMinInterval, func() {
			sub.box.PostUserMessage(messageInterval)
		})
	} else {
		sub.timer.Reset(sub.system.limits.SubscriptionMinInterval)
	}
	sub.deliver(sub.topic)
}

// topics finds the subscriptions to a topic.
type topics struct {
	mu sync.RWMutex
	by map[string]map[*Subscription]struct{}
}

func (t *topics) init() { t.by = make(map[string]map[*Subscription]struct{}) }

func (t *topics) add(sub *Subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	set := t.by[sub.topic]
	if set == nil {
		set = make(map[*Subscription]struct{})
		t.by[sub.topic] = set
	}
	set[sub] = struct{}{}
}

func (t *topics) remove(sub *Subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	set := t.by[sub.topic]
	delete(set, sub)
	if len(set) == 0 {
		delete(t.by, sub.topic)
	}
}

// Publish tells every subscription to a topic that it was updated, and gives
// their number.
func (s *System) Publish(topic string) int {
	s.topics.mu.RLock()
	list := make([]*Subscription, 0, len(s.topics.by[topic]))
	for sub := range s.topics.by[topic] {
		list = append(list, sub)
	}
	s.topics.mu.RUnlock()
	for _, sub := range list {
		sub.box.PostUserMessage(messageUpdated)
	}
	return len(list)
}
