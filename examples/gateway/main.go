// Command gateway joins several MCP servers behind one endpoint. It is a host in the words of the protocol's design:
// the engine does the protocol, and everything here is policy.
//
//	go run ./examples/gateway -upstream 'docs=http://127.0.0.1:9001/mcp' -upstream 'files=mcp-files --root /srv'
//
// A tool search of the upstream docs is offered as docs_search; prompts likewise. Resources keep their URIs. Upstream
// sessions are pooled and never opened for a call. A server that is away is reconnected, a process that died is started
// again, and calls meanwhile get an error at once. With -policy, callers prove themselves with bearer tokens, see only
// what they may, and confirm what they must. Every call leaves an audit record on standard error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// startWait is how long the upstreams may take to tell what they offer, before the gateway serves without them.
const startWait = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	var config Config
	addr := flags.String("http", "127.0.0.1:8090", "serve Streamable HTTP on this `address`")
	policy := flags.String("policy", "", "`file` that says who may see and call what")
	drain := flags.Duration("drain", 10*time.Second, "how long calls in flight may go on at the end")
	flags.IntVar(&config.Sessions, "sessions", 4, "sessions that are kept open to each upstream that has sessions over HTTP")
	flags.DurationVar(&config.CallTimeout, "call-timeout", time.Minute, "how long an upstream may take, and go without progress")
	flags.Func("upstream", "`NAME=URL` or NAME=COMMAND ARGS of a server to join (repeatable)", func(s string) error {
		u, err := parseUpstream(s)
		config.Upstreams = append(config.Upstreams, u)
		return err
	})
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	config.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	if *policy != "" {
		var err error
		if config.Policy, err = readPolicy(*policy); err != nil {
			return err
		}
	}
	gateway, err := New(config)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		gateway.Close(ctx)
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, startWait)
	gateway.Ready(waiting)
	cancel()
	fmt.Fprintf(os.Stderr, "listening http://%s/mcp\n", listener.Addr())
	return serve(ctx, gateway, listener, *drain)
}

// serve serves a listener until ctx ends, and then lets calls in flight finish.
func serve(ctx context.Context, g *Gateway, listener net.Listener, drain time.Duration) error {
	server := &http.Server{Handler: g.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	return errors.Join(err, g.Close(closing), server.Close())
}
