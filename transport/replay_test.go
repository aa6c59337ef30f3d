package transport_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpengine/mcpengine/transport"
)

// kept gives what a store has of a stream after a number, as "SEQ:FRAME".
func kept(t *testing.T, m *transport.MemoryEvents, session string, stream, seq uint64) (list []string) {
	t.Helper()
	events, err := m.After(t.Context(), session, stream, seq)
	if err != nil {
		t.Fatalf("After(%q, %d, %d): got %v, want nil", session, stream, seq, err)
	}
	for _, e := range events {
		if e.Stream != stream {
			t.Errorf("After(%q, %d, %d): got an event of stream %d", session, stream, seq, e.Stream)
		}
		list = append(list, fmt.Sprintf("%d:%s", e.Seq, e.Frame))
	}
	return list
}

func TestMemoryEventsKeepsStreamsApart(t *testing.T) {
	m := transport.NewMemoryEvents(0, 0)
	frame := []byte("a1")
	m.Append("A", transport.Event{Stream: 1, Seq: 1, Frame: frame})
	copy(frame, "zz") // it was borrowed
	m.Append("A", transport.Event{Stream: 2, Seq: 1, Frame: []byte("b1")})
	m.Append("A", transport.Event{Stream: 1, Seq: 2, Frame: []byte("a2"), Last: true})
	m.Append("B", transport.Event{Stream: 3, Seq: 1, Frame: []byte("c1")})
	for _, c := range []struct {
		session     string
		stream, seq uint64
		want        []string
	}{
		{"A", 1, 0, []string{"1:a1", "2:a2"}},
		{"A", 1, 1, []string{"2:a2"}},
		{"A", 1, 2, nil},
		{"A", 2, 0, []string{"1:b1"}},
		{"A", 3, 0, nil},
		{"B", 3, 0, []string{"1:c1"}},
		{"B", 1, 0, nil},
		{"C", 1, 0, nil},
	} {
		if got := kept(t, m, c.session, c.stream, c.seq); !slices.Equal(got, c.want) {
			t.Errorf("After(%q, %d, %d): got %v, want %v", c.session, c.stream, c.seq, got, c.want)
		}
	}
	m.Drop("A")
	if got := kept(t, m, "A", 1, 0); got != nil {
		t.Errorf("After a dropped session: got %v, want nothing", got)
	}
	if got := kept(t, m, "B", 3, 0); len(got) != 1 {
		t.Errorf("After of the other session: got %v, want one event", got)
	}
}

// sizedEvent is an event of the model below.
type sizedEvent struct {
	session string
	transport.Event
}

// modelOf drops from a list what does not fit, oldest first.
func modelOf(events []sizedEvent, perSession, total int) (keep []sizedEvent) {
	bytesOf := map[string]int{}
	all := 0
	full := map[string]bool{}
	for _, e := range slices.Backward(events) {
		size := len(e.Frame) + 128
		if full[""] || full[e.session] {
			continue
		}
		if bytesOf[e.session]+size > perSession {
			full[e.session] = true
			continue
		}
		if all+size > total {
			full[""] = true
			continue
		}
		bytesOf[e.session] += size
		all += size
		keep = append(keep, e)
	}
	slices.Reverse(keep)
	return keep
}

// TestMemoryEventsBounds compares the store with the model after each step.
func TestMemoryEventsBounds(t *testing.T) {
	const perSession, total = 2000, 5000
	m := transport.NewMemoryEvents(perSession, total)
	random := rand.New(rand.NewPCG(1, 2))
	var events []sizedEvent
	seqs := map[string]uint64{}
	for step := range 2000 {
		session := string(rune('A' + random.IntN(4)))
		if random.IntN(100) == 0 {
			m.Drop(session)
			events = slices.DeleteFunc(events, func(e sizedEvent) bool { return e.session == session })
		}
		stream := uint64(1 + random.IntN(2))
		key := fmt.Sprint(session, stream)
		seqs[key]++
		e := transport.Event{Stream: stream, Seq: seqs[key], Frame: bytes.Repeat([]byte{'x'}, random.IntN(400))}
		m.Append(session, e)
		events = modelOf(append(events, sizedEvent{session, e}), perSession, total)
		largest := 0
		for _, session := range []string{"A", "B", "C", "D"} {
			sum := 0
			for stream := range uint64(3) {
				var want []string
				for _, e := range events {
					if e.session == session && e.Stream == stream {
						want = append(want, fmt.Sprintf("%d:%s", e.Seq, e.Frame))
						sum += len(e.Frame) + 128
					}
				}
				if got := kept(t, m, session, stream, 0); !slices.Equal(got, want) {
					t.Fatalf("step %d, After(%q, %d, 0): got %d events, want %d", step, session, stream, len(got), len(want))
				}
			}
			largest = max(largest, sum)
		}
		if got := m.LargestSession(); got != largest {
			t.Fatalf("step %d, LargestSession: got %d, want %d", step, got, largest)
		}
	}
}

// TestMemoryEventsTooLarge has an event that finds no room even alone.
func TestMemoryEventsTooLarge(t *testing.T) {
	m := transport.NewMemoryEvents(1000, 0)
	m.Append("A", transport.Event{Stream: 1, Seq: 1, Frame: []byte("small")})
	m.Append("A", transport.Event{Stream: 1, Seq: 2, Frame: []byte(strings.Repeat("x", 2000))})
	if got := kept(t, m, "A", 1, 0); got != nil {
		t.Errorf("After: got %d events, want none", len(got))
	}
	if got := m.LargestSession(); got != 0 {
		t.Errorf("LargestSession: got %d, want 0", got)
	}
	m.Append("A", transport.Event{Stream: 1, Seq: 3, Frame: []byte("next")})
	if got, want := kept(t, m, "A", 1, 0), []string{"3:next"}; !slices.Equal(got, want) {
		t.Errorf("After: got %v, want %v", got, want)
	}
}

// TestMemoryEventsConcurrent is for the race detector.
func TestMemoryEventsConcurrent(t *testing.T) {
	m := transport.NewMemoryEvents(4000, 8000)
	var running sync.WaitGroup
	for g := range 8 {
		running.Go(func() {
			session := string(rune('A' + g%4))
			for i := range 500 {
				m.Append(session, transport.Event{Stream: uint64(g), Seq: uint64(i + 1), Frame: []byte("frame")})
				if i%50 == 0 {
					_, _ = m.After(t.Context(), session, uint64(g), 0)
					_ = m.LargestSession()
				}
				if i%200 == 0 {
					m.Drop(session)
				}
			}
		})
	}
	running.Wait()
	if got := m.LargestSession(); got > 4000 {
		t.Errorf("LargestSession: got %d, want at most 4000", got)
	}
	for _, session := range []string{"A", "B", "C", "D"} {
		m.Drop(session)
	}
	if got := m.LargestSession(); got != 0 {
		t.Errorf("LargestSession after Drop: got %d, want 0", got)
	}
}
