package transport

import (
	"net/http"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// eventStream is the stream of a GET: what the server has to say that belongs
// to no request. The goroutine of the GET is its one writer.
type eventStream struct {
	max   int
	ready chan struct{} // capacity 1: something was queued, or the end

	mu    sync.Mutex // guards what follows; never held while writing
	queue []byte
	spare []byte
	ended bool
}

func newEventStream(max int) *eventStream {
	return &eventStream{max: max, ready: make(chan struct{}, 1)}
}

// Send queues a frame, or drops it where the peer is too far behind.
func (s *eventStream) Send(frame []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return engine.ErrStreamClosed
	case len(s.queue)+len(frame) > s.max:
		return engine.ErrStreamFull
	}
	s.queue = appendEvent(s.queue, frame)
	return nil
}

// Finish ends the stream.
func (s *eventStream) Finish(frame []byte, _ int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if frame != nil && !s.ended {
		s.queue = appendEvent(s.queue, frame)
	}
	s.ended = true
}

// Flush wakes the writer.
func (s *eventStream) Flush() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// take gives what is queued, and whether the stream has ended.
func (s *eventStream) take() (out []byte, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, s.queue, s.spare = s.queue, s.spare, nil
	return out, s.ended
}

// recycle gives a buffer back that was taken.
func (s *eventStream) recycle(out []byte) {
	if cap(out) > 4<<10 {
		return
	}
	s.mu.Lock()
	s.spare = out[:0]
	s.mu.Unlock()
}

// get serves a GET: it opens the session's event stream and takes over from one
// that is open.
func (h *HTTPHandler) get(w http.ResponseWriter, r *http.Request) {
	if !isEventStream(r) {
		refuse(w, http.StatusNotAcceptable, codec.CodeInvalidRequest, "Not Acceptable: Accept must name text/event-stream")
		return
	}
	session, ok := h.existing(w, r)
	if !ok {
		return
	}
	h.streams.Add(1)
	defer h.streams.Add(-1)
	release := session.Hold()
	defer release()

	eventHeader(w.Header())
	w.WriteHeader(http.StatusOK)
	stream := newEventStream(h.options.MaxQueueBytes)
	out := eventWriter{w: w, control: http.NewResponseController(w), timeout: h.options.WriteTimeout}
	defer func() { _ = out.control.SetWriteDeadline(time.Time{}) }()
	if out.write(nil) != nil {
		return
	}
	session.Attach(stream)
	defer session.Detach(stream)
	keep := time.NewTicker(h.options.KeepAlive)
	defer keep.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-session.Done():
			stream.Finish(nil, 0)
		case <-keep.C:
			if out.write([]byte(keepAlive)) != nil {
				return
			}
			continue
		case <-stream.ready:
		}
		queued, ended := stream.take()
		if len(queued) > 0 && out.write(queued) != nil || ended {
			return
		}
		stream.recycle(queued)
	}
}

// eventWriter writes to an event stream with a deadline for each write.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

func (o *eventWriter) write(b []byte) error {
	_ = o.control.SetWriteDeadline(time.Now().Add(o.timeout))
	if len(b) > 0 {
		if _, err := o.w.Write(b); err != nil {
			return err
		}
	}
	return o.control.Flush()
}
