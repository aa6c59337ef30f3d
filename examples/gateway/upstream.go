package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport/client"
)

const (
	connectWait  = 15 * time.Second       // for a handshake
	firstBackoff = 100 * time.Millisecond // before an upstream is tried again, doubled each time
	mostBackoff  = 10 * time.Second
	goodAfter    = 5 * time.Second // that a session lasts
	pingEvery    = 10 * time.Second
	pingWait     = 5 * time.Second
	patience     = time.Second // that a call has while no session is open
	mostInFlight = 16384       // calls at once on one session
)

// errUnavailable means that an upstream has no session open.
var errUnavailable = errors.New("unavailable")

// Upstream is a server to join: over HTTP where URL is set, else a process that is spawned and spoken to over stdio.
type Upstream struct {
	Name    string // lower-case letters, digits and hyphens; the prefix of what it offers
	URL     string
	Command []string
}

// parseUpstream reads NAME=URL or NAME=COMMAND ARGS. A command is split at blanks.
func parseUpstream(s string) (Upstream, error) {
	name, target, ok := strings.Cut(s, "=")
	if !ok || strings.TrimSpace(target) == "" {
		return Upstream{}, fmt.Errorf("%q: write NAME=URL or NAME=COMMAND ARGS", s)
	}
	if name == "" || len(name) > 32 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return Upstream{}, fmt.Errorf("%q: a name is 1 to 32 lower-case letters, digits and hyphens", name)
	}
	if name == "gateway" {
		return Upstream{}, errors.New("the name gateway is the gateway's own")
	}
	u := Upstream{Name: name}
	if strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://") {
		u.URL = target
	} else {
		u.Command = strings.Fields(target)
	}
	return u, nil
}

// State is how an upstream is.
type State struct {
	Up       bool   `json:"up"`
	Sessions int    `json:"sessions"` // open now
	Opened   int64  `json:"opened"`   // handshakes since the start
	InFlight int    `json:"in_flight"`
	Protocol string `json:"protocol,omitempty"`
	Error    string `json:"error,omitempty"` // why there is no session, or what it offers that cannot be joined
}

// upstream keeps sessions open to one server. Calls share them: one goes to the session with the fewest in flight.
type upstream struct {
	spec    Upstream
	timeout time.Duration // of a call
	size    int           // sessions wanted, where the server has sessions
	catalog *catalog
	log     *slog.Logger
	changed chan struct{} // capacity 1: the server's lists have changed

	mu       sync.Mutex
	lines    []*line       // guarded by mu: the open sessions
	arrived  chan struct{} // guarded by mu: closed when a session has been opened
	opened   int64         // guarded by mu
	protocol string        // guarded by mu
	failure  error         // guarded by mu: the last one, while there is no session
}

// line is one open session.
type line struct {
	client   *client.Client
	inFlight int // guarded by upstream.mu
}

func newUpstream(spec Upstream, c *Config, e *engine.Engine) *upstream {
	u := &upstream{
		spec: spec, timeout: c.CallTimeout, size: c.Sessions, log: c.Logger.With("upstream", spec.Name),
		changed: make(chan struct{}, 1), arrived: make(chan struct{}), failure: errUnavailable,
	}
	if spec.URL == "" {
		u.size = 1 // a process serves any number of calls at once
	}
	u.catalog = newCatalog(u, e)
	return u
}

// run keeps the sessions open until ctx ends. The first one also tells what the server offers; the others follow when
// it is known that the server has sessions at all.
func (u *upstream) run(ctx context.Context) {
	var others sync.WaitGroup
	defer others.Wait()
	begin := sync.OnceFunc(func() {
		for range u.size - 1 {
			others.Go(func() { u.keep(ctx, func() {}, false) })
		}
	})
	u.keep(ctx, func() {
		if u.state().Protocol != client.ProtocolStateless {
			begin()
		}
	}, true)
}

// keep holds one session open until ctx ends: it connects, waits for the session's end, and connects again.
func (u *upstream) keep(ctx context.Context, connected func(), first bool) {
	for wait := firstBackoff; ctx.Err() == nil; {
		c, err := u.connect(ctx, first)
		if err != nil {
			u.failed(err)
			pause(ctx, wait/2+rand.N(wait)) // not all at once
			wait = min(2*wait, mostBackoff)
			continue
		}
		l := u.add(c)
		connected()
		begun := time.Now()
		err = u.watch(ctx, c, first)
		u.remove(l)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingWait)
		_ = c.Close(closing) // it is of no more use, whatever it says
		cancel()
		if ctx.Err() == nil {
			u.failed(err)
			u.log.Warn("session ended", "error", err)
		}
		if time.Since(begun) > goodAfter {
			wait = firstBackoff
			continue
		}
		pause(ctx, wait/2+rand.N(wait)) // a session that ends as soon as it begins is no better than none
		wait = min(2*wait, mostBackoff)
	}
}

// connect opens a session. Nobody answers requests of the server here: an upstream whose tools ask their client
// something is told that this client cannot.
func (u *upstream) connect(ctx context.Context, first bool) (*client.Client, error) {
	o := &client.Options{
		Info: client.Implementation{Name: "mcpengine-gateway", Version: "1.0.0"}, Protocol: u.state().Protocol,
		CallTimeout: u.timeout, MaxPending: mostInFlight, NoStream: !first, NoCache: true, Logger: u.log,
		OnListChanged: func(client.ListKind) { u.notice() },
	}
	if first {
		o.Protocol = client.ProtocolAuto // the server may have been replaced by one of the other era
	}
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	if u.spec.URL != "" {
		return client.ConnectHTTP(ctx, u.spec.URL, o)
	}
	return client.Spawn(ctx, u.spec.Command, o)
}

// notice notes that the lists have to be read again.
func (u *upstream) notice() {
	select {
	case u.changed <- struct{}{}:
	default: // somebody has said so already
	}
}

// watch waits until a session has ended, or is to be ended because the server gives no sign of life, and says why. On
// the first session it also reads what the server offers, now and whenever that changes.
func (u *upstream) watch(ctx context.Context, c *client.Client, first bool) error {
	var changed chan struct{}
	if first {
		if err := u.catalog.read(ctx, c); err != nil {
			return err
		}
		changed = u.changed
		stop := u.listen(ctx, c)
		defer stop()
	}
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for missed := 0; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.Done():
			return c.Err()
		case <-changed:
			if err := u.catalog.read(ctx, c); err != nil {
				return err
			}
		case <-ping.C:
			err := pingOnce(ctx, c)
			if missed++; err == nil {
				missed = 0
			}
			if missed > 1 {
				return fmt.Errorf("no sign of life: %w", err)
			}
		}
	}
}

func pingOnce(ctx context.Context, c *client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, pingWait)
	defer cancel()
	return c.Ping(ctx)
}

// listen subscribes to changes of the lists where the server has no sessions; elsewhere they come unasked.
func (u *upstream) listen(ctx context.Context, c *client.Client) (stop func()) {
	if c.Server().Protocol != client.ProtocolStateless {
		return func() {}
	}
	filter := client.ListenFilter{Tools: true, Prompts: true, Resources: true}
	sub, err := c.Listen(ctx, filter, func(client.Change) { u.notice() })
	if err != nil {
		u.log.Info("changes of the lists are not told", "error", err)
		return func() {}
	}
	return sub.Close
}

// add puts a session among those that calls may use.
func (u *upstream) add(c *client.Client) *line {
	l := &line{client: c}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lines = append(u.lines, l)
	u.opened++
	u.protocol, u.failure = c.Server().Protocol, nil
	close(u.arrived)
	u.arrived = make(chan struct{})
	return l
}

func (u *upstream) remove(l *line) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range u.lines {
		if u.lines[i] == l {
			u.lines = append(u.lines[:i], u.lines[i+1:]...)
			return
		}
	}
}

func (u *upstream) failed(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.lines) == 0 && err != nil {
		u.failure = err
	}
}

// state gives a snapshot.
func (u *upstream) state() State {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := State{Up: len(u.lines) > 0, Sessions: len(u.lines), Opened: u.opened, Protocol: u.protocol}
	for _, l := range u.lines {
		s.InFlight += l.inFlight
	}
	if u.failure != nil {
		s.Error = u.failure.Error()
	} else if trouble := u.catalog.trouble(); trouble != "" {
		s.Error = trouble
	}
	return s
}

// take gives the session with the fewest calls in flight. Where there is none it waits a moment: a process that has
// died is soon back.
func (u *upstream) take(ctx context.Context) (*line, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		u.mu.Lock()
		var best *line
		for _, l := range u.lines {
			if best == nil || l.inFlight < best.inFlight {
				best = l
			}
		}
		if best != nil {
			best.inFlight++
			u.mu.Unlock()
			return best, nil
		}
		arrived, why := u.arrived, u.failure
		u.mu.Unlock()
		select {
		case <-arrived:
		case <-timer.C:
			return nil, fmt.Errorf("upstream %s is %w: %v", u.spec.Name, errUnavailable, why)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (u *upstream) give(l *line) {
	u.mu.Lock()
	defer u.mu.Unlock()
	l.inFlight--
}

// do makes one request on one of the sessions. A server that does not know the session has not done anything, so the
// request is made again on another, which a server that has forgotten all of them may not know either; whatever else
// fails is for the caller to judge.
func (u *upstream) do(ctx context.Context, f func(*client.Client) error) error {
	for lost := 0; ; lost++ {
		l, err := u.take(ctx)
		if err != nil {
			return err
		}
		err = f(l.client)
		u.give(l)
		if errors.Is(err, client.ErrSessionLost) && lost < u.size {
			u.remove(l) // before its keeper has seen it
			continue
		}
		return err
	}
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
