package engine

import "errors"

// Stream is the outgoing half of something that a transport holds open: the
// reply to one POST, an event stream, a pipe. The engine calls Send and Finish
// while it holds a lock that orders a request's frames, so they must queue and
// not wait; Flush, called without any lock, may write.
type Stream interface {
	// Send queues a copy of one frame. The error tells that the peer is gone
	// or so far behind that the frame was dropped.
	Send(frame []byte) error
	// Finish queues the last frame, or ends the stream without one where frame
	// is nil. code is that of the error it carries, or 0; HTTP maps it to a
	// status. On a stream that many requests share, Finish is Send.
	Finish(frame []byte, code int)
	// Flush writes what is queued.
	Flush()
}

// Starter is a Stream that wants to know when a request's handler is about to
// run. Until then what came before and after it is handled in order; from then
// on the request may take its time, and whoever brought it need not wait.
type Starter interface{ Start() }

// ErrStreamClosed means that a stream takes no more frames.
var ErrStreamClosed = errors.New("engine: stream closed")

// ErrStreamFull means that the peer reads too slowly and a frame was dropped.
var ErrStreamFull = errors.New("engine: stream queue is full")
