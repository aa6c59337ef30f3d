package storetest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mcpengine/mcpengine/engine"
)

// Bounds of the logs that RunEvents is given: ten of its events of one session,
// and forty in all.
const (
	SessionEventBytes = 10 * eventBytes
	EventBytes        = 40 * eventBytes
)

// eventBytes is what an event of the tests counts.
const eventBytes = 100 + engine.EventOverhead

// RunEvents tests logs of events. open makes an empty one with the bounds above.
// reopen, which may be nil, gives one that sees what the last one was given.
func RunEvents(t *testing.T, open, reopen func(t *testing.T) engine.EventLog) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, log engine.EventLog)
	}{
		{"order", testEventOrder},
		{"drop", testEventDrop},
		{"bound of a session", testSessionBound},
		{"bound in all", testEventBound},
		{"together", testEventsTogether},
		{"ended context", testEventContext},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
	if reopen != nil {
		t.Run("reopen", func(t *testing.T) {
			log := open(t)
			logEvents(t, log, "a", 1, 1, 2)
			last := engine.LoggedEvent{Session: "a", Stream: 1, Seq: 3, Last: true}
			must(t, log.AppendEvents(t.Context(), []engine.LoggedEvent{last}))
			again := reopen(t)
			checkEvents(t, again, "a", 1, 1, "2 3.")
			logEvents(t, again, "a", 2, 1, 1)
			checkEvents(t, again, "a", 2, 0, "1")
		})
	}
}

// eventFrame is a frame of 100 bytes that no other event has.
func eventFrame(session string, stream, seq uint64) []byte {
	return fmt.Appendf(nil, "%-100s", fmt.Sprintf("%s\x00%d\n%d", session, stream, seq))
}

// logEvents appends the events from one number to another.
func logEvents(t *testing.T, log engine.EventLog, session string, stream, from, to uint64) {
	t.Helper()
	var events []engine.LoggedEvent
	for seq := from; seq <= to; seq++ {
		events = append(events, engine.LoggedEvent{
			Session: session, Stream: stream, Seq: seq, Frame: eventFrame(session, stream, seq),
		})
	}
	must(t, log.AppendEvents(t.Context(), events))
	for i := range events {
		copy(events[i].Frame, "XXXXXX") // which was borrowed
	}
}

// checkEvents compares the numbers of events, a full stop after the last of its
// stream, and their frames.
func checkEvents(t *testing.T, log engine.EventLog, session string, stream, seq uint64, want string) {
	t.Helper()
	events, err := log.EventsAfter(t.Context(), session, stream, seq)
	if err != nil {
		t.Errorf("EventsAfter(%s, %d, %d): %v", session, stream, seq, err)
	}
	var got []string
	for _, e := range events {
		text := fmt.Sprint(e.Seq)
		frame := eventFrame(session, stream, e.Seq)
		if e.Last {
			text, frame = text+".", nil
		}
		got = append(got, text)
		if e.Session != session || e.Stream != stream || !bytes.Equal(e.Frame, frame) || (e.Frame == nil) != (frame == nil) {
			t.Errorf("EventsAfter(%s, %d, %d): got %+v, want its own frame %q", session, stream, seq, e, frame)
		}
	}
	if got := strings.Join(got, " "); got != want {
		t.Errorf("EventsAfter(%s, %d, %d): got %q, want %q", session, stream, seq, got, want)
	}
}

func testEventOrder(t *testing.T, log engine.EventLog) {
	checkEvents(t, log, "a", 1, 0, "")
	logEvents(t, log, "a", 1, 1, 2)
	logEvents(t, log, "a", 7, 1, 1)
	logEvents(t, log, "a", 1, 3, 3)
	logEvents(t, log, "ab", 1, 1, 1)
	must(t, log.AppendEvents(t.Context(), []engine.LoggedEvent{{Session: "a", Stream: 1, Seq: 4, Last: true}}))
	checkEvents(t, log, "a", 1, 0, "1 2 3 4.")
	checkEvents(t, log, "a", 1, 2, "3 4.")
	checkEvents(t, log, "a", 1, 4, "")
	checkEvents(t, log, "a", 7, 0, "1")
	checkEvents(t, log, "ab", 1, 0, "1")
	checkEvents(t, log, "b", 1, 0, "")
	must(t, log.AppendEvents(t.Context(), nil))
}

func testEventDrop(t *testing.T, log engine.EventLog) {
	must(t, log.DropEvents(t.Context(), "nobody"))
	logEvents(t, log, "a", 1, 1, 3)
	logEvents(t, log, "ab", 1, 1, 3)
	must(t, log.DropEvents(t.Context(), "a"))
	checkEvents(t, log, "a", 1, 0, "")
	checkEvents(t, log, "ab", 1, 0, "1 2 3")
	logEvents(t, log, "a", 2, 1, 10) // all of its room is free again
	checkEvents(t, log, "a", 2, 0, "1 2 3 4 5 6 7 8 9 10")
}

// testSessionBound appends more of one session than there is room for: the first
// ones go, and nobody else's.
func testSessionBound(t *testing.T, log engine.EventLog) {
	logEvents(t, log, "b", 1, 1, 2)
	logEvents(t, log, "a", 1, 1, 8)
	logEvents(t, log, "a", 1, 9, 13)
	checkEvents(t, log, "a", 1, 0, "4 5 6 7 8 9 10 11 12 13")
	checkEvents(t, log, "b", 1, 0, "1 2")
	large := engine.LoggedEvent{Session: "a", Stream: 1, Seq: 14, Frame: make([]byte, SessionEventBytes)}
	must(t, log.AppendEvents(t.Context(), []engine.LoggedEvent{large}))
	logEvents(t, log, "a", 1, 15, 15)
	checkEvents(t, log, "a", 1, 0, "15")
}

// testEventBound appends more in all than there is room for: what came last is
// there, and there is no more than the bound.
func testEventBound(t *testing.T, log engine.EventLog) {
	const sessions = 8
	for i := range uint64(sessions) {
		logEvents(t, log, fmt.Sprint("s", i), i, 1, 10)
	}
	kept := 0
	for i := range uint64(sessions) {
		events, err := log.EventsAfter(t.Context(), fmt.Sprint("s", i), i, 0)
		must(t, err)
		kept += len(events)
	}
	if kept*eventBytes > EventBytes || kept < 30 {
		t.Errorf("events kept: got %d, want between 30 and %d", kept, EventBytes/eventBytes)
	}
	checkEvents(t, log, fmt.Sprint("s", sessions-1), sessions-1, 0, "1 2 3 4 5 6 7 8 9 10")
	checkEvents(t, log, "s0", 0, 0, "")
	for i := range uint64(sessions) {
		must(t, log.DropEvents(t.Context(), fmt.Sprint("s", i)))
	}
	logEvents(t, log, "a", 1, 1, 10) // and nothing of them counts any more
	logEvents(t, log, "b", 2, 1, 10)
	logEvents(t, log, "c", 3, 1, 10)
	logEvents(t, log, "d", 4, 1, 10)
	checkEvents(t, log, "a", 1, 0, "1 2 3 4 5 6 7 8 9 10")
}

// testEventsTogether appends and drops from many goroutines.
func testEventsTogether(t *testing.T, log engine.EventLog) {
	var workers sync.WaitGroup
	for i := range 3 {
		workers.Go(func() {
			session := fmt.Sprint("s", i)
			for seq := range uint64(5) {
				e := engine.LoggedEvent{Session: session, Stream: 1, Seq: seq + 1, Frame: eventFrame(session, 1, seq+1)}
				if err := log.AppendEvents(t.Context(), []engine.LoggedEvent{e}); err != nil {
					t.Error(err)
				}
				if err := log.DropEvents(t.Context(), "other"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	for i := range 3 {
		checkEvents(t, log, fmt.Sprint("s", i), 1, 0, "1 2 3 4 5")
	}
}

func testEventContext(t *testing.T, log engine.EventLog) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := log.AppendEvents(ctx, []engine.LoggedEvent{{Session: "a", Stream: 1, Seq: 1}}); err == nil {
		t.Error("AppendEvents with a context that has ended: got no error")
	}
	if _, err := log.EventsAfter(ctx, "a", 1, 0); err == nil {
		t.Error("EventsAfter with a context that has ended: got no error")
	}
	checkEvents(t, log, "a", 1, 0, "")
}
