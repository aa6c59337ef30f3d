package transport

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// post is one POST and the stream of its reply. The reply is a plain JSON
// response where the answer comes first and soon, else an event stream.
type post struct {
	handler *HTTPHandler
	w       http.ResponseWriter
	body    []byte
	message codec.Message

	turn  atomic.Uint64 // what it waits for, and a number that is another each time; see watch
	seen  waiting       // turn as the watch saw it last; this and what follows is the watch's
	since time.Time     // when it saw that first

	json, events bool // what the client takes
	modern       bool // the stateless era, which pairs errors with statuses

	mu      sync.Mutex // guards what follows; never held while writing
	idle    sync.Cond  // nobody writes
	form    replyForm
	queue   []byte
	spare   []byte
	status  int
	started bool // the header has been written
	ended   bool // no more frames
	writing bool
	slow    bool        // it took longer than CommitDelay
	failed  bool        // the peer is gone
	timer   *time.Timer // keeps a slow reply alive

	deadline bool // a write deadline is set on the connection
}

type replyForm uint8

const (
	replyNone   replyForm = iota
	replyJSON             // one JSON response
	replyEvents           // an event stream
)

// newPost makes a post of the handler's pool.
func (h *HTTPHandler) newPost() any {
	p := &post{handler: h}
	p.idle.L = &p.mu
	h.watch.add(p)
	return p
}

func takePost(h *HTTPHandler, w http.ResponseWriter, json, events bool) *post {
	p := h.posts.Get().(*post)
	p.mu.Lock()
	p.w, p.json, p.events = w, json, events
	p.form, p.status, p.started, p.ended, p.slow, p.failed = replyNone, http.StatusOK, false, false, false, false
	p.deadline, p.modern = false, false
	p.queue = p.queue[:0]
	p.mu.Unlock()
	return p
}

// arm begins the time after which the reply becomes an event stream. It is
// called when the request goes to the engine.
func (p *post) arm() {
	if p.events {
		p.wait(waitsReply)
	}
}

// give ends the reply, when the engine is done with it, and gives p back.
func (p *post) give() {
	p.wait(waitsNot)
	p.mu.Lock()
	p.ended = true
	for p.writing {
		p.idle.Wait()
	}
	if p.form == replyEvents && p.started {
		p.handler.streams.Add(-1)
	}
	if p.deadline && !p.failed {
		// The connection may carry another request, whose server does not
		// reset what it did not set.
		_ = http.NewResponseController(p.w).SetWriteDeadline(time.Time{})
	}
	p.w = nil
	if p.slow {
		p.timer.Stop()
	}
	reuse := !p.slow && max(cap(p.body), cap(p.queue), cap(p.spare)) <= maxKeptBuffer
	p.mu.Unlock()
	if reuse {
		p.handler.posts.Put(p)
	}
}

// refuse answers with an error and an HTTP status, at once.
func (p *post) refuse(status int, wire *codec.Error) {
	p.handler.refused.note(status)
	p.w.Header()["Content-Type"] = contentJSON
	p.w.WriteHeader(status)
	_, _ = p.w.Write(codec.AppendError(nil, p.message.ID, wire))
}

// Send queues a frame that precedes the answer. It makes the reply an event
// stream.
func (p *post) Send(frame []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended || p.failed:
		return engine.ErrStreamClosed
	case !p.events:
		return engine.ErrStreamClosed
	case len(p.queue)+len(frame) > p.handler.options.MaxQueueBytes:
		p.handler.refused.notRead.Add(1)
		return engine.ErrStreamFull
	}
	p.form = replyEvents
	p.queue = appendEvent(p.queue, frame)
	return nil
}

// Finish queues the answer, or ends the reply without one.
func (p *post) Finish(frame []byte, code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	switch {
	case p.form == replyEvents || p.form == replyNone && !p.json:
		p.form = replyEvents
		if frame != nil {
			p.queue = appendEvent(p.queue, frame)
		}
	case frame != nil:
		p.form = replyJSON
		p.queue = append(p.queue, frame...)
		p.status = statusOf(code, p.modern)
	case p.events:
		p.form = replyEvents
	default:
		p.form, p.status = replyJSON, http.StatusAccepted
	}
}

// accept ends a reply that has nothing to say, unless it is an event stream
// already.
func (p *post) accept() {
	p.mu.Lock()
	if p.form == replyNone {
		p.form, p.status = replyJSON, http.StatusAccepted
	}
	p.ended = true
	p.mu.Unlock()
	p.Flush()
}

// statusOf gives the HTTP status that goes with a JSON-RPC error. The legacy
// revisions leave it open.
func statusOf(code int, modern bool) int {
	if code == codec.CodeOverloaded {
		return http.StatusServiceUnavailable
	}
	if !modern {
		return http.StatusOK
	}
	switch code {
	case codec.CodeMethodNotFound:
		return http.StatusNotFound
	case codec.CodeInvalidRequest, codec.CodeInvalidParams, codec.CodeHeaderMismatch,
		codec.CodeMissingClientCapability, codec.CodeUnsupportedProtocol:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// Flush writes what is queued, unless somebody does.
func (p *post) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writing || p.w == nil {
		return
	}
	p.writing = true
	for !p.failed && (len(p.queue) > 0 || p.form != replyNone && !p.started) {
		p.write()
	}
	p.writing = false
	p.idle.Broadcast()
}

// write writes the queue with the lock released. p.mu is held on both sides.
func (p *post) write() {
	out, first, events := p.queue, !p.started, p.form == replyEvents
	p.queue, p.spare = p.spare[:0], nil
	p.started = true
	extend := p.slow || events || len(out) > largeReply
	p.deadline = p.deadline || extend
	p.mu.Unlock()
	var err error
	if extend {
		// The server's write timeout is for a whole response; a stream, or a
		// slow reply, is held to one for each write.
		control := http.NewResponseController(p.w)
		_ = control.SetWriteDeadline(time.Now().Add(p.handler.options.WriteTimeout))
	}
	if first {
		p.head(events, out)
	}
	if len(out) > 0 {
		_, err = p.w.Write(out)
	}
	if events && err == nil {
		err = http.NewResponseController(p.w).Flush()
	}
	p.mu.Lock()
	p.spare = out[:0]
	if err != nil {
		p.failed = true
		p.queue = p.queue[:0]
	}
}

// largeReply is from how many bytes on a reply may have to wait for a peer that
// does not read; smaller ones find room in the socket's buffer.
const largeReply = 64 << 10

// head writes the response's header. out is what follows.
func (p *post) head(events bool, out []byte) {
	switch {
	case events:
	case p.status == http.StatusAccepted:
		p.w.WriteHeader(p.status)
		return
	default:
		jsonHead(p.w, p.status, out)
		return
	}
	p.handler.streams.Add(1)
	eventHeader(p.w.Header())
	p.w.WriteHeader(http.StatusOK)
}

// jsonHead writes the header of a plain JSON response. Where the frame, which
// may be missing, says when to try again, the status is 429.
func jsonHead(w http.ResponseWriter, status int, frame []byte) {
	header := w.Header()
	header["Content-Type"] = contentJSON
	if status == http.StatusServiceUnavailable {
		after := int64(1)
		if wait, ok := engine.RetryAfter(frame); ok {
			status = http.StatusTooManyRequests
			after = max(1, int64((wait+time.Second-1)/time.Second))
		}
		header.Set("Retry-After", strconv.FormatInt(after, 10))
	}
	w.WriteHeader(status)
}

// eventHeader sets what every event stream has.
func eventHeader(header http.Header) {
	header["Content-Type"] = contentEvents
	header["Cache-Control"] = []string{"no-cache, no-transform"}
	header["X-Accel-Buffering"] = []string{"no"}
}

// keepAlive is a comment, which clients skip.
const keepAlive = ": keep-alive\n\n"

// appendEvent appends a frame as an event.
func appendEvent(dst, frame []byte) []byte {
	dst = append(dst, "event: message\ndata: "...)
	dst = append(dst, frame...)
	return append(dst, '\n', '\n')
}
