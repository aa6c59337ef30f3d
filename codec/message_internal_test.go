package codec

import (
	"strings"
	"testing"
)

// TestResetScratch makes sure that one frame full of escapes does not hold its
// memory for as long as the Message lives.
func TestResetScratch(t *testing.T) {
	var m Message
	for _, c := range []struct {
		name string
		kept bool
	}{
		{strings.Repeat(`\n`, 100), true}, {strings.Repeat(`\n`, 2*maxScratch), false},
	} {
		if err := Decode([]byte(`{"jsonrpc":"2.0","id":1,"method":"`+c.name+`"}`), &m); err != nil || len(m.Method) != len(c.name)/2 {
			t.Fatalf("Decode: got %d bytes of method, %v", len(m.Method), err)
		}
		m.Reset()
		if kept := cap(m.scratch) > 0; kept != c.kept || m.Method != nil {
			t.Errorf("Reset after %d bytes: scratch kept: %v, want %v", len(c.name)/2, kept, c.kept)
		}
	}
}
