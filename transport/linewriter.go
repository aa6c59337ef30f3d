package transport

import (
	"io"
	"sync"

	"github.com/mcpengine/mcpengine/engine"
)

// lineWriter writes frames as lines. Many goroutines queue; one at a time
// writes what has gathered, with one write for all of it.
type lineWriter struct {
	w   io.Writer
	max int // bytes in the queue from which on notifications are dropped and readers wait

	mu      sync.Mutex // guards what follows; never held while writing
	room    sync.Cond  // the queue got shorter, or the writer was closed
	queue   []byte
	spare   []byte
	writing bool
	err     error         // the first of w, or ErrStreamClosed
	broken  chan struct{} // closed when w has failed
}

func newLineWriter(w io.Writer, max int) *lineWriter {
	lw := &lineWriter{w: w, max: max, broken: make(chan struct{})}
	lw.room.L = &lw.mu
	return lw
}

// append queues a frame. One that may be dropped is, when the queue is full.
func (lw *lineWriter) append(frame []byte, droppable bool) error {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if lw.err != nil {
		return lw.err
	}
	if droppable && len(lw.queue)+len(frame) > lw.max {
		return engine.ErrStreamFull
	}
	lw.queue = append(append(lw.queue, frame...), '\n')
	return nil
}

// flush writes what is queued unless somebody does. Where that somebody is far
// behind it waits, so that a producer goes no faster than the peer reads.
func (lw *lineWriter) flush() {
	lw.await()
	lw.write()
}

// await waits while somebody writes who is far behind.
func (lw *lineWriter) await() {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	for lw.writing && len(lw.queue) > lw.max/2 && lw.err == nil {
		lw.room.Wait()
	}
}

// write writes what is queued unless somebody does.
func (lw *lineWriter) write() {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if lw.writing {
		return
	}
	lw.writing = true
	for len(lw.queue) > 0 && lw.err == nil {
		lw.writeOnce()
	}
	lw.writing = false
	lw.room.Broadcast()
}

// writeOnce writes the queue with the lock released. lw.mu is held on both sides.
func (lw *lineWriter) writeOnce() {
	out := lw.queue
	lw.queue, lw.spare = lw.spare[:0], nil
	lw.mu.Unlock()
	_, err := lw.w.Write(out)
	lw.mu.Lock()
	if err != nil && lw.err == nil {
		lw.err = err
		close(lw.broken)
	}
	if cap(out) <= maxKeptBuffer {
		lw.spare = out[:0]
	}
	lw.room.Broadcast()
}

// maxKeptBuffer is the largest buffer that is kept for the next message.
const maxKeptBuffer = 256 << 10

// drain writes everything, and waits for whoever is writing.
func (lw *lineWriter) drain() {
	lw.flush()
	lw.mu.Lock()
	defer lw.mu.Unlock()
	for lw.writing && lw.err == nil {
		lw.room.Wait()
	}
}

// kick flushes without making the caller wait for the peer.
func (lw *lineWriter) kick() {
	lw.mu.Lock()
	idle := !lw.writing && len(lw.queue) > 0
	lw.mu.Unlock()
	if idle {
		go lw.flush()
	}
}

// long reports whether enough is queued to be worth a write.
func (lw *lineWriter) long() bool {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return len(lw.queue) >= 32<<10
}

// failed gives the error that ended the writer, or nil.
func (lw *lineWriter) failed() error {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return lw.err
}

// close makes everything that is queued from now on fail. A write that is under
// way is not waited for.
func (lw *lineWriter) close() {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if lw.err == nil {
		lw.err = engine.ErrStreamClosed
	}
	lw.queue = nil
	lw.room.Broadcast()
}

// lineNotices is the stream for frames that belong to no request.
type lineNotices struct{ w *lineWriter }

func (s lineNotices) Send(frame []byte) error { return s.w.append(frame, true) }
func (s lineNotices) Finish(frame []byte, _ int) {
	if frame != nil {
		_ = s.w.append(frame, false)
	}
}
func (s lineNotices) Flush() { s.w.kick() }
