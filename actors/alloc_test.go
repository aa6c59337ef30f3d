//go:build !race

package actors

import "testing"

// nobody is an Owner that is never told anything.
type nobody struct{}

func (nobody) End(*Request, uint32, error) {}

// TestLeaseAllocs holds a request, as the engine runs it, to no allocation.
func TestLeaseAllocs(t *testing.T) {
	s := newSystem(t, Limits{})
	for name, session := range map[string]*Session{"session": open(t, s, "a"), "stateless": nil} {
		id := []byte("17")
		got := testing.AllocsPerRun(1000, func() {
			r, err := s.Lease(session, id, nobody{})
			if err != nil {
				t.Fatal(err)
			}
			if !r.Claim(r.Generation()) {
				t.Error("Claim: got false")
			}
			r.Unlock()
			r.Release()
		})
		if got > 0 {
			t.Errorf("%s: Lease, Claim and Release: got %g allocations, want 0", name, got)
		}
	}
}
