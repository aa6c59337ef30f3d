package actors_test

import (
	"testing"

	"github.com/mcpengine/mcpengine/actors"
)

type nobody struct{}

func (nobody) End(*actors.Request, uint32, error) {}

func BenchmarkLease(b *testing.B) {
	s := actors.NewSystem(actors.Config{})
	defer s.Shutdown()
	session, err := s.OpenSession("a", nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	for name, session := range map[string]*actors.Session{"session": session, "stateless": nil} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			id := []byte("17")
			for b.Loop() {
				r, err := s.Lease(session, id, nobody{})
				if err != nil {
					b.Fatal(err)
				}
				if !r.Claim(r.Generation()) {
					b.Fatal("not claimed")
				}
				r.Unlock()
				r.Release()
			}
		})
	}
}
