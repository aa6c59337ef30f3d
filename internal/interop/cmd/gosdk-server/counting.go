package main

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"

	"github.com/mcpengine/mcpengine/internal/interop/fixture"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// counter counts what reached the server. It is the oracle for the figures that mcp-load prints about itself.
type counter struct {
	server                         *mcp.Server
	initializes, calls, deletes    atomic.Int64
	failedInitializes, failedCalls atomic.Int64
}

// middleware counts requests by method, and those that were answered with an error once more.
func (c *counter) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, r)
		switch method {
		case "initialize":
			count(&c.initializes, &c.failedInitializes, err)
		case "tools/call":
			count(&c.calls, &c.failedCalls, err)
		}
		return result, err
	}
}

func count(all, failed *atomic.Int64, err error) {
	all.Add(1)
	if err != nil {
		failed.Add(1)
	}
}

// countDeletes counts the DELETE requests that ended a session.
func (c *counter) countDeletes(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodDelete {
			next.ServeHTTP(w, r)
			return
		}
		seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(seen, r)
		if seen.status/100 == 2 {
			c.deletes.Add(1)
		}
	})
}

// statusWriter remembers the status that the handler chose.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (c *counter) publish(w http.ResponseWriter, _ *http.Request) {
	open := 0
	for range c.server.Sessions() {
		open++
	}
	w.Header().Set("Content-Type", "application/json")
	// The peer is a test on this machine; an error here is its to notice.
	_ = json.NewEncoder(w).Encode(fixture.Counts{
		Initializes:       c.initializes.Load(),
		FailedInitializes: c.failedInitializes.Load(),
		Calls:             c.calls.Load(),
		FailedCalls:       c.failedCalls.Load(),
		Deletes:           c.deletes.Load(),
		OpenSessions:      open,
	})
}
