package report

import (
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/bench"
)

// TestSections: what sessions and overhead have found is on the page, hostile names are not markup, and the empty tables
// of a run are not there.
func TestSections(t *testing.T) {
	share, p99 := 0.5, int64(2500)
	sessions := &bench.SessionCapacity{
		BytesPerSession: 1 << 20, BytesPerSessionCI95: &[2]float64{1 << 19, 1 << 21}, BaseBytes: 3 << 20, MemoryOf: hostile,
		Points:      []bench.MemoryPoint{{Sessions: 0, Bytes: 3 << 20}, {Sessions: 500, Bytes: 503 << 20}},
		MaxSessions: 500, Confirmed: true, Tried: 500, Answer: hostile,
		Idle:     &bench.IdleExpiry{Found: true, ExpiryS: 20, AliveS: 19.8, DeadS: 20.2},
		Released: &bench.Released{Deleted: 250, DeletedShare: &share, Abandoned: 250},
		Storm:    &bench.ReconnectStorm{Clients: 246, Waves: 2, AllBackS: 0.9, NeverBack: 3, During: bench.SteadyCalls{Calls: 170, P99US: &p99}},
	}
	h := bench.NewHistogram()
	overhead := &bench.Overhead{
		Answer: "The gateway adds 5 ms", Pairs: 100,
		Phases: []bench.OverheadPhase{{Phase: "service", Direct: h.Dist(), Via: h.Dist(),
			Median: bench.Difference{US: -12, CI95: &[2]float64{-54, 26}}, Mean: bench.Difference{US: 300}}},
		Histogram:     []bench.DifferenceBar{{FromUS: -20, ToUS: 0, Count: 60}, {FromUS: 0, ToUS: 20, Count: 40}},
		Amplification: &bench.Amplification{Sessions: 10, Calls: 100, PerCall: bench.Upstream{Call: 3, Sessions: 1}},
		Replicas:      &bench.ReplicaObservation{Replicas: 3, Loss: 0.667, LossRandom: 0.6667, Lost: 667, Survived: &share, AtRisk: 50},
	}
	for _, c := range []struct {
		name string
		r    *bench.Result
		want []string
	}{
		{"sessions", &bench.Result{SessionCapacity: sessions}, []string{
			"Memory over open sessions", "1 MiB", "95 %: 512 KiB to 2 MiB", "exactly one more fitted", "known after 19.8 s, gone after 20.2 s",
			"50 %", "2.5 ms", "246 clients at once"}},
		{"overhead", &bench.Result{Overhead: overhead}, []string{
			"Differences of the service time", "−12 µs (95 %: −54 µs to 26 µs)", "300 µs (too few pairs for an interval)", "3×", "66.7 %", "50 % of 50"}},
		{"nothing found", &bench.Result{SessionCapacity: &bench.SessionCapacity{}, Overhead: &bench.Overhead{}}, []string{"no session was refused"}},
	} {
		page := draw(t, c.r)
		for _, want := range c.want {
			if !strings.Contains(page, want) {
				t.Errorf("%s: the page lacks %q", c.name, want)
			}
		}
		if strings.Contains(page, "<script>alert") || strings.Contains(page, "Calls by outcome") {
			t.Errorf("%s: the page holds hostile markup, or the tables of a run", c.name)
		}
	}
}
