package bolt_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/engine/store/bolt"
	"github.com/mcpengine/mcpengine/engine/store/storetest"
)

// file opens a store of one file after another.
type file struct {
	path string
	last *bolt.Store
}

// next makes a new file.
func (f *file) next(t *testing.T) *bolt.Store {
	f.path = filepath.Join(t.TempDir(), "sessions.db")
	return f.open(t)
}

// again closes the file and opens it again.
func (f *file) again(t *testing.T) *bolt.Store {
	if err := f.last.Close(); err != nil {
		t.Fatal(err)
	}
	return f.open(t)
}

func (f *file) open(t *testing.T) *bolt.Store {
	s, err := bolt.Open(f.path, &bolt.Options{
		Max: storetest.Max, SessionEventBytes: storetest.SessionEventBytes, EventBytes: storetest.EventBytes,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	f.last = s
	return s
}

func TestStore(t *testing.T) {
	var f file
	storetest.Run(t, func(t *testing.T) engine.SessionStore { return f.next(t) },
		func(t *testing.T) engine.SessionStore { return f.again(t) })
}

func TestEvents(t *testing.T) {
	var f file
	storetest.RunEvents(t, func(t *testing.T) engine.EventLog { return f.next(t) },
		func(t *testing.T) engine.EventLog { return f.again(t) })
}

// TestOpenRefuses checks that a file which another has open, or which is none of
// ours, is an error and not a wait.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sessions.db")
	s, err := bolt.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the file: got %v, %v; want 0600", info.Mode(), err)
	}
	if _, err := bolt.Open(path, &bolt.Options{LockTimeout: 10 * time.Millisecond}); err == nil {
		t.Error("a second Open: got no error")
	}
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("this is no database at all, whatever else it may be"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := bolt.Open(other, nil); err == nil {
		t.Error("Open of another file: got no error")
	}
}

// TestStatesAreBounded saves more states than are kept: those that end first go.
func TestStatesAreBounded(t *testing.T) {
	s, err := bolt.Open(filepath.Join(t.TempDir(), "sessions.db"), &bolt.Options{Max: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	now := time.Now()
	for i, name := range []string{"b", "c", "a"} {
		ends := now.Add(time.Duration(map[string]int{"a": 1, "b": 2, "c": 3}[name]) * time.Hour)
		ref := engine.SessionRef{Name: name, Created: now, Expires: ends}
		for range i + 1 { // replacing one takes no room
			if err := s.Save(t.Context(), ref, []byte(name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, want := range map[string]string{"a": "", "b": "b", "c": "c"} {
		if got, err := s.Load(t.Context(), engine.SessionRef{Name: name}); string(got) != want || err != nil {
			t.Errorf("Load(%s): got %q, %v; want %q", name, got, err, want)
		}
	}
}
