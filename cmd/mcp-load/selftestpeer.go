package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/bench/selfcheck"
)

// peerReady is how long a peer may take to be ready.
const peerReady = 20 * time.Second

// startPeer starts this program as mcp-load mock in a process of its own, so that the peer and the generator share
// neither a scheduler nor a garbage collector. The process ends with ctx at the latest.
func startPeer(ctx context.Context, flags ...string) (*selfcheck.Peer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program to start a peer with: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, self, append([]string{"mock", "--http", "127.0.0.1:0"}, flags...)...)
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("cannot start a peer: %w", err)
	}
	said := make(chan string, 1)
	var reader sync.WaitGroup
	reader.Go(func() {
		in := bufio.NewReader(stderr)
		line, _ := in.ReadString('\n') // at the end of the output it is what there is
		said <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, in) // so that the peer never waits for its standard error
	})
	stop := func() {
		cancel()
		reader.Wait()
		_ = cmd.Wait() // it was killed, which is an error as well
	}
	ready := time.NewTimer(peerReady)
	defer ready.Stop()
	line := fmt.Sprintf("it was not ready within %s", peerReady)
	select {
	case line = <-said:
	case <-ready.C:
	}
	url, ok := strings.CutPrefix(line, "listening ")
	if !ok {
		stop()
		return nil, fmt.Errorf("a peer did not start: %s", line)
	}
	return &selfcheck.Peer{URL: url, PID: cmd.Process.Pid, Stop: stop}, nil
}
