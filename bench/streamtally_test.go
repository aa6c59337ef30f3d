package bench

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// numbered is a message of a stream with the number n.
func numbered(t *testing.T, n int) *codec.Message {
	t.Helper()
	var m codec.Message
	frame := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"seq":%d}}}`, n)
	if err := codec.Decode([]byte(frame), &m); err != nil {
		t.Fatal(err)
	}
	return &m
}

// TestSequences holds what is counted as lost and duplicated against sequences whose faults are known.
func TestSequences(t *testing.T) {
	for _, tt := range []struct {
		name             string
		numbers          []int
		lost, duplicated int64
	}{
		{"complete", []int{1, 2, 3, 4}, 0, 0},
		{"from nought", []int{0, 1, 2}, 0, 0},
		{"one dropped", []int{1, 2, 3, 4, 5, 6, 8, 9}, 1, 0},
		{"the first dropped", []int{2, 3}, 1, 0},
		{"three dropped", []int{1, 5, 6}, 3, 0},
		{"one twice", []int{1, 2, 2, 3}, 0, 1},
		{"one three times", []int{1, 2, 3, 1, 1}, 0, 2},
		{"late", []int{1, 3, 2, 4}, 0, 0},
		{"late and again", []int{1, 3, 2, 2}, 0, 1},
		{"begun for somebody else", []int{5000, 5001, 5003}, 1, 0},
		{"more missing than are kept", []int{1, 10_002, 2}, 9_999, 0},
	} {
		tally := newStreamTally()
		stream := track{tally: tally}
		for _, n := range tt.numbers {
			stream.note(nil, numbered(t, n), time.Now())
		}
		got := tally.result()
		if got.Events != int64(len(tt.numbers)) || got.Lost != tt.lost || got.Duplicated != tt.duplicated {
			t.Errorf("%s: got %d events, %d lost, %d duplicated; want %d, %d, %d",
				tt.name, got.Events, got.Lost, got.Duplicated, len(tt.numbers), tt.lost, tt.duplicated)
		}
	}
}

// TestEventsWithoutNumbers counts events of a server that knows nothing of sequences.
func TestEventsWithoutNumbers(t *testing.T) {
	tally := newStreamTally()
	stream := track{tally: tally}
	var m codec.Message
	if err := codec.Decode([]byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"text"}}`), &m); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a-1", "a-9", "", "", "a-1"} {
		stream.note([]byte(id), &m, time.Now())
	}
	stream.note(nil, nil, time.Now()) // no message at all
	for n := range 2 * idsKept {
		stream.note(fmt.Append(nil, n), &m, time.Now())
	}
	if got := tally.result(); got.Events != 6+2*idsKept || got.Lost != 0 || got.Duplicated != 1 {
		t.Errorf("got %d events, %d lost, %d duplicated; want %d, 0, 1", got.Events, got.Lost, got.Duplicated, 6+2*idsKept)
	}
}

// TestGapsAndSpread measures, in virtual time, what lies between the events of one stream and between the subscribers of
// one change.
func TestGapsAndSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally := newStreamTally()
		streams := make([]track, 10)
		for i := range streams {
			streams[i].tally = tally
		}
		for change := range 3 {
			var m codec.Message
			frame := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:y","_meta":{"change":%d}}}`, 40+change)
			if err := codec.Decode([]byte(frame), &m); err != nil {
				t.Fatal(err)
			}
			for i := range streams {
				if i > 0 {
					time.Sleep(2 * time.Millisecond)
				}
				streams[i].note(nil, &m, time.Now())
			}
			time.Sleep(80 * time.Millisecond)
		}
		got := tally.result()
		if got.Changes != 3 || got.Lost != 0 || got.Spread.Count != 3 || got.Spread.P50US/100 != 180 || got.Spread.MaxUS/100 != 180 {
			t.Errorf("got %d changes, %d lost, spread %+v; want 3 changes, 0 lost, each within 18 ms", got.Changes, got.Lost, got.Spread)
		}
		if got.Gap.Count != 20 || got.Gap.P50US/100 != 980 {
			t.Errorf("gap: got %+v, want 20 of 98 ms", got.Gap)
		}
	})
}

// TestStreamsRecovered finds exactly what a server has left out and repeated on its GET streams, and streams that it ended.
func TestStreamsRecovered(t *testing.T) {
	for _, hangUp := range []bool{false, true} {
		f := &fakeServer{numbers: []int{1, 2, 3, 4, 5, 6, 8, 9, 9}, endStream: hangUp}
		res, err := Run(t.Context(), Config{URL: f.start(t), Rate: 50, Sessions: 10, Duration: 300 * time.Millisecond, Streams: true})
		if err != nil {
			t.Fatal(err)
		}
		broken := int64(0)
		if hangUp {
			broken = 10
		}
		s := res.Streams
		if s.Events != 90 || s.Lost != 10 || s.Duplicated != 10 || s.Broken != broken || s.Failed != 0 {
			t.Errorf("streams = %+v, want 90 events, 10 lost, 10 duplicated, %d broken", s, broken)
		}
		if s.Gap == nil || s.Gap.Count != 80 || s.Gap.P50US < 1900 {
			t.Errorf("gap = %+v, want 80 of at least 2 ms", s.Gap)
		}
	}
}
