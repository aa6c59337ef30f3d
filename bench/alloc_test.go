package bench

import (
	"context"
	"testing"
	"time"
)

// instantSession answers at once, without allocating.
type instantSession struct{ virtualSession }

func (s *instantSession) request(c *caller, q *query, _ time.Time) error {
	c.build(q.method, q.params)
	now := time.Now()
	c.reply.Sent, c.reply.FirstByte, c.reply.Done = now, now, now
	return nil
}

// TestPlainCallsDoNotAllocate holds a plain run to its budget: what scenarios can do must not cost those who use none.
func TestPlainCallsDoNotAllocate(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	r := &run{cfg: Config{Timeout: time.Second, Sessions: 1, peer: &virtualPeer{}}}
	r.set, r.rec = newSessionSet(&r.cfg), newRecorder(1)
	r.stop, r.cancel = context.WithCancel(context.Background())
	defer r.cancel()
	var s session = &instantSession{}
	r.set.places[0].sess.Store(&s)
	for _, rows := range []int{1, 3} {
		one := &query{method: "tools/call", params: []byte(`{"name":"echo","arguments":{}}`)}
		r.tools = []tool{{name: "echo"}}
		for range rows {
			r.tools[0].queries = append(r.tools[0].queries, one)
		}
		w, now := r.newWorker(0), time.Now()
		if got := testing.AllocsPerRun(1000, func() { w.do(job{due: now, ready: now}) }); got != 0 {
			t.Errorf("a call with %d rows of arguments allocates %v times, want 0", rows, got)
		}
	}
}
