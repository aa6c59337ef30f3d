package actors

import (
	"maps"
	"slices"
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
	deliver func(event *Event)
	box     mailbox

	// The actor's own.
	cooling bool   // the interval since the last delivery is not over
	dirty   *Event // the last update that came meanwhile, or nil
	timer   *time.Timer
}

var _ actor.Actor = (*Subscription)(nil)

// interval tells a subscription that its interval is over. It has no state and is
// therefore shared.
type interval struct{}

// urgent makes a full mailbox take the end of an interval, after which nothing
// would ever be delivered again.
func (*interval) urgent() bool { return true }

var messageInterval = &interval{}

// Subscribe begins a subscription of the session to a topic. deliver is called
// from the subscription's actor and must not block. A second subscription to the
// same topic is the first one. The error is one of the refusals.
func (s *Session) Subscribe(topic string, deliver func(event *Event)) (err error) {
	s.do(func(ctx actor.Context, refusal error) {
		switch {
		case refusal != nil:
			err = refusal
		case s.subscriptions[topic] != nil:
		case len(s.subscriptions) >= s.system.limits.MaxSubscriptions:
			err = s.system.refusals.note(ErrTooManySubscriptions)
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
			s.system.topics.add(topic, sub)
		}
	})
	return err
}

// Unsubscribe ends the session's subscription to a topic, if there is one.
func (s *Session) Unsubscribe(topic string) (found bool) {
	s.do(func(ctx actor.Context, refusal error) {
		if refusal != nil {
			return
		}
		if sub := s.subscriptions[topic]; sub != nil {
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
	sub.system.topics.remove(sub.topic, sub)
	sub.system.subscriptions.Add(-1)
}

// post tells the actor that its topic was updated.
func (sub *Subscription) post(event *Event) { sub.box.PostUserMessage(event) }

// Receive is the actor's behaviour.
func (sub *Subscription) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *Event:
		if sub.cooling {
			sub.dirty = m
			return
		}
		sub.pass(m)
	case *interval:
		sub.cooling = false
		if m := sub.dirty; m != nil {
			sub.dirty = nil
			sub.pass(m)
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
func (sub *Subscription) pass(event *Event) {
	sub.cooling = true
	if sub.timer == nil {
		sub.timer = time.AfterFunc(sub.system.limits.SubscriptionMinInterval, func() {
			sub.box.PostUserMessage(messageInterval)
		})
	} else {
		sub.timer.Reset(sub.system.limits.SubscriptionMinInterval)
	}
	sub.deliver(event)
}

// Topics gives the topics that the session is subscribed to, in no order.
func (s *Session) Topics() (topics []string) {
	s.do(func(_ actor.Context, refusal error) {
		if refusal == nil {
			topics = slices.Collect(maps.Keys(s.subscriptions))
		}
	})
	return topics
}
