package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpengine/mcpengine/bench/mock"
)

// mockFlags are the flags of mock.
type mockFlags struct {
	http  string
	stdio bool

	service, usl, bucket string
	servers              int
	stallAt, stallFor    time.Duration
	seed                 uint64

	bytes       string
	maxSessions int
	idleTTL     time.Duration

	events     int
	gap, first time.Duration
	drop       []int

	proxy    string
	delay    time.Duration
	reinit   bool
	fanOut   int
	route    string
	replicas []string
}

// Flags of mock that belong to a server, and those of a proxy or router. --seed and --http belong to all.
var (
	mockServerFlags = []string{"stdio", "service", "servers", "usl", "token-bucket", "stall-at", "stall-for",
		"bytes-per-session", "max-sessions", "idle-ttl", "events", "gap", "first", "drop"}
	mockProxyFlags = []string{"proxy", "delay", "reinit-per-call", "fan-out", "route", "replica"}
)

const mockHelp = `A peer whose behaviour is known exactly, to hold a load generator's findings against. It offers the tools
echo (read-only) and touch (changes the resource mock://changing, of which subscribers are told), speaks
2024-11-05 to 2025-11-25 with sessions and 2026-07-28 without, and counts what it sees at GET /stats.
When ready it prints one line on standard error: listening http://ADDR/mcp

A tool call that arrives at A departs at D:

  token    G = max(A, previous G + 1/r)          --token-bucket r: burst 1, first in first out, refuses nobody
  begin    B = max(G, when a server is free)     --servers N: first in first out; 0 = unlimited
  due      D = B + S                             --service 1ms: S = 1 ms; exp:5ms: P(S > x) = exp(-x / 5 ms)
  stall    D = e where b <= D < e                --stall-at, --stall-for: b = first call + at, e = b + for

  --usl LAMBDA,SIGMA,KAPPA: S(n) = (1 + SIGMA(n-1) + KAPPA n(n-1)) / LAMBDA for the n-th call in the system,
  so a closed loop of n callers sees X(n) = n / S(n)

  --proxy URL: sends a request on at A + --delay; --reinit-per-call opens and ends an upstream session for each call of
  a session; --fan-out K sends K calls upstream for each. --route over --replica URL ...: random lets each request find
  its session with probability 1/k, sticky always.

Event n of a GET stream is sent at opening + --first + (n-1) --gap, unless --drop names it. docs/mock.md has it all.`

func newMockCommand() *cobra.Command {
	var f mockFlags
	cmd := &cobra.Command{
		Use:   "mock [--http ADDR | --stdio] [--proxy URL | --route random|sticky --replica URL ...]",
		Short: "Serve a peer whose behaviour is known exactly",
		Long:  mockHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runMock(cmd.Context(), &f, cmd.Flags().Changed, os.Stdin, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.http, "http", "127.0.0.1:8080", "serve Streamable HTTP on this `address`")
	flags.BoolVar(&f.stdio, "stdio", false, "serve standard input and output")
	flags.StringVar(&f.service, "service", "0", "service `time` of a tool call: constant (1ms) or exponential (exp:5ms)")
	flags.IntVar(&f.servers, "servers", 0, "calls served at once, the others wait (0 = unlimited)")
	flags.StringVar(&f.usl, "usl", "", "service times of the scalability law `LAMBDA,SIGMA,KAPPA`, LAMBDA in calls a second")
	flags.StringVar(&f.bucket, "token-bucket", "", "let calls through at this `rate`, such as 300/s")
	flags.DurationVar(&f.stallAt, "stall-at", 0, "begin of a stall, counted from the first tool call")
	flags.DurationVar(&f.stallFor, "stall-for", 0, "how long nothing is answered that arrives or is due in the stall")
	flags.Uint64Var(&f.seed, "seed", 1, "of everything random")
	flags.StringVar(&f.bytes, "bytes-per-session", "0", "`size` of the memory of a session, such as 1MiB, outside the Go heap")
	flags.IntVar(&f.maxSessions, "max-sessions", 0, "sessions at once; the next gets status 503 (0 = unlimited)")
	flags.DurationVar(&f.idleTTL, "idle-ttl", 0, "end a session this long after its last request and stream (0 = never)")
	flags.IntVar(&f.events, "events", 0, "numbered events on each GET stream")
	flags.DurationVar(&f.gap, "gap", 0, "between two events")
	flags.DurationVar(&f.first, "first", 0, "from the opening of a stream to its first event")
	flags.IntSliceVar(&f.drop, "drop", nil, "`numbers` of events to leave out, such as 7 or 7,9")
	flags.StringVar(&f.proxy, "proxy", "", "be a proxy before the endpoint at this `URL`")
	flags.DurationVar(&f.delay, "delay", 0, "what a proxy or router adds to each request")
	flags.BoolVar(&f.reinit, "reinit-per-call", false, "open an upstream session for each call of a session, and end it")
	flags.IntVar(&f.fanOut, "fan-out", 1, "upstream calls for each call")
	flags.StringVar(&f.route, "route", "", "be a router over replicas: random or sticky")
	flags.StringArrayVar(&f.replicas, "replica", nil, "endpoint `URL` of a replica (repeatable)")
	return cmd
}

// proxyConfig turns the flags into the configuration of a proxy or router.
func (f *mockFlags) proxyConfig() (mock.ProxyConfig, error) {
	c := mock.ProxyConfig{
		Upstream: f.proxy, Replicas: f.replicas, Route: mock.Route(f.route),
		Delay: f.delay, Reinit: f.reinit, FanOut: f.fanOut, Seed: f.seed, Version: version,
	}
	if f.fanOut < 1 {
		return c, usageError("--fan-out must be at least 1")
	}
	if err := c.Check(); err != nil {
		return c, usageError("%v", err)
	}
	return c, nil
}

// config turns the flags into the configuration of a server.
func (f *mockFlags) config() (c mock.Config, err error) {
	c = mock.Config{
		Model:    mock.Model{Servers: f.servers, StallAt: f.stallAt, StallFor: f.stallFor, Seed: f.seed},
		Sessions: mock.Sessions{Max: f.maxSessions, IdleTTL: f.idleTTL},
		Stream:   mock.Stream{Events: f.events, Gap: f.gap, First: f.first, Drop: f.drop},
		Version:  version,
	}
	if c.Model.Service, err = mock.ParseService(f.service); err != nil {
		return c, usageError("--service: %v", err)
	}
	if f.usl != "" {
		if c.Model.USL, err = mock.ParseUSL(f.usl); err != nil {
			return c, usageError("--usl: %v", err)
		}
	}
	if f.bucket != "" {
		if c.Model.TokenBucket, err = mock.ParseRate(f.bucket); err != nil {
			return c, usageError("--token-bucket: %v", err)
		}
	}
	if c.Sessions.Bytes, err = mock.ParseBytes(f.bytes); err != nil {
		return c, usageError("--bytes-per-session: %v", err)
	}
	if err := c.Check(); err != nil {
		return c, usageError("%v", err)
	}
	return c, nil
}

// runMock serves until ctx ends or, over stdio, the input does.
func runMock(ctx context.Context, f *mockFlags, given func(string) bool, stdin io.Reader, stdout, stderr io.Writer) error {
	if f.stdio && given("http") {
		return usageError("--stdio and --http exclude each other: start two")
	}
	if i := slices.IndexFunc(mockProxyFlags, given); i >= 0 {
		if k := slices.IndexFunc(mockServerFlags, given); k >= 0 {
			return usageError("--%s is of a proxy or router, --%s of a server: start one of each", mockProxyFlags[i], mockServerFlags[k])
		}
		c, err := f.proxyConfig()
		if err != nil {
			return err
		}
		p, err := mock.NewProxy(c)
		if err != nil {
			return usageError("%v", err)
		}
		defer p.Close()
		return serveMock(ctx, f.http, p.Handler(), stderr)
	}
	c, err := f.config()
	if err != nil {
		return err
	}
	if f.stdio && f.events > 0 {
		return usageError("--events are sent on GET streams, which --stdio does not have")
	}
	s, err := mock.New(c)
	if err != nil {
		return usageError("%v", err)
	}
	defer s.Close()
	if !f.stdio {
		return serveMock(ctx, f.http, s.Handler(), stderr)
	}
	if err := s.ServeStdio(ctx, stdin, stdout); err != nil {
		return &exitError{exitRuntime, err.Error()}
	}
	return nil
}

// serveMock serves a peer over HTTP until ctx ends. What is in flight then is cut off: a mock has nobody to be polite to.
func serveMock(ctx context.Context, addr string, h http.Handler, stderr io.Writer) error {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return usageError("--http %q: give an address, such as 127.0.0.1:8080", addr)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return &exitError{exitRuntime, fmt.Sprintf("cannot listen on %s: %v", addr, errors.Unwrap(err))}
	}
	fmt.Fprintf(stderr, "listening http://%s%s\n", listener.Addr(), mock.Path)
	if err := mock.Serve(ctx, listener, h); err != nil {
		return &exitError{exitRuntime, err.Error()}
	}
	return nil
}
