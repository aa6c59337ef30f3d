package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Placeholder is what Start replaces with the address of a replica in the words of the command.
const Placeholder = "{addr}"

const (
	startTime = 20 * time.Second // that a server may take until it accepts connections
	stopTime  = 5 * time.Second  // that it may take to end after it was asked to
	askEvery  = 20 * time.Millisecond
	keptLog   = 4 << 10 // bytes of standard error, for the message when it does not start
)

// ErrNoPlaceholder is a command that cannot be told where to listen.
var ErrNoPlaceholder = errors.New("the command must hold " + Placeholder + " where the address to listen on belongs")

// Process is a server that was started from a command.
type Process struct {
	Address string // host:port on loopback
	cmd     *exec.Cmd
	log     tail
	done    chan struct{} // closed when the process has ended
	end     error         // of the process; after done
}

// Start starts n servers from a command, each on a free port of the loopback interface, and waits until all accept
// connections. Where one does not, all are ended, and the error holds the last line that it wrote to standard error.
func Start(ctx context.Context, command []string, n int) ([]*Process, error) {
	if !slices.ContainsFunc(command, func(word string) bool { return strings.Contains(word, Placeholder) }) {
		return nil, ErrNoPlaceholder
	}
	addresses, err := freeAddresses(n)
	if err != nil {
		return nil, err
	}
	var started []*Process
	for _, address := range addresses {
		p, err := start(command, address)
		if err != nil {
			Stop(started)
			return nil, err
		}
		started = append(started, p)
	}
	for i, p := range started {
		if err := p.ready(ctx); err != nil {
			Stop(started)
			return nil, fmt.Errorf("replica %d of %d: %w", i+1, n, err)
		}
	}
	return started, nil
}

// freeAddresses finds n ports that nobody listens on. All are held until the last is found, so that they differ.
func freeAddresses(n int) ([]string, error) {
	var out []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // nobody has connected
		out = append(out, l.Addr().String())
	}
	return out, nil
}

func start(command []string, address string) (*Process, error) {
	argv := make([]string, len(command))
	for i, word := range command {
		argv[i] = strings.ReplaceAll(word, Placeholder, address)
	}
	p := &Process{Address: address, cmd: exec.Command(argv[0], argv[1:]...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", argv[0], err)
	}
	go func() {
		p.end = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// PID is the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// ready waits until the server accepts connections.
func (p *Process) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	var d net.Dialer
	for {
		if conn, err := d.DialContext(ctx, "tcp", p.Address); err == nil {
			return conn.Close()
		}
		select {
		case <-p.done:
			return fmt.Errorf("the command ended before it listened on %s: %v%s", p.Address, p.end, p.log.last())
		case <-ctx.Done():
			return fmt.Errorf("nothing listens on %s after %s%s", p.Address, startTime, p.log.last())
		case <-time.After(askEvery):
		}
	}
}

// Stop asks the processes to end, and kills those that do not. It returns when all have ended.
func Stop(processes []*Process) {
	for _, p := range processes {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	}
	after := time.After(stopTime)
	for _, p := range processes {
		select {
		case <-p.done:
			continue
		case <-after:
			after = closed
		}
		if err := p.cmd.Process.Kill(); err == nil || errors.Is(err, os.ErrProcessDone) {
			<-p.done
		}
	}
}

// closed is a channel that is always ready: the time to stop is over for the others as well.
var closed = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte // guarded by mu
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if n := len(t.kept) - keptLog; n > 0 {
		t.kept = append(t.kept[:0], t.kept[n:]...)
	}
	return len(b), nil
}

// last gives the last line, to be put behind a message.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.kept), []byte("\n"))
	if text := string(bytes.TrimSpace(lines[len(lines)-1])); text != "" {
		return "; it wrote: " + text
	}
	return ""
}
