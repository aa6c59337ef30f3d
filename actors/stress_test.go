package actors

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// stress is what the goroutines of TestStress share: a few sessions that come
// and go, and the PIDs of requests, many of which are over.
type stress struct {
	system *System

	mu       sync.Mutex // guards what follows
	sessions [4]*Session
	pids     [16]*actor.PID
}

// session gives one of the sessions, opened anew where it has ended.
func (s *stress) session(t *testing.T, i int) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.sessions[i]; old == nil || s.system.Session(old.Key()) == nil {
		session, err := s.system.OpenSession(fmt.Sprintf("%d-%d", i, rand.Uint64()), nil, nil)
		if err != nil {
			t.Errorf("OpenSession: %v", err)
			return old
		}
		s.sessions[i] = session
	}
	return s.sessions[i]
}

// request runs one request, sometimes with a failure, and leaves its PID.
func (s *stress) request(t *testing.T, random *rand.Rand) {
	var session *Session
	if i := random.IntN(5); i < 4 {
		session = s.session(t, i)
	}
	o := new(owner)
	r, err := s.system.Lease(session, fmt.Append(nil, random.IntN(6)), o)
	if err != nil {
		if !slices.ContainsFunc([]error{ErrOverloaded, ErrDuplicateID, ErrSessionClosed},
			func(want error) bool { return errors.Is(err, want) }) {
			t.Errorf("Lease: %v", err)
		}
		return
	}
	generation := r.Generation()
	s.mu.Lock()
	s.pids[random.IntN(len(s.pids))] = r.PID()
	s.mu.Unlock()
	if random.IntN(8) == 0 {
		time.Sleep(time.Duration(random.IntN(200)) * time.Microsecond)
	}
	claimed := r.Claim(generation)
	if claimed {
		r.Unlock()
	}
	if ended := len(o.causes()) == 1; ended == claimed {
		// Whoever else claimed it may not have noted so yet.
		time.Sleep(10 * time.Millisecond)
		if ended = len(o.causes()) == 1; ended == claimed {
			t.Errorf("request: answered by its handler %t, ended from outside %t; want one of them", claimed, ended)
		}
	}
	if random.IntN(50) == 0 {
		r.Fail("stress")
	}
	r.Release()
	if n := len(o.causes()); n > 1 {
		t.Errorf("owner was told %d times", n)
	}
}

// step does one thing at random.
func (s *stress) step(t *testing.T, random *rand.Rand) {
	session := s.session(t, random.IntN(4))
	switch n := random.IntN(100); {
	case n < 60:
		s.request(t, random)
	case n < 75:
		session.Cancel(fmt.Append(nil, random.IntN(6)))
	case n < 88:
		s.mu.Lock()
		pid := s.pids[random.IntN(len(s.pids))]
		s.mu.Unlock()
		if pid != nil {
			s.system.ActorSystem().Root.Stop(pid)
		}
	case n < 92:
		_ = session.Subscribe("topic", func(*Event) {})
		s.system.Publish("topic", nil)
	case n < 94:
		session.Unsubscribe("topic")
	case n < 96:
		if o, err := session.Ask(); err == nil {
			session.Resolve(o.ID, nil)
		}
	case n < 98:
		session.Close(ErrCancelled)
	default:
		s.system.ActorSystem().Root.Stop(session.PID())
	}
}

func TestStress(t *testing.T) {
	const goroutines, steps = 8, 6000
	s := &stress{system: NewSystem(Config{Limits: Limits{
		MaxRequests: 6, MaxRequestsPerSession: 3, PooledRequests: 3, MaxMailbox: 4,
		SubscriptionMinInterval: time.Millisecond,
	}})}
	deadline := time.Now().Add(2 * time.Second)
	var running sync.WaitGroup
	for i := range goroutines {
		running.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for n := 0; n < steps && time.Now().Before(deadline); n++ {
				s.step(t, random)
			}
		})
	}
	done := make(chan struct{})
	go func() { running.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("somebody hangs")
	}
	if got := s.system.Counts(); got.InFlight != 0 || got.Sessions > 4 {
		t.Errorf("Counts: got %+v, want 0 in flight and at most 4 sessions", got)
	}
	s.system.Shutdown()
	for _, session := range s.sessions {
		<-session.Done()
	}
	counts := s.system.Counts()
	if counts.Refused = 0; counts != (Counts{}) {
		t.Errorf("Counts after Shutdown: got %+v, want all 0", counts)
	}
	for _, prefix := range []string{"session/", "request/"} {
		if got := registered(s.system, prefix); len(got) != 0 {
			t.Errorf("registered after Shutdown: got %v, want none", got)
		}
	}
}
