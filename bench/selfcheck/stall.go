package selfcheck

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/bench"
)

const (
	stallRate    = 200
	stallService = time.Millisecond
	stallCap     = 10
	stallShare   = 0.05
)

// stall is oracle 1: against a peer that stalls once, an open loop of constant rate must find the tail
// P(T > x) = (stall - x) / window. A cap on the calls in flight adds only the time in which the backlog drains, because
// what waits is counted from its intended start; its service times hide the stall, as those of a closed loop do.
func (s *session) stall(ctx context.Context) error {
	s.OnStep(fmt.Sprintf("oracle 1: a stall of %s in %s", s.form.stallFor, s.form.stallWindow))
	open := bench.Config{Rate: stallRate, Duration: s.form.stallWindow}
	capped := open
	capped.MaxInFlight = stallCap
	var results [3]*bench.Result
	var errs [3]error
	machine := startProbe()
	var runs sync.WaitGroup
	for i, c := range []bench.Config{open, capped, {Concurrency: 1, Duration: s.form.stallWindow}} {
		runs.Go(func() {
			results[i], errs[i] = s.against(ctx, c, "--service", stallService.String(),
				"--stall-at", s.form.stallAt.String(), "--stall-for", s.form.stallFor.String())
		})
	}
	runs.Wait()
	longest := machine.end().At(100)
	noise := delay{longest, 1} // the whole tail hangs on the one moment in which the stall ends
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	s.stallTail("open loop", results[0], 0, noise)
	s.stallTail("10 in flight", results[1], stallCap, noise)
	return s.stallHidden(results[1], results[2], held(delay{longest, waits}, s.form.stallFor/4))
}

// stallTail holds the percentiles to the formula; most is the cap on calls in flight, or 0.
func (s *session) stallTail(name string, res *bench.Result, most float64, noise delay) {
	d := all(res).Response
	for _, p := range []struct {
		name string
		q    float64
		got  *int64
	}{{"p95", 0.95, &d.P95US}, {"p99", 0.99, &d.P99US}, {"p99.9", 0.999, d.P999US}} {
		due := time.Duration((1 - p.q) * float64(s.form.stallWindow)) // into the stall, of the call with this response time
		if due >= s.form.stallFor || p.got == nil {
			continue
		}
		want := s.form.stallFor - due
		if most > 0 {
			before := stallRate * due.Seconds() / most // rounds of the backlog that are served earlier
			want += time.Duration(max(before-1, 0)*float64(stallService)) + stallService
		}
		s.duration(1, name+": "+p.name, ofMicros(float64(*p.got)), want, stallShare, noise, invalid(res))
	}
}

// stallHidden counts the times that show the stall to who does not count from the intended start.
func (s *session) stallHidden(capped, closed *bench.Result, busy excuse) error {
	service, err := longer(all(capped).Service, s.form.stallFor/4)
	if err != nil {
		return err
	}
	s.count(1, "10 in flight: long service times", service, stallCap-1, stallCap, stallCap+1, cmp.Or(invalid(capped), busy))
	response, err := longer(all(closed).Response, s.form.stallFor/4)
	if err != nil {
		return err
	}
	s.count(1, "closed loop of one: long response times", response, 1, 1, 1, cmp.Or(invalid(closed), busy))
	return nil
}

// longer counts the samples above a limit.
func longer(d *bench.Dist, limit time.Duration) (int64, error) {
	h, err := d.Histogram()
	if err != nil {
		return 0, err
	}
	return h.Above(limit), nil
}
