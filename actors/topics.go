package actors

import "sync"

// topicEvent is the message that something happened to a topic. One is shared by
// all who are told.
type topicEvent struct{ topic string }

// subscriber is an actor that wants to hear of topics.
type subscriber interface{ post(event *topicEvent) }

// topics finds the subscribers to a topic.
type topics struct {
	mu sync.RWMutex
	by map[string]map[subscriber]struct{}
}

func (t *topics) init() { t.by = make(map[string]map[subscriber]struct{}) }

func (t *topics) add(topic string, sub subscriber) {
	t.mu.Lock()
	defer t.mu.Unlock()
	set := t.by[topic]
	if set == nil {
		set = make(map[subscriber]struct{})
		t.by[topic] = set
	}
	set[sub] = struct{}{}
}

func (t *topics) remove(topic string, sub subscriber) {
	t.mu.Lock()
	defer t.mu.Unlock()
	set := t.by[topic]
	delete(set, sub)
	if len(set) == 0 {
		delete(t.by, topic)
	}
}

// Publish tells every subscriber to a topic that something happened, and gives
// their number.
func (s *System) Publish(topic string) int {
	s.topics.mu.RLock()
	list := make([]subscriber, 0, len(s.topics.by[topic]))
	for sub := range s.topics.by[topic] {
		list = append(list, sub)
	}
	s.topics.mu.RUnlock()
	event := &topicEvent{topic}
	for _, sub := range list {
		sub.post(event)
	}
	return len(list)
}
