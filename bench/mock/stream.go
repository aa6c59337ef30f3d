package mock

import (
	"net/http"
	"strconv"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// writeTimeout bounds how long a reader may keep a stream from being written to.
const writeTimeout = 10 * time.Second

// get serves the stream of a session: the numbered events when they are due, and updates as they come.
func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	sess := s.sessionOf(w, r, nil)
	if sess == nil {
		return
	}
	defer s.table.release(sess)
	box := s.table.attach(sess)
	defer s.table.detach(sess, box)
	s.count.streams.up()
	defer s.count.streams.down()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	st := &eventStream{server: s, w: w, control: http.NewResponseController(w)}
	st.seq, _ = strconv.Atoi(r.Header.Get("Last-Event-ID")) // anything else is 0: from the beginning
	st.seq = max(st.seq, 0)
	st.opened, st.skipped = time.Now(), st.seq
	if st.control.Flush() != nil {
		return
	}
	st.run(r, sess, box)
}

// eventStream is one GET stream.
type eventStream struct {
	server  *Server
	w       http.ResponseWriter
	control *http.ResponseController
	buf     []byte
	opened  time.Time
	seq     int // number of the last event
	skipped int // numbers before the first event
}

// run sends events and updates until the stream ends.
func (st *eventStream) run(r *http.Request, sess *session, box *outbox) {
	clock := st.server.clock
	for open := true; open; {
		var due <-chan struct{}
		var w *waiter
		if config := &st.server.config.Stream; st.seq < config.Events {
			w = clock.start(st.opened.Add(config.First + time.Duration(st.seq-st.skipped)*config.Gap))
			due = w.done
		}
		select {
		case <-due:
			open = st.next()
		case frame := <-box.frames:
			open = st.send(0, frame)
			if open {
				st.server.count.updates.Add(1)
			}
		case <-r.Context().Done():
			open = false
		case <-sess.ended:
			open = false
		case <-box.replaced:
			open = false
		}
		if w != nil {
			clock.drop(w)
		}
	}
}

// next sends the next numbered event, or leaves it out.
func (st *eventStream) next() bool {
	st.seq++
	if st.server.drop[st.seq] {
		st.server.count.dropped.Add(1)
		return true
	}
	params := append([]byte(nil), `{"level":"info","logger":"mock","data":{"seq":`...)
	params = append(strconv.AppendInt(params, int64(st.seq), 10), "}}"...)
	if !st.send(st.seq, codec.AppendNotification(nil, codec.NotifyMessage, params)) {
		return false
	}
	st.server.count.sent.Add(1)
	return true
}

// send writes one event, with an id where it has a number.
func (st *eventStream) send(id int, frame []byte) bool {
	st.buf = st.buf[:0]
	if id > 0 {
		st.buf = append(strconv.AppendInt(append(st.buf, "id: "...), int64(id), 10), '\n')
	}
	st.buf = append(append(append(st.buf, "data: "...), frame...), "\n\n"...)
	_ = st.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // where there is none, the reader may take its time
	if _, err := st.w.Write(st.buf); err != nil {
		return false
	}
	return st.control.Flush() == nil
}
