package transport

import (
	"net/http"
	"time"
)

// eventWriter writes a response that is an event stream, or may become one. The
// server's write timeout is for a whole response; here each write has its own.
type eventWriter struct {
	handler *HTTPHandler
	w       http.ResponseWriter
	control *http.ResponseController
	started bool // the header has been written
	counted bool // as an open stream
}

func (h *HTTPHandler) newEventWriter(w http.ResponseWriter) *eventWriter {
	return &eventWriter{handler: h, w: w, control: http.NewResponseController(w)}
}

// close undoes what the next request on the connection must not find.
func (o *eventWriter) close() {
	if o.counted {
		o.handler.streams.Add(-1)
	}
	_ = o.control.SetWriteDeadline(time.Time{})
}

// events writes to the event stream, whose header comes first.
func (o *eventWriter) events(b []byte) error {
	_ = o.control.SetWriteDeadline(time.Now().Add(o.handler.options.WriteTimeout))
	if !o.started {
		o.started, o.counted = true, true
		o.handler.streams.Add(1)
		eventHeader(o.w.Header())
		o.w.WriteHeader(http.StatusOK)
	}
	if len(b) > 0 {
		if _, err := o.w.Write(b); err != nil {
			return err
		}
	}
	return o.control.Flush()
}

// replayPart is how many bytes of a replay are written at once, about.
const replayPart = 64 << 10

// replay writes events that were kept.
func (o *eventWriter) replay(events []Event) error {
	var part []byte
	for i := range events {
		e := &events[i]
		if e.Frame != nil {
			part = appendEventFields(part, e.Stream, e.Seq, e.Frame)
		}
		if len(part) >= replayPart {
			if err := o.events(part); err != nil {
				return err
			}
			part = part[:0]
		}
	}
	return o.events(part)
}

// deliver writes a portion. It reports whether there may be another.
func (o *eventWriter) deliver(p portion) bool {
	switch p.form {
	case replyEvents:
		return (len(p.bytes) == 0 && o.started || o.events(p.bytes) == nil) && !p.over
	case replyJSON:
		_ = o.control.SetWriteDeadline(time.Now().Add(o.handler.options.WriteTimeout))
		if len(p.bytes) == 0 {
			o.w.WriteHeader(p.status)
			return false
		}
		jsonHead(o.w, p.status, p.bytes)
		_, _ = o.w.Write(p.bytes)
		return false
	}
	return !p.over
}

// carry writes what a link has until it is over, the client is gone or a write
// fails. After patience without anything to write, and then at each interval,
// the reply becomes an event stream or is kept alive. ended is closed when the
// session has ended.
func (h *HTTPHandler) carry(r *http.Request, l *link, out *eventWriter, patience time.Duration, ended <-chan struct{}) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-ended:
			l.Finish(nil, 0)
		case <-timer.C:
			l.tick()
			timer.Reset(h.options.KeepAlive)
		case <-l.ready:
		}
		p := l.take()
		if !out.deliver(p) {
			return
		}
		l.recycle(p.bytes)
	}
}
