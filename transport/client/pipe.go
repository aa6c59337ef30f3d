package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mcpengine/mcpengine/codec"
)

// ConnectPipe makes the handshake over a pipe that carries newline-delimited
// frames, such as one half of net.Pipe. Closing rw must end a Read and a Write
// that are waiting; Close of the Client closes it. ctx governs the handshake
// only.
func ConnectPipe(ctx context.Context, rw io.ReadWriteCloser, o *Options) (*Client, error) {
	c := newClient(o)
	p := newPipe(c, rw, rw)
	p.shut = func(context.Context) error { return rw.Close() }
	c.link = p
	p.start()
	return c.connect(ctx)
}

// pipeQueue is how many frames may wait for the writer of a pipe. Beyond that,
// senders wait.
const pipeQueue = 64

// pipe is the link over newline-delimited frames. One goroutine reads, one
// writes, so that nobody who sends is held by a peer that does not read.
type pipe struct {
	c     *Client
	in    io.Reader
	out   io.Writer
	queue chan *outgoing

	shut   func(ctx context.Context) error // ends the reader and the writer
	reason func(err error) error           // says why the reader ended; nil for no more than err

	stop    chan struct{} // closed when closing begins
	readEnd chan struct{} // closed when the reader has ended
	wrEnd   chan struct{} // closed when the writer has ended
}

// outgoing is a frame on its way, newline included. Its frame belongs to the link from then on.
type outgoing struct {
	line []byte
	done chan error // buffered
}

func newPipe(c *Client, in io.Reader, out io.Writer) *pipe {
	return &pipe{
		c: c, in: in, out: out,
		queue:   make(chan *outgoing, pipeQueue),
		stop:    make(chan struct{}),
		readEnd: make(chan struct{}),
		wrEnd:   make(chan struct{}),
	}
}

// start starts both goroutines. close waits for them.
func (p *pipe) start() {
	go p.write()
	go p.read()
}

func (p *pipe) negotiated(string) {}

func (p *pipe) ready(context.Context) {}

func (p *pipe) call(k *call) error {
	o, err := p.enqueue(k.ctx, k.frame)
	if err != nil {
		return err
	}
	k.sent = true
	select {
	case err := <-o.done:
		return err
	case <-k.done:
	case <-k.ctx.Done():
	case <-p.stop:
		return p.ended()
	}
	return nil
}

func (p *pipe) send(ctx context.Context, frame []byte) error {
	o, err := p.enqueue(ctx, frame)
	if err != nil {
		return err
	}
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-p.stop:
		return p.ended()
	}
}

func (p *pipe) trySend(frame []byte) bool {
	select {
	case p.queue <- newOutgoing(frame):
		return true
	default:
		return false
	}
}

// newOutgoing makes a line of a frame, which it takes over. In valid JSON a line
// break is white space between tokens, so it may become a space.
func newOutgoing(frame []byte) *outgoing {
	for i, b := range frame {
		if b == '\n' || b == '\r' {
			frame[i] = ' '
		}
	}
	return &outgoing{line: append(frame, '\n'), done: make(chan error, 1)}
}

// enqueue hands a frame to the writer.
func (p *pipe) enqueue(ctx context.Context, frame []byte) (*outgoing, error) {
	o := newOutgoing(frame)
	select {
	case p.queue <- o:
		return o, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.stop:
		return nil, p.ended()
	}
}

// ended gives the error of a send on a link that is closing.
func (p *pipe) ended() error {
	if err := p.c.Err(); err != nil {
		return err
	}
	return ErrClosed
}

func (p *pipe) write() {
	defer close(p.wrEnd)
	for {
		select {
		case <-p.stop:
			return
		case o := <-p.queue:
			_, err := p.out.Write(o.line)
			if err != nil {
				err = fmt.Errorf("%w: %w", ErrDisconnected, err)
			}
			o.done <- err
			if err != nil {
				// The reader tells the reason better, and soon, where the peer is gone.
				p.c.log.Debug("client: write", "error", err)
				return
			}
		}
	}
}

func (p *pipe) read() {
	err := p.readLines()
	if p.reason != nil {
		err = p.reason(err)
	}
	p.c.lost(err)
	close(p.readEnd)
}

// readLines reads frames until the stream ends, and tells why it did.
func (p *pipe) readLines() error {
	var m codec.Message
	lines := lineReader{r: bufio.NewReaderSize(p.in, 16<<10), limit: p.c.o.MaxMessageBytes}
	for {
		line, err := lines.next()
		if errors.Is(err, ErrTooLarge) {
			p.c.noteFault(fmt.Sprintf("a line of more than %d bytes was skipped", lines.limit))
			continue
		}
		if len(line) > 0 {
			p.c.receive(&m, line, nil)
		}
		switch {
		case err == io.EOF:
			return ErrDisconnected
		case err != nil:
			return fmt.Errorf("%w: %w", ErrDisconnected, err)
		}
	}
}

func (p *pipe) close(ctx context.Context) error {
	close(p.stop)
	err := p.shut(ctx)
	<-p.readEnd
	<-p.wrEnd
	return err
}

// lineReader reads lines up to a limit, in a buffer that grows to the longest.
type lineReader struct {
	r     *bufio.Reader
	limit int
	long  []byte
}

// next gives the next line, without its end and white space around it, valid
// until the next call. A line over the limit is skipped and gives ErrTooLarge.
// At the end of the stream the rest of it comes with the error.
func (l *lineReader) next() ([]byte, error) {
	part, err := l.r.ReadSlice('\n')
	if err == nil && len(part) <= l.limit+1 {
		return bytes.TrimSpace(part), nil
	}
	l.long = l.long[:0]
	skip := false
	for {
		if skip = skip || len(l.long)+len(part) > l.limit+1; !skip {
			l.long = append(l.long, part...)
		}
		if err != bufio.ErrBufferFull {
			break
		}
		part, err = l.r.ReadSlice('\n')
	}
	switch {
	case skip && err == nil:
		return nil, ErrTooLarge
	case skip:
		return nil, err
	}
	return bytes.TrimSpace(l.long), err
}
