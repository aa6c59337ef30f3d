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
	base    context.Context
	follows bool // the end of base ends it too: the stateless era

	mu    sync.Mutex    // guards what follows
	ended bool          // by the engine
	done  chan struct{} // made when asked for
	stop  func() bool   // ends the watch over base
	after map[*func()]struct{}
}

var _ context.Context = (*callContext)(nil)

// Deadline gives none: a handler's time limit ends the context by itself.
func (c *callContext) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value gives what the transport's context holds, but for its end: package
// context asks for that too, and would give its cause for this one's.
func (c *callContext) Value(key any) any { return context.WithoutCancel(c.base).Value(key) }

// Done is closed at the call's end.
func (c *callContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.ended {
			close(c.done)
		}
	}
	c.watch()
	return c.done
}

// watch has the end of base end this context. It costs something, and is done
// only when somebody waits. c.mu is held.
func (c *callContext) watch() {
	if c.follows && c.stop == nil && !c.ended {
		c.stop = context.AfterFunc(c.base, c.end)
	}
}

// gone reports whether the peer has left, in the era in which that is a
// cancellation: nothing is sent any more.
func (c *callContext) gone() bool { return c.follows && c.base.Err() != nil }

// Err is nil until the call's end.
func (c *callContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended:
		return context.Canceled
	case c.follows:
		return c.base.Err()
	}
	return nil
}

// AfterFunc makes contexts that are derived from this one cost no goroutine:
// package context looks for this method.
func (c *callContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		go f()
		return func() bool { return false }
	}
	if c.after == nil {
		c.after = make(map[*func()]struct{})
	}
	key := &f
	c.after[key] = struct{}{}
	c.watch()
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waits := c.after[key]
		delete(c.after, key)
		return waits
	}
}

// end ends the context. Only the first call counts.
func (c *callContext) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	if c.stop != nil {
		c.stop()
	}
	if c.done != nil {
		close(c.done)
	}
	for f := range c.after {
		go (*f)()
	}
	c.after = nil
}
