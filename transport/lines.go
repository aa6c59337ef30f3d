package transport

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// LineOptions configures the transports whose frames are lines: stdio and any
// other pipe. Nil is fine; zero means the default written at each field.
type LineOptions struct {
	// MaxMessageBytes is the longest line. A longer one is skipped and
	// answered with an error. Default 4 MiB.
	MaxMessageBytes int
	// MaxQueueBytes is how much waits for a peer that does not read, before
	// nothing more is read from it. Default 8 MiB.
	MaxQueueBytes int
	// DrainTimeout is how long requests in flight may go on when the input
	// has ended. Default 5 s.
	DrainTimeout time.Duration
}

func (o *LineOptions) withDefaults() LineOptions {
	var c LineOptions
	if o != nil {
		c = *o
	}
	if c.MaxMessageBytes <= 0 {
		c.MaxMessageBytes = 4 << 20
	}
	if c.MaxQueueBytes <= 0 {
		c.MaxQueueBytes = 8 << 20
	}
	if c.DrainTimeout <= 0 {
		c.DrainTimeout = 5 * time.Second
	}
	return c
}

// lineServer serves one session over a pair of byte streams.
//
// One goroutine at a time has the reader's role: it reads a line and handles it
// itself, so that a quick request costs no switch of goroutines. When handling
// takes longer than a tick, the relay gives the role to another goroutine, and
// the first one only finishes what it is at. So a slow handler, or a peer that
// does not read, delays no other request, no ping and no cancellation.
type lineServer struct {
	options LineOptions
	engine  *engine.Engine
	session *engine.Session // of the legacy era
	peer    *engine.Peer    // of the stateless one
	ctx     context.Context
	modern  context.Context // of requests of the stateless era; ends with the pipe
	in      io.Reader
	out     *lineWriter
	relay   relay
	jobs    sync.Pool      // of *lineJob
	working sync.WaitGroup // goroutines that have or had the role

	eof     chan struct{} // closed when the input has ended
	readErr error         // why, if not by io.EOF; valid after eof

	// The reader's own.
	buf        []byte
	start, end int  // of what was read and not yet handled
	scanned    int  // bytes after start that hold no line end
	skipping   bool // within a line that is too long
}

// serveLines serves a session until the input ends, the output fails or ctx
// ends, and then drains.
func serveLines(ctx context.Context, e *engine.Engine, in io.Reader, out io.Writer, o *LineOptions) error {
	modern, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &lineServer{
		options: o.withDefaults(),
		engine:  e,
		peer:    engine.NewPeer(),
		ctx:     ctx,
		modern:  modern,
		in:      in,
		eof:     make(chan struct{}),
		buf:     make([]byte, 64<<10),
	}
	s.jobs.New = func() any { return &lineJob{server: s} }
	s.out = newLineWriter(out, s.options.MaxQueueBytes)
	session, err := e.OpenSession("line-"+rand.Text(), nil) // no HTTP request may guess it
	if err != nil {
		return err
	}
	s.session = session
	defer session.Close()
	session.Attach(lineNotices{s.out})
	release := session.Hold()
	defer release()

	s.relay.init(func() { s.working.Go(s.read) })
	watching := make(chan struct{})
	go func() { defer close(watching); s.relay.watch() }()
	s.working.Go(s.read)

	select {
	case <-s.eof:
		s.peer.Close(true)
		err = s.drain()
	case <-s.out.broken:
		err = s.out.failed()
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-session.Done():
		err = errSessionEnded
		s.lastWords()
	}
	session.Close()
	s.peer.Close(false)
	<-session.Done()
	s.relay.stop()
	<-watching
	s.out.close()
	return err
}

var errSessionEnded = errors.New("transport: the session was ended")

// lastWords writes the answers that are queued when the engine ends the session,
// unless the peer does not read.
func (s *lineServer) lastWords() {
	written := make(chan struct{})
	go func() { defer close(written); s.out.drain() }()
	select {
	case <-written:
	case <-s.ctx.Done():
	case <-time.After(time.Second):
	}
}

// drain waits for the requests that were read before the input ended.
func (s *lineServer) drain() error {
	done := make(chan struct{})
	go func() {
		s.working.Wait()
		s.out.drain()
		close(done)
	}()
	timer := time.NewTimer(s.options.DrainTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-s.ctx.Done():
	}
	if errors.Is(s.readErr, io.EOF) {
		return nil
	}
	return s.readErr
}

// read has the reader's role until the input ends or the relay takes it.
func (s *lineServer) read() {
	for {
		if s.out.long() && !s.flush() {
			return
		}
		line, ok := s.next()
		if !ok {
			return
		}
		line = bytes.TrimRight(line, " \t\r")
		if len(line) == 0 {
			continue
		}
		if !s.handle(line) {
			return
		}
	}
}

// next gives the next line, borrowed from the buffer. It reports false when
// there is none, or when the role is gone.
func (s *lineServer) next() ([]byte, bool) {
	for {
		if i := bytes.IndexByte(s.buf[s.start+s.scanned:s.end], '\n'); i >= 0 {
			line := s.buf[s.start : s.start+s.scanned+i]
			s.start += len(line) + 1
			s.scanned = 0
			switch {
			case s.skipping:
				s.skipping = false
			case len(line) > s.options.MaxMessageBytes:
				s.refuseLong()
			default:
				return line, true
			}
			continue
		}
		s.scanned = s.end - s.start
		if s.scanned > s.options.MaxMessageBytes && !s.skipping {
			s.refuseLong()
			s.skipping = true
		}
		if s.skipping {
			s.start, s.scanned = s.end, 0
		}
		if !s.fill() {
			return nil, false
		}
	}
}

// fill reads more. Before it may block, everything that is queued is written.
func (s *lineServer) fill() bool {
	if !s.flush() {
		return false
	}
	if s.start > 0 {
		s.end = copy(s.buf, s.buf[s.start:s.end])
		s.start = 0
	}
	if s.end == len(s.buf) {
		grown := make([]byte, 2*len(s.buf))
		copy(grown, s.buf)
		s.buf = grown
	} else if s.end == 0 && len(s.buf) > maxKeptBuffer {
		s.buf = make([]byte, 64<<10)
	}
	n, err := s.in.Read(s.buf[s.end:])
	s.end += n
	if n > 0 {
		return true
	}
	if err == nil {
		return true
	}
	if rest := bytes.TrimSpace(s.buf[s.start:s.end]); len(rest) > 0 && !s.skipping {
		// A last line without its end. Whoever takes the role meanwhile finds
		// the end of the input by itself.
		s.start, s.scanned = s.end, 0
		if !s.handle(rest) {
			return false
		}
	}
	s.readErr = err
	close(s.eof)
	return false
}

// flush writes what is queued, within the relay's sight. Where the peer is far
// behind it first waits with the role, so that nobody reads on. It reports false
// when the role is gone, or the output.
func (s *lineServer) flush() bool {
	s.out.await()
	turn := s.relay.enter()
	s.out.write()
	return s.relay.leave(turn) && s.out.failed() == nil
}

var errLong = codec.NewError(codec.CodeInvalidRequest, "Invalid Request: the message is too long")

func (s *lineServer) refuseLong() {
	_ = s.out.append(codec.AppendError(nil, nil, errLong), false)
}

// lineJob is a line that is being handled, and the stream of its answers.
type lineJob struct {
	server  *lineServer // never changes: a late Flush may meet the next line's job
	frame   []byte
	message codec.Message
	turn    atomic.Uint64 // of the relay; 0 until a handler runs
	sent    atomic.Bool
}

// handle handles one line. It reports whether this goroutine still has the role.
// Everything up to the start of a handler is done with the role, so that
// messages take effect in the order in which they came.
func (s *lineServer) handle(line []byte) bool {
	job := s.jobs.Get().(*lineJob)
	job.frame = append(job.frame[:0], line...)
	job.sent.Store(false)
	job.turn.Store(0)
	if codec.IsBatch(job.frame) {
		job.Start()
		s.session.ReceiveBatch(s.ctx, job.frame, job)
	} else {
		s.receive(job)
	}
	mine := true
	if turn := job.turn.Load(); turn != 0 {
		mine = s.relay.leave(turn)
	}
	if !mine {
		s.out.flush()
	}
	if cap(job.frame) <= maxKeptBuffer {
		s.jobs.Put(job)
	}
	return mine
}

// Start is called when a handler is about to run: from now on the role may go to
// another goroutine.
func (j *lineJob) Start() { j.turn.Store(j.server.relay.enter()) }

// receive hands one message to the engine, by its era.
func (s *lineServer) receive(job *lineJob) {
	m := &job.message
	fault := codec.Decode(job.frame, m)
	switch {
	case fault == nil && m.Kind == codec.KindRequest && engine.IsModern(m):
		s.engine.ReceiveModern(s.modern, s.peer, m, nil, job)
	case fault == nil && m.Kind == codec.KindNotification && string(m.Method) == codec.NotifyCancelled &&
		m.RequestID != nil && s.peer.Cancel(m.RequestID):
	default:
		s.session.Receive(s.ctx, m, fault, job)
	}
}

// Send queues a frame that precedes the answer.
func (j *lineJob) Send(frame []byte) error {
	j.sent.Store(true)
	return j.server.out.append(frame, true)
}

// Finish queues the answer.
func (j *lineJob) Finish(frame []byte, _ int) {
	if frame != nil {
		_ = j.server.out.append(frame, false)
	}
}

// Flush writes at once, unless there is nothing but an answer and the reader
// will write soon, together with those of the lines that follow.
func (j *lineJob) Flush() {
	turn := j.turn.Load()
	if j.sent.Load() || turn != 0 && !j.server.relay.holds(turn) {
		j.server.out.flush()
	}
}
