package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// keeper is a peer that keeps sessions open from one run to the next. A run that closes a session gives it back, and the
// next run that opens one gets it. So a search of many steps sets its sessions up once, and the server sees clients that
// stay.
type keeper struct {
	peer
	ids atomic.Uint64 // of all runs: an id may not be used twice in a session

	mu    sync.Mutex
	idle  []session      // guarded by mu
	setup *hdr.Histogram // guarded by mu
	count Sessions       // guarded by mu
}

func newKeeper(p peer) *keeper { return &keeper{peer: p, setup: newHist()} }

// caller counts ids over all runs.
func (k *keeper) caller(*atomic.Uint64) *caller { return k.peer.caller(&k.ids) }

// open gives a session that is idle, or makes one.
func (k *keeper) open(c *caller, deadline time.Time) (session, error) {
	k.mu.Lock()
	if n := len(k.idle); n > 0 {
		s := k.idle[n-1]
		k.idle = k.idle[:n-1]
		k.mu.Unlock()
		return s, nil
	}
	k.mu.Unlock()
	start := time.Now()
	s, err := k.peer.open(c, start.Add(time.Until(deadline)))
	took := time.Since(start)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.count.Failed++
		return nil, err
	}
	k.count.Opened++
	record(k.setup, took)
	if _, ok := s.(*statelessSession); ok {
		return s, nil // the server knows nothing of it, so there is nothing to keep
	}
	return &keptSession{s, k}, nil
}

// trim ends idle sessions until no more than n are left.
func (k *keeper) trim(ctx context.Context, n int) {
	ctx, cancel := context.WithTimeout(ctx, closeBudget)
	defer cancel()
	var wg sync.WaitGroup
	for range min(openAtOnce, k.spare(n)) {
		wg.Go(func() {
			c := k.caller(nil)
			defer c.close()
			for ctx.Err() == nil {
				s := k.surplus(n)
				if s == nil {
					return
				}
				k.end(s, c)
			}
		})
	}
	wg.Wait()
}

// spare counts the idle sessions beyond n.
func (k *keeper) spare(n int) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return max(len(k.idle)-n, 0)
}

// surplus takes an idle session when there are more than n.
func (k *keeper) surplus(n int) *keptSession {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.idle) <= n {
		return nil
	}
	s := k.idle[len(k.idle)-1].(*keptSession)
	k.idle = k.idle[:len(k.idle)-1]
	return s
}

// end closes a session for good.
func (k *keeper) end(s *keptSession, c *caller) {
	err := s.session.close(c, time.Now().Add(closeTimeout))
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err == nil:
		k.count.Closed++
	case s.session.lost(err):
		k.count.Lost++
	}
}

// sessions counts those of all runs.
func (k *keeper) sessions() Sessions {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := k.count
	out.Setup = distOf(k.setup, nil)
	return out
}

// keptSession goes back to its keeper when a run closes it.
type keptSession struct {
	session
	keeper *keeper
}

func (s *keptSession) close(*caller, time.Time) error {
	s.keeper.mu.Lock()
	defer s.keeper.mu.Unlock()
	s.keeper.idle = append(s.keeper.idle, s)
	return nil
}

// reap is called once for a session that is lost.
func (s *keptSession) reap() {
	s.keeper.mu.Lock()
	s.keeper.count.Lost++
	s.keeper.mu.Unlock()
	s.session.reap()
}
