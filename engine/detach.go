package engine

import (
	"errors"
	"time"
)

// Detachable is what a Stream implements whose connection may be closed before
// the answer, for the peer to come back later and get the rest (Streamable HTTP
// of 2025-11-25, on a server that keeps events).
type Detachable interface {
	// Detach closes the connection after what is queued, and tells the peer
	// when to come back. Like Send it queues and does not wait.
	Detach(retry time.Duration) error
}

// ErrNotDetachable means that the connection of a call must stay open until
// its answer: the transport, the revision or the server's options do not
// provide for less.
var ErrNotDetachable = errors.New("engine: the stream cannot be closed before the answer")

// CloseStream closes the connection that waits for this call, so that a call
// which takes long does not hold one. The call goes on; what it sends, the
// answer included, is kept for the client, which comes back after retry. Where
// that is not possible the error is ErrNotDetachable and nothing happens; after
// the call's end it is ErrStreamClosed.
func (c *Call) CloseStream(retry time.Duration) error {
	d, ok := c.stream.(Detachable)
	if !ok {
		return ErrNotDetachable
	}
	if !c.request.TryEmit(c.generation) {
		return ErrStreamClosed
	}
	err := d.Detach(retry)
	c.request.Unlock()
	c.stream.Flush()
	return err
}
