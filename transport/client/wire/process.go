package wire

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

const (
	// MaxLineBytes bounds one line of a process's standard output.
	MaxLineBytes = 16 << 20
	// MaxQueueBytes bounds the frames that wait because a process does not read its standard input.
	MaxQueueBytes = 16 << 20

	defaultGrace = 2 * time.Second
	exitNews     = 200 * time.Millisecond // how long the news of an exit may take behind a broken pipe
)

// ProcessOptions are the choices of Start; nil is fine.
type ProcessOptions struct {
	// OnMessage receives the notifications and requests of the process, on the goroutine that reads them. The message
	// is borrowed; Send may be called from here.
	OnMessage func(*Process, *codec.Message)
	// Grace is how long each step of Close waits; zero means 2 s.
	Grace time.Duration
}

// Process is an MCP peer that was spawned and speaks newline-delimited frames on its standard streams. Its methods may
// be called from any goroutine; responses find their calls by id, in whatever order they come.
type Process struct {
	cmd       *exec.Cmd
	onMessage func(*Process, *codec.Message)
	grace     time.Duration
	stdin     *os.File
	stdout    *os.File
	stderr    tail
	exited    chan struct{} // closed when the process has been waited for
	gone      chan struct{} // closed when its standard output has ended
	wake      chan struct{} // tells the writer that frames wait; capacity 1

	mu      sync.Mutex
	pending map[uint64]*Reply // calls in flight, by id
	queue   []byte            // frames that wait to be written
	failed  error             // why no further call can be made
	stopped bool              // Close was called
}

// pendingReply is the part of a Reply that a Process uses.
type pendingReply struct {
	ready chan struct{} // capacity 1; receives when frame or err is set
	timer *time.Timer
	frame []byte
	err   error
}

// Start spawns argv[0] with its arguments. The process gets a process group of its own, so that an interrupt typed at
// the terminal reaches this side only and the calls in flight can still be answered.
func Start(argv []string, o *ProcessOptions) (*Process, error) {
	if len(argv) == 0 {
		return nil, &Error{Kind: KindDial, Op: "start", Err: errors.New("no command given")}
	}
	if o == nil {
		o = &ProcessOptions{}
	}
	p := &Process{
		cmd: exec.Command(argv[0], argv[1:]...), onMessage: o.OnMessage, grace: o.Grace,
		exited: make(chan struct{}), gone: make(chan struct{}), wake: make(chan struct{}, 1),
		pending: make(map[uint64]*Reply),
	}
	if p.grace <= 0 {
		p.grace = defaultGrace
	}
	childIn, stdin, err := os.Pipe()
	if err != nil {
		return nil, &Error{Kind: KindDial, Op: "start", Err: err}
	}
	stdout, childOut, err := os.Pipe()
	if err != nil {
		_, _ = childIn.Close(), stdin.Close() // never used
		return nil, &Error{Kind: KindDial, Op: "start", Err: err}
	}
	p.stdin, p.stdout = stdin, stdout
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = childIn, childOut, &p.stderr
	p.cmd.WaitDelay = p.grace
	ownGroup(p.cmd)
	err = p.cmd.Start()
	_, _ = childIn.Close(), childOut.Close() // the child's ends; it has its own copies
	if err != nil {
		_, _ = stdin.Close(), stdout.Close() // never used
		return nil, &Error{Kind: KindDial, Op: "start", Err: err}
	}
	go p.write()
	go p.read()
	go func() {
		_ = p.cmd.Wait() // the exit status is in ProcessState
		close(p.exited)
	}()
	return p, nil
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process can answer no more, because its standard output has ended.
func (p *Process) Done() <-chan struct{} { return p.gone }

// Call sends a request frame (without its line break) and waits for the response to id, which must be a decimal number
// that no other call in flight has. An error is an *Error. rep.Sent is when the frame was handed to the pipe's queue: if
// the process does not read, the time that costs is its own.
func (p *Process) Call(id, frame []byte, deadline time.Time, rep *Reply) error {
	key, ok := codec.ParseUint(id)
	if !ok {
		return protocolError("id %.40q is not a decimal number", id)
	}
	s := &rep.stdio
	rep.Status, rep.SessionID, rep.Retried = 0, nil, false
	rep.FirstByte, rep.Done = time.Time{}, time.Time{}
	rep.Message.Reset()
	s.err = nil
	rep.Sent = time.Now()
	if s.ready == nil {
		s.ready = make(chan struct{}, 1)
		s.timer = time.NewTimer(deadline.Sub(rep.Sent))
	} else {
		s.timer.Reset(deadline.Sub(rep.Sent))
	}
	defer s.timer.Stop()
	if err := p.enqueue(key, frame, rep); err != nil {
		return err
	}
	select {
	case <-s.ready:
	case <-s.timer.C:
		if p.forget(key) {
			return &Error{Kind: KindTimeout, Op: "read", Err: os.ErrDeadlineExceeded}
		}
		<-s.ready // the response won the race, and is being handed over
	}
	if s.err != nil {
		return s.err
	}
	if err := codec.Decode(s.frame, &rep.Message); err != nil {
		return protocolError("line is not a JSON-RPC message: %w", err)
	}
	return nil
}

// Send queues a frame that has no response: a notification, or the answer to a request of the process.
func (p *Process) Send(frame []byte) error { return p.enqueue(0, frame, nil) }

// enqueue registers the call, if it is one, and queues its frame.
func (p *Process) enqueue(key uint64, frame []byte, rep *Reply) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != nil {
		return p.failed
	}
	if len(p.queue)+len(frame) > MaxQueueBytes {
		return &Error{Kind: KindTransport, Op: "write", Err: errors.New("the process does not read its standard input")}
	}
	if rep != nil {
		if _, used := p.pending[key]; used {
			return protocolError("id %d is in flight already", key)
		}
		p.pending[key] = rep
	}
	p.queue = append(append(p.queue, frame...), '\n')
	select {
	case p.wake <- struct{}{}:
	default:
	}
	return nil
}

// forget takes a call out of the table; false means that it has been answered.
func (p *Process) forget(key uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.pending[key]
	delete(p.pending, key)
	return ok
}

// write is the goroutine that alone writes to the process. It takes all frames that wait in one write.
func (p *Process) write() {
	var batch []byte
	for {
		select {
		case <-p.wake:
		case <-p.gone:
			return
		}
		p.mu.Lock()
		batch, p.queue = p.queue, batch[:0]
		stopped := p.stopped
		p.mu.Unlock()
		if _, err := p.stdin.Write(batch); err != nil {
			p.waitAtMost(p.gone, exitNews) // a process that has ended is the better explanation, and the reader has it
			p.fail(ioError("write", err, false))
			return
		}
		if stopped {
			_ = p.stdin.Close() // the peer sees the end of its input
			return
		}
		if cap(batch) > keepBuffer {
			batch = nil
		}
	}
}

// read is the goroutine that alone reads from the process.
func (p *Process) read() {
	defer close(p.gone)
	var m codec.Message
	lines := lineReader{src: p.stdout}
	for {
		line, err := lines.next()
		if err != nil {
			p.fail(&Error{Kind: KindTransport, Op: "read", Err: p.ended(err)})
			_ = p.stdout.Close() // at its end
			return
		}
		if codec.Decode(line, &m) != nil {
			continue // a server that logs to its standard output: no reason to lose the calls in flight
		}
		if m.Kind != codec.KindResponse && m.Kind != codec.KindError {
			if p.onMessage != nil {
				p.onMessage(p, &m)
			}
			continue
		}
		if key, ok := m.UintID(); ok {
			p.answer(key, line, lines.began)
		}
	}
}

// answer hands a response to the call that waits for it. A response to a call that has been given up is dropped.
func (p *Process) answer(key uint64, line []byte, began time.Time) {
	p.mu.Lock()
	rep := p.pending[key]
	delete(p.pending, key)
	p.mu.Unlock()
	if rep == nil {
		return
	}
	rep.stdio.frame = append(rep.stdio.frame[:0], line...)
	rep.FirstByte, rep.Done = began, time.Now()
	rep.stdio.ready <- struct{}{}
}

// ended explains why nothing more can be read.
func (p *Process) ended(err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	text := "the process closed its standard output"
	if p.waitAtMost(p.exited, exitNews) { // the exit status is there a moment after the pipe has ended
		text = "the process ended (" + p.cmd.ProcessState.String() + ")"
	}
	if last := p.stderr.lastLine(); last != "" {
		text += ", its last words: " + last
	}
	return processEnded(text)
}

// processEnded says how a process ended. It is an io.EOF, which says no more.
type processEnded string

func (e processEnded) Error() string { return string(e) }
func (e processEnded) Unwrap() error { return io.EOF }

// fail ends every call in flight with err and refuses later ones.
func (p *Process) fail(err error) {
	p.mu.Lock()
	if p.failed == nil {
		p.failed = err
	}
	calls := p.pending
	p.pending = make(map[uint64]*Reply)
	p.mu.Unlock()
	for _, rep := range calls {
		rep.stdio.err = err
		rep.stdio.ready <- struct{}{}
	}
}

// Abort ends the calls in flight, and every later one, with KindAborted. The process lives on until Close.
func (p *Process) Abort() { p.fail(ioError("read", os.ErrClosed, true)) }

// Close ends the process as the stdio transport says: it closes the standard input, waits, sends SIGTERM, waits, sends
// SIGKILL. The error tells that a signal was needed; when Close returns the process is gone in any case.
func (p *Process) Close() error {
	p.mu.Lock()
	p.stopped = true
	if p.failed == nil {
		p.failed = &Error{Kind: KindTransport, Op: "write", Err: os.ErrClosed}
	}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
	var err error
	if !p.waitAtMost(p.exited, p.grace) {
		_ = p.stdin.Close() // the writer may be stuck in a full pipe
		err = errors.New("the process did not end when its standard input was closed; SIGTERM ended it")
		terminate(p.cmd)
		if !p.waitAtMost(p.exited, p.grace) {
			err = errors.New("the process ignored SIGTERM; SIGKILL ended it")
			kill(p.cmd)
		}
	}
	<-p.exited
	kill(p.cmd) // what the process has left behind in its group, which also ends the pipe
	if !p.waitAtMost(p.gone, p.grace) {
		_ = p.stdout.Close() // held open by a process outside the group
		<-p.gone
	}
	_ = p.stdin.Close() // closed already, unless the writer ended first
	return err
}

// waitAtMost reports whether done was closed within d.
func (p *Process) waitAtMost(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
