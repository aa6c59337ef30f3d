package actors

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// owner is an Owner that keeps what it was told.
type owner struct {
	mu    sync.Mutex
	ended []error
}

func (o *owner) End(r *Request, generation uint32, cause error) {
	if !r.Claim(generation) {
		return
	}
	r.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = append(o.ended, cause)
}

func (o *owner) causes() []error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.ended)
}

func (o *owner) check(t *testing.T, what string, want ...error) {
	t.Helper()
	if got := o.causes(); !slices.Equal(got, want) {
		t.Errorf("%s: owner was told %v, want %v", what, got, want)
	}
}

func newSystem(t *testing.T, l Limits) *System {
	t.Helper()
	s := NewSystem(Config{Limits: l})
	t.Cleanup(s.Shutdown)
	return s
}

func open(t *testing.T, s *System, key string) *Session {
	t.Helper()
	session, err := s.OpenSession(key, nil, nil)
	if err != nil {
		t.Fatalf("OpenSession(%q): %v", key, err)
	}
	return session
}

func lease(t *testing.T, s *System, session *Session, id string) (*Request, *owner) {
	t.Helper()
	o := new(owner)
	r, err := s.Lease(session, []byte(id), o)
	if err != nil {
		t.Fatalf("Lease(%s): %v", id, err)
	}
	return r, o
}

func checkError(t *testing.T, call string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) || want == nil && got != nil {
		t.Errorf("%s: got error %v, want %v", call, got, want)
	}
}

// registered gives the names in the registry of actors that begin with prefix.
func registered(s *System, prefix string) (names []string) {
	for _, bucket := range s.ActorSystem().ProcessRegistry.LocalPIDs.LocalPIDs {
		if bucket.IsEmpty() {
			continue // Keys starts 32 goroutines
		}
		for _, name := range bucket.Keys() {
			if strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// events keeps the events of one type on the event stream of an actor system.
type events[T any] struct {
	mu   sync.Mutex
	list []T
}

func watch[T any](s *System) *events[T] {
	e := new(events[T])
	s.ActorSystem().EventStream.Subscribe(func(event any) {
		if event, ok := event.(T); ok {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.list = append(e.list, event)
		}
	})
	return e
}

func (e *events[T]) all() []T {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.list)
}

// checkFailure holds the failures of a system to one, of an actor that was
// stopped.
func checkFailure(t *testing.T, failures *events[*actor.SupervisorEvent], who, reason string) {
	t.Helper()
	got := failures.all()
	if len(got) != 1 {
		t.Fatalf("supervisor events: got %v, want one", got)
	}
	if e := got[0]; e.Child.Id != who || e.Reason != reason || e.Directive != actor.StopDirective {
		t.Errorf("supervisor event: got %q %v %v, want %q %v %v",
			e.Child.Id, e.Reason, e.Directive, who, reason, actor.StopDirective)
	}
}
