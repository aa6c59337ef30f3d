package mock

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// maxServers bounds the memory of a Queue.
const maxServers = 1 << 20

// Queue maps arrivals to departures as its Model says. It looks at no clock: its results depend on the arrivals, their
// order and the seed alone. It belongs to one goroutine.
type Queue struct {
	model   Model
	random  *rand.Rand
	origin  time.Time // the first arrival, from which everything else is counted
	started bool
	token   time.Duration // when the next token is there
	free    instants      // when each of the servers is free
	leaving instants      // departures of the calls in the system, for USL only
}

// NewQueue makes a queue in which no call has arrived yet. The model must have passed Check.
func NewQueue(m Model) *Queue {
	return &Queue{
		model:  m,
		random: rand.New(rand.NewPCG(m.Seed, 0x6d6f636b)),
		free:   make(instants, m.Servers),
	}
}

// Arrive gives the departure of a call that arrives at an instant. Calls queue in the order in which Arrive sees them.
func (q *Queue) Arrive(at time.Time) time.Time {
	if !q.started {
		q.started, q.origin = true, at
	}
	return q.origin.Add(q.depart(at.Sub(q.origin)))
}

// depart is Arrive in times since the first arrival.
func (q *Queue) depart(at time.Duration) time.Duration {
	m := &q.model
	begin := at
	if m.TokenBucket > 0 {
		begin = max(begin, q.token)
		q.token = begin + time.Duration(1e9/m.TokenBucket)
	}
	if m.Servers > 0 {
		due := q.stalled(max(begin, q.free[0]) + q.service())
		q.free[0] = due
		heap.Fix(&q.free, 0)
		return due
	}
	if m.USL == (USL{}) {
		return q.stalled(begin + q.service())
	}
	for len(q.leaving) > 0 && q.leaving[0] <= at {
		heap.Pop(&q.leaving)
	}
	due := q.stalled(at + m.USL.Service(len(q.leaving)+1))
	heap.Push(&q.leaving, due)
	return due
}

// service draws the next service time.
func (q *Queue) service() time.Duration {
	s := q.model.Service
	if s.Exponential {
		return time.Duration(q.random.ExpFloat64() * float64(s.Mean))
	}
	return s.Mean
}

// stalled moves what is due in the stall to its end.
func (q *Queue) stalled(due time.Duration) time.Duration {
	end := q.model.StallAt + q.model.StallFor
	if due >= q.model.StallAt && due < end {
		return end
	}
	return due
}

// instants is a heap of times, the earliest first.
type instants []time.Duration

func (h instants) Len() int           { return len(h) }
func (h instants) Less(i, k int) bool { return h[i] < h[k] }
func (h instants) Swap(i, k int)      { h[i], h[k] = h[k], h[i] }
func (h *instants) Push(x any)        { *h = append(*h, x.(time.Duration)) }
func (h *instants) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
