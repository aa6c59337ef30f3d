package engine

import (
	"context"
	"sync"
	"time"
)

// callContext is the context of one call. It takes its values from the context
// that the transport gave, and its end from the engine alone: in a legacy
// revision a broken connection is no cancellation. It is never reused, so a
// handler may keep it.
type callContext struct {
	base context.Context

	mu    sync.Mutex
	err   error
	cause error
	done  chan struct{} // made when asked for
	after map[*func()]struct{}
}

var _ context.Context = (*callContext)(nil)

// Deadline gives none: a handler's time limit ends the context by itself.
func (c *callContext) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value gives what the transport's context holds.
func (c *callContext) Value(key any) any { return c.base.Value(key) }

// Done is closed at the call's end.
func (c *callContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		}
	}
	return c.done
}

// Err is nil until the call's end.
func (c *callContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// AfterFunc makes contexts that are derived from this one cost no goroutine:
// package context looks for this method.
func (c *callContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	if c.after == nil {
		c.after = make(map[*func()]struct{})
	}
	key := &f
	c.after[key] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waits := c.after[key]
		delete(c.after, key)
		return waits
	}
}

// end ends the context. Only the first call counts.
func (c *callContext) end(err, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err, c.cause = err, cause
	if c.done != nil {
		close(c.done)
	}
	for f := range c.after {
		go (*f)()
	}
	c.after = nil
}
