package transport

import (
	"context"
	"strconv"
	"strings"
)

// EventStore keeps the events of resumable streams, so that a client whose
// connection broke gets with Last-Event-ID what it missed (Streamable HTTP,
// "Resumability and Redelivery"). NewMemoryEvents is the one in memory. All
// methods may be called at any time from any goroutine.
//
// Append and Drop are called under a lock that orders a stream's events and
// must not wait: a store on a disk or behind a network keeps the event in memory
// and writes behind.
type EventStore interface {
	// Append keeps an event of a session. Its frame is borrowed: the store
	// copies it. The events of one stream come in order, without gaps. What
	// does not fit is dropped, oldest first.
	Append(session string, e Event)
	// After gives the events of a stream of a session, in order, whose
	// sequence number is greater than seq and which are still there. The
	// frames are not changed afterwards.
	After(ctx context.Context, session string, stream, seq uint64) ([]Event, error)
	// Drop forgets a session: it has ended.
	Drop(session string)
}

// Event is one event of a resumable stream. Stream and Seq make the id that is
// on the wire, as "3-17".
type Event struct {
	Stream uint64 // unique over all sessions of a handler
	Seq    uint64 // 1 for the first event of the stream, and so on
	Frame  []byte // the message; nil where the stream ended without one
	Last   bool   // nothing follows on the stream
}

// appendEventID appends the id of an event. It is visible ASCII and names the
// stream, as the specification asks.
func appendEventID(dst []byte, stream, seq uint64) []byte {
	dst = strconv.AppendUint(dst, stream, 10)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, seq, 10)
}

// parseEventID takes an id apart. It accepts exactly what appendEventID makes.
func parseEventID(id string) (stream, seq uint64, ok bool) {
	first, second, found := strings.Cut(id, "-")
	if !found {
		return 0, 0, false
	}
	stream, ok = parseNumber(first)
	if !ok {
		return 0, 0, false
	}
	seq, ok = parseNumber(second)
	return stream, seq, ok
}

// parseNumber parses a decimal number in its one canonical spelling.
func parseNumber(s string) (uint64, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

// appendEventFields appends a frame as an event with an id.
func appendEventFields(dst []byte, stream, seq uint64, frame []byte) []byte {
	dst = append(dst, "id: "...)
	dst = appendEventID(dst, stream, seq)
	return appendEvent(append(dst, '\n'), frame)
}

// appendPriming appends an event without data: an id to resume from, and the
// time to wait before that in milliseconds (2025-11-25).
func appendPriming(dst []byte, stream, seq uint64, retryMS int64) []byte {
	dst = append(dst, "id: "...)
	dst = appendEventID(dst, stream, seq)
	dst = append(dst, "\nretry: "...)
	dst = strconv.AppendInt(dst, retryMS, 10)
	return append(dst, "\ndata:\n\n"...)
}

// appendRetry appends the time to wait before coming back, in milliseconds,
// without an event.
func appendRetry(dst []byte, retryMS int64) []byte {
	dst = append(dst, "retry: "...)
	dst = strconv.AppendInt(dst, retryMS, 10)
	return append(dst, '\n', '\n')
}
