package actors

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestShutdownLeavesNothing uses a system in every way. In the bubble a
// goroutine that is left fails the test.
func TestShutdownLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{})
		before := registered(s, "")
		var requests []*Request
		for i := range 20 {
			session := open(t, s, fmt.Sprint(i))
			for id := range 3 {
				r, _ := lease(t, s, session, fmt.Sprint(id))
				requests = append(requests, r)
			}
			stateless, _ := lease(t, s, nil, "1")
			requests = append(requests, stateless)
			checkError(t, "Subscribe", session.Subscribe("topic", func(*Event) {}), nil)
			if _, err := session.Ask(); err != nil {
				t.Error(err)
			}
			session.Hold()
		}
		s.Publish("topic", nil)
		requests[0].Fail("oh")
		for _, r := range requests[:40] {
			r.Release()
		}
		s.Shutdown()
		s.Shutdown()
		for _, r := range requests[40:] {
			r.Release()
		}
		if got := s.Counts(); got != (Counts{}) {
			t.Errorf("Counts: got %+v, want all 0", got)
		}
		if got := registered(s, ""); len(got) != len(before) {
			t.Errorf("registered after Shutdown: got %v, want %v", got, before)
		}
		time.Sleep(2 * time.Second) // for the actor library's timer of dead letters
	})
}

// TestShutdownWhileOpening checks that no session survives a Shutdown that
// comes while it is opened.
func TestShutdownWhileOpening(t *testing.T) {
	for round := range 10 {
		s := NewSystem(Config{})
		var opening sync.WaitGroup
		sessions := make([]*Session, 4)
		for i := range sessions {
			opening.Go(func() {
				for n := 0; ; n++ {
					session, err := s.OpenSession(fmt.Sprint(i, n), nil, nil)
					if err != nil {
						checkError(t, "OpenSession", err, ErrShutdown)
						return
					}
					sessions[i] = session
				}
			})
		}
		time.Sleep(time.Duration(round) * 60 * time.Microsecond)
		s.Shutdown()
		opening.Wait()
		for _, session := range sessions {
			if session == nil {
				continue
			}
			select {
			case <-session.Done():
			case <-time.After(10 * time.Second):
				t.Fatal("a session that was opened last has not ended")
			}
		}
		if got := registered(s, "session/"); len(got) != 0 {
			t.Fatalf("registered sessions after Shutdown: got %v, want none", got)
		}
	}
}

// TestQuietLogs checks that the notes of the actor library come a level lower
// than it gives them.
func TestQuietLogs(t *testing.T) {
	var log bytes.Buffer
	for _, c := range []struct {
		level slog.Level
		want  bool
	}{
		{slog.LevelInfo, false},
		{slog.LevelDebug, true},
	} {
		log.Reset()
		handler := slog.NewTextHandler(&log, &slog.HandlerOptions{Level: c.level})
		NewSystem(Config{Logger: slog.New(handler)}).Shutdown()
		if got := strings.Contains(log.String(), `level=DEBUG msg="actor system started"`); got != c.want {
			t.Errorf("a note of the actor library at level %v: got %t, want %t, in %q", c.level, got, c.want, log.String())
		}
	}
}
