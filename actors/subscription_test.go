package actors

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// deliveries keeps the times at which a subscription delivered.
type deliveries struct {
	start time.Time
	mu    sync.Mutex
	at    []time.Duration
}

func (d *deliveries) deliver(*Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = append(d.at, time.Since(d.start))
}

func (d *deliveries) check(t *testing.T, what string, want ...time.Duration) {
	t.Helper()
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.at, want) {
		t.Errorf("%s: delivered at %v, want %v", what, d.at, want)
	}
}

func TestSubscriptionCoalesces(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{Limits: Limits{SubscriptionMinInterval: 50 * ms}})
		defer s.Shutdown()
		d := &deliveries{start: time.Now()}
		session := open(t, s, "a")
		for range 2 { // the second is the first
			if err := session.Subscribe("topic", d.deliver); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Counts().Subscriptions; got != 1 {
			t.Errorf("Subscriptions: got %d, want 1", got)
		}
		s.Publish("another topic", nil)
		d.check(t, "before any update")
		for range 12 { // at 0, 10, ... 110 ms
			if n := s.Publish("topic", nil); n != 1 {
				t.Errorf("Publish: got %d, want 1", n)
			}
			time.Sleep(10 * ms)
		}
		d.check(t, "during the burst", 0, 50*ms, 100*ms)
		time.Sleep(time.Second)
		d.check(t, "after the burst", 0, 50*ms, 100*ms, 150*ms)
		s.Publish("topic", nil)
		d.check(t, "a single update", 0, 50*ms, 100*ms, 150*ms, 1120*ms)

		s.Publish("topic", nil)
		if !session.Unsubscribe("topic") || session.Unsubscribe("topic") {
			t.Error("Unsubscribe: want true once")
		}
		if n := s.Publish("topic", nil); n != 0 {
			t.Errorf("Publish after Unsubscribe: got %d, want 0", n)
		}
		time.Sleep(time.Second)
		d.check(t, "after Unsubscribe", 0, 50*ms, 100*ms, 150*ms, 1120*ms)
		if got := registered(s, session.PID().Id+"/subscription/"); len(got) != 0 {
			t.Errorf("registered subscriptions: got %v, want none", got)
		}
	})
}

func TestSubscriptionLimit(t *testing.T) {
	s := newSystem(t, Limits{MaxSubscriptions: 2})
	a, b := open(t, s, "a"), open(t, s, "b")
	var got int
	count := func(*Event) { got++ }
	for _, c := range []struct {
		session *Session
		topic   string
		want    error
	}{
		{a, "1", nil},
		{a, "2", nil},
		{a, "3", ErrTooManySubscriptions},
		{a, "2", nil}, // it has it
		{b, "2", nil}, // a limit for each session
	} {
		checkError(t, "Subscribe("+c.topic+")", c.session.Subscribe(c.topic, count), c.want)
	}
	if n := s.Publish("2", nil); n != 2 || got != 2 {
		t.Errorf("Publish: got %d subscriptions, %d deliveries, want 2, 2", n, got)
	}
	a.Unsubscribe("1")
	checkError(t, "Subscribe after Unsubscribe", a.Subscribe("3", count), nil)
	b.Close(ErrCancelled)
	<-b.Done()
	if got := s.Counts().Subscriptions; got != 2 {
		t.Errorf("Subscriptions after the close of a session: got %d, want 2", got)
	}
}

// TestSubscriptionPanic has a subscription stopped by its supervisor. Its
// session lives on and can subscribe again.
func TestSubscriptionPanic(t *testing.T) {
	s := newSystem(t, Limits{})
	failures := watch[*actor.SupervisorEvent](s)
	session := open(t, s, "a")
	checkError(t, "Subscribe", session.Subscribe("topic", func(*Event) { panic("oh") }), nil)
	names := registered(s, "session/a/subscription/")
	if len(names) != 1 {
		t.Fatalf("registered subscriptions: got %v, want one", names)
	}
	s.Publish("topic", nil)
	checkFailure(t, failures, names[0], "oh")
	if n := s.Publish("topic", nil); n != 0 {
		t.Errorf("Publish after the panic: got %d, want 0", n)
	}
	if s.Session("a") != session {
		t.Fatal("the session is gone")
	}
	delivered := false
	checkError(t, "Subscribe again", session.Subscribe("topic", func(*Event) { delivered = true }), nil)
	if n := s.Publish("topic", nil); n != 1 || !delivered {
		t.Errorf("Publish: got %d, delivered %t, want 1, true", n, delivered)
	}
	if got := s.Counts().Subscriptions; got != 1 {
		t.Errorf("Subscriptions: got %d, want 1", got)
	}
}

// TestSubscriptionKeepsItsInterval fills a subscription's mailbox while it
// delivers, so that the end of the interval comes to a full mailbox.
func TestSubscriptionKeepsItsInterval(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{Limits: Limits{MaxMailbox: 2, SubscriptionMinInterval: 50 * ms}})
		defer s.Shutdown()
		session := open(t, s, "a")
		d := &deliveries{start: time.Now()}
		slow := func(event *Event) {
			d.deliver(event)
			if time.Since(d.start) == 0 {
				time.Sleep(100 * ms)
			}
		}
		checkError(t, "Subscribe", session.Subscribe("topic", slow), nil)
		go s.Publish("topic", nil)
		synctest.Wait()
		for range 4 {
			s.Publish("topic", nil)
		}
		time.Sleep(time.Second)
		s.Publish("topic", nil)
		d.check(t, "after a slow delivery", 0, 100*ms, 1000*ms)
	})
}
