package actors

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// reader is the actor behind a mailbox under test.
type reader struct {
	mu     sync.Mutex
	seen   []any
	failed []any
	on     func(message any)
}

func (r *reader) InvokeUserMessage(message any) {
	r.mu.Lock()
	r.seen = append(r.seen, message)
	r.mu.Unlock()
	if r.on != nil {
		r.on(message)
	}
}

func (r *reader) InvokeSystemMessage(message any) { r.InvokeUserMessage(message) }

func (r *reader) EscalateFailure(reason, message any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, fmt.Sprint(reason, " in ", message))
}

func (r *reader) check(t *testing.T, want ...any) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.seen, want) {
		t.Errorf("messages handled: got %v, want %v", r.seen, want)
	}
}

func newMailbox(t *testing.T, max int) (*mailbox, *reader) {
	m := &mailbox{system: newSystem(t, Limits{MaxMailbox: max})}
	r := new(reader)
	m.RegisterHandlers(r, nil)
	m.Start()
	return m, r
}

func TestMailboxOrder(t *testing.T) {
	m, r := newMailbox(t, 0)
	r.on = func(message any) {
		if message == "first" {
			for i := range 40 {
				m.PostUserMessage(i)
			}
			m.PostSystemMessage("system")
			if got := m.UserMessageCount(); got != 40 {
				t.Errorf("UserMessageCount: got %d, want 40", got)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		m.PostUserMessage("first")
		synctest.Wait()
	})
	want := []any{"first", "system"}
	for i := range 40 {
		want = append(want, i)
	}
	r.check(t, want...)
	if got := m.UserMessageCount(); got != 0 {
		t.Errorf("UserMessageCount: got %d, want 0", got)
	}
}

// refusal is a message that keeps why it was not taken.
type refusal struct {
	always bool // taken by a full mailbox
	why    error
}

func (r *refusal) refuse(err error) { r.why = err }
func (r *refusal) urgent() bool     { return r.always }

func TestMailboxBound(t *testing.T) {
	m, r := newMailbox(t, 2)
	letters := watch[*actor.DeadLetterEvent](m.system)
	ordinary, must := &refusal{}, &refusal{always: true}
	r.on = func(message any) {
		if message == 1 {
			for _, next := range []any{2, 3, 4, ordinary, must} {
				m.PostUserMessage(next)
			}
		}
	}
	m.PostUserMessage(1)
	r.check(t, 1, 2, 3, must)
	checkError(t, "ordinary message beyond the bound", ordinary.why, ErrOverloaded)
	checkError(t, "urgent message beyond the bound", must.why, nil)
	if got := letters.all(); len(got) != 1 || got[0].Message != 4 {
		t.Errorf("dead letters: got %v, want one for message 4", got)
	}
	m.PostUserMessage(5)
	r.check(t, 1, 2, 3, must, 5)
}

// TestMailboxBudget checks that a sender is let go although others keep the
// mailbox busy: what comes after the budget waits here for the sender's return.
func TestMailboxBudget(t *testing.T) {
	m, r := newMailbox(t, 0)
	synctest.Test(t, func(t *testing.T) {
		returned := make(chan struct{})
		r.on = func(message any) {
			switch n := message.(int); {
			case n == 0:
				for i := range 2 * inlineBudget {
					m.PostUserMessage(i + 1)
				}
			case n == inlineBudget+1:
				<-returned
			}
		}
		m.PostUserMessage(0)
		if got := m.UserMessageCount(); got != inlineBudget-1 {
			t.Errorf("messages that wait at the sender's return: got %d, want %d", got, inlineBudget-1)
		}
		close(returned)
		synctest.Wait()
		var want []any
		for i := range 2*inlineBudget + 1 {
			want = append(want, i)
		}
		r.check(t, want...)
	})
}

func TestMailboxSuspend(t *testing.T) {
	m, r := newMailbox(t, 0)
	r.on = func(message any) {
		if message == "bad" {
			panic("oh")
		}
	}
	m.PostUserMessage("bad")
	m.PostSystemMessage(&actor.SuspendMailbox{})
	waits := &refusal{}
	m.PostUserMessage(1)
	m.PostSystemMessage("system")
	r.check(t, "bad", "system")
	m.PostSystemMessage(&actor.ResumeMailbox{})
	r.check(t, "bad", "system", 1)
	if want := []any{"oh in bad"}; !slices.Equal(r.failed, want) {
		t.Errorf("failures: got %v, want %v", r.failed, want)
	}
	m.PostSystemMessage(&actor.SuspendMailbox{})
	m.PostUserMessage(waits)
	m.close()
	checkError(t, "message that waits at the end", waits.why, ErrSessionClosed)
	late := &refusal{always: true}
	m.PostUserMessage(late)
	checkError(t, "message after the end", late.why, ErrSessionClosed)
}

// TestMailboxLetsGo checks that an idle mailbox does not keep a long queue.
func TestMailboxLetsGo(t *testing.T) {
	m, r := newMailbox(t, 0)
	r.on = func(message any) {
		if message == 0 {
			for i := range 1000 {
				m.PostUserMessage(i + 1)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		m.PostUserMessage(0)
		synctest.Wait()
		if got := cap(m.user); got > 64 {
			t.Errorf("capacity of the idle queue: got %d, want at most 64", got)
		}
	})
}

// TestPanicStopsSession has a message panic in a session while others wait.
func TestPanicStopsSession(t *testing.T) {
	s := newSystem(t, Limits{})
	failures := watch[*actor.SupervisorEvent](s)
	var cause error
	session, err := s.OpenSession("a", nil, func(err error) { cause = err })
	if err != nil {
		t.Fatal(err)
	}
	_, o := lease(t, s, session, "1")
	var told error
	session.do(func(ctx actor.Context, refusal error) {
		if told = refusal; refusal == nil {
			panic("oh")
		}
	})
	checkError(t, "the message that panicked", told, ErrSessionClosed)
	<-session.Done()
	checkFailure(t, failures, "session/a", "oh")
	o.check(t, "request of the session", ErrStopped)
	checkError(t, "cause", cause, ErrStopped)
	if s.Session("a") != nil {
		t.Error(`Session("a"): still found`)
	}
	_, err = s.Lease(session, []byte("2"), new(owner))
	checkError(t, "Lease in the stopped session", err, ErrSessionClosed)
}

// TestRefusalAfterStop has many senders at a session that is closed in the
// middle: every one of them gets an answer.
func TestRefusalAfterStop(t *testing.T) {
	for round := range 8 {
		s := NewSystem(Config{Limits: Limits{MaxMailbox: 8}})
		session := open(t, s, "a")
		var senders sync.WaitGroup
		for sender := range 8 {
			id := []byte(fmt.Sprint(sender))
			senders.Go(func() {
				for {
					r, err := s.Lease(session, id, new(owner))
					if err == nil {
						session.Cancel(id)
						r.Release()
						continue
					}
					if errors.Is(err, ErrSessionClosed) {
						return
					}
					checkError(t, "Lease", err, ErrOverloaded)
				}
			})
			senders.Go(func() {
				for {
					_, err := session.Ask()
					if errors.Is(err, ErrSessionClosed) {
						return
					}
					if err != nil {
						checkError(t, "Ask", err, ErrOverloaded)
					}
					session.Unsubscribe("topic")
					session.Resolve(1, nil)
				}
			})
		}
		time.AfterFunc(time.Duration(round)*250*time.Microsecond, func() { session.Close(ErrCancelled) })
		done := make(chan struct{})
		go func() { senders.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Fatal("senders hang after the session's end")
		}
		if got := s.Counts(); got.InFlight != 0 || got.Sessions != 0 {
			t.Errorf("Counts: got %+v, want nothing in flight", got)
		}
		s.Shutdown()
	}
}
