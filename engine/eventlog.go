package engine

import "context"

// EventLog is what a SessionStore may be besides: a place for the events of
// resumable streams, so that a client which comes back after a restart, or to
// another replica, gets what it missed. Package transport writes to it
// (transport.NewStoredEvents). The stores of engine/store/bolt and
// engine/store/redis have it. All methods may be called at any time from any
// goroutine, and may wait for a disk or a network up to the end of ctx.
//
// A log is bounded for each session and in all. What came first is dropped
// first, and a reader finds that out by the gap in the sequence numbers.
type EventLog interface {
	// AppendEvents keeps events in the order given. The frames are borrowed.
	// It returns when they will outlive the process.
	AppendEvents(ctx context.Context, events []LoggedEvent) error
	// EventsAfter gives the events of a stream, in order, whose sequence number
	// is greater than seq and which are still there.
	EventsAfter(ctx context.Context, session string, stream, seq uint64) ([]LoggedEvent, error)
	// DropEvents forgets a session.
	DropEvents(ctx context.Context, session string) error
}

// LoggedEvent is one event of a resumable stream.
type LoggedEvent struct {
	Session string // a name of up to 64 bytes, from which the session's id cannot be made
	Stream  uint64 // unique over all sessions
	Seq     uint64 // 1 for the first event of the stream, and so on
	Last    bool   // nothing follows on the stream
	Frame   []byte // the message; nil where the stream ended without one
}

// Bounds of an EventLog of this module unless it is told otherwise, in bytes. An
// event counts its frame and EventOverhead.
const (
	DefaultSessionEventBytes = 1 << 20
	DefaultEventBytes        = 256 << 20
	EventOverhead            = 128
)
