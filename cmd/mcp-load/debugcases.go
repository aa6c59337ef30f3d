package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/mcpengine/mcpengine/engine"
)

// debugHooks are the hooks of the wire cases: what a case needs to see or to
// make happen inside of the server. They have a listener of their own, since
// the action shutdown closes the server's.
type debugHooks struct {
	server     *server
	ctx        context.Context // ends with the hooks
	background backgroundEmitter
	added      addedTools
}

// debugAction is one hook: it takes the step of a case and gives the answer.
type debugAction func(h *debugHooks, ctx context.Context, step []byte) (any, error)

// debugActions are the hooks by the name of their action.
var debugActions = map[string]debugAction{
	"inspect":         hook((*debugHooks).inspect),
	"emit":            hook((*debugHooks).emit),
	"emit_background": hook((*debugHooks).emitBackground),
	"emit_stop":       hook((*debugHooks).emitStop),
	"add_tools":       hook((*debugHooks).addTools),
	"fill_socket":     hook((*debugHooks).fillSocket),
	"server_request":  hook((*debugHooks).serverRequest),
	"shutdown":        hook((*debugHooks).shutdown),
	"decode_call":     hook((*debugHooks).decodeCall),
	"encode_result":   hook((*debugHooks).encodeResult),
	"loadgen":         hook((*debugHooks).loadgen),
	"histogram_merge": hook((*debugHooks).histogram),
	"histogram_add":   hook((*debugHooks).histogram),
}

// errNoSuchAction means that a hook does not offer what a step asks for; the
// case is then skipped.
var errNoSuchAction = errors.New("no such action")

// hook makes an action of a function that takes the fields it needs of a step.
func hook[Step any](f func(*debugHooks, context.Context, Step) (any, error)) debugAction {
	return func(h *debugHooks, ctx context.Context, raw []byte) (any, error) {
		var step Step
		if err := json.Unmarshal(raw, &step); err != nil {
			return nil, err
		}
		return f(h, ctx, step)
	}
}

// startDebug serves the hooks on an address.
func (s *server) startDebug(addr string) (stop func(), err error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h := &debugHooks{server: s, ctx: ctx}
	mux := http.NewServeMux()
	mux.Handle("POST /debug/cases", h)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = web.Serve(listener) }()
	return func() {
		h.background.stop()
		closing, cancelClosing := context.WithTimeout(ctx, time.Second)
		defer cancelClosing()
		if web.Shutdown(closing) != nil { // an answer may be on its way
			_ = web.Close()
		}
		cancel()
	}, nil
}

// ServeHTTP serves one call of a hook.
func (h *debugHooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<20))
	var named struct {
		Action string `json:"action"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &named)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	action, ok := debugActions[named.Action]
	if !ok {
		http.Error(w, "no such action", http.StatusNotFound)
		return
	}
	answer, err := action(h, r.Context(), raw)
	switch {
	case errors.Is(err, errNoSuchAction):
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// session finds an open session by its key. An empty key means the only
// session, as stdio has it.
func (h *debugHooks) session(key string) (*engine.Session, error) {
	if key != "" {
		if s := h.server.engine.Session(key); s != nil {
			return s, nil
		}
		return nil, fmt.Errorf("no session %q", key)
	}
	var found []*engine.Session
	h.server.engine.EachSession(func(s *engine.Session) { found = append(found, s) })
	if len(found) != 1 {
		return nil, fmt.Errorf("there are %d sessions: name one", len(found))
	}
	return found[0], nil
}

type inspectStep struct {
	GC bool `json:"gc"`
}

// inspect gives the counters.
func (h *debugHooks) inspect(_ context.Context, step inspectStep) (any, error) {
	if step.GC {
		runtime.GC()
		runtime.GC() // what finalizers and pools let go of in the first
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s := h.server
	stats, web := s.engine.Stats(), s.handler.Stats()
	started, ended := s.counts.snapshot()
	pending := make(map[string]int)
	s.engine.EachSession(func(session *engine.Session) {
		if n := session.PendingRequests(); n > 0 {
			pending[session.Key()] = n
		}
	})
	return map[string]any{
		"goroutines": runtime.NumGoroutine(), "heap_bytes": m.HeapAlloc, "total_alloc_bytes": m.TotalAlloc,
		"sessions": stats.Sessions, "streams": web.Streams, "subscriptions": stats.Subscriptions,
		"active_requests": stats.ActiveRequests, "pending_server_requests": pending,
		"tool_calls": started, "tool_outcomes": ended,
		"schema_compilations": stats.SchemaCompilations, "tool_registrations": stats.ToolRegistrations,
		"actions_taken": actionsTaken.Load(), "body_bytes_read": web.BodyBytesRead, "event_store_bytes": web.ReplayBytes,
	}, nil
}

type shutdownStep struct {
	GraceMS int `json:"grace_ms"`
}

// shutdown shuts the engine down and closes the server's listener. The process
// goes on, so that the counters can be looked at.
func (h *debugHooks) shutdown(_ context.Context, step shutdownStep) (any, error) {
	if err := h.server.shutdown(h.ctx, milliseconds(step.GraceMS)); err != nil {
		return map[string]any{"error": err.Error()}, nil
	}
	return map[string]any{"error": nil}, nil
}
