package client

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"
)

// Revisions of the protocol that this client speaks.
const (
	revision20241105 = "2024-11-05"
	revision20250326 = "2025-03-26"
	revision20250618 = "2025-06-18"
	revision20251125 = "2025-11-25"
)

// supported tells whether a server may answer initialize with a revision.
func supported(revision string) bool {
	switch revision {
	case revision20241105, revision20250326, revision20250618, revision20251125:
		return true
	}
	return false
}

// Implementation names the program that uses the client, as initialize sends it.
type Implementation struct{ Name, Title, Version string }

// Options configures a connection. Nil is fine and a zero field means its
// default. The struct is copied when the connection is made; later changes of
// it have no effect.
type Options struct {
	// Info is sent as clientInfo. The default is "mcpengine", version "dev".
	Info Implementation
	// Protocol is the revision to ask for, "2025-11-25" by default. In the
	// handshake of a session the server may answer with another; Server tells
	// which one is in force. ProtocolStateless ("2026-07-28") needs a server that
	// serves just that. ProtocolAuto ("auto") tries it first, with a request that
	// does nothing, and makes the handshake where the server does not know it.
	Protocol string
	// ProbeTimeout is how long a server on a pipe may take to answer that first
	// request; one of the older era may not answer at all. The default is 3
	// seconds.
	ProbeTimeout time.Duration
	// Capabilities is the raw JSON object of the client's capabilities. By
	// default they follow from the callbacks below that are set. Where it is
	// given, it alone counts: it must declare what the callbacks and OnRequest
	// answer, since a request for anything else is refused.
	Capabilities []byte

	// Header is added to every HTTP request. Headers of the protocol itself win.
	Header http.Header
	// HTTPClient sends the HTTP requests. The default has a connection pool of
	// its own, keeps connections alive, has no time limit of its own, and
	// follows redirects only within the same scheme and host. A client that is
	// given here keeps its pool when the Client is closed.
	HTTPClient *http.Client
	// NoStream leaves the GET stream closed, on which a server sends what
	// belongs to no request.
	NoStream bool
	// StreamWait is how long ConnectHTTP waits for an answer to the GET, since
	// what a server sends on its stream before it is open may be lost. Some
	// servers answer only with the first message. The default is 1 second, and
	// below zero there is no wait.
	StreamWait time.Duration
	// NoFallback keeps ConnectHTTP from trying the transport of 2024-11-05 where
	// the endpoint does not know the present one.
	NoFallback bool

	// CallTimeout is how long a call may go without an answer or a progress
	// notification; the default is 10 seconds, and below zero there is no limit.
	CallTimeout time.Duration
	// MaxCallTimeout is how long a call may take in all, however much progress
	// it reports; the default is 5 minutes. A larger CallTimeout wins over it.
	MaxCallTimeout time.Duration
	// MaxMessageBytes limits one message in either direction: a line, a body,
	// or the data of an SSE event. The default is 4 MiB.
	MaxMessageBytes int
	// MaxPending limits the calls that wait for an answer; the default is 1024.
	MaxPending int
	// MaxServerRequests limits how many requests of the server are worked on at
	// once; the default is 32. Those beyond it are answered with an overload
	// error.
	MaxServerRequests int
	// MaxRounds limits how often one request of the stateless revision is made
	// again with what the server wanted to know; the default is 16.
	MaxRounds int
	// LogLevel makes every request of the stateless revision ask for log messages
	// from a level on, as SetLevel does later. By default none are asked for.
	LogLevel LogLevel
	// TaskExtension declares the tasks extension of the stateless revision, so
	// that a server may make a task of any tools/call.
	TaskExtension bool
	// NoCache keeps a Client of the stateless revision from keeping any result.
	NoCache bool
	// Cache is where such a Client keeps what the server allows it to keep,
	// by default a Cache of its own. A Client is one authorization context: its
	// Header and HTTPClient must stand for the same user all the time.
	Cache *Cache
	// MaxPages limits the pages of one list; the default is 1000. All pages
	// together may be 16 times as large as one message.
	MaxPages int

	// OnSample answers sampling/createMessage and declares the capability
	// sampling (section Sampling of the client features). ErrRejected is what to
	// return where the user says no. It runs in a goroutine of its own; its
	// context ends when the server cancels the request (nothing is then
	// answered) or the connection ends, and ReportProgress takes that context.
	// An error that holds a *codec.Error is answered as that; any other one is
	// logged and answered as an internal error, without its text. All this holds
	// for OnElicit, Roots and OnRequest as well.
	OnSample func(ctx context.Context, r *SampleRequest) (*SampleResult, error)
	// SampleTools declares sampling.tools (2025-11-25), without which a request
	// with tools is refused; SampleContext declares sampling.context.
	SampleTools, SampleContext bool
	// OnElicit answers elicitation/create and declares the capability
	// elicitation with the modes of ElicitModes. The client itself opens nothing
	// and asks nobody: the callback has to get the user's consent.
	OnElicit func(ctx context.Context, r *ElicitRequest) (*ElicitResult, error)
	// ElicitModes is what OnElicit can do, ElicitForm by default.
	ElicitModes ElicitModes
	// NoElicitDefaults leaves the content of an accepted form as OnElicit gave
	// it. By default ApplyDefaults fills in what is absent.
	NoElicitDefaults bool
	// Roots answers roots/list and declares the capability roots (section Roots
	// of the client features); RootsChanged tells the server of a change.
	Roots func(ctx context.Context) ([]Root, error)
	// RootList is the list to begin with where Roots is nil. Not being nil, also
	// when empty, it declares the capability roots; SetRoots replaces it.
	RootList []Root
	// SampleTasks and ElicitTasks let the server make tasks of its sampling and
	// elicitation requests (2025-11-25): it gets an answer at once and asks for
	// the result later. They declare tasks.requests with tasks.list and
	// tasks.cancel.
	SampleTasks, ElicitTasks bool
	// MaxTasks limits the tasks of the server that are kept, running ones and
	// finished ones; the default is 64. Requests beyond it are refused.
	MaxTasks int
	// MaxTaskTime limits how long such a task is kept from its creation; the
	// default is 1 hour. A server may ask for less.
	MaxTaskTime time.Duration

	// OnLog is called with each notifications/message. It runs on the goroutine
	// that reads the stream, so it must return soon and must not wait for a call
	// of the same Client; over HTTP there may be several streams and so several
	// calls at once. All this holds for the callbacks that follow, up to and
	// with OnNotification.
	OnLog func(LogMessage)
	// OnListChanged is called when the server's list of a kind has changed.
	OnListChanged func(kind ListKind)
	// OnResourceUpdated is called when a resource that was subscribed to, or a
	// part of it, has changed.
	OnResourceUpdated func(uri string)
	// OnElicitationComplete is called when what the user did at a URL is done:
	// once for each id that came in a request of URL mode or in a
	// *URLElicitationError. Other ids are ignored, as the protocol asks.
	OnElicitationComplete func(elicitationID string)
	// OnTaskStatus is called with each notifications/tasks/status, and with each
	// notifications/tasks of a subscription. Servers need not send them; Task.Get
	// tells for certain.
	OnTaskStatus func(TaskInfo)
	// OnNotification is called with each notification that neither a call of
	// this client nor a callback above consumes (progress goes to
	// CallOptions.OnProgress). params is borrowed: copy what is to be kept. It
	// is nil where the notification has none.
	OnNotification func(method string, params []byte)
	// OnRequest answers the requests of the server for which no callback above
	// is set. params may be kept. A nil result is answered as {}. Where it is
	// nil, such requests are answered -32601; ping the client answers itself.
	OnRequest func(ctx context.Context, method string, params []byte) (result []byte, err error)

	// Stderr receives what a spawned process writes to its stderr. By default
	// it is dropped; in both cases the last 4 KiB are kept for error messages.
	Stderr io.Writer
	// Dir is the working directory of a spawned process, by default this one's.
	Dir string
	// Env is the environment of a spawned process, by default this one's.
	Env []string
	// CloseGrace is how long each step of closing may take: for a process to
	// end after its stdin was closed, and again after SIGTERM; for the HTTP
	// DELETE of a session. The default is 2 seconds.
	CloseGrace time.Duration

	// Logger receives what is wrong with a peer and cannot be returned from a
	// call. By default it is dropped.
	Logger *slog.Logger
}

// resolved copies o and puts the defaults in.
func (o *Options) resolved() Options {
	var r Options
	if o != nil {
		r = *o
	}
	if r.Info.Name == "" {
		r.Info.Name = "mcpengine"
	}
	if r.Info.Version == "" {
		r.Info.Version = "dev"
	}
	orDefault(&r.Protocol, revision20251125)
	orDefault(&r.CallTimeout, 10*time.Second)
	orDefault(&r.MaxCallTimeout, 5*time.Minute)
	orDefault(&r.MaxMessageBytes, 4<<20)
	orDefault(&r.MaxPending, 1024)
	orDefault(&r.MaxServerRequests, 32)
	orDefault(&r.MaxPages, 1000)
	orDefault(&r.CloseGrace, 2*time.Second)
	orDefault(&r.StreamWait, time.Second)
	orDefault(&r.ElicitModes, ElicitForm)
	orDefault(&r.ProbeTimeout, 3*time.Second)
	orDefault(&r.MaxRounds, 16)
	orDefault(&r.MaxTasks, 64)
	orDefault(&r.MaxTaskTime, time.Hour)
	r.RootList = slices.Clone(r.RootList)
	r.Capabilities = slices.Clone(r.Capabilities)
	if len(r.Capabilities) == 0 {
		r.Capabilities = r.capabilities()
	}
	r.Header = r.Header.Clone()
	r.Env = slices.Clone(r.Env)
	if r.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	}
	return r
}

func orDefault[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// CallOptions configures one call. Nil is fine.
type CallOptions struct {
	// Timeout replaces Options.CallTimeout: zero keeps that, below zero there
	// is no limit but the context.
	Timeout time.Duration
	// OnProgress makes the call carry a progress token and receives what the
	// server reports, in order, on the goroutine that reads the stream: it must
	// return soon. When a call was cancelled, OnProgress may still be running
	// as the call returns.
	OnProgress func(Progress)
	// NoCache has the request made even where a fresh result is kept.
	NoCache bool
}

// Progress is one notifications/progress of a call.
type Progress struct {
	// Progress rises with each notification; Total is its end where HasTotal.
	Progress, Total float64
	HasTotal        bool
	Message         string
}
