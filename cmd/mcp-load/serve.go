package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	http        string
	stdio       bool
	path        string
	fixture     string
	maxSessions int
	sessionIdle time.Duration
	sessionKeys string
	stateKeys   string
	store       string
	admin       string
	hosts       []string
	origins     []string
	drain       time.Duration
	logLevel    string
	debugCases  string
}

// exitUnsupported is the exit status for a case configuration that this server
// cannot honour.
const exitUnsupported = 78

func newServeCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve [--http ADDR | --stdio]",
		Short: "Serve the embedded engine with a fixture",
		Long: "Serves the engine with a fixture of tools, resources and prompts, over Streamable HTTP or stdio.\n" +
			"When ready it prints one line on standard error: listening http://ADDR/mcp\n" +
			"SIGTERM and Ctrl-C drain: no new work, what is in flight finishes or is cut off at --drain.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), &f, cmd.Flags().Changed("http"), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.http, "http", "127.0.0.1:8080", "serve Streamable HTTP on this `address`")
	flags.BoolVar(&f.stdio, "stdio", false, "serve standard input and output")
	flags.StringVar(&f.path, "path", "/mcp", "`path` of the HTTP endpoint")
	flags.StringVar(&f.fixture, "fixture", "demo", "what is served: "+fixtureNames())
	flags.IntVar(&f.maxSessions, "max-sessions", 0, "most sessions at once (default 100,000)")
	flags.DurationVar(&f.sessionIdle, "session-idle", 30*time.Minute, "end a session after this time without use")
	flags.StringVar(&f.sessionKeys, "session-keys", "", "seal session ids with the keys of this `file`, so that sessions outlive the process;\n"+
		"a line holds 32 bytes in base64; the first key seals, all open")
	flags.StringVar(&f.stateKeys, "request-state-keys", "", "seal request states with the keys of this `file`")
	flags.StringVar(&f.store, "store", "memory", "keep deleted sessions and their like in memory, file:PATH or redis:URL")
	flags.StringVar(&f.admin, "admin", "", "serve /healthz, /readyz, /metrics and pprof on this `address`")
	flags.StringArrayVar(&f.hosts, "allow-host", nil, "allow this Host header besides loopback names (repeatable)")
	flags.StringArrayVar(&f.origins, "allow-origin", nil, "allow web pages of this origin (repeatable)")
	flags.DurationVar(&f.drain, "drain", 10*time.Second, "how long requests in flight may go on at the end")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&f.debugCases, "debug-cases", "", "hooks of the wire cases on this loopback `address`")
	return cmd
}

// server is the engine with a fixture and what stands around it.
type server struct {
	flags   *serveFlags
	config  *caseConfig
	engine  *engine.Engine
	handler *transport.HTTPHandler
	store   closableStore           // nil where it is in memory
	stored  *transport.StoredEvents // what writes to the store behind, or nil
	counts  *toolCounts             // nil without --debug-cases
	log     *slog.Logger
	web     atomic.Pointer[http.Server] // nil over stdio
}

// serve runs until ctx ends or, over stdio, the input does.
func serve(ctx context.Context, f *serveFlags, httpGiven bool, stderr io.Writer) error {
	if f.stdio && httpGiven {
		return &exitError{exitUsage, "--stdio and --http exclude each other: start two servers"}
	}
	if err := f.check(); err != nil {
		return err
	}
	logs := newLogWriter(stderr)
	defer logs.close()
	s, err := newServer(ctx, f, logs)
	if err != nil {
		return err
	}
	defer s.closeStore()
	if err := s.run(ctx, logs); err != nil {
		_ = s.shutdown(context.WithoutCancel(ctx), 0) // where it has not come to that
		return err
	}
	return nil
}

// run serves what the flags say until ctx ends or, over stdio, the input does.
func (s *server) run(ctx context.Context, logs io.Writer) error {
	f := s.flags
	if f.debugCases != "" {
		stop, err := s.startDebug(f.debugCases)
		if err != nil {
			return &exitError{exitRuntime, err.Error()}
		}
		defer stop()
	}
	if f.admin != "" {
		stop, err := s.startAdmin(f.admin)
		if err != nil {
			return &exitError{exitRuntime, err.Error()}
		}
		defer stop()
	}
	if f.stdio {
		return s.serveStdio(ctx)
	}
	listener, err := net.Listen("tcp", f.http)
	if err != nil {
		return &exitError{exitRuntime, fmt.Sprintf("cannot listen on %s: %v", f.http, errors.Unwrap(err))}
	}
	fmt.Fprintf(logs, "listening http://%s%s\n", listener.Addr(), f.path)
	return s.serveHTTP(ctx, listener)
}

// check refuses flags that cannot be meant.
func (f *serveFlags) check() error {
	var level slog.Level
	switch {
	case level.UnmarshalText([]byte(f.logLevel)) != nil:
		return usageError("--log-level %q: use debug, info, warn or error", f.logLevel)
	case !strings.HasPrefix(f.path, "/") || strings.ContainsAny(f.path, " {}?#"):
		return usageError("--path %q: a path begins with / and has none of the characters { } ? # and blank", f.path)
	case fixtures[f.fixture] == nil:
		return usageError("--fixture %q: use %s", f.fixture, fixtureNames())
	case f.maxSessions < 0:
		return usageError("--max-sessions cannot be negative")
	case f.sessionIdle <= 0:
		return usageError("--session-idle must be more than zero")
	case f.drain < 0:
		return usageError("--drain cannot be negative")
	case f.debugCases != "" && !isLoopback(f.debugCases):
		return usageError("--debug-cases %q: give a loopback address, such as 127.0.0.1:9000", f.debugCases)
	}
	if _, _, err := net.SplitHostPort(f.http); err != nil {
		return usageError("--http %q: give an address, such as 127.0.0.1:8080", f.http)
	}
	if _, _, err := net.SplitHostPort(f.admin); err != nil && f.admin != "" {
		return usageError("--admin %q: give an address, such as 127.0.0.1:9090", f.admin)
	}
	return f.checkStore()
}

// isLoopback reports whether an address to listen on is one that only this
// machine can reach.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && net.ParseIP(host).IsLoopback()
}

// newServer makes the engine that the flags and the case configuration ask for.
func newServer(ctx context.Context, f *serveFlags, logs io.Writer) (_ *server, err error) {
	config, err := readCaseConfig(os.Getenv("MCP_CASE_CONFIG"))
	if err != nil {
		return nil, &exitError{exitUnsupported, err.Error()}
	}
	var level slog.Level
	_ = level.UnmarshalText([]byte(f.logLevel)) // check has tried it
	s := &server{flags: f, config: config}
	s.log = slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: level}))
	options := s.engineOptions()
	if options.SessionKeys, err = readKeys("--session-keys", f.sessionKeys); err != nil {
		return nil, err
	}
	if options.StateKeys, err = readKeys("--request-state-keys", f.stateKeys); err != nil {
		return nil, err
	}
	if s.store, err = f.openStore(ctx); err != nil {
		return nil, err
	}
	if s.store != nil {
		options.Sessions = s.store
	}
	s.engine = engine.New(engine.Info{Name: "mcp-load", Version: version}, options)
	if f.debugCases != "" {
		s.counts = newToolCounts()
		s.engine.Use(s.counts.middleware)
	}
	if err := s.register(); err != nil {
		s.closeStore()
		return nil, &exitError{exitRuntime, err.Error()}
	}
	s.handler = transport.NewHTTPHandler(s.engine, s.httpOptions())
	return s, nil
}

// register registers the fixture and what the case configuration adds to it.
func (s *server) register() error {
	if err := fixtures[s.flags.fixture](s.engine, s.config.features()); err != nil {
		return err
	}
	return registerCaseTools(s.engine, s.config.ExtraTools)
}

func (s *server) engineOptions() *engine.Options {
	o := &engine.Options{
		Logger:     s.log,
		PageSize:   s.config.PageSize,
		LegacyOnly: s.config.lacks("modern"),
		ModernOnly: s.config.lacks("legacy"),
		Limits:     actors.Limits{MaxSessions: s.flags.maxSessions, SessionIdle: s.flags.sessionIdle},
	}
	if s.config.Auth != nil {
		o.Principal = casePrincipal
	}
	if n := s.config.MaxSessions; n > 0 {
		o.Limits.MaxSessions = n
	}
	if d := milliseconds(s.config.SessionIdleMS); d > 0 {
		o.Limits.SessionIdle = d
	}
	return o
}

func (s *server) httpOptions() *transport.HTTPOptions {
	c := s.config
	return &transport.HTTPOptions{
		AllowedHosts:    append(append([]string(nil), s.flags.hosts...), c.AllowedHosts...),
		AllowedOrigins:  append(append([]string(nil), s.flags.origins...), c.AllowedOrigins...),
		CORS:            c.CORS || len(s.flags.origins) > 0,
		MaxMessageBytes: c.MaxMessageBytes,
		BodyTimeout:     milliseconds(c.BodyReadTimeoutMS),
		KeepAlive:       milliseconds(c.SSEKeepAliveMS),
		WriteTimeout:    milliseconds(c.StreamWriteTimeoutMS),
		Events:          s.events(),
	}
}

// drainTime is how long requests in flight may go on at the end.
func (s *server) drainTime() time.Duration {
	if d := milliseconds(s.config.ShutdownGraceMS); d > 0 {
		return d
	}
	return s.flags.drain
}

// serveStdio serves standard input and output until the input ends, or until
// ctx does, and then drains.
func (s *server) serveStdio(ctx context.Context) error {
	serving, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	done := make(chan error, 1)
	go func() {
		done <- transport.ServeStdio(serving, s.engine, os.Stdin, os.Stdout, &transport.LineOptions{
			MaxMessageBytes: s.config.MaxMessageBytes,
			DrainTimeout:    max(s.drainTime(), 1), // 0 would mean the default
		})
	}()
	var err error
	select {
	case err = <-done:
		if s.engine.Accepting() != nil {
			err = nil // the session ended because the engine was shut down
		}
		_ = s.shutdown(serving, time.Second)
	case <-ctx.Done():
		err = s.shutdown(serving, s.drainTime())
		cut()
		<-done
	}
	if err != nil {
		return &exitError{exitRuntime, err.Error()}
	}
	return nil
}

// webServer makes the server of the endpoint. What it waits for from a client is
// bounded in time and size; how long a response may take is the handler's business.
func (s *server) webServer() *http.Server {
	return &http.Server{
		Handler:           endpoint(s.flags.path, s.config.authenticate(s.handler)),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		WriteTimeout:      milliseconds(s.config.HTTPServer.WriteTimeoutMS),
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// serveHTTP serves a listener until ctx ends, and then drains.
func (s *server) serveHTTP(ctx context.Context, listener net.Listener) error {
	web := s.webServer()
	s.web.Store(web)
	failed := make(chan error, 1)
	go func() {
		if err := web.Serve(transport.NewListener(listener)); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
	var err error
	select {
	case err = <-failed:
		_ = s.shutdown(context.WithoutCancel(ctx), 0)
	case <-ctx.Done():
		err = s.shutdown(context.WithoutCancel(ctx), s.drainTime())
	}
	if err != nil {
		return &exitError{exitRuntime, err.Error()}
	}
	return nil
}

// endpoint serves one path. The mux, which is for what is not asked for by that
// very path, such as one to be cleaned, costs every other request a percent.
func endpoint(path string, handler http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == path && r.URL.RawPath == "" && r.Method != http.MethodConnect {
			handler.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// shutdown drains the engine and then closes the connections. The error says
// that requests had to be cut off.
func (s *server) shutdown(ctx context.Context, grace time.Duration) error {
	draining, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	err := s.engine.Shutdown(draining)
	if web := s.web.Load(); web != nil {
		closing, cancelClosing := context.WithTimeout(ctx, time.Second)
		defer cancelClosing()
		if web.Shutdown(closing) != nil {
			_ = web.Close()
		}
	}
	return err
}
