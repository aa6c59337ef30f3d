package actors_test

import (
	"errors"
	"testing"

	"github.com/mcpengine/mcpengine/actors"
)

// ended keeps the causes that a request was ended with.
type ended struct{ causes []error }

func (e *ended) End(_ *actors.Request, _ uint32, cause error) { e.causes = append(e.causes, cause) }

func TestShutdownEndsStatelessRequests(t *testing.T) {
	s := actors.NewSystem(actors.Config{})
	owner := &ended{}
	r, err := s.Lease(nil, []byte("1"), owner)
	if err != nil {
		t.Fatal(err)
	}
	s.Shutdown()
	r.Release()
	if len(owner.causes) != 1 || !errors.Is(owner.causes[0], actors.ErrShutdown) {
		t.Errorf("Shutdown with a stateless request in flight: its owner was told %v, want ErrShutdown once", owner.causes)
	}
}
