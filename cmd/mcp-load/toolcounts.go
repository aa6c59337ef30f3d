package main

import (
	"context"
	"maps"
	"sync"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// toolCounts counts what became of the calls of each tool.
type toolCounts struct {
	mu      sync.Mutex // guards what follows
	started map[string]int
	ended   map[string]outcomes
	ids     map[callID]struct{} // of the calls since watchIDs; nil while nobody watches
	reused  int                 // calls whose id was in ids already
}

// outcomes counts calls whose handler has returned.
type outcomes struct {
	Completed int `json:"completed"`
	Cancelled int `json:"cancelled"` // the handler's context had ended
}

// callID names a call: ids are unique within a session.
type callID struct{ session, id string }

func newToolCounts() *toolCounts {
	return &toolCounts{started: make(map[string]int), ended: make(map[string]outcomes)}
}

// middleware counts around the handlers of tools/call.
func (t *toolCounts) middleware(next engine.Handler) engine.Handler {
	return func(ctx context.Context, c *engine.Call) error {
		if c.Method() != codec.MethodToolsCall {
			return next(ctx, c)
		}
		t.begin(c)
		defer t.end(ctx, c)
		return next(ctx, c)
	}
}

func (t *toolCounts) begin(c *engine.Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.started[c.Name()]++
	if t.ids == nil || c.Session() == nil {
		return
	}
	id := callID{c.Session().Key(), c.ID()}
	if _, used := t.ids[id]; used {
		t.reused++
	}
	t.ids[id] = struct{}{}
}

func (t *toolCounts) end(ctx context.Context, c *engine.Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.ended[c.Name()]
	if ctx.Err() != nil {
		o.Cancelled++
	} else {
		o.Completed++
	}
	t.ended[c.Name()] = o
}

// watchIDs watches for ids that are used twice in a session, until the function
// that it gives is called, which tells how many there were.
func (t *toolCounts) watchIDs() (reused func() int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ids, t.reused = make(map[callID]struct{}), 0
	return func() int {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.ids = nil
		return t.reused
	}
}

// snapshot gives copies of both tables.
func (t *toolCounts) snapshot() (started map[string]int, ended map[string]outcomes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.started), maps.Clone(t.ended)
}
