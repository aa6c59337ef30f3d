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
	// it. Default: nobody in particular.
	Principal func(ctx context.Context) string
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
	if c.Tasks == nil {
		c.Tasks = NewMemoryTasks(0)
	}
	if c.MaxPending <= 0 {
		c.MaxPending = 64 << 10
	}
	return c
}
