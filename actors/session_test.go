package actors

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestOpenSession(t *testing.T) {
	s := newSystem(t, Limits{MaxSessions: 2})
	var causes []error
	a, err := s.OpenSession("a", "value", func(cause error) { causes = append(causes, cause) })
	if err != nil {
		t.Fatal(err)
	}
	if a.Key() != "a" || a.Value != "value" || a.PID().Id != "session/a" || s.Session("a") != a {
		t.Errorf("session: got key %q, value %v, PID %v", a.Key(), a.Value, a.PID())
	}
	never := func(error) { t.Error("onClose of a session that was never opened was called") }
	_, err = s.OpenSession("a", nil, never)
	checkError(t, "OpenSession of a taken key", err, ErrDuplicateID)
	b := open(t, s, "b")
	_, err = s.OpenSession("c", nil, never)
	checkError(t, "OpenSession beyond the limit", err, ErrTooManySessions)
	if got := registered(s, "session/"); len(got) != 2 {
		t.Errorf("registered sessions: got %v, want a and b", got)
	}
	var each []string
	s.EachSession(func(session *Session) { each = append(each, session.Key()) })
	if len(each) != 2 || each[0] == each[1] {
		t.Errorf("EachSession: got %v, want a and b", each)
	}

	a.Close(ErrCancelled)
	a.Close(ErrShutdown)
	<-a.Done()
	checkError(t, "Cause", a.Cause(), ErrCancelled)
	if len(causes) != 1 || causes[0] != ErrCancelled {
		t.Errorf("onClose: got %v, want once, %v", causes, ErrCancelled)
	}
	if s.Session("a") != nil {
		t.Error("Session: a closed session is found")
	}
	if got, want := s.Counts(), (Counts{Sessions: 1, Refused: 1}); got != want {
		t.Errorf("Counts: got %+v, want %+v", got, want)
	}
	if again := open(t, s, "a"); s.Session("a") != again || s.Session("b") != b {
		t.Error("Session: the key of a closed session cannot be used again")
	}
	s.StopAdmitting()
	_, err = s.OpenSession("d", nil, nil)
	checkError(t, "OpenSession after StopAdmitting", err, ErrShutdown)
	_, err = s.Lease(b, []byte("1"), new(owner))
	checkError(t, "Lease after StopAdmitting", err, ErrShutdown)
}

// TestCloseEndsEverything closes a session that owns something of each kind.
func TestCloseEndsEverything(t *testing.T) {
	for _, c := range []struct {
		name  string
		close func(s *System, session *Session)
		want  error
	}{
		{"Close", func(_ *System, session *Session) { session.Close(ErrCancelled) }, ErrCancelled},
		{"Stop", func(s *System, session *Session) { s.ActorSystem().Root.Stop(session.PID()) }, ErrStopped},
		{"Poison", func(s *System, session *Session) { s.ActorSystem().Root.Poison(session.PID()) }, ErrStopped},
		{"Shutdown", func(s *System, _ *Session) { s.Shutdown() }, ErrShutdown},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSystem(t, Limits{})
			session := open(t, s, "a")
			r, o := lease(t, s, session, "1")
			asked, err := session.Ask()
			if err != nil {
				t.Fatal(err)
			}
			if err := session.Subscribe("topic", func(*Event) {}); err != nil {
				t.Fatal(err)
			}
			c.close(s, session)
			<-session.Done()
			checkError(t, "Cause", session.Cause(), c.want)
			o.check(t, "request in flight", c.want)
			<-asked.Done
			_, err = asked.Answer()
			checkError(t, "request to the peer", err, ErrSessionClosed)
			if n := s.Publish("topic", nil); n != 0 {
				t.Errorf("Publish: got %d subscriptions, want 0", n)
			}
			r.Release()
			if got := s.Counts(); got != (Counts{}) {
				t.Errorf("Counts: got %+v, want all 0", got)
			}
			_, err = session.Ask()
			checkError(t, "Ask", err, ErrSessionClosed)
			checkError(t, "Subscribe", session.Subscribe("topic", nil), ErrSessionClosed)
			if session.Cancel([]byte("1")) || session.Unsubscribe("topic") || session.Resolve(1, nil) ||
				session.PendingOutgoing() != 0 {
				t.Error("a closed session still finds something")
			}
			if got := append(registered(s, "session/"), registered(s, "subscription/")...); len(got) != 0 {
				t.Errorf("registered: got %v, want none", got)
			}
		})
	}
}

func TestIdle(t *testing.T) {
	const idle = 8 * time.Minute
	for _, c := range []struct {
		name string
		use  func(t *testing.T, s *System, session *Session) // takes 20 minutes
		want bool                                            // the session lives on right after
	}{
		{"unused", func(*testing.T, *System, *Session) { time.Sleep(20 * time.Minute) }, false},
		{"touched", func(_ *testing.T, _ *System, session *Session) {
			for range 4 {
				time.Sleep(5 * time.Minute)
				session.Touch()
			}
		}, true},
		{"request in flight", func(t *testing.T, s *System, session *Session) {
			r, o := lease(t, s, session, "1")
			time.Sleep(20 * time.Minute)
			if !session.Busy() {
				t.Error("Busy with a request in flight: got false")
			}
			o.check(t, "request in flight")
			r.Release()
		}, true},
		{"request refused", func(t *testing.T, s *System, session *Session) {
			r, _ := lease(t, s, session, "1")
			_, err := s.Lease(session, []byte("1"), new(owner))
			checkError(t, "Lease", err, ErrDuplicateID)
			r.Release()
			time.Sleep(20 * time.Minute)
		}, false},
		{"held", func(_ *testing.T, _ *System, session *Session) {
			release := session.Hold()
			time.Sleep(20 * time.Minute)
			release()
		}, true},
		{"released twice", func(_ *testing.T, _ *System, session *Session) {
			first, second := session.Hold(), session.Hold()
			first()
			first()
			time.Sleep(20 * time.Minute)
			second()
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewSystem(Config{Limits: Limits{SessionIdle: idle}})
				defer s.Shutdown()
				session := open(t, s, "a")
				c.use(t, s, session)
				if got := s.Session("a") == session; got != c.want {
					t.Fatalf("alive after use: got %t, want %t", got, c.want)
				}
				if session.Busy() {
					t.Error("Busy after use: got true")
				}
				time.Sleep(idle - time.Second)
				if got := s.Session("a") == session; got != c.want {
					t.Fatalf("alive just before it expires: got %t, want %t", got, c.want)
				}
				time.Sleep(time.Second + idle/4)
				<-session.Done()
				checkError(t, "Cause", session.Cause(), ErrSessionIdle)
			})
		})
	}
}

// TestIdleNever checks that a negative limit keeps sessions for good.
func TestIdleNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{Limits: Limits{SessionIdle: -1}})
		defer s.Shutdown()
		session := open(t, s, "a")
		time.Sleep(1000 * time.Hour)
		if s.Session("a") != session {
			t.Error("the session has expired")
		}
	})
}

func TestNegativeLimits(t *testing.T) {
	s := newSystem(t, Limits{MaxSessions: -1, MaxRequests: -1, MaxRequestsPerSession: -1, MaxSubscriptions: -1,
		MaxOutgoing: -1, MaxMailbox: -1, PooledRequests: -1})
	session := open(t, s, "a")
	r, _ := lease(t, s, session, "1")
	if _, err := session.Ask(); err != nil {
		t.Error(err)
	}
	if err := session.Subscribe("topic", func(*Event) {}); err != nil {
		t.Error(err)
	}
	r.Release()
	if got := registered(s, "request/"); len(got) != 1 {
		t.Errorf("registered requests: got %v, want the pooled one", got)
	}
}
