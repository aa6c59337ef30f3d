package transport

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/engine"
)

// StoredEventsOptions configures NewStoredEvents. Nil is fine.
type StoredEventsOptions struct {
	// MaxWaiting is how many bytes of events may wait to be written. What comes
	// beyond is not kept: the client that resumes there is told so. Default
	// 64 MiB.
	MaxWaiting int
	// WriteTimeout is how long one write to the log may take. Default 5 s.
	WriteTimeout time.Duration
	// Logger receives what goes wrong. Default: slog.Default().
	Logger *slog.Logger
}

// StoredEvents is an EventStore that writes behind to an engine.EventLog, so
// that streams can be resumed after a restart, or at another replica. What was
// sent in the last moments before a process is killed may be missing in the log;
// a gap is never bridged. Flush writes what waits.
type StoredEvents struct {
	log     engine.EventLog
	options StoredEventsOptions

	mu      sync.Mutex // guards what follows; never held while writing
	waiting []storedChange
	bytes   int           // of what waits
	queued  uint64        // changes that were ever queued
	written uint64        // of these, changes that were tried
	moved   chan struct{} // closed when written has changed
	writing bool          // a goroutine writes
	lost    int64
}

var _ EventStore = (*StoredEvents)(nil)

// storedChange is an event to append or, where drop is set, a session to forget.
type storedChange struct {
	engine.LoggedEvent
	drop bool
}

// NewStoredEvents makes an EventStore of a log.
func NewStoredEvents(log engine.EventLog, o *StoredEventsOptions) *StoredEvents {
	var c StoredEventsOptions
	if o != nil {
		c = *o
	}
	if c.MaxWaiting <= 0 {
		c.MaxWaiting = 64 << 20
	}
	if c.WriteTimeout <= 0 {
		c.WriteTimeout = 5 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return &StoredEvents{log: log, options: c, moved: make(chan struct{})}
}

// logName is what a log knows a session by: whoever reads the log learns no id.
func logName(session string) string {
	sum := sha256.Sum256([]byte(session))
	return hex.EncodeToString(sum[:16])
}

// Append implements EventStore.
func (s *StoredEvents) Append(session string, e Event) {
	s.queue(storedChange{LoggedEvent: engine.LoggedEvent{
		Session: logName(session), Stream: e.Stream, Seq: e.Seq, Last: e.Last, Frame: slices.Clone(e.Frame),
	}})
}

// Drop implements EventStore.
func (s *StoredEvents) Drop(session string) {
	s.queue(storedChange{LoggedEvent: engine.LoggedEvent{Session: logName(session)}, drop: true})
}

// queue queues a change and sees to it that somebody writes. Sessions to forget
// may take as much room again as events.
func (s *StoredEvents) queue(c storedChange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size, most := len(c.Frame)+eventOverhead, s.options.MaxWaiting
	if c.drop {
		most *= 2
	}
	if s.bytes+size > most {
		s.lost++
		return
	}
	s.waiting = append(s.waiting, c)
	s.bytes += size
	s.queued++
	if !s.writing {
		s.writing = true
		go s.write()
	}
}

// write writes what waits until nothing does.
func (s *StoredEvents) write() {
	for {
		s.mu.Lock()
		batch := s.waiting
		if len(batch) == 0 {
			s.writing = false
			s.mu.Unlock()
			return
		}
		s.waiting, s.bytes = nil, 0
		s.mu.Unlock()
		lost := s.apply(batch)
		s.mu.Lock()
		s.lost += int64(lost)
		s.written += uint64(len(batch))
		close(s.moved)
		s.moved = make(chan struct{})
		s.mu.Unlock()
	}
}

// apply makes changes to the log, those that follow each other and are of a kind
// together, and gives how many failed.
func (s *StoredEvents) apply(batch []storedChange) (lost int) {
	for len(batch) > 0 {
		n := 1
		ctx, cancel := context.WithTimeout(context.Background(), s.options.WriteTimeout)
		var err error
		if batch[0].drop {
			err = s.log.DropEvents(ctx, batch[0].Session)
		} else {
			for n < len(batch) && !batch[n].drop {
				n++
			}
			events := make([]engine.LoggedEvent, n)
			for i := range events {
				events[i] = batch[i].LoggedEvent
			}
			err = s.log.AppendEvents(ctx, events)
		}
		cancel()
		if err != nil {
			lost += n
			s.options.Logger.Error("writing the events of streams failed", "changes", n, "error", err)
		}
		batch = batch[n:]
	}
	return lost
}

// Flush waits until all is written, or has failed, that was queued before. The
// error is that of ctx.
func (s *StoredEvents) Flush(ctx context.Context) error {
	s.mu.Lock()
	target := s.queued
	for s.written < target {
		moved := s.moved
		s.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
		s.mu.Lock()
	}
	s.mu.Unlock()
	return nil
}

// Lost gives how many events, and how many sessions to forget, did not reach the
// log since the store was made: there was no room, or the log failed.
func (s *StoredEvents) Lost() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// After implements EventStore. It reads from the log what has been written, and
// waits for what has not.
func (s *StoredEvents) After(ctx context.Context, session string, stream, seq uint64) ([]Event, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.WriteTimeout)
	defer cancel()
	if err := s.Flush(ctx); err != nil {
		return nil, errors.Join(errors.New("transport: the log of events does not keep up"), err)
	}
	logged, err := s.log.EventsAfter(ctx, logName(session), stream, seq)
	if err != nil {
		return nil, err
	}
	events := make([]Event, len(logged))
	for i, e := range logged {
		events[i] = Event{Stream: e.Stream, Seq: e.Seq, Last: e.Last, Frame: e.Frame}
	}
	return events, nil
}
