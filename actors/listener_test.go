package actors

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// subscribers counts who is subscribed to any topic.
func subscribers(s *System) (n int) {
	s.topics.mu.RLock()
	defer s.topics.mu.RUnlock()
	for _, set := range s.topics.by {
		n += len(set.members)
	}
	return n
}

func publish(s *System, topic string) int { return s.Publish(topic, []byte("about "+topic)) }

// takeTopics gives the topics of what a subscription has gathered, each with its
// frame.
func takeTopics(l *Listener) (topics []string) {
	for _, event := range l.Take(nil) {
		topics = append(topics, event.Topic)
		if string(event.Frame) != "about "+event.Topic {
			topics = append(topics, string(event.Frame))
		}
	}
	return topics
}

func listen(t *testing.T, s *System, topics ...string) *Listener {
	t.Helper()
	l, err := s.Listen(topics)
	if err != nil {
		t.Fatalf("Listen(%v): %v", topics, err)
	}
	return l
}

// checkTaken takes what a subscription has gathered.
func checkTaken(t *testing.T, what string, l *Listener, want ...string) {
	t.Helper()
	select {
	case <-l.Ready():
		if len(want) == 0 {
			t.Errorf("%s: Ready has a value", what)
		}
	default:
		if len(want) > 0 {
			t.Errorf("%s: Ready has no value", what)
		}
	}
	if got := takeTopics(l); !slices.Equal(got, want) {
		t.Errorf("%s: Take gave %v, want %v", what, got, want)
	}
}

// ended reports whether a subscription is over.
func ended(l *Listener) bool {
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

// TestListener follows a subscription: what happens gathers, each topic once, in
// the order of the first time.
func TestListener(t *testing.T) {
	s := newSystem(t, Limits{})
	a, b := listen(t, s, "x", "y", "x"), listen(t, s, "y", "z")
	checkTaken(t, "at first", a)
	for _, topic := range []string{"y", "x", "y", "none", "X", ""} {
		publish(s, topic)
	}
	checkTaken(t, "a, after some", a, "y", "x")
	checkTaken(t, "a, again", a)
	checkTaken(t, "b", b, "y")
	for range 10_000 { // more than a mailbox holds
		publish(s, "x")
	}
	checkTaken(t, "a, after 10,000", a, "x")
	if n := publish(s, "y"); n != 2 {
		t.Errorf("Publish: got %d, want 2", n)
	}
	if got := s.Counts(); got.Subscriptions != 2 || got.Sessions != 0 {
		t.Errorf("Counts: got %+v, want 2 subscriptions", got)
	}
	if a.PID().Id == b.PID().Id || len(registered(s, "listener/")) != 2 {
		t.Errorf("PIDs: got %v and %v, registered %v", a.PID(), b.PID(), registered(s, "listener/"))
	}

	a.Leave()
	<-a.Done()
	a.Leave() // without effect
	if n := publish(s, "x") + publish(s, "y"); n != 1 {
		t.Errorf("Publish after Leave: got %d, want 1", n)
	}
	checkTaken(t, "b, still", b, "y")
	if got := s.Counts().Subscriptions; got != 1 || ended(b) {
		t.Errorf("Subscriptions: got %d, want 1", got)
	}
	b.Leave()
	<-b.Done()
	if n, names := subscribers(s), registered(s, "listener/"); n != 0 || len(names) != 0 || s.Counts().Subscriptions != 0 {
		t.Errorf("at the end: %d subscribers, registered %v, want none", n, names)
	}
}

// TestListenerStop stops a subscription's actor by its PID.
func TestListenerStop(t *testing.T) {
	s := newSystem(t, Limits{})
	l := listen(t, s, "x")
	s.ActorSystem().Root.Stop(l.PID())
	<-l.Done()
	if n := publish(s, "x"); n != 0 || s.Counts().Subscriptions != 0 {
		t.Errorf("after Stop: Publish reaches %d, Counts %+v", n, s.Counts())
	}
}

// TestListenerLimit holds subscriptions to their limit.
func TestListenerLimit(t *testing.T) {
	s := newSystem(t, Limits{MaxListeners: 2})
	a := listen(t, s, "x")
	listen(t, s, "x")
	_, err := s.Listen([]string{"x"})
	checkError(t, "Listen beyond the limit", err, ErrOverloaded)
	if got := s.Counts(); got.Subscriptions != 2 || got.Refused != 1 || subscribers(s) != 2 {
		t.Errorf("Counts: got %+v, want 2 subscriptions and 1 refused", got)
	}
	a.Leave()
	<-a.Done()
	listen(t, s, "x")
}

// TestListenerKeepsTheLast has what happens later stand in the place of what
// happened before.
func TestListenerKeepsTheLast(t *testing.T) {
	s := newSystem(t, Limits{})
	l := listen(t, s, "x", "y")
	for _, frame := range []string{"1", "2", "3"} {
		s.Publish("x", []byte(frame))
		s.Publish("y", nil)
	}
	var got []string
	for _, event := range l.Take(nil) {
		got = append(got, event.Topic+string(event.Frame))
	}
	if want := []string{"x3", "y"}; !slices.Equal(got, want) {
		t.Errorf("Take: got %v, want %v", got, want)
	}
	shared := &Event{}
	if got := l.Take([]*Event{shared}); len(got) != 1 || got[0] != shared {
		t.Errorf("Take of nothing: got %v, want what was given", got)
	}
}

// TestListenersEnd ends all subscriptions from this side.
func TestListenersEnd(t *testing.T) {
	for name, end := range map[string]func(s *System){
		"StopListeners": func(s *System) { s.StopListeners(); s.StopListeners() },
		"Shutdown":      (*System).Shutdown,
	} {
		s := newSystem(t, Limits{})
		var all []*Listener
		for i := range 100 {
			all = append(all, listen(t, s, "shared", fmt.Sprint(i)))
		}
		end(s)
		for i, l := range all {
			<-l.Done()
			if got := takeTopics(l); len(got) != 0 {
				t.Errorf("%s, subscription %d: got %v, want nothing", name, i, got)
			}
		}
		if n := subscribers(s); n != 0 || s.Counts().Subscriptions != 0 {
			t.Errorf("%s: %d subscribers, Counts %+v, want none", name, n, s.Counts())
		}
	}
	s := newSystem(t, Limits{})
	s.StopAdmitting()
	_, err := s.Listen([]string{"x"})
	checkError(t, "Listen after StopAdmitting", err, ErrShutdown)
	if n := subscribers(s); n != 0 {
		t.Errorf("subscribers after a refusal: got %d, want 0", n)
	}
}

// TestListenersAtOnce has subscriptions come and go while others publish. Each
// hears of what happens between its two ends, and nothing is left.
func TestListenersAtOnce(t *testing.T) {
	s := newSystem(t, Limits{})
	var over atomic.Bool
	var publishing, listening sync.WaitGroup
	for range 4 {
		publishing.Go(func() {
			for !over.Load() {
				publish(s, "shared")
				publish(s, "other")
			}
		})
	}
	for range 8 {
		listening.Go(func() {
			for range 50 {
				l, err := s.Listen([]string{"shared"})
				if err != nil {
					t.Errorf("Listen: %v", err)
					return
				}
				<-l.Ready()
				if got := takeTopics(l); !slices.Equal(got, []string{"shared"}) {
					t.Errorf("Take: got %v, want [shared]", got)
				}
				l.Leave()
				<-l.Done()
			}
		})
	}
	listening.Wait()
	over.Store(true)
	publishing.Wait()
	if n := subscribers(s); n != 0 || s.Counts().Subscriptions != 0 || len(registered(s, "listener/")) != 0 {
		t.Errorf("at the end: %d subscribers, Counts %+v, registered %v, want none", n, s.Counts(), registered(s, "listener/"))
	}
}
