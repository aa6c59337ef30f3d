//go:build !race

package actors

import (
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// crowd is how many subscribers the budgets of publishing are held with.
const crowd = 10_000

// TestPublishBudget holds an update that 10,000 listeners wait for to one
// allocation in all: the event that they share. Those who take it allocate
// nothing either.
func TestPublishBudget(t *testing.T) {
	s := newSystem(t, Limits{MaxListeners: crowd})
	listeners := make([]*Listener, crowd)
	for i := range listeners {
		l, err := s.Listen([]string{"another topic", "topic"})
		if err != nil {
			t.Fatal(err)
		}
		listeners[i] = l
	}
	frame := []byte("{}")
	var events []*Event
	round := func() {
		if n := s.Publish("topic", frame); n != crowd {
			t.Fatalf("Publish: got %d subscribers, want %d", n, crowd)
		}
		for _, l := range listeners {
			<-l.Ready()
			events = l.Take(events[:0])
			if len(events) != 1 || &events[0].Frame[0] != &frame[0] {
				t.Fatalf("Take: got %d events, want the one that was published", len(events))
			}
		}
	}
	round()
	if got := testing.AllocsPerRun(10, round); got > 1 {
		t.Errorf("an update to %d listeners: got %g allocations, want at most 1", crowd, got)
	}
}

// TestDeliverBudget does so for subscriptions of sessions, whose deliveries come
// at once or when an interval is over. What is left over is the timers'.
func TestDeliverBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{Limits: Limits{SubscriptionMinInterval: time.Second}})
		defer s.Shutdown()
		var delivered atomic.Int64 // timers of several subscriptions fire at once
		for i := range crowd {
			session := open(t, s, strconv.Itoa(i))
			checkError(t, "Subscribe", session.Subscribe("topic", func(*Event) { delivered.Add(1) }), nil)
		}
		round := func() {
			s.Publish("topic", nil) // delivered
			s.Publish("topic", nil) // delivered when the interval is over
			time.Sleep(3 * time.Second)
			synctest.Wait()
		}
		round()
		if got := delivered.Load(); got != 2*crowd {
			t.Fatalf("deliveries: got %d, want %d", got, 2*crowd)
		}
		const budget = crowd / 100
		if got := testing.AllocsPerRun(3, round); got > budget {
			t.Errorf("two updates to %d subscriptions: got %g allocations, want at most %d", crowd, got, budget)
		}
	})
}

// TestRegistryBudget holds the registry of a system to few maps, and looks for
// what was in it before there were so few.
func TestRegistryBudget(t *testing.T) {
	registry := newSystem(t, Limits{}).ActorSystem().ProcessRegistry
	shards := 0
	for _, bucket := range registry.LocalPIDs.LocalPIDs {
		shards += len(bucket)
	}
	const budget = 256
	if shards > budget {
		t.Errorf("maps of the registry: got %d, want at most %d", shards, budget)
	}
	for _, name := range []string{"eventstream", "deadletter"} {
		if _, found := registry.GetLocal(name); !found {
			t.Errorf("process %q, which the library registers: not found", name)
		}
	}
}
