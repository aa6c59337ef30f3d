package client

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// link moves frames. It knows nothing of methods but what a transport has to:
// which frame is the initialize request. What arrives goes to Client.receive.
type link interface {
	// call sends the frame of a call. It returns when the frame was handed over
	// (pipes) or when the answer was received (HTTP), and an error when there
	// will be no answer. It returns soon after k.ctx has ended.
	call(k *call) error
	// send sends a notification or a response.
	send(ctx context.Context, frame []byte) error
	// trySend hands a frame over without waiting, and reports whether it could.
	// Frames of one goroutine that are handed over so, or by call, keep their
	// order.
	trySend(frame []byte) bool
	// negotiated tells the revision, before anything but initialize is sent.
	negotiated(revision string)
	// ready tells that the handshake is over. It may wait, within ctx, for what
	// the server needs to reach the client.
	ready(ctx context.Context)
	// close releases everything. When ctx ends it does so without patience.
	close(ctx context.Context) error
}

// Client is one connection to a server, made by ConnectHTTP, ConnectSSE, Spawn
// or ConnectPipe. All its methods may be used from several goroutines at once.
type Client struct {
	// Set before the link starts and not changed later.

	o      Options
	log    *slog.Logger
	link   link
	target string // the endpoint of a statelessLink

	statelessCapabilities []byte // what the client can do, for the stateless revision

	// Written by the handshake, before a Connect function returns.

	server ServerInfo

	nextID   atomic.Uint64
	batches  atomic.Bool // the negotiated revision has batches
	features atomic.Pointer[features]
	era      atomic.Pointer[era] // nil in a session
	fault    atomic.Pointer[fault]

	handlers chan struct{} // a slot for each request of the server that is worked on
	replies  chan struct{} // a slot for each small message sent on the side
	wg       sync.WaitGroup
	ctx      context.Context // ends with the connection
	cancel   context.CancelFunc

	asked *askedURLs // the elicitations in URL mode that may be completed
	tasks *taskTable // the tasks of the server

	mu       sync.Mutex // guards the following
	pending  map[uint64]*call
	progress map[uint64]*taskWatch              // progress of tasks, by token
	inbound  map[string]context.CancelCauseFunc // by exact id token
	roots    []Root
	err      error         // why the connection ended
	done     chan struct{} // closed when err is set

	release    sync.Once
	gone       chan struct{} // closed when everything is released
	releaseErr error         // valid once gone is closed
}

// maxReplies limits the small messages (answers to ping, refusals,
// cancellations) that wait to be sent.
const maxReplies = 256

func newClient(o *Options) *Client {
	c := &Client{
		o:        o.resolved(),
		pending:  map[uint64]*call{},
		progress: map[uint64]*taskWatch{},
		inbound:  map[string]context.CancelCauseFunc{},
		replies:  make(chan struct{}, maxReplies),
		asked:    &askedURLs{},
		done:     make(chan struct{}),
		gone:     make(chan struct{}),
	}
	c.log = c.o.Logger
	derived := o == nil || len(o.Capabilities) == 0
	c.statelessCapabilities = statelessCapabilities(c.o.Capabilities, derived && c.o.TaskExtension)
	c.roots = c.o.RootList
	c.features.Store(declared(c.o.Capabilities))
	c.tasks = newTaskTable(c.o.MaxTasks, c.o.MaxTaskTime)
	c.handlers = make(chan struct{}, c.o.MaxServerRequests)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// fault is something wrong that was seen on the connection and belongs to no
// call. The time limit of a call mentions it.
type fault struct {
	at   time.Time
	text string
}

func (c *Client) noteFault(text string) {
	c.fault.Store(&fault{at: time.Now(), text: text})
	c.log.Warn("client: fault on the connection", "fault", text)
}

// spawn runs f in a goroutine that Close waits for. It reports false, and does
// not run f, when the connection has ended.
func (c *Client) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return false
	}
	c.wg.Go(f)
	return true
}

// fail ends the connection for a reason. The first reason stays.
func (c *Client) fail(reason error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = reason
	calls := c.pending
	c.pending = nil
	c.mu.Unlock()
	for _, k := range calls {
		k.finish(nil, reason)
		k.cancel(reason)
	}
	c.cancel()
	close(c.done)
}

// lost ends the connection from the link's side and releases the link.
func (c *Client) lost(reason error) {
	c.fail(reason)
	c.startRelease(context.Background())
}

func (c *Client) startRelease(ctx context.Context) {
	c.release.Do(func() {
		go func() {
			c.releaseErr = c.link.close(ctx)
			c.wg.Wait()
			close(c.gone)
		}()
	})
}

// Close ends the connection and returns when everything that belongs to it is
// gone. Calls in flight get ErrClosed. Over HTTP the session is deleted and the
// streams are closed; a spawned process has its stdin closed and gets
// Options.CloseGrace to end, then as much again after SIGTERM, then SIGKILL.
//
// The end of ctx ends the patience and not the work: the process is killed and
// connections are cut at once. Close then waits for callbacks that are still
// running, for a second at most, and returns the error of ctx if they still
// are. An error of the DELETE is returned too; all is released all the same. A
// callback must not call Close, which would wait for it.
func (c *Client) Close(ctx context.Context) error {
	c.fail(ErrClosed)
	c.startRelease(ctx)
	select {
	case <-c.gone:
		return c.releaseErr
	case <-ctx.Done():
	}
	patience := time.NewTimer(time.Second)
	defer patience.Stop()
	select {
	case <-c.gone:
		return c.releaseErr
	case <-patience.C:
		return ctx.Err()
	}
}

// Done is closed when the connection has ended, for whatever reason.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err tells why the connection has ended: ErrClosed after Close, otherwise
// ErrDisconnected, ErrSessionLost or an error of the transport. It is nil while
// the connection stands.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// SessionID gives the session id that the server assigned over HTTP, or "".
func (c *Client) SessionID() string {
	if h, ok := c.link.(*httpLink); ok {
		return h.sessionID()
	}
	return ""
}

// PID gives the process id of a spawned server, or 0.
func (c *Client) PID() int {
	if p, ok := c.link.(*process); ok {
		return p.cmd.Process.Pid
	}
	return 0
}
