package client

import (
	"bytes"
	"context"
	"errors"
	"math"
	"sync"

	"github.com/mcpengine/mcpengine/codec"
)

// serverRequest is a request of the server that is being worked on.
type serverRequest struct {
	c      *Client
	id     []byte // exact token
	method string
	params []byte
	batch  *batch // nil where it came alone

	// related is the raw value of metaRelatedTask in its _meta, which the answer
	// repeats, or nil.
	related []byte
	token   []byte // of its progress, or nil

	mu       sync.Mutex // guards the following
	progress float64    // the last one that was reported
	ended    bool       // nothing may be reported any more
	reports  sync.WaitGroup
}

// metaRelatedTask is the member of _meta that names the task which a message
// belongs to (2025-11-25).
const metaRelatedTask = "io.modelcontextprotocol/related-task"

// handler makes the result of a request of the server.
type handler func(ctx context.Context, r *serverRequest) (result []byte, err error)

// handler gives what answers a method, or nil. What was not declared is not
// answered even where there is a callback for it.
func (c *Client) handler(method string) handler {
	f := c.features.Load()
	switch method {
	case codec.MethodSample:
		if !f.sampling {
			return nil
		}
		if c.o.OnSample != nil {
			return c.sample
		}
	case codec.MethodElicit:
		if !f.elicitForm && !f.elicitURL {
			return nil
		}
		return c.elicit
	case codec.MethodRootsList:
		if !f.roots {
			return nil
		}
		if c.o.Roots != nil || c.o.RootList != nil {
			return c.listRoots
		}
	case codec.MethodTasksGet, codec.MethodTasksResult, codec.MethodTasksList, codec.MethodTasksCancel:
		return c.taskHandler(method, f)
	}
	return c.custom()
}

// custom gives the handler that calls OnRequest, or nil.
func (c *Client) custom() handler {
	if c.o.OnRequest == nil {
		return nil
	}
	return func(ctx context.Context, r *serverRequest) ([]byte, error) {
		return c.o.OnRequest(ctx, r.method, r.params)
	}
}

// receiveRequest answers a request of the server, or starts its handler.
func (c *Client) receiveRequest(m *codec.Message, b *batch) {
	if c.era.Load() != nil { // clients of the stateless revision send no responses
		c.noteFault("the server sent a request, which its revision does not have: " + excerpt(m.Method))
		return
	}
	if string(m.Method) == codec.MethodPing {
		c.reply(b, m.ID, []byte("{}"), nil)
		return
	}
	h := c.handler(string(m.Method))
	if h == nil {
		c.reply(b, m.ID, nil, codec.ErrMethodNotFound)
		return
	}
	select {
	case c.handlers <- struct{}{}:
	default:
		c.reply(b, m.ID, nil, codec.ErrOverloaded)
		return
	}
	r := &serverRequest{
		c: c, method: string(m.Method), batch: b, progress: math.Inf(-1),
		id: bytes.Clone(m.ID), params: bytes.Clone(m.Params), token: bytes.Clone(m.ProgressToken),
	}
	if c.features.Load().revision >= revision20251125 {
		r.related = codec.Member(r.params, "_meta", metaRelatedTask)
	}
	if c.wantsTask(m) {
		c.startTask(r, h)
		return
	}
	c.startRequest(r, h)
}

// startRequest runs a handler in a goroutine of its own. The slot for it has
// been taken.
func (c *Client) startRequest(r *serverRequest, h handler) {
	ctx, ok := c.admit(r.id)
	if !ok {
		<-c.handlers
		c.reply(r.batch, r.id, nil, codec.NewError(codec.CodeInvalidRequest, "Invalid Request: the id is in use"))
		return
	}
	if r.batch != nil {
		r.batch.expect()
	}
	started := c.spawn(func() {
		defer func() { <-c.handlers }()
		c.handle(ctx, r, h)
	})
	if !started {
		c.dismiss(r.id)(nil)
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

// dismiss takes a request of the server out of the table and gives what ends its
// context.
func (c *Client) dismiss(id []byte) context.CancelCauseFunc {
	c.mu.Lock()
	defer c.mu.Unlock()
	cancel := c.inbound[string(id)]
	delete(c.inbound, string(id))
	return cancel
}

// handle runs a handler and sends its answer. The id may be used again as soon
// as the server has that.
func (c *Client) handle(ctx context.Context, r *serverRequest, h handler) {
	result, fault := c.runHandler(ctx, r, h)
	defer c.dismiss(r.id)(nil)
	var frame []byte
	if ctx.Err() == nil {
		frame = answer(r.id, result, fault)
		if len(frame) > c.o.MaxMessageBytes {
			c.log.Error("client: an answer exceeds MaxMessageBytes", "method", r.method, "bytes", len(frame))
			frame = answer(r.id, nil, codec.ErrInternal)
		}
	}
	switch {
	case r.batch != nil:
		r.batch.settle(frame)
	case frame != nil:
		if err := c.send(ctx, frame); err != nil && ctx.Err() == nil {
			c.log.Warn("client: an answer could not be sent", "method", r.method, "error", err)
		}
	}
}

// runHandler calls a handler and turns its error or panic into one for the wire.
func (c *Client) runHandler(ctx context.Context, r *serverRequest, h handler) (result []byte, fault *codec.Error) {
	fault = codec.ErrInternal
	c.guard(r.method, func() {
		out, err := h(context.WithValue(ctx, requestKey{}, r), r)
		switch {
		case err == nil && out == nil:
			result, fault = []byte("{}"), nil
		case err == nil && codec.Valid(out):
			result, fault = out, nil
		case err == nil:
			c.log.Error("client: a callback returned a result that is not JSON", "method", r.method)
		case !errors.As(err, &fault):
			if ctx.Err() == nil {
				c.log.Error("client: a callback failed", "method", r.method, "error", err)
			}
			fault = codec.ErrInternal
		}
	})
	r.end()
	if fault == nil && r.related != nil {
		result = withMeta(result, metaRelatedTask, r.related)
	}
	return result, fault
}

// reply answers a request of the server without a handler.
func (c *Client) reply(b *batch, id, result []byte, fault *codec.Error) {
	frame := answer(id, result, fault)
	if b == nil {
		c.sendAside(frame)
		return
	}
	b.expect()
	b.settle(frame)
}

func answer(id, result []byte, fault *codec.Error) []byte {
	if fault != nil {
		return codec.AppendError(nil, id, fault)
	}
	return codec.AppendResult(nil, id, result)
}

// withMeta puts a member into the _meta of a raw object. What is no object, or
// has the member already, stays as it is.
func withMeta(object []byte, name string, value []byte) []byte {
	object = bytes.TrimLeft(object, " \t\r\n")
	if !codec.IsObject(object) || codec.Member(object, "_meta", name) != nil {
		return object
	}
	out := append(codec.AppendString([]byte(`{"_meta":{`), name), ':')
	out = append(out, value...)
	codec.EachMember(codec.Member(object, "_meta"), func(n, v []byte) bool {
		out = appendMember(out, n, v)
		return true
	})
	out = append(out, '}')
	codec.EachMember(object, func(n, v []byte) bool {
		if string(n) != "_meta" {
			out = appendMember(out, n, v)
		}
		return true
	})
	return append(out, '}')
}

// requestKey is the key of a context's *serverRequest.
type requestKey struct{}

// ReportProgress tells the server how far a request of its has come, with
// notifications/progress. ctx is the one that a callback was called with, or
// comes from it. Nothing is sent where the server did not ask for progress,
// where p is not above the last one that was reported, as the protocol wants
// it, and after the callback has returned. It waits until the message was
// handed over, so that it stays in front of the answer.
func ReportProgress(ctx context.Context, p Progress) error {
	r, _ := ctx.Value(requestKey{}).(*serverRequest)
	if r == nil {
		return errors.New("client: the context is not that of a request of the server")
	}
	if r.token == nil || !r.advance(p.Progress) {
		return nil
	}
	defer r.reports.Done()
	params := append([]byte(`{"progressToken":`), r.token...)
	params = codec.AppendFloat(append(params, `,"progress":`...), p.Progress)
	if p.HasTotal {
		params = codec.AppendFloat(append(params, `,"total":`...), p.Total)
	}
	if p.Message != "" && r.c.features.Load().revision >= revision20250326 {
		params = codec.AppendString(append(params, `,"message":`...), p.Message)
	}
	params = append(params, '}')
	if r.related != nil {
		params = withMeta(params, metaRelatedTask, r.related)
	}
	return r.c.send(ctx, codec.AppendNotification(nil, codec.NotifyProgress, params))
}

// advance reports whether progress may be reported, and counts the report.
func (r *serverRequest) advance(progress float64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || !(progress > r.progress) {
		return false
	}
	r.progress = progress
	r.reports.Add(1)
	return true
}

// end waits for the reports that are under way and forbids others.
func (r *serverRequest) end() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.reports.Wait()
}
