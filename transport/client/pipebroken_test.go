package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/mcpengine/mcpengine/transport/client"
)

// brittle is a pipe that cannot be written to from some time on, as that of a
// process that was killed, whose output has not ended yet.
type brittle struct {
	net.Conn
	broken atomic.Bool
}

func (b *brittle) Write(p []byte) (int, error) {
	if b.broken.Load() {
		return 0, fmt.Errorf("write |1: %w", syscall.EPIPE)
	}
	return b.Conn.Write(p)
}

// TestBrokenPipe has a call find out that the server is gone before the reader
// does. Its error says the same.
func TestBrokenPipe(t *testing.T) {
	noLeaks(t)
	near, far := net.Pipe()
	go func() {
		lines := bufio.NewScanner(far)
		lines.Scan()
		_, _ = fmt.Fprintln(far, resultOf(parse(t, lines.Bytes()), initResultOf("2025-11-25", "{}")))
		for lines.Scan() {
			continue
		}
	}()
	b := &brittle{Conn: near}
	c, err := client.ConnectPipe(t.Context(), b, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.broken.Store(true)
	_, err = c.Request(context.Background(), "m", nil, nil)
	if !errors.Is(err, client.ErrDisconnected) || !errors.Is(err, syscall.EPIPE) {
		t.Errorf("Request: got %v, want ErrDisconnected and the cause", err)
	}
	closeClient(t, c)
	_ = far.Close()
}
