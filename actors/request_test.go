package actors

import (
	"fmt"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

func TestLeaseRefusals(t *testing.T) {
	s := newSystem(t, Limits{MaxRequests: 4, MaxRequestsPerSession: 2})
	a, b := open(t, s, "a"), open(t, s, "b")
	first, _ := lease(t, s, a, "1")
	for _, c := range []struct {
		session *Session
		id      string
		want    error
	}{
		{a, "1", ErrDuplicateID},
		{a, `"1"`, nil}, // a string is not a number
		{a, "2", ErrOverloaded},
		{b, "1", nil}, // ids are a session's own
		{nil, "1", nil},
		{nil, "1", ErrOverloaded}, // the limit on all
		{b, "2", ErrOverloaded},
	} {
		_, err := s.Lease(c.session, []byte(c.id), new(owner))
		checkError(t, fmt.Sprintf("Lease(%v, %s)", c.session, c.id), err, c.want)
	}
	if got, want := s.Counts(), (Counts{Sessions: 2, InFlight: 4, Refused: 4}); got != want {
		t.Errorf("Counts: got %+v, want %+v", got, want)
	}
	first.Release()
	lease(t, s, a, "1")
}

func TestAnswerOnce(t *testing.T) {
	s := newSystem(t, Limits{PooledRequests: 1})
	session := open(t, s, "a")
	r, o := lease(t, s, session, "1")
	generation := r.Generation()
	if !r.TryEmit(generation) {
		t.Fatal("TryEmit before the answer: got false")
	}
	r.Unlock()
	if !r.Claim(generation) {
		t.Fatal("first Claim: got false")
	}
	r.Unlock()
	for name, f := range map[string]func(uint32) bool{"Claim": r.Claim, "TryEmit": r.TryEmit} {
		if f(generation) {
			t.Errorf("%s after the answer: got true", name)
			r.Unlock()
		}
	}
	if !session.Cancel([]byte("1")) { // it is still in flight, its handler runs
		t.Error("Cancel of an answered request in flight: got false")
	}
	o.check(t, "answered request")
	r.Release()
	if session.Cancel([]byte("1")) {
		t.Error("Cancel after Release: got true")
	}

	again, o := lease(t, s, session, "2")
	if again != r {
		t.Fatal("the actor was not reused")
	}
	if again.Generation() == generation {
		t.Error("Generation: the same for two leases")
	}
	if again.Claim(generation) || again.TryEmit(generation) || again.EndLease(generation, ErrStopped) {
		t.Error("the generation of a lease that is over still has an effect")
	}
	o.check(t, "lease of another generation")
	if !again.EndLease(again.Generation(), ErrStopped) {
		t.Error("EndLease: got false")
	}
	o.check(t, "EndLease", ErrStopped)
}

func TestCancel(t *testing.T) {
	s := newSystem(t, Limits{})
	session := open(t, s, "a")
	r, o := lease(t, s, session, `"1"`)
	for _, id := range []string{"1", `"2"`, ""} {
		if session.Cancel([]byte(id)) {
			t.Errorf("Cancel(%s): got true", id)
		}
	}
	o.check(t, "after the cancellation of others")
	for range 2 {
		if !session.Cancel([]byte(`"1"`)) {
			t.Error(`Cancel("1"): got false`)
		}
	}
	o.check(t, "cancelled", ErrCancelled)
	r.Release()
}

// TestStopByPID reaches requests as anybody can who has a PID of theirs.
func TestStopByPID(t *testing.T) {
	for _, stateless := range []bool{false, true} {
		for _, c := range []struct {
			name string
			send func(s *System, pid *actor.PID)
			want []error
		}{
			{"Stop", func(s *System, pid *actor.PID) { s.ActorSystem().Root.Stop(pid) }, []error{ErrStopped}},
			{"Stop twice", func(s *System, pid *actor.PID) {
				s.ActorSystem().Root.Stop(pid)
				s.ActorSystem().Root.Stop(pid)
			}, []error{ErrStopped}},
			{"Poison", func(s *System, pid *actor.PID) { s.ActorSystem().Root.Poison(pid) }, []error{ErrStopped}},
			{"Stop as a system message", func(s *System, pid *actor.PID) {
				process, _ := s.ActorSystem().ProcessRegistry.Get(pid)
				process.SendSystemMessage(pid, &actor.Stop{})
			}, []error{ErrStopped}},
			{"any other message", func(s *System, pid *actor.PID) { s.ActorSystem().Root.Send(pid, "hello") }, nil},
		} {
			t.Run(fmt.Sprintf("%s, stateless %t", c.name, stateless), func(t *testing.T) {
				s := newSystem(t, Limits{})
				session := open(t, s, "a")
				in := session
				if stateless {
					in = nil
				}
				r, o := lease(t, s, in, "1")
				process, found := s.ActorSystem().ProcessRegistry.Get(r.PID())
				if !found || process != actor.Process(r) {
					t.Fatalf("ProcessRegistry.Get: got %v %t, want the request", process, found)
				}
				_, other := lease(t, s, in, "2")
				c.send(s, r.PID())
				o.check(t, "the request", c.want...)
				other.check(t, "another request")
				r.Release()
				if s.Session("a") != session {
					t.Error("the session is gone")
				}
			})
		}
	}
}

// TestStalePID keeps the PID of a request whose actor goes on to serve another.
func TestStalePID(t *testing.T) {
	s := newSystem(t, Limits{})
	letters := watch[*actor.DeadLetterEvent](s)
	session := open(t, s, "a")
	r, _ := lease(t, s, session, "1")
	stale := r.PID()
	r.Release()
	s.ActorSystem().Root.Stop(stale)
	again, o := lease(t, s, session, "1")
	if again != r || again.PID().Id != stale.Id {
		t.Fatal("the actor was not reused")
	}
	s.ActorSystem().Root.Stop(stale)
	o.check(t, "after a Stop to the stale PID")
	if got := letters.all(); len(got) != 2 || got[0].PID != stale || got[1].PID != stale {
		t.Errorf("dead letters: got %v, want two for the stale PID", got)
	}
	s.ActorSystem().Root.Stop(again.PID())
	o.check(t, "after a Stop to its own PID", ErrStopped)
}

// TestWatchRequest checks that who watches a request learns that it is none
// that can be watched, as of an actor that has ended.
func TestWatchRequest(t *testing.T) {
	s := newSystem(t, Limits{})
	r, o := lease(t, s, nil, "1")
	terminated := make(chan *actor.Terminated, 1)
	watcher := s.ActorSystem().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			ctx.Watch(r.PID())
		case *actor.Terminated:
			terminated <- m
		}
	}))
	if got := <-terminated; got.Who.Id != r.PID().Id {
		t.Errorf("Terminated: got %v, want %v", got.Who, r.PID())
	}
	o.check(t, "watched request")
	if err := s.ActorSystem().Root.StopFuture(watcher).Wait(); err != nil {
		t.Error(err)
	}
}

func TestPoolBound(t *testing.T) {
	s := newSystem(t, Limits{PooledRequests: 3})
	session := open(t, s, "a")
	var requests []*Request
	for i := range 8 {
		in := session
		if i%2 == 0 {
			in = nil
		}
		r, _ := lease(t, s, in, fmt.Sprint(i))
		requests = append(requests, r)
	}
	if got := registered(s, "request/"); len(got) != 8 {
		t.Errorf("registered requests in flight: got %v, want 8", got)
	}
	for _, r := range requests {
		r.Release()
	}
	if got := registered(s, "request/"); len(got) != 3 {
		t.Errorf("registered requests when idle: got %v, want 3", got)
	}
	late, _ := lease(t, s, nil, "9")
	s.Shutdown()
	late.Release()
	if got := registered(s, "request/"); len(got) != 0 {
		t.Errorf("registered requests after Shutdown: got %v, want none", got)
	}
}

func TestFail(t *testing.T) {
	for _, stateless := range []bool{false, true} {
		t.Run(fmt.Sprintf("stateless %t", stateless), func(t *testing.T) {
			var who string
			var told any
			s := NewSystem(Config{OnFailure: func(w string, reason any) { who, told = w, reason }})
			defer s.Shutdown()
			failures := watch[*actor.SupervisorEvent](s)
			session := open(t, s, "a")
			in := session
			if stateless {
				in = nil
			}
			r, o := lease(t, s, in, "1")
			_, other := lease(t, s, in, "2")
			if !r.Claim(r.Generation()) {
				t.Fatal("Claim: got false")
			}
			r.Unlock()
			pid := r.PID()
			r.Fail("oh")
			r.Release()
			checkFailure(t, failures, pid.Id, "oh")
			if who != pid.Id || told != "oh" {
				t.Errorf("OnFailure: got %q %v, want %q oh", who, told, pid.Id)
			}
			o.check(t, "the request, which had answered")
			other.check(t, "another request")
			if s.Session("a") != session {
				t.Error("the session is gone")
			}
			lease(t, s, in, "1")
		})
	}
}
