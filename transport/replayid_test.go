package transport

import (
	"math"
	"testing"
)

func TestParseEventID(t *testing.T) {
	for _, c := range []struct {
		id          string
		stream, seq uint64
		ok          bool
	}{
		{"3-17", 3, 17, true},
		{"1-0", 1, 0, true},
		{"18446744073709551615-18446744073709551615", math.MaxUint64, math.MaxUint64, true},
		{"18446744073709551616-1", 0, 0, false},
		{"", 0, 0, false},
		{"-", 0, 0, false},
		{"3", 0, 0, false},
		{"3-", 0, 0, false},
		{"-3", 0, 0, false},
		{"3-1-7", 0, 0, false},
		{"03-1", 0, 0, false},
		{"3-01", 0, 0, false},
		{"+3-1", 0, 0, false},
		{"3--1", 0, 0, false},
		{"3-1 ", 0, 0, false},
		{"0x3-1", 0, 0, false},
		{"3_0-1", 0, 0, false},
	} {
		stream, seq, ok := parseEventID(c.id)
		if ok != c.ok || ok && (stream != c.stream || seq != c.seq) {
			t.Errorf("parseEventID(%q): got %d, %d, %v, want %d, %d, %v", c.id, stream, seq, ok, c.stream, c.seq, c.ok)
		}
	}
}

// FuzzParseEventID holds the parser to what appendEventID makes: an id that is
// accepted is spelled in the one way, and is visible ASCII.
func FuzzParseEventID(f *testing.F) {
	for _, id := range []string{"3-17", "1-0", "0-0", "", "-", "03-1", "3-1-7", "18446744073709551615-1", "３-1", "3-1\n"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		stream, seq, ok := parseEventID(id)
		if !ok {
			return
		}
		if made := string(appendEventID(nil, stream, seq)); made != id {
			t.Errorf("parseEventID(%q): got %d, %d, whose id is %q", id, stream, seq, made)
		}
		for i := range len(id) {
			if id[i] < 0x21 || id[i] > 0x7e {
				t.Errorf("parseEventID(%q): accepted a byte %#x", id, id[i])
			}
		}
	})
}
