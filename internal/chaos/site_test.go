package chaos_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// sessionLife is how long a sealed session lives, by a clock that jumps further.
const sessionLife = 12 * time.Hour

// settings are what all servers of a run have in common. A child gets them as
// JSON.
type settings struct {
	Addr        string        // where to listen
	Control     string        // where to listen for reports and jumps, in a child
	Keys        [][]byte      // of session ids
	Store       string        // a file for the session store, or ""
	Ahead       time.Duration // how far the clock is ahead
	Idle        time.Duration // of sessions
	Handler     time.Duration // time limit of handlers
	Write       time.Duration // time limit of one write to a stream
	Body        time.Duration // time limit of the body of a request
	MaxSessions int
	Big         int // bytes of a big answer
}

// site is a server under test, in this process.
type site struct {
	settings settings
	engine   *engine.Engine
	handler  *transport.HTTPHandler
	replay   replay
	books    *books
	ahead    atomic.Int64 // of the clock
	web      *http.Server // nil over stdio
}

// newSite makes a server that does not listen yet. store may be nil.
func newSite(set settings, store engine.SessionStore) (*site, error) {
	s := &site{settings: set, books: newBooks()}
	s.ahead.Store(int64(set.Ahead))
	s.engine = engine.New(engine.Info{Name: "chaos", Version: "1"}, &engine.Options{
		Logger:          slog.New(slog.DiscardHandler), // panics are on purpose here
		HandlerTimeout:  set.Handler,
		SessionKeys:     set.Keys,
		SessionLifetime: sessionLife,
		Sessions:        store,
		Clock:           func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) },
		Principal:       func(ctx context.Context) string { name, _ := ctx.Value(principalKey{}).(string); return name },
		Limits:          actors.Limits{MaxSessions: set.MaxSessions, SessionIdle: set.Idle},
		AuditArguments:  true,
		Audit: func(r engine.Record) {
			if r.Method == codec.MethodToolsCall && r.Outcome != engine.AuditRefused {
				s.books.enter(codec.Text(r.Arguments, "payload"), bookAudited, &s.books.audited)
			}
		},
	})
	s.engine.Use(s.keepBooks)
	for name, h := range tools {
		if err := s.engine.AddRawTool(engine.Tool{Name: name}, h); err != nil {
			return nil, err
		}
	}
	s.replay.forget()
	s.handler = transport.NewHTTPHandler(s.engine, &transport.HTTPOptions{
		BodyTimeout: set.Body, CommitDelay: 150 * time.Millisecond, KeepAlive: time.Second,
		WriteTimeout: set.Write, Retry: 20 * time.Millisecond, Events: &s.replay,
	})
	return s, nil
}

// replay is where events are kept. A session that can come back keeps its own,
// and nobody tells the store that an abandoned one never will: they make room for
// others when the store is full. A test forgets them to see what else is left.
type replay struct {
	store atomic.Pointer[transport.MemoryEvents]
}

func (r *replay) forget() { r.store.Store(transport.NewMemoryEvents(512<<10, 64<<20)) }

func (r *replay) Append(session string, e transport.Event) { r.store.Load().Append(session, e) }

func (r *replay) After(ctx context.Context, session string, stream, seq uint64) ([]transport.Event, error) {
	return r.store.Load().After(ctx, session, stream, seq)
}

func (r *replay) Drop(session string) { r.store.Load().Drop(session) }

// serve listens and serves until close.
func (s *site) serve(l net.Listener) {
	s.web = &http.Server{
		Handler:           principals(s.handler),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	go func() { _ = s.web.Serve(l) }()
}

// close ends the server. The error says that requests had to be cut off.
func (s *site) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := s.engine.Shutdown(ctx)
	if s.web != nil {
		err = errors.Join(err, s.web.Close())
	}
	return err
}

// principalHeader says who makes a request. A gateway would set it.
const principalHeader = "X-Principal"

type principalKey struct{}

func principals(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), principalKey{}, r.Header.Get(principalHeader))
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// keepBooks enters the beginning and the end of every handler, by whatever way
// it ends.
func (s *site) keepBooks(next engine.Handler) engine.Handler {
	return func(ctx context.Context, c *engine.Call) error {
		payload := codec.Text(c.Arguments(), "payload")
		s.books.enter(payload, bookStarted, &s.books.started)
		defer s.books.enter(payload, bookEnded, &s.books.ended)
		return next(ctx, c)
	}
}

// tools are what the server offers. All but panic and hang answer with the
// payload, big with more after it.
var tools = map[string]engine.RawHandler{
	"echo": func(_ context.Context, _ *engine.Call, args, out []byte) ([]byte, error) { return answer(args, out) },
	"big": func(_ context.Context, _ *engine.Call, args, out []byte) ([]byte, error) {
		return answer(args, out)
	},
	"panic": func(context.Context, *engine.Call, []byte, []byte) ([]byte, error) { panic("on purpose") },
	"hang": func(ctx context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
		<-ctx.Done()
		return out, ctx.Err()
	},
	"sleep": func(ctx context.Context, _ *engine.Call, args, out []byte) ([]byte, error) {
		select {
		case <-time.After(duration(args)):
			return answer(args, out)
		case <-ctx.Done():
			return out, ctx.Err()
		}
	},
	"stubborn": func(_ context.Context, _ *engine.Call, args, out []byte) ([]byte, error) {
		time.Sleep(duration(args)) // whatever becomes of ctx
		return answer(args, out)
	},
	"progress": func(ctx context.Context, c *engine.Call, args, out []byte) ([]byte, error) {
		for i := range 5 {
			c.ProgressMessage(ctx, float64(i+1), 5, codec.Text(args, "payload"))
			time.Sleep(duration(args) / 5)
		}
		return answer(args, out)
	},
}

// duration gives the argument ms.
func duration(args []byte) time.Duration {
	ms, _ := codec.Int(args, "ms")
	return time.Duration(ms) * time.Millisecond
}

// answer appends a result with the payload, and as much after it as is wanted.
func answer(args, out []byte) ([]byte, error) {
	text := codec.Text(args, "payload")
	if more, _ := codec.Int(args, "more"); more > 0 {
		text += " " + strings.Repeat("x", int(more))
	}
	return engine.AppendTextResult(out, text), nil
}

// report is what a server says of itself.
type report struct {
	Goroutines, Descriptors int
	Heap                    int64
	Sessions, Requests      int
	Streams                 int
	Started, Ended, Audited int64
	Evicted, Revived        int64
	Violations              []string
}

// report takes stock.
func (s *site) report() report {
	for range 3 { // pools need two to be emptied
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	stats := s.engine.Stats()
	return report{
		Goroutines: runtime.NumGoroutine(), Descriptors: descriptors(), Heap: int64(m.HeapAlloc),
		Sessions: stats.Sessions, Requests: stats.ActiveRequests, Streams: s.handler.Stats().Streams,
		Started: s.books.started.Load(), Ended: s.books.ended.Load(), Audited: s.books.audited.Load(),
		Evicted: stats.Refusals.Evicted, Revived: stats.Refusals.Revived,
		Violations: s.books.broken(),
	}
}

// descriptors counts what this process has open, or gives 0 where that cannot be
// told.
func descriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// fill opens and closes bare sessions. The registry of the actor library spreads
// names over 32,768 maps, each of which keeps its first bytes for good: up to 10
// MB that are nobody's fault and would hide what is.
func (s *site) fill(n int) error {
	for range n {
		session, err := s.engine.OpenSession(rand.Text(), nil)
		if err != nil {
			return fmt.Errorf("filling the registry: %w", err)
		}
		session.Close()
	}
	return nil
}

// crowd has many goroutines live at once. The runtime keeps what describes a
// goroutine, half a kilobyte, for the next one and never gives it back, so that
// the most that ever lived would be taken for a leak.
func crowd(n int) {
	var all sync.WaitGroup
	leave := make(chan struct{})
	for range n {
		all.Go(func() { <-leave })
	}
	close(leave)
	all.Wait()
}

// serveLines serves standard input and output.
func (s *site) serveLines(in io.Reader, out io.Writer) error {
	return transport.ServeStdio(context.Background(), s.engine, in, out, &transport.LineOptions{DrainTimeout: 2 * s.settings.Handler})
}
