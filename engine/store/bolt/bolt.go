// Package bolt keeps what sealed session ids cannot hold in a file (bbolt), so
// that a server which starts again on the same machine knows which sessions
// were deleted, what was settled in the others, and what their streams said
// last. One process at a time has the file open.
package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/mcpengine/mcpengine/engine"
)

// Buckets. Those of revoked sessions come in two orders, and so do states.
var (
	bucketRevoked = []byte("revoked")       // name to created, expires
	bucketOldest  = []byte("revoked-order") // created, name to nothing
	bucketState   = []byte("state")         // name to expires, state
	bucketEnding  = []byte("state-order")   // expires, name to nothing
	bucketMeta    = []byte("meta")
	keyFloor      = []byte("floor") // in bucketMeta: see engine.SessionStore.Revoke
	keyOver       = []byte("over")  // in bucketMeta: the last expiry of a name that was let go
)

// Options configures Open. Nil is fine.
type Options struct {
	// Max is how many revoked names, and how many states, are kept. Default:
	// engine.DefaultSessionsKept.
	Max int
	// SessionEventBytes and EventBytes bound the events that are kept, of one
	// session and in all. Default: engine.DefaultSessionEventBytes and
	// engine.DefaultEventBytes.
	SessionEventBytes, EventBytes int
	// LockTimeout is how long Open waits for another process to let go of the
	// file. Default 1 s.
	LockTimeout time.Duration
}

// Store is an engine.SessionStore and an engine.EventLog in a file. A change is on the disk when its
// method returns.
type Store struct {
	db                       *bbolt.DB
	max                      int
	sessionEvents, allEvents int // bytes
}

var _ engine.SessionStore = (*Store)(nil)

// Open opens the store of a path, and makes it where there is none. Only the
// user may read it.
func Open(path string, o *Options) (*Store, error) {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Max <= 0 {
		c.Max = engine.DefaultSessionsKept
	}
	if c.SessionEventBytes <= 0 {
		c.SessionEventBytes = engine.DefaultSessionEventBytes
	}
	if c.EventBytes <= 0 {
		c.EventBytes = engine.DefaultEventBytes
	}
	if c.LockTimeout <= 0 {
		c.LockTimeout = time.Second
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: c.LockTimeout})
	if err != nil {
		return nil, fmt.Errorf("bolt: opening %s: %w", path, err)
	}
	db.MaxBatchDelay = 2 * time.Millisecond // others who wait share a write
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{
			bucketRevoked, bucketOldest, bucketState, bucketEnding, bucketMeta, bucketEvents, bucketEventOrder, bucketEventBytes,
		} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bolt: preparing %s: %w", path, err), db.Close())
	}
	return &Store{db: db, max: c.Max, sessionEvents: c.SessionEventBytes, allEvents: c.EventBytes}, nil
}

// Close closes the file.
func (s *Store) Close() error { return s.db.Close() }

// Revoke implements engine.SessionStore.
func (s *Store) Revoke(ctx context.Context, ref engine.SessionRef) error {
	return s.update(ctx, func(tx *bbolt.Tx) error {
		if err := dropState(tx, []byte(ref.Name)); err != nil || revoked(tx, ref) {
			return err
		}
		value := appendTime(appendTime(nil, ref.Created), ref.Expires)
		if err := tx.Bucket(bucketRevoked).Put([]byte(ref.Name), value); err != nil {
			return err
		}
		if err := tx.Bucket(bucketOldest).Put(ordered(ref.Created, ref.Name), nil); err != nil {
			return err
		}
		n, err := count(tx, "revoked", 1)
		if err != nil {
			return err
		}
		return s.trimRevoked(tx, n)
	})
}

// trimRevoked drops the revoked names that were created first: those whose time
// is over, and those beyond the limit. Each kind moves a mark of its own.
func (s *Store) trimRevoked(tx *bbolt.Tx, n int) error {
	now := time.Now()
	for n > 0 {
		key, _ := tx.Bucket(bucketOldest).Cursor().First()
		if key == nil {
			return nil
		}
		name := slices.Clone(key[8:])
		created := slices.Clone(key[:8])
		value := tx.Bucket(bucketRevoked).Get(name)
		alive := len(value) == 16 && parseTime(value[8:]).After(now)
		if alive && n <= s.max {
			return nil
		}
		mark, to := keyFloor, created
		if !alive && len(value) == 16 {
			mark, to = keyOver, slices.Clone(value[8:])
		}
		if err := raise(tx, mark, to); err != nil {
			return err
		}
		if err := tx.Bucket(bucketOldest).Delete(append(created, name...)); err != nil {
			return err
		}
		if err := tx.Bucket(bucketRevoked).Delete(name); err != nil {
			return err
		}
		var err error
		if n, err = count(tx, "revoked", -1); err != nil {
			return err
		}
	}
	return nil
}

// Revoked implements engine.SessionStore.
func (s *Store) Revoked(ctx context.Context, ref engine.SessionRef) (found bool, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) { found = revoked(tx, ref) })
	return found, err
}

func revoked(tx *bbolt.Tx, ref engine.SessionRef) bool {
	if tx.Bucket(bucketRevoked).Get([]byte(ref.Name)) != nil {
		return true
	}
	return reached(tx, keyFloor, ref.Created) || reached(tx, keyOver, ref.Expires)
}

// reached reports whether a mark is at a time or beyond it.
func reached(tx *bbolt.Tx, mark []byte, t time.Time) bool {
	at := tx.Bucket(bucketMeta).Get(mark)
	return at != nil && bytes.Compare(appendTime(nil, t), at) <= 0
}

// raise moves a mark to a time, but never back.
func raise(tx *bbolt.Tx, mark, to []byte) error {
	b := tx.Bucket(bucketMeta)
	if bytes.Compare(b.Get(mark), to) >= 0 {
		return nil
	}
	return b.Put(mark, to)
}

// Save implements engine.SessionStore.
func (s *Store) Save(ctx context.Context, ref engine.SessionRef, state []byte) error {
	value := append(appendTime(nil, ref.Expires), state...)
	return s.update(ctx, func(tx *bbolt.Tx) error {
		if err := dropState(tx, []byte(ref.Name)); err != nil {
			return err
		}
		if err := tx.Bucket(bucketState).Put([]byte(ref.Name), value); err != nil {
			return err
		}
		if err := tx.Bucket(bucketEnding).Put(ordered(ref.Expires, ref.Name), nil); err != nil {
			return err
		}
		n, err := count(tx, "state", 1)
		if err != nil {
			return err
		}
		return s.trimStates(tx, n)
	})
}

// trimStates drops the states that end first: those whose time is over, and
// those beyond the limit.
func (s *Store) trimStates(tx *bbolt.Tx, n int) error {
	now := time.Now()
	for ; n > 0; n-- {
		key, _ := tx.Bucket(bucketEnding).Cursor().First()
		if key == nil || n <= s.max && parseTime(key).After(now) {
			return nil
		}
		if err := dropState(tx, slices.Clone(key[8:])); err != nil {
			return err
		}
	}
	return nil
}

// dropState drops a state, if there is one.
func dropState(tx *bbolt.Tx, name []byte) error {
	value := tx.Bucket(bucketState).Get(name)
	if value == nil {
		return nil
	}
	order := append(slices.Clone(value[:8]), name...)
	if err := tx.Bucket(bucketEnding).Delete(order); err != nil {
		return err
	}
	if err := tx.Bucket(bucketState).Delete(name); err != nil {
		return err
	}
	_, err := count(tx, "state", -1)
	return err
}

// Load implements engine.SessionStore.
func (s *Store) Load(ctx context.Context, ref engine.SessionRef) (state []byte, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) {
		if value := tx.Bucket(bucketState).Get([]byte(ref.Name)); len(value) > 8 {
			state = slices.Clone(value[8:])
		}
	})
	return state, err
}

// update changes the file, together with others who wait.
func (s *Store) update(ctx context.Context, f func(tx *bbolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.db.Batch(f); err != nil {
		return fmt.Errorf("bolt: %w", err)
	}
	return nil
}

// view reads the file.
func (s *Store) view(ctx context.Context, f func(tx *bbolt.Tx)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.db.View(func(tx *bbolt.Tx) error { f(tx); return nil }); err != nil {
		return fmt.Errorf("bolt: %w", err)
	}
	return nil
}

// count adds to a number that is kept under a name, and gives it.
func count(tx *bbolt.Tx, what string, add int) (int, error) {
	key, b := []byte("count-"+what), tx.Bucket(bucketMeta)
	n := add
	if old := b.Get(key); len(old) == 8 {
		n += int(binary.BigEndian.Uint64(old))
	}
	n = max(n, 0)
	return n, b.Put(key, binary.BigEndian.AppendUint64(nil, uint64(n)))
}

// ordered makes a key that sorts by time.
func ordered(t time.Time, name string) []byte { return append(appendTime(nil, t), name...) }

// appendTime appends a time, in milliseconds since 1970, so that bytes sort as
// times do.
func appendTime(dst []byte, t time.Time) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(max(0, t.UnixMilli())))
}

func parseTime(b []byte) time.Time { return time.UnixMilli(int64(binary.BigEndian.Uint64(b))) }
