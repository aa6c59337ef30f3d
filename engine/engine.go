package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
)

// Engine serves sessions from a catalog. All its methods may be called at any
// time from any goroutine.
type Engine struct {
	info    Info
	options Options
	log     *slog.Logger
	system  *actors.System

	changing sync.Mutex // serialises changes of the catalog
	catalog  atomic.Pointer[catalog]

	announcer announcer
	tasks     *taskTable
	seal      *sealer
	ids       *sealer      // of session ids; nil without Options.SessionKeys
	rates     *rateLimiter // nil without Options.RateLimit
	sessions  sessionCounters
	revivals  revivals

	serverInfo []byte // raw member of a result's _meta

	compiled      atomic.Int64   // schemas
	registrations atomic.Int64   // tools
	working       sync.WaitGroup // tasks
	auditing      atomic.Int64   // records that are on their way to Options.Audit
}

// New makes an engine. It holds about 40 KB, after the 3 MB that the start of an
// actor system takes have gone to the garbage collector, and Shutdown ends it.
// An empty name or version of info becomes "mcpengine" or "0".
//
// It panics where options hold keys of a wrong length.
func New(info Info, o *Options) *Engine {
	if info.Name == "" {
		info.Name = "mcpengine"
	}
	if info.Version == "" {
		info.Version = "0"
	}
	e := &Engine{info: info, options: o.withDefaults()}
	e.log = e.options.Logger
	e.makeSealers() // which may panic: before anything runs that nobody could end
	e.system = actors.NewSystem(actors.Config{
		Limits:         e.options.Limits,
		SessionsExpire: len(e.options.SessionKeys) > 0,
		Logger:         e.log,
		OnFailure: func(who string, reason any) {
			e.log.Debug("actor failed", "actor", who, "reason", fmt.Sprint(reason))
		},
	})
	if e.options.RateLimit != nil {
		e.rates = newRateLimiter(e.options.RateLimit, e.options.RateLimitKeys)
	}
	e.serverInfo = info.appendTo([]byte(`"`+codec.MetaServerInfo+`":`), newest)
	e.announcer.engine = e
	e.tasks = &taskTable{engine: e, store: e.options.Tasks, live: make(map[string]*liveTask)}
	e.catalog.Store(&catalog{interceptors: newInterceptors(&e.options)})
	return e
}

// makeSealers makes what seals from the keys of the options, and panics where
// one is of a wrong length.
func (e *Engine) makeSealers() {
	var err error
	if e.seal, err = newSealer(e.options.StateKeys); err != nil {
		panic(err)
	}
	if len(e.options.SessionKeys) == 0 {
		return
	}
	if e.ids, err = newSealer(e.options.SessionKeys); err != nil {
		panic(err)
	}
}

// Use adds middleware around the handlers of all requests but initialize and
// ping. The first one added is the outermost. It concerns requests that come
// after it.
func (e *Engine) Use(m ...Middleware) {
	e.changing.Lock()
	defer e.changing.Unlock()
	c := e.catalog.Load().clone()
	c.middleware = append(append([]Middleware(nil), c.middleware...), m...)
	for _, l := range []*list{&c.tools, &c.resources, &c.templates, &c.prompts} {
		c.rewrap(l)
	}
	e.catalog.Store(c)
}

// change makes a new snapshot of the catalog, and announces it, unless f
// reports that nothing changed. kind and name say what it is about.
func (e *Engine) change(kind Kind, name string, f func(*catalog) bool) bool {
	e.changing.Lock()
	c := e.catalog.Load().clone()
	changed := f(c)
	if changed {
		e.catalog.Store(c)
	}
	e.changing.Unlock()
	if changed {
		e.announcer.changed(kind.list(), listChange{kind: kind, name: name})
	}
	return changed
}

// Stats is a snapshot of what an engine holds and has done.
type Stats struct {
	Sessions           int // open sessions
	ActiveRequests     int // requests whose handler has not returned
	Subscriptions      int // subscriptions to resources
	Refused            int // requests and sessions that a limit turned away
	SchemaCompilations int // since the engine was made
	ToolRegistrations  int // since the engine was made
	// Refusals counts what was turned away, by reason, and what became of
	// sessions.
	Refusals Refusals
}

// Stats gives a snapshot.
func (e *Engine) Stats() Stats {
	c := e.system.Counts()
	return Stats{
		Sessions: c.Sessions, ActiveRequests: c.InFlight, Subscriptions: c.Subscriptions, Refused: c.Refused,
		SchemaCompilations: int(e.compiled.Load()), ToolRegistrations: int(e.registrations.Load()),
		Refusals: e.refusals(),
	}
}

// Shutdown ends the engine: it admits no new work, waits until what is in
// flight is done or ctx ends, and then ends every session. The error is that of
// ctx where requests had to be cut off.
func (e *Engine) Shutdown(ctx context.Context) error {
	e.system.StopAdmitting()
	e.system.StopListeners()
	err := e.awaitIdle(ctx)
	e.announcer.stop()
	e.system.Shutdown()
	e.awaitTasks()
	e.awaitAudits()
	return err
}

// awaitTasks gives the goroutines of tasks a moment to end. A handler that does
// not heed its context is left behind.
func (e *Engine) awaitTasks() {
	ended := make(chan struct{})
	go func() {
		e.working.Wait()
		close(ended)
	}()
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// awaitIdle waits until no request is in flight.
func (e *Engine) awaitIdle(ctx context.Context) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for e.system.Counts().InFlight > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("engine: %d requests cut off: %w", e.system.Counts().InFlight, context.Cause(ctx))
		case <-tick.C:
		}
	}
	return nil
}

// Accepting tells whether the engine takes new work: nil, or ErrShuttingDown.
func (e *Engine) Accepting() error {
	if e.system.Admit() != nil {
		return ErrShuttingDown
	}
	return nil
}

// ErrShuttingDown means that Shutdown was called.
var ErrShuttingDown = errors.New("engine: shutting down")

// EachSession calls f with every session that is open, in no particular order. f
// must not block.
func (e *Engine) EachSession(f func(*Session)) {
	e.system.EachSession(func(a *actors.Session) {
		if s, ok := a.Value.(*Session); ok {
			f(s)
		}
	})
}
