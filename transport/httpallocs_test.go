//go:build !race

package transport_test

import "testing"

// TestQuickPostAllocations holds the path without a store to its budget. The
// race detector, which makes pools forget, would spoil the count.
func TestQuickPostAllocations(t *testing.T) {
	p := newQuickPoster(t, nil)
	const budget = 3 // two of them are the test's own: the body and its reader
	if got := testing.AllocsPerRun(200, func() { p.post(t) }); got > budget {
		t.Errorf("allocations of a call that is answered at once: got %v, want at most %d", got, budget)
	}
}
