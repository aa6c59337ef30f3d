package client

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// call is a request that waits for its answer.
type call struct {
	id         uint64
	method     string
	frame      []byte
	header     http.Header // what the stateless revision wants over HTTP, or nil
	onProgress func(Progress)
	begun      time.Time

	// ctx ends with the caller's context, with the time limit (the cause is
	// then a *timeoutError), or when the answer came on a stream that is not
	// the call's own (errAnswered).
	ctx    context.Context
	cancel context.CancelCauseFunc

	// Set by finish, once, before done is closed.

	once   sync.Once
	done   chan struct{}
	result []byte
	err    error

	limit *limit // nil for none

	// Owned by the goroutine of the caller.

	sent   bool // the frame is on its way
	asTask bool // notifications/cancelled must not name it
}

// limit is the time limit of a call. Progress moves it, up to a latest moment.
type limit struct {
	each   time.Duration
	latest time.Time
	mu     sync.Mutex // guards timer against extend after stop
	timer  *time.Timer
}

func (l *limit) extend() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Reset(min(l.each, time.Until(l.latest)))
	}
}

func (l *limit) stop() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Stop()
	l.timer = nil
}

// finish gives a call its outcome. Only the first one counts.
func (k *call) finish(result []byte, err error) {
	k.once.Do(func() {
		k.result, k.err = result, err
		close(k.done)
	})
}

// answered reports whether the call has its outcome.
func (k *call) answered() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// Request sends a request and waits for its answer. params is a raw JSON object
// or nil; the result is raw JSON and belongs to the caller. An error that the
// server answers holds a *codec.Error; where the user has to go to a page first
// it is a *URLElicitationError. When ctx or the time limit ends first,
// Request returns at once and the server is sent notifications/cancelled
// (section Cancellation of the basic utilities), or over HTTP without a session
// the stream is closed.
//
// On the stateless revision Request also answers what the server asks for in the
// midst of the request, by the callbacks of Options (where that fails the error
// is an *InputError), takes lists and resources from the cache while they are
// fresh, and gives a *RequiredCapabilityError for -32021. The result of a
// tools/call may be a task where Options.TaskExtension is set.
func (c *Client) Request(ctx context.Context, method string, params []byte, o *CallOptions) (result []byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if e := c.era.Load(); e != nil {
		return c.requestStateless(ctx, e, method, params, o)
	}
	k, err := c.newCall(ctx, method, params, o)
	if err != nil {
		return nil, err
	}
	if result, err = c.run(k, o); err != nil {
		return nil, c.typedError(err)
	}
	return result, nil
}

// run makes a call and waits for its outcome.
func (c *Client) run(k *call, o *CallOptions) (result []byte, err error) {
	defer k.cancel(nil)
	if err := c.register(k); err != nil {
		return nil, err
	}
	k.startLimit(c, o)
	defer k.limit.stop()

	err = c.link.call(k)
	if err == nil {
		select {
		case <-k.done:
		case <-k.ctx.Done():
		}
	}
	c.forget(k)
	if k.answered() {
		return k.result, k.err
	}
	if cause := context.Cause(k.ctx); cause != nil {
		c.abandon(k, cause)
		return nil, c.withHint(cause, k)
	}
	return nil, err
}

// newCall makes a call and its frame.
func (c *Client) newCall(ctx context.Context, method string, params []byte, o *CallOptions) (*call, error) {
	k := &call{id: c.nextID.Add(1), method: method, begun: time.Now(), done: make(chan struct{})}
	id := strconv.AppendUint(nil, k.id, 10)
	var token []byte
	if o != nil && o.OnProgress != nil {
		k.onProgress = o.OnProgress
		token = id
	}
	e := c.era.Load()
	var err error
	if e == nil {
		params, err = prepareParams(params, token)
	} else if params, err = e.params(params, token); err == nil {
		k.header, err = e.headers(method, params)
	}
	if err != nil {
		return nil, err
	}
	k.frame = codec.AppendRequest(make([]byte, 0, len(params)+len(method)+64), id, method, params)
	if len(k.frame) > c.o.MaxMessageBytes {
		return nil, ErrTooLarge
	}
	k.ctx, k.cancel = context.WithCancelCause(ctx)
	return k, nil
}

// startLimit starts the clock of a call.
func (k *call) startLimit(c *Client, o *CallOptions) {
	each := c.o.CallTimeout
	if o != nil && o.Timeout != 0 {
		each = o.Timeout
	}
	if each < 0 {
		return
	}
	l := &limit{each: each, latest: k.begun.Add(max(each, c.o.MaxCallTimeout))}
	l.timer = time.AfterFunc(each, func() {
		k.cancel(&timeoutError{method: k.method, after: time.Since(k.begun).Round(time.Millisecond)})
	})
	c.mu.Lock() // the reader of the connection may look at it from now on
	k.limit = l
	c.mu.Unlock()
}

// register puts a call into the table.
func (c *Client) register(k *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return c.err
	case len(c.pending) >= c.o.MaxPending:
		return ErrTooManyCalls
	}
	c.pending[k.id] = k
	return nil
}

// forget takes a call out of the table, after which an answer is ignored.
func (c *Client) forget(k *call) {
	c.mu.Lock()
	delete(c.pending, k.id)
	c.mu.Unlock()
}

// abandon tells the server that nobody waits for a call any more. Without a
// session over HTTP, the end of the stream has said so. A probe has no effect
// that could be spared, and a server of the older era would not know what to
// make of a cancellation before the handshake.
func (c *Client) abandon(k *call, cause error) {
	if !k.sent || k.asTask || k.method == codec.MethodInitialize || k.method == codec.MethodDiscover {
		return
	}
	if e := c.era.Load(); e != nil && e.http {
		return
	}
	reason := "the caller gave up"
	if errors.Is(cause, context.DeadlineExceeded) {
		reason = "timeout"
	}
	c.sendAside(codec.AppendCancelled(nil, strconv.AppendUint(nil, k.id, 10), reason))
}

// withHint adds to the error of a time limit what was wrong on the connection.
func (c *Client) withHint(cause error, k *call) error {
	var t *timeoutError
	if f := c.fault.Load(); f != nil && !f.at.Before(k.begun) && errors.As(cause, &t) {
		return &timeoutError{method: t.method, after: t.after, hint: f.text}
	}
	return cause
}

// send sends a notification or a response, within the time limit of a call.
func (c *Client) send(ctx context.Context, frame []byte) error {
	limit := c.o.CallTimeout
	if limit < 0 {
		limit = c.o.MaxCallTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return c.link.send(ctx, frame)
}

// sendAside sends a small message, if need be from a goroutine of its own, so
// that neither a caller nor a reader waits for a peer that does not read. Where
// too many such messages wait already, it is dropped.
func (c *Client) sendAside(frame []byte) {
	if c.link.trySend(frame) {
		return
	}
	select {
	case c.replies <- struct{}{}:
	default:
		c.noteFault("the server does not take messages; one was dropped")
		return
	}
	started := c.spawn(func() {
		defer func() { <-c.replies }()
		if err := c.send(c.ctx, frame); err != nil && c.ctx.Err() == nil {
			c.log.Warn("client: a message could not be sent", "error", err)
		}
	})
	if !started {
		<-c.replies
	}
}

// Notify sends a notification. params is a raw JSON object or nil. Over HTTP it
// returns when the server has accepted it; otherwise when it is written. It
// takes no longer than Options.CallTimeout, or Options.MaxCallTimeout where that
// is below zero.
func (c *Client) Notify(ctx context.Context, method string, params []byte) error {
	params, err := prepareParams(params, nil)
	if err != nil {
		return err
	}
	frame := codec.AppendNotification(make([]byte, 0, len(params)+len(method)+48), method, params)
	if len(frame) > c.o.MaxMessageBytes {
		return ErrTooLarge
	}
	if err := c.Err(); err != nil {
		return err
	}
	return c.send(ctx, frame)
}

// prepareParams checks params and puts a progress token into its _meta. Other
// members of _meta stay; a token that the caller wrote is replaced.
func prepareParams(params, token []byte) ([]byte, error) {
	if !isObjectOrNil(params) {
		return nil, ErrBadParams
	}
	if token == nil {
		return params, nil
	}
	out := append(make([]byte, 0, len(params)+48), `{"_meta":{"progressToken":`...)
	out = append(out, token...)
	codec.EachMember(codec.Member(params, "_meta"), func(name, value []byte) bool {
		if string(name) != codec.MetaProgressToken {
			out = appendMember(out, name, value)
		}
		return true
	})
	out = append(out, '}')
	codec.EachMember(params, func(name, value []byte) bool {
		if string(name) != "_meta" {
			out = appendMember(out, name, value)
		}
		return true
	})
	return append(out, '}'), nil
}

// appendMember appends a member that is not the first of its object.
func appendMember(dst, name, value []byte) []byte {
	dst = append(dst, ',')
	dst = codec.AppendString(dst, name)
	dst = append(dst, ':')
	return append(dst, value...)
}
