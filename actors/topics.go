package actors

import "sync"

// Event is that something happened to a topic. One is shared by all who are
// told, and never changes.
type Event struct {
	Topic string
	// Frame is what there is to tell, encoded once for everybody, or nil.
	Frame []byte
}

// subscriber is an actor that wants to hear of topics.
type subscriber interface{ post(event *Event) }

// topics finds the subscribers to a topic.
type topics struct {
	mu sync.RWMutex
	by map[string]*audience
}

// audience is who wants to hear of one topic.
type audience struct {
	members map[subscriber]struct{}
	list    []subscriber // the members, for Publish; made anew, and never changed, when it is nil
}

func (t *topics) init() { t.by = make(map[string]*audience) }

func (t *topics) add(topic string, sub subscriber) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.by[topic]
	if a == nil {
		a = &audience{members: make(map[subscriber]struct{})}
		t.by[topic] = a
	}
	a.members[sub] = struct{}{}
	a.list = nil
}

func (t *topics) remove(topic string, sub subscriber) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.by[topic]
	if a == nil {
		return
	}
	delete(a.members, sub)
	a.list = nil
	if len(a.members) == 0 {
		delete(t.by, topic)
	}
}

// of gives the subscribers to a topic.
func (t *topics) of(topic string) []subscriber {
	t.mu.RLock()
	a := t.by[topic]
	known := a == nil || a.list != nil
	var list []subscriber
	if a != nil {
		list = a.list
	}
	t.mu.RUnlock()
	if known {
		return list
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.list == nil {
		a.list = make([]subscriber, 0, len(a.members))
		for sub := range a.members {
			a.list = append(a.list, sub)
		}
	}
	return a.list
}

// Publish tells every subscriber to a topic that something happened, and gives
// their number. frame, which may be nil, is that of the Event that they get.
func (s *System) Publish(topic string, frame []byte) int {
	list := s.topics.of(topic)
	if len(list) == 0 {
		return 0
	}
	event := &Event{topic, frame}
	for _, sub := range list {
		sub.post(event)
	}
	return len(list)
}
