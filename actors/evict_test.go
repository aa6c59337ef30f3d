package actors

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// openFor opens a session that can be evicted.
func openFor(t *testing.T, s *System, key, principal string, acquired bool) *Session {
	t.Helper()
	session, err := s.Open(SessionSpec{Key: key, Principal: principal, Evictable: true, Acquired: acquired})
	if err != nil {
		t.Fatalf("Open(%q): %v", key, err)
	}
	return session
}

// alive gives which of the keys find a session.
func alive(s *System, keys ...string) (found []string) {
	for _, key := range keys {
		if s.Session(key) != nil {
			found = append(found, key)
		}
	}
	return found
}

// TestEviction is the table of who makes room for one more of three sessions,
// which were opened in the order a, b, c a second apart.
func TestEviction(t *testing.T) {
	touch := func(s *System, key string) {
		s.Acquire(key).Release()
		time.Sleep(time.Second)
	}
	for _, c := range []struct {
		name string
		use  func(s *System)
		want []string
		err  error
	}{
		{"the oldest", func(*System) {}, []string{"b", "c", "d"}, nil},
		{"not the used", func(s *System) { touch(s, "a") }, []string{"a", "c", "d"}, nil},
		{"the least recently used", func(s *System) { touch(s, "b"); touch(s, "a"); touch(s, "b") }, []string{"a", "b", "d"}, nil},
		{"never a busy one", func(s *System) { s.Acquire("a"); s.Acquire("b") }, []string{"a", "b", "d"}, nil},
		{"nobody", func(s *System) { s.Acquire("a"); s.Acquire("b"); s.Acquire("c") }, []string{"a", "b", "c"}, ErrTooManySessions},
		{"the released", func(s *System) {
			a, b := s.Acquire("a"), s.Acquire("b")
			s.Acquire("c")
			_, _ = s.Open(SessionSpec{Key: "refused"})
			b.Release()
			time.Sleep(time.Second)
			a.Release()
		}, []string{"a", "c", "d"}, nil},
		{"room that is there", func(s *System) { s.Session("b").Close(ErrCancelled) }, []string{"a", "c", "d"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSystem(t, Limits{MaxSessions: 3})
				for _, key := range []string{"a", "b", "c"} {
					openFor(t, s, key, "", false)
					time.Sleep(time.Second)
				}
				c.use(s)
				_, err := s.Open(SessionSpec{Key: "d", Evictable: true})
				checkError(t, "Open", err, c.err)
				if got := alive(s, "a", "b", "c", "d"); !slices.Equal(got, c.want) {
					t.Errorf("sessions: got %v, want %v", got, c.want)
				}
				if got := s.Counts().Sessions; got != 3 {
					t.Errorf("Counts.Sessions: got %d, want 3", got)
				}
				s.Shutdown()
			})
		})
	}
}

// TestEvictionCause checks what the evicted session is told, and that one of a
// connection is not evicted.
func TestEvictionCause(t *testing.T) {
	s := newSystem(t, Limits{MaxSessions: 2})
	pipe := open(t, s, "pipe")
	first := openFor(t, s, "first", "", false)
	openFor(t, s, "second", "", false)
	<-first.Done()
	checkError(t, "Cause", first.Cause(), ErrSessionEvicted)
	if s.Session("pipe") != pipe {
		t.Error("the session of a connection was evicted")
	}
	if got := s.Refusals(); got != (Refusals{Evicted: 1}) {
		t.Errorf("Refusals: got %+v, want one evicted", got)
	}
	if first.active.Add(1) >= 0 {
		t.Error("an evicted session can be used again")
	}
}

// TestPrincipalLimit checks that a principal makes room for its own sessions
// with its own, and that others are not concerned.
func TestPrincipalLimit(t *testing.T) {
	s := newSystem(t, Limits{MaxSessions: 10, MaxSessionsPerPrincipal: 2})
	for i, who := range []string{"ann", "bob", "ann", "ann", "", "", ""} {
		openFor(t, s, strconv.Itoa(i), who, false)
	}
	if got, want := alive(s, "0", "1", "2", "3", "4", "5", "6"), []string{"1", "2", "3", "4", "5", "6"}; !slices.Equal(got, want) {
		t.Errorf("sessions: got %v, want %v", got, want)
	}
	s.Acquire("2")
	s.Acquire("3")
	_, err := s.Open(SessionSpec{Key: "7", Principal: "ann", Evictable: true})
	checkError(t, "Open with all of the principal in use", err, ErrTooManySessionsOfPrincipal)
	openFor(t, s, "8", "bob", false)
	for _, key := range []string{"1", "2", "3", "8"} {
		s.Session(key).Close(ErrCancelled)
	}
	s.admission.mu.Lock()
	defer s.admission.mu.Unlock()
	if n := len(s.admission.principal); n != 0 || len(s.admission.all.list) != 3 {
		t.Errorf("after their end: got %d principals and %d sessions, want 0 and 3", n, len(s.admission.all.list))
	}
}

// TestEvictionIsExact opens many more sessions than there is room for: exactly
// the newest are left. Some of these are used, and exactly these outlive what
// comes next.
func TestEvictionIsExact(t *testing.T) {
	const limit, opened = 100, 1000
	s := newSystem(t, Limits{MaxSessions: limit})
	var want []string
	for i := range opened {
		key := strconv.Itoa(i)
		openFor(t, s, key, "", false)
		if i >= opened-limit {
			want = append(want, key)
		}
	}
	if got := alive(s, want...); len(got) != limit {
		t.Fatalf("of the newest %d sessions %d are left", limit, len(got))
	}
	for _, key := range want[:limit/2] {
		s.Acquire(key).Release()
	}
	for i := range limit / 2 {
		openFor(t, s, fmt.Sprint("more ", i), "", false)
	}
	if got := alive(s, want...); !slices.Equal(got, want[:limit/2]) {
		t.Errorf("left of the newest: got %v, want the %d that were used", got, limit/2)
	}
	if got := s.Counts().Sessions; got != limit {
		t.Errorf("Counts.Sessions: got %d, want %d", got, limit)
	}
}

// TestEvictionStress opens, uses and closes sessions from many goroutines. No
// session is evicted that is in use.
func TestEvictionStress(t *testing.T) {
	s := newSystem(t, Limits{MaxSessions: 32, MaxSessionsPerPrincipal: 8})
	errDone := errors.New("done with it")
	var workers sync.WaitGroup
	var used, refused atomic.Int64
	for worker := range 8 {
		workers.Go(func() {
			for i := range 300 {
				key := fmt.Sprintf("%d/%d", worker, i)
				session, err := s.Open(SessionSpec{
					Key: key, Principal: strconv.Itoa(i % 5), Evictable: true, Acquired: true,
				})
				if err != nil {
					if !errors.Is(err, ErrTooManySessions) && !errors.Is(err, ErrTooManySessionsOfPrincipal) {
						t.Errorf("Open: %v", err)
					}
					refused.Add(1)
					continue
				}
				// Any session that another worker may have open just now.
				var other *Session
				for back := 0; back < 64 && other == nil; back++ {
					other = s.Acquire(fmt.Sprintf("%d/%d", (worker+1+back%7)%8, max(0, i-back/7)))
				}
				if other != nil {
					used.Add(1)
					switch r, err := s.Lease(other, []byte(key), new(owner)); {
					case err == nil:
						r.Release()
					case errors.Is(other.Cause(), errDone): // its own worker has closed it meanwhile
					default:
						t.Errorf("Lease in a session in use: %v, ended by %v", err, other.Cause())
					}
					other.Release()
				}
				if s.Session(key) != session {
					t.Errorf("session %s is gone while it is in use", key)
				}
				session.Release()
				if i%3 == 0 {
					session.Close(errDone)
				}
			}
		})
	}
	workers.Wait()
	if used.Load() == 0 {
		t.Error("nobody used another's session: the test shows nothing")
	}
	s.EachSession(func(session *Session) { session.Close(ErrCancelled) })
	s.admission.mu.Lock()
	defer s.admission.mu.Unlock()
	if s.admission.count != 0 || len(s.admission.all.list) != 0 || len(s.admission.principal) != 0 {
		t.Errorf("after the end of all: got %d sessions, %d in the heap, %d principals",
			s.admission.count, len(s.admission.all.list), len(s.admission.principal))
	}
}

// expiring is the value of a session whose time may be over.
type expiring struct{ over atomic.Bool }

func (e *expiring) Expired() bool { return e.over.Load() }

// TestExpiry checks that a session whose time is over ends also in use.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(Config{Limits: Limits{SessionIdle: -1}, SessionsExpire: true})
		defer s.Shutdown()
		value := new(expiring)
		session, err := s.Open(SessionSpec{Key: "a", Value: value, Acquired: true})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if s.Session("a") == nil {
			t.Fatal("the session ended before its time")
		}
		value.over.Store(true)
		time.Sleep(31 * time.Second)
		<-session.Done()
		checkError(t, "Cause", session.Cause(), ErrSessionExpired)
	})
}
