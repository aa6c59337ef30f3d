package bench

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

const (
	openAtOnce   = 64 // handshakes, and later DELETEs, at the same time
	closeBudget  = 15 * time.Second
	closeTimeout = 5 * time.Second
	reopenFirst  = 100 * time.Millisecond
	reopenMost   = 5 * time.Second
	probeSlots   = 32 // how far a call looks for a session that is alive
)

// place holds one session of the run, or nothing while it is lost and not yet replaced.
type place struct{ sess atomic.Pointer[session] }

// sessionSet is the sessions of a run.
type sessionSet struct {
	peer    peer
	timeout time.Duration
	ids     *atomic.Uint64
	gate    chan struct{} // a token for each handshake under way
	places  []*place
	streams *streamSet // nil without GET streams

	opened, failed, lost, closed atomic.Int64
	starved                      atomic.Int64 // of failed: this machine had no descriptor or port left
	reopening                    sync.WaitGroup

	mu       sync.Mutex
	setup    *hdr.Histogram       // guarded by mu
	firstErr error                // guarded by mu
	first    *handshake           // guarded by mu: of the first session
	callers  map[*caller]struct{} // guarded by mu: all that may have to be aborted
	aborted  bool                 // guarded by mu
}

func newSessionSet(c *Config) *sessionSet {
	s := &sessionSet{
		peer: c.peer, timeout: c.Timeout, ids: &atomic.Uint64{}, gate: make(chan struct{}, openAtOnce), setup: newHist(),
		callers: map[*caller]struct{}{},
	}
	for range c.Sessions {
		s.places = append(s.places, &place{})
	}
	if c.Streams && c.peer.transport() == "http" {
		s.streams = &streamSet{}
	}
	return s
}

// newCaller makes the state of a worker, known to abort.
func (s *sessionSet) newCaller() *caller {
	c := s.peer.caller(s.ids)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callers[c] = struct{}{}
	if s.aborted && c.conn != nil {
		c.conn.Abort()
	}
	return c
}

// release closes the connections of a caller that is no longer needed.
func (s *sessionSet) release(c *caller) {
	s.mu.Lock()
	delete(s.callers, c)
	s.mu.Unlock()
	c.close()
}

// openOne does one handshake and puts the session into its place.
func (s *sessionSet) openOne(at *place, c *caller) error {
	start := time.Now()
	sess, err := s.peer.open(c, start.Add(s.timeout))
	took := time.Since(start)
	s.mu.Lock()
	if err != nil {
		s.failed.Add(1)
		if exhausted(err) {
			s.starved.Add(1)
		}
		if s.firstErr == nil {
			s.firstErr = err
		}
		s.mu.Unlock()
		return err
	}
	s.opened.Add(1)
	record(s.setup, took)
	if s.first == nil {
		s.first = sess.info()
	}
	aborted := s.aborted
	s.mu.Unlock()
	at.sess.Store(&sess)
	if aborted {
		sess.abort()
	}
	if s.streams != nil {
		s.streams.open(sess)
	}
	return nil
}

// openAll opens what is not open yet, openAtOnce at a time, until ctx ends.
func (s *sessionSet) openAll(ctx context.Context) {
	s.each(ctx, func(at *place, c *caller) {
		if at.sess.Load() == nil {
			_ = s.openOne(at, c) // counted, and the first error is kept
		}
	})
}

// each calls f with every place, on openAtOnce workers that each have a caller for as long.
func (s *sessionSet) each(ctx context.Context, f func(*place, *caller)) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(openAtOnce, len(s.places)) {
		wg.Go(func() {
			c := s.newCaller()
			defer s.release(c)
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(s.places) {
					return
				}
				f(s.places[i], c)
			}
		})
	}
	wg.Wait()
}

// pick gives the session at or after index i that is alive, or nil; with own only the one at i.
func (s *sessionSet) pick(i int, own bool) (*place, session) {
	probes := min(len(s.places), probeSlots)
	if own {
		probes = 1
	}
	for k := range probes {
		at := s.places[(i+k)%len(s.places)]
		if sess := at.sess.Load(); sess != nil {
			return at, *sess
		}
	}
	return nil, nil
}

// replace notes that a session is lost and opens another in its place, again and again until it succeeds or ctx ends. As
// the protocol says, a client whose session has ended starts anew with initialize.
func (s *sessionSet) replace(ctx context.Context, at *place, gone session) {
	old := at.sess.Load()
	if old == nil || *old != gone || !at.sess.CompareAndSwap(old, nil) {
		return // another call has seen it first
	}
	s.lost.Add(1)
	s.reopening.Go(func() {
		c := s.newCaller()
		defer s.release(c)
		gone.reap()
		for wait := reopenFirst; ctx.Err() == nil; wait = min(2*wait, reopenMost) {
			select {
			case s.gate <- struct{}{}:
			case <-ctx.Done():
				return
			}
			err := s.openOne(at, c)
			<-s.gate
			if err == nil {
				return
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
		}
	})
}

// closeAll ends every session that is alive, within closeBudget.
func (s *sessionSet) closeAll() {
	ctx, cancel := context.WithTimeout(context.Background(), closeBudget)
	defer cancel()
	if s.streams != nil {
		s.streams.closeAll()
	}
	s.each(ctx, func(at *place, c *caller) {
		sess := at.sess.Swap(nil)
		if sess == nil {
			return
		}
		err := (*sess).close(c, time.Now().Add(min(s.timeout, closeTimeout)))
		switch {
		case err == nil:
			s.closed.Add(1)
		case (*sess).lost(err):
			s.lost.Add(1)
		}
	})
}

// abort ends everything that is in flight.
func (s *sessionSet) abort() {
	s.mu.Lock()
	s.aborted = true
	callers := slices.Collect(maps.Keys(s.callers))
	s.mu.Unlock()
	for _, c := range callers {
		if c.conn != nil {
			c.conn.Abort()
		}
	}
	for _, at := range s.places {
		if sess := at.sess.Load(); sess != nil {
			(*sess).abort()
		}
	}
}

// revive lets new callers work again after an abort, so that the sessions can be ended in good order.
func (s *sessionSet) revive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aborted = false
}

// agreed gives the handshake of the first session.
func (s *sessionSet) agreed() handshake {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == nil {
		return handshake{}
	}
	return *s.first
}

// failure gives the first error of a handshake.
func (s *sessionSet) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.firstErr
}

// pids lists the processes that were spawned for the sessions.
func (s *sessionSet) pids() []int {
	var out []int
	for _, at := range s.places {
		if sess := at.sess.Load(); sess != nil && (*sess).info().pid != 0 {
			out = append(out, (*sess).info().pid)
		}
	}
	return out
}

// errNoSession is why a call could not be sent.
var errNoSession = errors.New("no session is alive")
