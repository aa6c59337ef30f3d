package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/engine"
)

type emitStep struct {
	What     string  `json:"what"`
	Count    int     `json:"count"`
	Bytes    int     `json:"bytes"`
	URI      string  `json:"uri"`
	RatePerS float64 `json:"rate_per_s"`
}

// event gives the function that makes the step's event happen once.
func (h *debugHooks) event(step *emitStep) (func(), error) {
	e := h.server.engine
	if list, ok := strings.CutSuffix(step.What, "_list_changed"); ok {
		switch list {
		case "tools", "prompts", "resources":
			return func() { e.NotifyListChanged(list) }, nil
		}
	}
	switch step.What {
	case "log":
		text := strings.Repeat("x", max(step.Bytes, 1))
		return func() { _ = e.Log(engine.LevelInfo, "case", text) }, nil // text can be encoded
	case "resource_updated":
		return func() { e.ResourceUpdated(step.URI) }, nil
	}
	return nil, fmt.Errorf("%w: emit %s", errNoSuchAction, step.What)
}

// emit makes an event happen, count times.
func (h *debugHooks) emit(ctx context.Context, step emitStep) (any, error) {
	happen, err := h.event(&step)
	if err != nil {
		return nil, err
	}
	for range max(step.Count, 1) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		happen()
	}
	return struct{}{}, nil
}

// backgroundEmitter makes events happen at a steady rate.
type backgroundEmitter struct {
	mu   sync.Mutex // guards what follows
	quit chan struct{}
	done sync.WaitGroup
}

// start begins. What is under way is stopped before.
func (b *backgroundEmitter) start(every time.Duration, happen func()) {
	b.stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	quit := make(chan struct{})
	b.quit = quit
	b.done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				happen()
			case <-quit:
				return
			}
		}
	})
}

// stop stops and waits until nothing happens any more.
func (b *backgroundEmitter) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.quit != nil {
		close(b.quit)
		b.quit = nil
		b.done.Wait()
	}
}

func (h *debugHooks) emitBackground(_ context.Context, step emitStep) (any, error) {
	happen, err := h.event(&step)
	if err != nil {
		return nil, err
	}
	if step.RatePerS <= 0 || step.RatePerS > 1e6 {
		return nil, errors.New("rate_per_s must lie between 0 and 1,000,000")
	}
	h.background.start(time.Duration(float64(time.Second)/step.RatePerS), happen)
	return struct{}{}, nil
}

func (h *debugHooks) emitStop(context.Context, struct{}) (any, error) {
	h.background.stop()
	return struct{}{}, nil
}

// addedTools counts the tools that were added at run time, for their names.
type addedTools struct {
	mu sync.Mutex
	n  int // guarded by mu
}

type addToolsStep struct {
	Count int `json:"count"`
}

// addTools adds tools one by one.
func (h *debugHooks) addTools(_ context.Context, step addToolsStep) (any, error) {
	h.added.mu.Lock()
	defer h.added.mu.Unlock()
	for range step.Count {
		h.added.n++
		err := engine.AddTool(h.server.engine, engine.Tool{
			Name: fmt.Sprintf("added_%d", h.added.n), Description: "Added at run time.", Annotations: readOnly,
		}, func(context.Context, *engine.Call, noIn) (string, error) { return "added", nil })
		if err != nil {
			return nil, err
		}
	}
	return map[string]any{"last_change_unix_ms": time.Now().UnixMilli()}, nil
}

const (
	fillPiece = 64 << 10
	fillTotal = 24 << 20 // more than the buffers of a socket hold, on both sides
	fillPause = time.Millisecond
)

type fillSocketStep struct {
	Session string `json:"session"`
}

// fillSocket sends log messages on a session's stream until its socket takes no
// more. A session's queue never makes its sender wait: what finds no room in it
// is dropped, so that sending more than the socket's buffers hold, with pauses
// in which the queue empties into them, fills them and then the queue.
func (h *debugHooks) fillSocket(ctx context.Context, step fillSocketStep) (any, error) {
	session, err := h.session(step.Session)
	if err != nil {
		return nil, err
	}
	text := strings.Repeat("x", fillPiece)
	for sent := 0; sent < fillTotal; sent += fillPiece {
		if err := session.Log(engine.LevelEmergency, "case", text); err != nil {
			return nil, err
		}
		if err := sleep(ctx, fillPause); err != nil {
			return nil, err
		}
	}
	return struct{}{}, nil
}
