package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/mcpengine/mcpengine/codec"
)

// maxBatch limits the messages of one batch (revision 2025-03-26).
const maxBatch = 1000

// receive dispatches a frame that a link has read. The frame is borrowed; m is
// scratch space of the reader's. own is the call whose reply stream the frame
// came on, or nil. A fault of the frame is noted, and ends own where the frame
// can only have been its answer.
func (c *Client) receive(m *codec.Message, frame []byte, own *call) {
	if codec.IsBatch(frame) && c.batches.Load() {
		err := codec.SplitBatch(frame, maxBatch, func(f []byte) { c.receiveOne(m, f, own) })
		if err != nil {
			c.noteFault("a malformed batch: " + err.Error())
		}
		return
	}
	c.receiveOne(m, frame, own)
}

func (c *Client) receiveOne(m *codec.Message, frame []byte, own *call) {
	if err := codec.Decode(frame, m); err != nil {
		c.receiveBad(m, frame, err)
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
		c.receiveRequest(m)
	}
}

// receiveBad handles a frame that is no message. Requests are refused, the call
// that an answer names fails, and anything else is noted only: some servers
// print other things on their stdout.
func (c *Client) receiveBad(m *codec.Message, frame []byte, fault error) {
	if m.Kind == codec.KindRequest {
		var e *codec.Error
		errors.As(fault, &e)
		c.reply(m.ID, nil, e)
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

func (c *Client) receiveNotification(m *codec.Message) {
	switch string(m.Method) {
	case codec.NotifyProgress:
		if c.receiveProgress(m) {
			return
		}
	case codec.NotifyCancelled:
		c.mu.Lock()
		cancel := c.inbound[string(m.RequestID)]
		c.mu.Unlock()
		if cancel != nil {
			cancel(errPeerCancelled)
			return
		}
	}
	if c.o.OnNotification != nil {
		c.guard("OnNotification", func() { c.o.OnNotification(string(m.Method), m.Params) })
	}
}

// receiveProgress gives a progress notification to the call of its token.
func (c *Client) receiveProgress(m *codec.Message) bool {
	id, ok := codec.ParseUint(m.ParamToken)
	if !ok {
		return false
	}
	c.mu.Lock()
	k := c.pending[id]
	var l *limit
	if k != nil {
		l = k.limit
	}
	c.mu.Unlock()
	if k == nil || k.onProgress == nil {
		return false
	}
	l.extend()
	var p Progress
	p.Progress, _ = codec.Number(m.Params, "progress")
	p.Total, p.HasTotal = codec.Number(m.Params, "total")
	p.Message = codec.Text(m.Params, "message")
	c.guard("OnProgress", func() { k.onProgress(p) })
	return true
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

// receiveRequest answers a request of the server, or starts its handler.
func (c *Client) receiveRequest(m *codec.Message) {
	switch {
	case string(m.Method) == codec.MethodPing:
		c.reply(m.ID, []byte("{}"), nil)
		return
	case c.o.OnRequest == nil:
		c.reply(m.ID, nil, codec.ErrMethodNotFound)
		return
	}
	select {
	case c.handlers <- struct{}{}:
	default:
		c.reply(m.ID, nil, codec.ErrOverloaded)
		return
	}
	id, method, params := bytes.Clone(m.ID), string(m.Method), bytes.Clone(m.Params)
	ctx, ok := c.admit(id)
	if !ok {
		<-c.handlers
		c.reply(id, nil, codec.NewError(codec.CodeInvalidRequest, "Invalid Request: the id is in use"))
		return
	}
	started := c.spawn(func() {
		defer func() { <-c.handlers }()
		c.handle(ctx, id, method, params)
	})
	if !started {
		c.dismiss(id)
		<-c.handlers
	}
}

// admit puts a request of the server into the table, so that the server can
// cancel it. It reports false where the id is in the table already.
func (c *Client) admit(id []byte) (context.Context, bool) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inbound[string(id)] != nil {
		cancel(nil)
		return nil, false
	}
	c.inbound[string(id)] = cancel
	return ctx, true
}

// dismiss takes a request of the server out of the table.
func (c *Client) dismiss(id []byte) {
	c.mu.Lock()
	cancel := c.inbound[string(id)]
	delete(c.inbound, string(id))
	c.mu.Unlock()
	cancel(nil)
}

// handle runs OnRequest and sends its answer.
func (c *Client) handle(ctx context.Context, id []byte, method string, params []byte) {
	defer c.dismiss(id)
	result, fault := c.runHandler(ctx, method, params)
	if ctx.Err() != nil {
		return
	}
	if err := c.send(ctx, answer(id, result, fault)); err != nil && ctx.Err() == nil {
		c.log.Warn("client: an answer could not be sent", "method", method, "error", err)
	}
}

// runHandler calls OnRequest and turns its error or panic into one for the wire.
func (c *Client) runHandler(ctx context.Context, method string, params []byte) (result []byte, fault *codec.Error) {
	fault = codec.ErrInternal
	c.guard("OnRequest", func() {
		out, err := c.o.OnRequest(ctx, method, params)
		switch {
		case err == nil && out == nil:
			result, fault = []byte("{}"), nil
		case err == nil && codec.Valid(out):
			result, fault = out, nil
		case err == nil:
			c.log.Error("client: OnRequest returned a result that is not JSON", "method", method)
		case !errors.As(err, &fault):
			c.log.Error("client: OnRequest failed", "method", method, "error", err)
			fault = codec.ErrInternal
		}
	})
	return result, fault
}

// reply answers a request of the server without a handler.
func (c *Client) reply(id, result []byte, fault *codec.Error) {
	c.sendAside(answer(id, result, fault))
}

func answer(id, result []byte, fault *codec.Error) []byte {
	if fault != nil {
		return codec.AppendError(nil, id, fault)
	}
	return codec.AppendResult(nil, id, result)
}
