package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const (
	// stderrTail is how much of a process's stderr is kept for error messages.
	stderrTail = 4 << 10
	// lateOutput is how long the output of a process that has ended is read on,
	// where another process holds it open.
	lateOutput = 250 * time.Millisecond
)

// Spawn starts a server as a child process, argv[0] being the program, and
// makes the handshake over its stdin and stdout (section stdio of the
// transports). ctx governs the handshake only; the process lives until Close,
// or until it ends by itself.
func Spawn(ctx context.Context, argv []string, o *Options) (*Client, error) {
	if len(argv) == 0 {
		return nil, errors.New("client: no command to spawn")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := spawn(ctx, argv, o)
	if o != nil && o.Protocol == ProtocolAuto && ctx.Err() == nil && errors.Is(err, ErrDisconnected) {
		// Some servers of the session-based era end at the first thing that is not
		// initialize.
		return spawn(ctx, argv, sessionOptions(o))
	}
	return c, err
}

// spawn starts the process and makes the handshake.
func spawn(ctx context.Context, argv []string, o *Options) (*Client, error) {
	c := newClient(o)
	p, err := startProcess(c, argv)
	if err != nil {
		c.cancel()
		return nil, fmt.Errorf("client: spawn: %w", err)
	}
	c.link = p
	p.start()
	c, err = c.connect(ctx)
	if err != nil {
		return nil, p.explain(err)
	}
	return c, nil
}

// process is the link to a child process: a pipe, and the care for the child.
type process struct {
	*pipe
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *os.File
	tail   tail

	exited    chan struct{} // closed when the child has ended and was waited for
	stderrEnd chan struct{} // closed when the reader of stderr has ended
	reaped    chan struct{} // closed when its descriptors are closed too
}

// startProcess starts the child. Its pipes are made here and not by exec, whose
// Wait would close them under the reader.
func startProcess(c *Client, argv []string) (*process, error) {
	p := &process{
		cmd:       exec.Command(argv[0], argv[1:]...),
		exited:    make(chan struct{}),
		stderrEnd: make(chan struct{}),
		reaped:    make(chan struct{}),
	}
	p.cmd.Dir, p.cmd.Env = c.o.Dir, c.o.Env
	var theirs [3]*os.File
	var err error
	if theirs[0], p.stdin, err = os.Pipe(); err == nil {
		if p.stdout, theirs[1], err = os.Pipe(); err == nil {
			p.stderr, theirs[2], err = os.Pipe()
		}
	}
	if err == nil {
		p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs[0], theirs[1], theirs[2]
		err = p.cmd.Start()
	}
	closeAll(theirs[:]...)
	if err != nil {
		closeAll(p.stdin, p.stdout, p.stderr)
		return nil, err
	}
	p.pipe = newPipe(c, p.stdout, p.stdin)
	p.shut, p.reason = p.end, p.whyEnded
	p.tail.also = c.o.Stderr
	go p.readStderr()
	go p.reap()
	return p, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close() // a pipe; there is nothing to flush
		}
	}
}

func (p *process) readStderr() {
	defer close(p.stderrEnd)
	_, err := io.Copy(&p.tail, p.stderr)
	if err != nil && !errors.Is(err, os.ErrClosed) {
		p.c.log.Debug("client: stderr", "error", err)
	}
}

// reap waits for the child and closes the descriptors to it. What it wrote last
// is read to the end, but not for long: a grandchild may hold the pipes open.
func (p *process) reap() {
	defer close(p.reaped)
	if err := p.cmd.Wait(); err != nil {
		p.c.log.Debug("client: the server process ended", "state", err)
	}
	close(p.exited)
	late := time.NewTimer(lateOutput)
	defer late.Stop()
	for _, end := range []chan struct{}{p.readEnd, p.stderrEnd} {
		select {
		case <-end:
		case <-late.C:
			late.Reset(0)
		}
	}
	closeAll(p.stdin, p.stdout, p.stderr)
}

// whyEnded makes the error of a stream that has ended: the end of the process
// where it ends at about the same time.
func (p *process) whyEnded(err error) error {
	patience := time.NewTimer(lateOutput)
	defer patience.Stop()
	select {
	case <-p.stop: // closing, so that nobody asks for the reason
		return err
	case <-patience.C:
		return err
	case <-p.exited:
	}
	select {
	case <-p.stderrEnd:
	case <-patience.C:
	}
	return &ExitError{State: p.cmd.ProcessState.String(), Stderr: p.tail.String()}
}

// explain adds the end of stderr to the error of a handshake.
func (p *process) explain(err error) error {
	var exit *ExitError
	if text := p.tail.String(); text != "" && !errors.As(err, &exit) {
		return fmt.Errorf("%w; stderr of the server ended with: %s", err, text)
	}
	return err
}

// end ends the child: it closes its stdin, which asks it to end, then sends
// SIGTERM, then SIGKILL, each after the grace, or at once when ctx has ended.
func (p *process) end(ctx context.Context) error {
	closeAll(p.stdin)
	if !p.wait(ctx) && ctx.Err() == nil {
		p.c.log.Info("client: the server process does not end with its stdin; it is terminated", "pid", p.cmd.Process.Pid)
		p.signal(terminate)
		p.wait(ctx)
	}
	select {
	case <-p.exited:
	default:
		p.c.log.Warn("client: the server process is killed", "pid", p.cmd.Process.Pid)
		p.signal((*os.Process).Kill)
	}
	<-p.reaped
	return nil
}

func (p *process) signal(send func(*os.Process) error) {
	if err := send(p.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.c.log.Warn("client: signal to the server process", "error", err)
	}
}

// wait waits for the child for one grace, and reports whether it has ended.
func (p *process) wait(ctx context.Context) bool {
	grace := time.NewTimer(p.c.o.CloseGrace)
	defer grace.Stop()
	select {
	case <-p.exited:
		return true
	case <-ctx.Done():
	case <-grace.C:
	}
	return false
}

// tail is a writer that keeps the last bytes, and passes all on to another
// writer until that one fails.
type tail struct {
	also io.Writer // owned by the goroutine that writes

	mu   sync.Mutex // guards kept
	kept []byte
}

// Write never fails, so that a child never waits for the reader of its stderr.
func (t *tail) Write(b []byte) (int, error) {
	if t.also != nil {
		if _, err := t.also.Write(b); err != nil {
			t.also = nil
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b[max(0, len(b)-stderrTail):]...)
	if over := len(t.kept) - stderrTail; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(b), nil
}

// String gives what is kept, as text.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(strings.TrimSpace(string(t.kept)), "?")
}
