package client

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/mcpengine/mcpengine/codec"
)

// receive dispatches a frame that a link has read. The frame is borrowed; m is
// scratch space of the reader's. own is the call whose reply stream the frame
// came on, or nil. A fault of the frame is noted, and ends own where the frame
// can only have been its answer.
func (c *Client) receive(m *codec.Message, frame []byte, own *call) {
	if codec.IsBatch(frame) && c.batches.Load() {
		c.receiveBatch(m, frame, own)
		return
	}
	c.receiveOne(m, frame, own, nil)
}

// receiveOne dispatches one message, which may be one of a batch.
func (c *Client) receiveOne(m *codec.Message, frame []byte, own *call, b *batch) {
	if err := codec.Decode(frame, m); err != nil {
		c.receiveBad(m, frame, err, b)
		return
	}
	switch m.Kind {
	case codec.KindResponse:
		if k := c.take(m.ID, nil); k != nil {
			k.finish(bytes.Clone(m.Result), nil)
			k.unlessOwn(own)
		}
	case codec.KindError:
		if k := c.take(m.ID, own); k != nil {
			k.finish(nil, parseError(m.Error))
			k.unlessOwn(own)
		}
	case codec.KindNotification:
		c.receiveNotification(m)
	case codec.KindRequest:
		c.receiveRequest(m, b)
	}
}

// receiveBad handles a frame that is no message. Requests are refused, the call
// that an answer names fails, and anything else is noted only: some servers
// print other things on their stdout.
func (c *Client) receiveBad(m *codec.Message, frame []byte, fault error, b *batch) {
	if m.Kind == codec.KindRequest && c.era.Load() == nil {
		var e *codec.Error
		errors.As(fault, &e)
		c.reply(b, m.ID, nil, e)
		return
	}
	if m.Method == nil && m.ID != nil {
		if k := c.take(m.ID, nil); k != nil {
			k.finish(nil, fmt.Errorf("%w: %w: %s", ErrMalformed, fault, excerpt(frame)))
			k.cancel(errAnswered)
			return
		}
	}
	c.noteFault("not a message: " + excerpt(frame))
}

// take finds the call that an id token names and takes it out of the table.
// Where there is no id, the call is own.
func (c *Client) take(id []byte, own *call) *call {
	n, ok := codec.ParseUint(id)
	if id == nil && own != nil {
		n, ok = own.id, true
	}
	var k *call
	if ok {
		c.mu.Lock()
		k = c.pending[n]
		delete(c.pending, n)
		c.mu.Unlock()
	}
	if k == nil {
		c.log.Debug("client: an answer that nobody waits for", "id", string(id))
	}
	return k
}

// unlessOwn wakes the goroutine of a call whose answer came on another stream.
func (k *call) unlessOwn(own *call) {
	if k != own {
		k.cancel(errAnswered)
	}
}

// parseError reads the error object of a response.
func parseError(object []byte) error {
	code, ok := codec.Int(object, "code")
	if !ok {
		return fmt.Errorf("%w: an error without a code: %s", ErrMalformed, excerpt(object))
	}
	return &codec.Error{
		Code:    int(code),
		Message: codec.Text(object, "message"),
		Data:    bytes.Clone(codec.Member(object, "data")),
	}
}

// guard runs a callback of the user's and survives its panic, which would end
// every call of the connection.
func (c *Client) guard(name string, f func()) {
	defer func() {
		if r := recover(); r != nil {
			c.log.Error("client: a callback panicked", "callback", name, "panic", r, "stack", string(debug.Stack()))
		}
	}()
	f()
}
