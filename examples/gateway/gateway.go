package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// Config says what a Gateway joins, and for whom.
type Config struct {
	Upstreams []Upstream
	// Sessions is how many sessions are kept open to an upstream that has sessions over HTTP. Default 4.
	Sessions int
	// CallTimeout is how long an upstream may go without an answer or a sign of progress. Default 1 minute.
	CallTimeout time.Duration
	// Policy says who may see and call what; nil lets everybody do everything.
	Policy *Policy
	// Logger receives the audit records and what goes wrong. Default: slog.Default().
	Logger *slog.Logger
}

// Gateway offers what several MCP servers have as one server.
type Gateway struct {
	engine    *engine.Engine
	policy    *Policy
	log       *slog.Logger
	upstreams []*upstream
	stop      context.CancelFunc
	running   sync.WaitGroup
}

// New makes a Gateway and begins to connect to its upstreams. What each of them offers appears when it is there; Close
// ends all.
func New(c Config) (*Gateway, error) {
	if len(c.Upstreams) == 0 {
		return nil, errors.New("nothing to join: give -upstream NAME=URL or NAME=COMMAND at least once")
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Sessions <= 0 {
		c.Sessions = 4
	}
	if c.CallTimeout <= 0 {
		c.CallTimeout = time.Minute
	}
	g := &Gateway{policy: c.Policy, log: c.Logger}
	options := &engine.Options{Logger: c.Logger, Audit: g.audit}
	if p := c.Policy; p != nil {
		options.Principal = callerOf
		options.Visible = p.visible
		options.Before = []func(context.Context, *engine.Call) error{p.confirm}
	}
	g.engine = engine.New(engine.Info{Name: "mcpengine-gateway", Version: "1.0.0"}, options)
	ctx, stop := context.WithCancel(context.Background())
	g.stop = stop
	seen := map[string]bool{}
	for _, spec := range c.Upstreams {
		if seen[spec.Name] {
			_ = g.Close(context.Background()) // nothing has begun yet
			return nil, fmt.Errorf("two upstreams have the name %q", spec.Name)
		}
		seen[spec.Name] = true
		g.upstreams = append(g.upstreams, newUpstream(spec, &c, g.engine))
	}
	if err := g.addStatus(); err != nil {
		_ = g.Close(context.Background()) // nothing has begun yet
		return nil, err
	}
	for _, u := range g.upstreams {
		g.running.Go(func() { u.run(ctx) })
	}
	return g, nil
}

// Ready waits until every upstream has told what it offers, or ctx ends.
func (g *Gateway) Ready(ctx context.Context) {
	for _, u := range g.upstreams {
		select {
		case <-u.catalog.known:
		case <-ctx.Done():
			return
		}
	}
}

// addStatus offers a tool that tells how the upstreams are. It also has the gateway declare that it has tools while no
// upstream has said so: a client that was told of none would not ask again.
func (g *Gateway) addStatus() error {
	return g.engine.AddRawTool(engine.Tool{
		Name: "gateway_status", Description: "Tells which of the servers behind this gateway are up.",
		Annotations: &engine.ToolAnnotations{ReadOnlyHint: engine.Hint(true)},
	}, func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
		states, err := json.Marshal(g.states())
		return engine.AppendTextResult(out, states), err
	})
}

// states tells how each upstream is.
func (g *Gateway) states() map[string]State {
	states := map[string]State{}
	for _, u := range g.upstreams {
		states[u.spec.Name] = u.state()
	}
	return states
}

// Close admits no more calls, lets those in flight finish until ctx ends, and then closes the upstreams.
func (g *Gateway) Close(ctx context.Context) error {
	err := g.engine.Shutdown(ctx)
	g.stop()
	g.running.Wait()
	return err
}

// Handler serves the endpoint at /mcp, and at /healthz how the upstreams are.
func (g *Gateway) Handler() http.Handler {
	mux := http.NewServeMux()
	endpoint := http.Handler(transport.NewHTTPHandler(g.engine, nil))
	if g.policy != nil {
		endpoint = g.policy.authenticate(endpoint)
	}
	mux.Handle("/mcp", endpoint)
	mux.HandleFunc("GET /healthz", g.health)
	return mux
}

// health answers 200 where every upstream is there, else 503, and tells of each.
func (g *Gateway) health(w http.ResponseWriter, _ *http.Request) {
	status, states := http.StatusOK, g.states()
	for _, s := range states {
		if !s.Up {
			status = http.StatusServiceUnavailable
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(states); err != nil {
		g.log.Debug("health was not read", "error", err)
	}
}

// audit records one request: who, what, outcome, time; no arguments.
func (g *Gateway) audit(r engine.Record) {
	g.log.Info("audit", "principal", r.Principal, "session", r.Session, "method", r.Method, "name", r.Name,
		"outcome", r.Outcome, "code", r.Code, "took", r.Duration)
}
