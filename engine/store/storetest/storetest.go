// Package storetest holds any engine.SessionStore to what the interface
// promises. It is for the tests of stores, those of embedders included.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/engine"
)

// Max is how many names the stores must keep that Run is given.
const Max = 5

// ref names a session that was created so many seconds after an hour ago, and
// ends in an hour.
func ref(name string, second int) engine.SessionRef {
	base := time.Now().Add(-time.Hour).Truncate(time.Second)
	return engine.SessionRef{
		Name: name, Created: base.Add(time.Duration(second) * time.Second), Expires: base.Add(2 * time.Hour),
	}
}

// Run tests stores. open makes an empty one that keeps Max names. reopen, which
// may be nil, gives a store that sees what the last one was given, as a process
// does that starts again.
func Run(t *testing.T, open func(t *testing.T) engine.SessionStore, reopen func(t *testing.T) engine.SessionStore) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, s engine.SessionStore)
	}{
		{"revoke", testRevoke},
		{"floor", testFloor},
		{"expired names go first", testExpired},
		{"state", testState},
		{"together", testTogether},
		{"ended context", testContext},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
	if reopen != nil {
		t.Run("reopen", func(t *testing.T) {
			s := open(t)
			must(t, s.Revoke(t.Context(), ref("gone", 1)))
			must(t, s.Save(t.Context(), ref("kept", 1), []byte("state")))
			again := reopen(t)
			checkRevoked(t, again, ref("gone", 1), true)
			checkRevoked(t, again, ref("kept", 1), false)
			checkState(t, again, ref("kept", 1), "state")
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func checkRevoked(t *testing.T, s engine.SessionStore, r engine.SessionRef, want bool) {
	t.Helper()
	if got, err := s.Revoked(t.Context(), r); got != want || err != nil {
		t.Errorf("Revoked(%s): got %t, %v; want %t", r.Name, got, err, want)
	}
}

func checkState(t *testing.T, s engine.SessionStore, r engine.SessionRef, want string) {
	t.Helper()
	got, err := s.Load(t.Context(), r)
	if string(got) != want || err != nil || want == "" && got != nil {
		t.Errorf("Load(%s): got %q, %v; want %q", r.Name, got, err, want)
	}
}

func testRevoke(t *testing.T, s engine.SessionStore) {
	checkRevoked(t, s, ref("a", 1), false)
	must(t, s.Save(t.Context(), ref("a", 1), []byte("x")))
	must(t, s.Revoke(t.Context(), ref("a", 1)))
	must(t, s.Revoke(t.Context(), ref("a", 1)))
	checkRevoked(t, s, ref("a", 1), true)
	checkRevoked(t, s, ref("b", 1), false)
	checkRevoked(t, s, ref("b", 0), false)
	checkState(t, s, ref("a", 1), "")
}

// testFloor revokes more than there is room for, in another order than that of
// creation: whatever is forgotten stays revoked, and so does all that is as old.
func testFloor(t *testing.T, s engine.SessionStore) {
	for _, second := range []int{30, 10, 50, 20, 40, 60, 70} {
		must(t, s.Revoke(t.Context(), ref(fmt.Sprint("s", second), second)))
	}
	for second := 10; second <= 70; second += 10 {
		checkRevoked(t, s, ref(fmt.Sprint("s", second), second), true)
	}
	checkRevoked(t, s, ref("older", 5), true)
	checkRevoked(t, s, ref("as old as the newest that was forgotten", 20), true)
	checkRevoked(t, s, ref("newer", 21), false)
	checkRevoked(t, s, ref("newest", 100), false)
	must(t, s.Revoke(t.Context(), ref("below the floor", 1)))
	checkRevoked(t, s, ref("newer", 21), false)
}

// testExpired revokes more than there is room for, but most of it is over: that
// makes room, and costs no other session anything. What is over may yet be asked
// for, by a process whose clock is behind or was set back, and is not to return.
func testExpired(t *testing.T, s engine.SessionStore) {
	over := make([]engine.SessionRef, 2*Max)
	for i := range over {
		over[i] = ref(fmt.Sprint("over", i), i)
		over[i].Expires = over[i].Created.Add(time.Minute)
		must(t, s.Revoke(t.Context(), over[i]))
	}
	must(t, s.Revoke(t.Context(), ref("a", 100)))
	checkRevoked(t, s, ref("a", 100), true)
	checkRevoked(t, s, ref("b", 99), false)
	checkRevoked(t, s, ref("c", 0), false)
	for _, r := range over {
		checkRevoked(t, s, r, true)
	}
}

func testState(t *testing.T, s engine.SessionStore) {
	checkState(t, s, ref("a", 1), "")
	must(t, s.Save(t.Context(), ref("a", 1), []byte(`{"level":1}`)))
	must(t, s.Save(t.Context(), ref("b", 1), []byte("other")))
	buf := []byte(`{"level":2}`)
	must(t, s.Save(t.Context(), ref("a", 1), buf))
	copy(buf, "XXXXXXXXXXX")
	checkState(t, s, ref("a", 1), `{"level":2}`)
	checkState(t, s, ref("b", 1), "other")
}

// testTogether revokes and saves from many goroutines.
func testTogether(t *testing.T, s engine.SessionStore) {
	var workers sync.WaitGroup
	for i := range Max {
		workers.Go(func() {
			r := ref(fmt.Sprint("s", i), 10)
			err := errors.Join(s.Save(t.Context(), r, []byte(r.Name)), s.Save(t.Context(), ref("same", 10), []byte(r.Name)))
			if i%2 == 0 {
				err = errors.Join(err, s.Revoke(t.Context(), r))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	for i := range Max {
		r := ref(fmt.Sprint("s", i), 10)
		checkRevoked(t, s, r, i%2 == 0)
		if i%2 == 0 {
			checkState(t, s, r, "")
		} else {
			checkStateOrNone(t, s, r)
		}
	}
}

// checkStateOrNone allows for a store that had to make room.
func checkStateOrNone(t *testing.T, s engine.SessionStore, r engine.SessionRef) {
	t.Helper()
	if got, err := s.Load(t.Context(), r); err != nil || got != nil && string(got) != r.Name {
		t.Errorf("Load(%s): got %q, %v; want its own state", r.Name, got, err)
	}
}

// testContext checks that a store which may have to wait heeds the context. One
// that never waits need not.
func testContext(t *testing.T, s engine.SessionStore) {
	if _, ok := s.(*engine.MemorySessions); ok {
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Revoked(ctx, ref("a", 1)); err == nil {
		t.Error("Revoked with a context that has ended: got no error")
	}
	if err := s.Revoke(ctx, ref("a", 1)); err == nil {
		t.Error("Revoke with a context that has ended: got no error")
	}
	checkRevoked(t, s, ref("a", 1), false)
}
