package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/mcpengine/mcpengine/actors"
)

// Info names the server to its clients (Implementation in the schemas).
type Info struct {
	Name        string // required
	Version     string // required
	Title       string // for people; sent from 2025-06-18 on
	Description string // sent from 2025-11-25 on
	WebsiteURL  string // sent from 2025-11-25 on
	Icons       []Icon // sent from 2025-11-25 on
}

// Options configures an Engine. Nil is fine; zero fields mean the default that
// is written at each. They are copied once, in New.
type Options struct {
	// Logger receives what goes wrong. Default: slog.Default().
	Logger *slog.Logger
	// Instructions for the model, sent with the answer to initialize.
	Instructions string
	// PageSize is how many entries one page of a list holds. Default 1,000.
	PageSize int
	// StrictVersion refuses an initialize with an unknown protocol version
	// (-32602 with data.supported and data.requested) instead of answering
	// with the newest legacy revision, as the specification has it.
	StrictVersion bool
	// HandlerTimeout bounds a handler's run; its context then ends and the
	// caller gets an error. Default: none.
	HandlerTimeout time.Duration
	// ListChangedInterval is the least time between two list_changed
	// notifications of one kind; changes meanwhile end in one more when it is
	// over. Default 100 ms.
	ListChangedInterval time.Duration
	// MaxBatch is how many messages a batch may hold (2025-03-26). Default 100.
	MaxBatch int
	// MaxPending is how many bytes of notifications a session keeps while no
	// stream is open to send them on. Default 64 KiB.
	MaxPending int
	// LegacyOnly and ModernOnly leave one era out. The default is to serve
	// both on one endpoint.
	LegacyOnly, ModernOnly bool
	// ListCache tells clients of 2026-07-28 how long they may keep lists and
	// what server/discover says. Default: not at all.
	ListCache Cache
	// StateKeys seal what clients of 2026-07-28 keep between the rounds of a
	// request: 32 bytes each, the first seals, all open. Replicas that share
	// them can serve each other's rounds. Default: a random key of the process.
	StateKeys [][]byte
	// Principal tells who makes a request, from the context that the
	// transport's middleware has filled. A client's sealed state is bound to
	// it. One of more than 512 bytes is replaced by "sha256:" and its digest.
	// Default: nobody in particular.
	Principal func(ctx context.Context) string
	// Visible tells what a principal may know of. What it hides is in no list
	// and as good as unknown to calls, reads, completion and subscriptions, and
	// its changes are not announced to whom it is hidden from. Where there is a
	// filter, no list and no resource is cached for everybody. It judges by name
	// alone and its verdicts change when the embedder says so, with
	// Engine.NotifyListChanged. In a session the principal is that of its
	// initialize, later that of the request. Where it panics, nothing is seen.
	// It must be quick and is called at any time from any goroutine. A hidden
	// resource is not looked for in a template, nor is what a hidden template
	// matches in another one. Capabilities tell what is registered, seen or not.
	// Default: everything is visible.
	Visible func(principal string, kind Kind, name string) bool
	// Before may refuse a tools/call, prompts/get or resources/read, or change
	// it with Call.SetArguments: approval and checks of arguments. They run in
	// order, around all middleware (Engine.Use), and so before the check of the
	// arguments against the schema; in a task (2025-11-25, or TaskSupport
	// "optional" or "required") as part of its work; in 2026-07-28 in each round
	// of a request anew. An error is what the handler's own would be: of a tool,
	// a result that the model reads, unless it is a *codec.Error. One that comes
	// from Call.Elicit, Sample or Roots has to be returned as it is.
	Before []func(ctx context.Context, c *Call) error
	// After see what these requests have come to before it is sent, and may
	// change it with Call.SetResult and through the Outcome: redaction. They run
	// in order, when the last middleware has returned or a Before has refused,
	// and not where a handler panicked, since the peer then learns nothing of
	// it, nor for a round that only asks the client something. Progress and log
	// messages do not pass here, and what they set is not held to the tool's
	// output schema.
	After []func(ctx context.Context, c *Call, o *Outcome)
	// Audit is told of each request but a session's initialize and ping, once,
	// when its answer was queued or it was given up: of those that were served,
	// and of those that a limit, a filter or a fault turned away in the engine. A
	// frame that is no request, and what a transport refuses by itself, is not
	// recorded. It is called outside of all locks, from many goroutines, and
	// must not block: a request ends when it returns. Its panic is logged.
	Audit func(r Record)
	// AuditArguments has Record.Arguments filled in.
	AuditArguments bool
	// SessionKeys make the ids of sessions over HTTP sealed ones: 32 bytes each,
	// the first seals, all open, so that keys can be rotated. Such a session
	// outlives the process, and an eviction: whoever has the keys goes on with
	// it as it was negotiated, until SessionLifetime is over or the client
	// deletes it. Messages that wait for a stream are lost with the process. A
	// key seals up to 2^32 ids. Default: none; ids mean nothing elsewhere.
	SessionKeys [][]byte
	// SessionLifetime is how long after its handshake a sealed session ends,
	// in use or not. Default 12 h.
	SessionLifetime time.Duration
	// Sessions keeps what sealed ids cannot hold. Default: NewMemorySessions(0),
	// which forgets with the process: a session that was deleted before a
	// restart then comes back after it for whoever still has its id.
	Sessions SessionStore
	// RateLimit gives how often a principal may call a tool. It must be quick.
	// A call beyond it is refused with codec.CodeOverloaded, over HTTP with
	// status 429 and Retry-After. Default: no limit.
	RateLimit func(principal, tool string) Rate
	// RateLimitKeys is how many pairs of principal and tool are kept account
	// of. Beyond it the account of one that is near its full rate is closed.
	// Default 65,536.
	RateLimitKeys int
	// Clock gives the time by which everything is dated that clients carry along:
	// sealed sessions and the state of 2026-07-28 begin and end by it, in use or
	// not, and it may jump either way. What lasts for a while (an idle session, a
	// time limit, a rate) is measured instead, and no jump touches it. A
	// SessionStore goes by its own clock. Default: time.Now.
	Clock func() time.Time
	// Tasks keeps the records of tasks. Default: NewMemoryTasks(0).
	Tasks TaskStore
	// OnRootsChanged is told when a client's roots have changed. It must not
	// block; call.Roots asks for the new ones.
	OnRootsChanged func(s *Session)
	// Limits bounds sessions, requests and subscriptions.
	Limits actors.Limits
}

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.PageSize <= 0 {
		c.PageSize = 1000
	}
	if c.ListChangedInterval <= 0 {
		c.ListChangedInterval = 100 * time.Millisecond
	}
	if c.MaxBatch <= 0 {
		c.MaxBatch = 100
	}
	if c.Visible != nil {
		c.ListCache.Public = false
	}
	if c.Tasks == nil {
		c.Tasks = NewMemoryTasks(0)
	}
	if c.SessionLifetime <= 0 {
		c.SessionLifetime = 12 * time.Hour
	}
	if c.Sessions == nil {
		c.Sessions = NewMemorySessions(0)
	}
	if c.RateLimitKeys <= 0 {
		c.RateLimitKeys = 65_536
	}
	if c.MaxPending <= 0 {
		c.MaxPending = 64 << 10
	}
	return c
}
