package main

import (
	"context"
	"net"
	"os"
	"time"
)

// startDemoServer starts the demo fixture on a free port of the loopback
// interface, in this process.
func startDemoServer(ctx context.Context) (url string, stop func(context.Context) error, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	f := &serveFlags{
		path: "/mcp", fixture: "demo", sessionIdle: 30 * time.Minute, drain: 5 * time.Second, logLevel: "warn", store: "memory",
	}
	s, err := newServer(ctx, f, os.Stderr)
	if err != nil {
		_ = listener.Close()
		return "", nil, err
	}
	serving, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.serveHTTP(serving, listener) }()
	return "http://" + listener.Addr().String() + f.path, func(ctx context.Context) error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}, nil
}
