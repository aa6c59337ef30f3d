package bench

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client/wire"
)

const (
	streamOpening = 10 * time.Second       // how long a server may take to begin a GET stream
	streamSlow    = 250 * time.Millisecond // from when on streams that are to be opened are not waited for any more
)

// streamSet is the GET streams of a run's sessions.
type streamSet struct {
	current, peak   atomic.Int64
	failed, starved atomic.Int64 // could not be opened; of these because this machine had no descriptor or port left
	broken          atomic.Int64 // ended by the server, or by the network, during the run

	readers sync.WaitGroup
	mu      sync.Mutex
	conns   []*wire.Conn // guarded by mu
	closing bool         // guarded by mu
	slow    atomic.Bool  // the server keeps back the heads of streams until there is an event
}

// open begins the stream of a session, which is read until it ends. A server that offers none is left alone. Where the
// server says at once that the stream is there, open waits for that, so that a run does not begin before its streams.
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
	begun := make(chan struct{})
	s.readers.Go(func() { s.read(conn, head, h, sync.OnceFunc(func() { close(begun) })) })
	if s.slow.Load() {
		return
	}
	wait := time.NewTimer(streamSlow)
	defer wait.Stop()
	select {
	case <-begun:
	case <-wait.C:
		s.slow.Store(true)
	}
}

// read reads one stream to its end. begun is called when it is open, and when it is not to be.
func (s *streamSet) read(conn *wire.Conn, head []byte, h *httpSession, begun func()) {
	defer begun()
	t := track{tally: h.peer.tally}
	opened := false
	err := conn.Stream(head, time.Now().Add(streamOpening), func() {
		opened = true
		raise(&s.peak, s.current.Add(1))
		begun()
	}, func(ev *wire.Event) { h.event(&t, ev) })
	if opened {
		s.current.Add(-1)
	}
	s.mu.Lock()
	closing := s.closing
	s.mu.Unlock()
	var status *wire.StatusError
	switch {
	case closing, errors.As(err, &status) && status.Status == wire.StatusMethodNotAllowed: // a server that offers none
	case opened:
		s.broken.Add(1)
	default:
		s.failed.Add(1)
		if exhausted(err) {
			s.starved.Add(1)
		}
	}
}

var streamMessages = sync.Pool{New: func() any { return new(codec.Message) }}

// event counts an event of a GET stream, and answers it where it is a request.
func (s *httpSession) event(t *track, ev *wire.Event) {
	if len(ev.Data) == 0 {
		return // it only sets the id from which a client may resume
	}
	now := time.Now()
	m := streamMessages.Get().(*codec.Message)
	defer streamMessages.Put(m)
	if codec.Decode(ev.Data, m) != nil {
		t.note(ev.ID, nil, now)
		return
	}
	t.note(ev.ID, m, now)
	if m.Kind == codec.KindRequest {
		s.peer.answers.post(s, m)
	} else {
		s.heard.deliver(m)
	}
	m.Reset()
}

// closeAll ends all streams and waits for their readers.
func (s *streamSet) closeAll() {
	s.mu.Lock()
	conns := s.conns
	s.conns, s.closing = nil, true
	s.mu.Unlock()
	for _, c := range conns {
		c.Abort()
	}
	s.readers.Wait()
}

// exhausted reports whether err means that this machine has run out of descriptors or ports.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// streamCounts describes what came over the streams of a run.
func (r *run) streamCounts() Streams {
	var out Streams
	if p, ok := r.cfg.peer.(interface{ streams() *streamTally }); ok {
		out = p.streams().result()
	}
	if s := r.set.streams; s != nil {
		out.OpenPeak, out.Failed, out.Broken = s.peak.Load(), s.failed.Load(), s.broken.Load()
	}
	return out
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
