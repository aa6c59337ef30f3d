package mock

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// Path is the endpoint of every peer.
const Path = "/mcp"

// Server is a server of the protocol that behaves as its Config says. It serves 2024-11-05 to 2025-11-25 with sessions
// and 2026-07-28 without, over Streamable HTTP, and either over stdio.
type Server struct {
	config  Config
	count   *counters
	table   *table
	clock   *clock
	drop    map[int]bool
	changes atomic.Int64 // of the resource

	mu    sync.Mutex
	queue *Queue // guarded by mu
}

// New makes a server, which the caller closes. The error is that of Config.Check.
func New(c Config) (*Server, error) { return newServer(c, newAlarm()) }

func newServer(c Config, a alarm) (*Server, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	count := newCounters()
	s := &Server{
		config: c, count: count, table: newTable(c.Sessions, count), clock: newClock(a),
		drop: map[int]bool{}, queue: NewQueue(c.Model),
	}
	for _, n := range c.Stream.Drop {
		s.drop[n] = true
	}
	return s, nil
}

// Close ends all sessions and gives back what they hold. Calls in flight end with their requests.
func (s *Server) Close() {
	s.table.closeAll()
	s.clock.close()
}

// Stats gives what was counted up to now.
func (s *Server) Stats() Stats { return s.count.read() }

// Handler serves the endpoint at Path and the counters at StatsPath.
func (s *Server) Handler() http.Handler { return handler(s, s.count) }

// handler puts an endpoint and its counters at their places.
func handler(endpoint http.Handler, count *counters) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(Path, endpoint)
	mux.HandleFunc("GET "+StatsPath, count.serveStats)
	return mux
}

// Serve serves HTTP requests on a listener until ctx ends, and then cuts off what is in flight. It closes the listener.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	web := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       10 * time.Minute, // longer than a load tool keeps a connection idle
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return requests },
	}
	stop := context.AfterFunc(ctx, func() {
		cut()
		_ = web.Close()
	})
	defer stop()
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// enter notes a request that arrived at an instant, and gives the instant at which its answer is due: for the call of a
// tool what the model says, for anything else the zero time. Calls queue in the order in which they enter.
func (s *Server) enter(m *codec.Message, arrival time.Time) (due time.Time) {
	if string(m.Method) != codec.MethodToolsCall || !isTool(m.Name) {
		return time.Time{}
	}
	s.count.calls.up()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.Arrive(arrival)
}

// leave appends the answer to a request that has entered, when it is due. The error is that of ctx, and then there is no
// answer. sess is nil in the stateless era.
func (s *Server) leave(ctx context.Context, dst []byte, sess *session, m *codec.Message, due time.Time) ([]byte, error) {
	if !due.IsZero() {
		defer s.count.calls.down()
		if err := s.clock.wait(ctx, due); err != nil {
			return dst, err
		}
	}
	return s.answer(dst, sess, m), nil
}
