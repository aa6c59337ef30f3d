package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

type serverRequestStep struct {
	Session    string `json:"session"`
	Method     string `json:"method"`
	Count      int    `json:"count"`
	Concurrent bool   `json:"concurrent"`
	Wait       bool   `json:"wait"`
}

// askedParams are the params of the requests to the client that need some.
var askedParams = map[string][]byte{
	codec.MethodSample: []byte(`{"messages":[{"role":"user","content":{"type":"text","text":"case"}}],"maxTokens":1}`),
	codec.MethodElicit: []byte(`{"message":"case","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`),
}

// serverRequest sends requests to a client. Those of a step that does not wait
// go on when it is answered.
func (h *debugHooks) serverRequest(ctx context.Context, step serverRequestStep) (any, error) {
	session, err := h.session(step.Session)
	if err != nil {
		return nil, err
	}
	if !step.Wait {
		ctx = h.ctx
	}
	count := max(step.Count, 1)
	before := session.PendingRequests()
	a := &asking{session: session, method: step.Method, params: askedParams[step.Method]}
	all := make(chan struct{})
	go func() {
		defer close(all)
		a.run(ctx, count, step.Concurrent)
	}()
	if step.Wait {
		<-all
		return map[string]any{"resolved": a.resolved.Load()}, nil
	}
	want := before + 1
	if step.Concurrent {
		want = before + count
	}
	for session.PendingRequests() < want {
		select {
		case <-all: // answered already, or the session has ended
			return struct{}{}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return struct{}{}, nil
}

// asking is a number of equal requests to one client.
type asking struct {
	session  *engine.Session
	method   string
	params   []byte
	resolved atomic.Int64 // answered with a result
}

// run sends the requests, all at once or one after another, and waits for the
// answers.
func (a *asking) run(ctx context.Context, count int, concurrent bool) {
	var each sync.WaitGroup
	for range count {
		if concurrent {
			each.Go(func() { a.once(ctx) })
			continue
		}
		a.once(ctx)
	}
	each.Wait()
}

func (a *asking) once(ctx context.Context) {
	if _, err := a.session.Request(ctx, a.method, a.params); err == nil {
		a.resolved.Add(1)
	}
}
