//go:build !race

package transport_test

import "testing"

// TestPipeCallAllocations is the budget of a call from one end of the in-memory
// pipe to the other: the Call itself, which a handler may keep. The race
// detector, which makes pools forget, would spoil the count.
func TestPipeCallAllocations(t *testing.T) {
	p := newPipeCaller(t)
	for range 100 {
		p.call()
	}
	const budget = 2
	if got := testing.AllocsPerRun(1000, p.call); got > budget {
		t.Errorf("allocations of a call: got %v, want at most %d", got, budget)
	}
}
