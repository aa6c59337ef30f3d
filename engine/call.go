package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
)

// Call is one request as its handler sees it. A handler may keep it; once the
// handler has returned, nothing that it does reaches the peer.
type Call struct {
	ctx     callContext
	engine  *Engine
	session *Session // nil in the modern era
	rev     Revision
	listens bool // it is a subscriptions/listen

	generation uint32          // set under mu, as request is
	request    *actors.Request // nil until the lease
	stream     Stream
	message    *codec.Message // borrowed until the handler returns
	handler    Handler
	name       string     // of the tool or prompt, the uri of the resource
	task       *liveTask  // whose work this is, or nil
	rounds     *rounds    // of the stateless era, once the handler asks for them
	resultType string     // of the stateless era; "" means complete
	hooks      *callHooks // what the hooks have to remember, or nil
	peer       *Peer      // of a pipe in the stateless era, which knows the id

	// The handler's goroutine alone.
	out    []byte // the response frame that is being made
	result int    // where the result begins in out

	mu           sync.Mutex // guards what follows
	progress     float64    // the last value sent
	progressSent bool
}

// Handler serves one request. It gives the result with SetResult. An error that is a *codec.Error (by
// errors.As) becomes a protocol error; in a tool any other error becomes a
// result with isError, elsewhere an internal error.
type Handler func(ctx context.Context, c *Call) error

// Middleware wraps the handlers of requests. It is given to Engine.Use.
type Middleware func(Handler) Handler

// Method gives the request's method.
func (c *Call) Method() string {
	if c.message == nil {
		return ""
	}
	return string(c.message.Method)
}

// Name gives the name of the tool or prompt, or the uri of the resource.
func (c *Call) Name() string { return c.name }

// Arguments gives the raw arguments, an object, or nil where there are none.
// They are borrowed: copy what outlives the handler.
func (c *Call) Arguments() json.RawMessage {
	if c.message == nil {
		return nil
	}
	return c.message.Arguments
}

// Meta gives the request's raw _meta, or nil. It is borrowed.
func (c *Call) Meta() Meta {
	if c.message == nil {
		return nil
	}
	return c.message.Meta
}

// Revision gives the protocol revision that the request speaks.
func (c *Call) Revision() Revision { return c.rev }

// Session gives the session that the request belongs to, or nil in the modern era.
func (c *Call) Session() *Session { return c.session }

// ID gives the exact token of the request's id.
func (c *Call) ID() string {
	if c.message == nil {
		return ""
	}
	return string(c.message.ID)
}

// Result gives the raw result, for middleware, after the handler has returned.
// It is borrowed.
func (c *Call) Result() json.RawMessage { return c.out[c.result:] }

// SetResult replaces the result by a raw JSON object.
func (c *Call) SetResult(raw json.RawMessage) { c.out = append(c.out[:c.result], raw...) }

// Progress reports progress under the token of the request. Nothing is sent
// unless the peer asked for it, nor after the answer; a value that is not
// greater than the last one is dropped, as the specification demands
// increasing values, and so is one that is no finite number. A total of 0 or
// less is left out.
func (c *Call) Progress(ctx context.Context, progress, total float64) {
	c.ProgressMessage(ctx, progress, total, "")
}

// ProgressMessage is Progress with words for people. They are sent from
// 2025-03-26 on.
func (c *Call) ProgressMessage(_ context.Context, progress, total float64, message string) {
	if math.IsNaN(progress) || math.IsInf(progress, 0) {
		return
	}
	if total <= 0 || math.IsInf(total, 0) {
		total = math.NaN()
	}
	if c.rev < Rev20250326 {
		message = ""
	}
	buf := takeBuffer()
	defer giveBuffer(buf)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.progressSent && progress <= c.progress || c.ctx.gone() || !c.request.TryEmit(c.generation) {
		return
	}
	token := c.message.ProgressToken
	if token != nil {
		c.progress, c.progressSent = progress, true
		buf.b = codec.AppendProgress(buf.b, token, progress, total, message)
		_ = c.stream.Send(buf.b)
	}
	c.request.Unlock()
	if token != nil {
		c.stream.Flush()
	}
}

// emit queues and flushes a frame that belongs to the request, unless it is
// answered.
func (c *Call) emit(frame []byte) error {
	if c.ctx.gone() || !c.request.TryEmit(c.generation) {
		return ErrStreamClosed
	}
	err := c.stream.Send(frame)
	c.request.Unlock()
	c.stream.Flush()
	return err
}

// End implements actors.Owner: it ends the call from outside, for a cause of
// package actors. It does not wait.
func (c *Call) End(r *actors.Request, generation uint32, cause error) {
	if !r.Claim(generation) {
		return
	}
	answer, code := cause != actors.ErrCancelled && cause != actors.ErrSessionIdle, 0
	if answer {
		e := codec.ErrCancelled
		if errors.Is(cause, errHandlerTimeout) {
			e = codec.ErrTimeout
		}
		buf := takeBuffer()
		buf.b = codec.AppendError(buf.b, c.message.ID, e)
		code = e.Code
		c.stream.Finish(buf.b, code)
		giveBuffer(buf)
	} else {
		c.stream.Finish(nil, 0)
	}
	r.Unlock()
	c.ctx.end()
	go c.stream.Flush()
	c.auditEnd(cause, code)
}

// run runs the handler and sees to the answer, also where the handler ends its
// goroutine.
func (c *Call) run() {
	out := takeBuffer()
	c.out = codec.AppendResultHead(out.b, c.message.ID)
	c.result = len(c.out)
	var stack []byte
	var err error
	reason := any("runtime.Goexit was called")
	defer func() { c.conclude(out, reason, stack, err) }()
	reason, stack, err = c.protect()
}

// conclude answers when the handler is done: with its result, its error, or for
// its panic.
func (c *Call) conclude(out *buffer, reason any, stack []byte, err error) {
	var fault *codec.Error
	if errors.Is(err, errAnswered) {
		err = nil
	}
	switch {
	case reason != nil:
		fault = codec.ErrInternal
	case errors.Is(err, errInputRequired) && c.task == nil:
		if err = c.setInputRequired(); err == nil {
			fault = c.seal()
		} else {
			fault = c.engine.wireError(err)
		}
	case err != nil:
		fault = c.engine.wireError(err)
	default:
		fault = c.seal()
	}
	if fault != nil {
		c.out = codec.AppendError(c.out[:0], c.message.ID, fault)
	}
	code := 0
	if fault != nil {
		code = fault.Code
	}
	c.request.Forget()
	if c.peer != nil {
		c.peer.remove(c.message.ID, c)
	}
	gone := c.ctx.gone()
	record := c.concluded(reason, fault, gone)
	answers := c.request.Claim(c.generation)
	if answers {
		if gone {
			c.stream.Finish(nil, 0)
		} else {
			c.stream.Finish(c.out, code)
		}
		c.request.Unlock()
	}
	c.ctx.end()
	if reason != nil {
		if stack == nil {
			stack = debug.Stack()
		}
		c.engine.log.Error("handler panicked", "method", c.Method(), "name", c.name,
			"panic", fmt.Sprint(reason), "stack", string(stack))
		c.request.Fail(reason)
	}
	c.stream.Flush()
	if answers && c.engine.options.Audit != nil {
		c.engine.audit(record)
	}
	out.b = c.out
	c.out = nil
	giveBuffer(out)
}

// protect runs the handler and keeps its panic.
func (c *Call) protect() (reason any, stack []byte, err error) {
	defer func() {
		if reason = recover(); reason != nil {
			stack = debug.Stack()
		}
	}()
	if err = c.handler(&c.ctx, c); err == nil {
		return nil, nil, nil
	}
	if page := (*urlNeeded)(nil); errors.As(err, &page) {
		if err = page.wire(c); err == nil {
			err = codec.NewError(codec.CodeInternalError, page.message)
		}
	}
	return nil, nil, err
}

// seal closes the response frame around the result.
func (c *Call) seal() *codec.Error {
	result := c.out[c.result:]
	if !codec.IsObject(result) || !codec.Valid(result) {
		c.engine.log.Error("handler gave a result that is no JSON object", "method", c.Method(), "name", c.name)
		return codec.ErrInternal
	}
	c.out = codec.CompactTail(c.out, c.result)
	if c.rev.IsModern() {
		c.sealModern()
	}
	c.out = append(c.out, '}')
	return nil
}

// sealModern adds what every result of the stateless era has: its type, and in
// _meta who serves.
func (c *Call) sealModern() {
	result := c.out[c.result:]
	typed, meta := false, []byte(nil)
	codec.EachMember(result, func(name, value []byte) bool {
		switch string(name) {
		case "resultType":
			typed = true
		case "_meta":
			meta = value
		}
		return true
	})
	if meta != nil {
		whole := appendWithMeta(nil, result, c.engine.serverInfo)
		c.out = append(c.out[:c.result], whole...)
	} else {
		c.out = c.out[:len(c.out)-1]
		if len(result) > 2 {
			c.out = append(c.out, ',')
		}
		c.out = append(append(append(c.out, `"_meta":{`...), c.engine.serverInfo...), '}', '}')
	}
	if typed {
		return
	}
	kind := c.resultType
	if kind == "" {
		kind = "complete"
	}
	head := len(`"resultType":"",`) + len(kind)
	c.out = slices.Grow(c.out, head)
	n := len(c.out)
	c.out = c.out[:n+head]
	copy(c.out[c.result+1+head:], c.out[c.result+1:n])
	put := append(c.out[:c.result+1], `"resultType":"`...)
	put = append(put, kind...)
	_ = append(put, '"', ',')
}

// cancel ends the call without an answer. It reports whether it was not
// answered yet.
func (c *Call) cancel() bool {
	c.mu.Lock()
	r, generation := c.request, c.generation
	c.mu.Unlock()
	return r != nil && r.EndLease(generation, actors.ErrCancelled)
}

// wireError maps an error to what the peer is told. Only a *codec.Error keeps
// its words; of anything else the peer learns nothing.
func (e *Engine) wireError(err error) *codec.Error {
	var wire *codec.Error
	var capability *CapabilityError
	switch {
	case errors.As(err, &wire):
		return wire
	case errors.As(err, &capability):
		return capability.wire()
	case errors.Is(err, context.Canceled):
		return codec.ErrCancelled
	case errors.Is(err, context.DeadlineExceeded):
		return codec.ErrTimeout
	case errors.Is(err, actors.ErrOverloaded), errors.Is(err, actors.ErrTooManySubscriptions),
		errors.Is(err, actors.ErrTooManySessions), errors.Is(err, actors.ErrTooManySessionsOfPrincipal),
		errors.Is(err, actors.ErrShutdown), errors.Is(err, ErrShuttingDown):
		return codec.ErrOverloaded
	case errors.Is(err, actors.ErrDuplicateID):
		return codec.NewError(codec.CodeInvalidRequest, "Invalid Request: a request with this id is in flight")
	case errors.Is(err, actors.ErrSessionClosed):
		return codec.NewError(codec.CodeConnectionClosed, "The session has ended")
	}
	e.log.Error("request failed", slog.Any("error", err))
	return codec.ErrInternal
}
