package bench

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/transport/client/wire"
)

// streamOpening bounds how long a server may take to begin a GET stream.
const streamOpening = 10 * time.Second

// streamSet is the GET streams of a run's sessions.
type streamSet struct {
	current, peak, events atomic.Int64

	readers sync.WaitGroup
	mu      sync.Mutex
	conns   []*wire.Conn // guarded by mu
}

// open begins the stream of a session and reads it until it ends. A server that offers none is left alone.
func (s *streamSet) open(sess session) {
	h, ok := sess.(*httpSession)
	if !ok {
		return
	}
	head, err := h.peer.target.Head("GET", getHeader, h.rest, h.peer.own)
	if err != nil {
		return // the same headers have passed for the session's POST requests
	}
	conn := wire.NewConn(h.peer.target)
	s.mu.Lock()
	s.conns = append(s.conns, conn)
	s.mu.Unlock()
	s.readers.Go(func() {
		opened := false
		_ = conn.Stream(head, time.Now().Add(streamOpening), func() { // its end is no failure of a call
			opened = true
			raise(&s.peak, s.current.Add(1))
		}, func(ev *wire.Event) {
			if len(ev.Data) > 0 {
				s.events.Add(1)
				h.heard.event(ev.Data)
			}
		})
		if opened {
			s.current.Add(-1)
		}
	})
}

// closeAll ends all streams and waits for their readers.
func (s *streamSet) closeAll() {
	s.mu.Lock()
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	for _, c := range conns {
		c.Abort()
	}
	s.readers.Wait()
}

// raise sets peak to n where n is larger.
func raise(peak *atomic.Int64, n int64) {
	for {
		old := peak.Load()
		if n <= old || peak.CompareAndSwap(old, n) {
			return
		}
	}
}
