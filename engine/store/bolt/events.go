package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/mcpengine/mcpengine/engine"
)

// Buckets of events. A session's events begin with its name, after which they
// stand in the order in which they came; so do all of them in the order bucket.
var (
	bucketEvents     = []byte("events")       // name, number to stream, seq, last, frame
	bucketEventOrder = []byte("events-order") // number to name
	bucketEventBytes = []byte("events-bytes") // name to the bytes that count for a session
	keyEventBytes    = []byte("event-bytes")  // in bucketMeta: of all sessions
)

// eventHead is how many bytes precede a frame.
const eventHead = 8 + 8 + 1

var _ engine.EventLog = (*Store)(nil)

// eventTx is a change to the events of the file.
type eventTx struct {
	tx                  *bbolt.Tx
	events, order, size *bbolt.Bucket
}

func eventsOf(tx *bbolt.Tx) *eventTx {
	return &eventTx{tx, tx.Bucket(bucketEvents), tx.Bucket(bucketEventOrder), tx.Bucket(bucketEventBytes)}
}

// prefixOf begins the keys of a session's events. Its length comes first, so
// that no name begins another.
func prefixOf(name string) []byte { return append([]byte{byte(len(name))}, name...) }

// AppendEvents implements engine.EventLog.
func (s *Store) AppendEvents(ctx context.Context, events []engine.LoggedEvent) error {
	return s.update(ctx, func(tx *bbolt.Tx) error {
		t := eventsOf(tx)
		for i := range events {
			if err := t.append(&events[i], s.sessionEvents, s.allEvents); err != nil {
				return err
			}
		}
		return nil
	})
}

// append makes room for an event, of its session and in all, and keeps it. One
// that is too large for that is not kept, nor is what came before it.
func (t *eventTx) append(e *engine.LoggedEvent, perSession, all int) error {
	prefix := prefixOf(e.Session)
	size := len(e.Frame) + engine.EventOverhead
	for number(t.size.Get(prefix))+size > perSession {
		key, _ := t.events.Cursor().Seek(prefix)
		if !bytes.HasPrefix(key, prefix) {
			break
		}
		if err := t.remove(slices.Clone(key)); err != nil {
			return err
		}
	}
	for number(t.tx.Bucket(bucketMeta).Get(keyEventBytes))+size > all {
		count, name := t.order.Cursor().First()
		if count == nil {
			break
		}
		if err := t.remove(slices.Concat(name, count)); err != nil {
			return err
		}
	}
	if size > min(perSession, all) {
		return nil
	}
	n, err := t.events.NextSequence()
	if err != nil {
		return err
	}
	count := binary.BigEndian.AppendUint64(nil, n)
	value := binary.BigEndian.AppendUint64(nil, e.Stream)
	value = append(binary.BigEndian.AppendUint64(value, e.Seq), 0)
	if e.Last {
		value[eventHead-1] = 1
	}
	if err := t.events.Put(slices.Concat(prefix, count), append(value, e.Frame...)); err != nil {
		return err
	}
	if err := t.order.Put(count, prefix); err != nil {
		return err
	}
	return t.add(prefix, size)
}

// remove drops the event of a key.
func (t *eventTx) remove(key []byte) error {
	size := len(t.events.Get(key)) - eventHead + engine.EventOverhead
	prefix, count := key[:len(key)-8], key[len(key)-8:]
	if err := t.events.Delete(key); err != nil {
		return err
	}
	if err := t.order.Delete(count); err != nil {
		return err
	}
	return t.add(prefix, -size)
}

// add changes what counts for a session, and for all.
func (t *eventTx) add(prefix []byte, size int) error {
	meta := t.tx.Bucket(bucketMeta)
	all := number(meta.Get(keyEventBytes)) + size
	if err := meta.Put(keyEventBytes, binary.BigEndian.AppendUint64(nil, uint64(max(0, all)))); err != nil {
		return err
	}
	if own := number(t.size.Get(prefix)) + size; own > 0 {
		return t.size.Put(prefix, binary.BigEndian.AppendUint64(nil, uint64(own)))
	}
	return t.size.Delete(prefix)
}

// number reads a number that was kept; none is 0.
func number(b []byte) int {
	if len(b) != 8 {
		return 0
	}
	return int(binary.BigEndian.Uint64(b))
}

// EventsAfter implements engine.EventLog.
func (s *Store) EventsAfter(ctx context.Context, session string, stream, seq uint64) (found []engine.LoggedEvent, err error) {
	prefix := prefixOf(session)
	err = s.view(ctx, func(tx *bbolt.Tx) {
		cursor := tx.Bucket(bucketEvents).Cursor()
		for key, value := cursor.Seek(prefix); bytes.HasPrefix(key, prefix); key, value = cursor.Next() {
			if len(value) < eventHead {
				continue
			}
			e := engine.LoggedEvent{
				Session: session, Stream: binary.BigEndian.Uint64(value), Seq: binary.BigEndian.Uint64(value[8:]),
				Last: value[eventHead-1] == 1,
			}
			if len(value) > eventHead {
				e.Frame = slices.Clone(value[eventHead:])
			}
			if e.Stream == stream && e.Seq > seq {
				found = append(found, e)
			}
		}
	})
	return found, err
}

// DropEvents implements engine.EventLog.
func (s *Store) DropEvents(ctx context.Context, session string) error {
	prefix := prefixOf(session)
	none := false
	if err := s.view(ctx, func(tx *bbolt.Tx) { none = tx.Bucket(bucketEventBytes).Get(prefix) == nil }); err != nil || none {
		return err // most sessions have none, and need no write
	}
	return s.update(ctx, func(tx *bbolt.Tx) error {
		t := eventsOf(tx)
		for {
			key, _ := t.events.Cursor().Seek(prefix)
			if !bytes.HasPrefix(key, prefix) {
				return nil
			}
			if err := t.remove(slices.Clone(key)); err != nil {
				return err
			}
		}
	})
}
