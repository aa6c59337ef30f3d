package layers

import (
	"strconv"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/actors"
)

// nobody is the owner of requests that nobody ends.
type nobody struct{}

func (nobody) End(*actors.Request, uint32, error) {}

func newSystem(b *testing.B) *actors.System {
	b.Helper()
	s := actors.NewSystem(actors.Config{Limits: actors.Limits{SubscriptionMinInterval: time.Hour}})
	b.Cleanup(s.Shutdown)
	return s
}

func openSession(b *testing.B, s *actors.System, key string) *actors.Session {
	b.Helper()
	session, err := s.OpenSession(key, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	return session
}

// BenchmarkActorsRequest is the life of a request: admitted, answered, released.
func BenchmarkActorsRequest(b *testing.B) {
	s := newSystem(b)
	for _, c := range []struct {
		name    string
		session *actors.Session
	}{{"session", openSession(b, s, "a")}, {"stateless", nil}} {
		b.Run(c.name, func(b *testing.B) {
			id := []byte("17")
			b.ReportAllocs()
			for b.Loop() {
				r, err := s.Lease(c.session, id, nobody{})
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

// BenchmarkActorsSession is the life of a session without requests.
func BenchmarkActorsSession(b *testing.B) {
	s := newSystem(b)
	b.ReportAllocs()
	for b.Loop() {
		session := openSession(b, s, "a")
		session.Close(nil)
		<-session.Done()
	}
}

// BenchmarkActorsPublish tells 1,000 subscribers that a topic was updated.
func BenchmarkActorsPublish(b *testing.B) {
	const crowd = 1_000
	s := newSystem(b)
	for i := range crowd {
		if _, err := s.Listen([]string{"listeners"}); err != nil {
			b.Fatal(err)
		}
		if err := openSession(b, s, strconv.Itoa(i)).Subscribe("sessions", func(*actors.Event) {}); err != nil {
			b.Fatal(err)
		}
	}
	frame := []byte("{}")
	for _, topic := range []string{"listeners", "sessions"} {
		b.Run(topic, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if n := s.Publish(topic, frame); n != crowd {
					b.Fatalf("told %d", n)
				}
			}
		})
	}
}
