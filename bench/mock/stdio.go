package mock

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// maxLines is how many requests of a stdio session are in flight at once; then no more is read.
const maxLines = 4096

// ServeStdio serves one session over a pair of pipes until the input ends, answers what is in flight, and returns. It
// returns at once when ctx ends. Numbered events belong to GET streams and are not sent here; updates are.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &lines{server: s, in: bufio.NewReaderSize(in, 64<<10), out: make(chan []byte, 64), room: make(chan struct{}, maxLines)}
	written := make(chan error, 1)
	go func() {
		written <- l.write(serving, out)
		cancel()
	}()
	read := make(chan error, 1)
	go func() {
		err := l.read(serving)
		l.inFlight.Wait()
		if l.sess != nil {
			s.table.delete(l.sess)
			s.table.release(l.sess)
			l.updates.Wait()
		}
		close(l.out)
		read <- err
	}()
	select {
	case err := <-written: // the output is broken, or all is written
		if err == nil {
			err = <-read
		}
		if ctx.Err() != nil {
			return nil
		}
		return err
	case <-ctx.Done():
		return nil
	}
}

// lines is a stdio session.
type lines struct {
	server   *Server
	in       *bufio.Reader
	out      chan []byte // frames to write
	room     chan struct{}
	inFlight sync.WaitGroup // requests
	updates  sync.WaitGroup // the goroutine that hands over updates
	sess     *session       // nil before initialize; belongs to the reader
}

// write writes the frames until there are no more.
func (l *lines) write(ctx context.Context, out io.Writer) error {
	for {
		select {
		case frame, ok := <-l.out:
			if !ok {
				return nil
			}
			if _, err := out.Write(append(frame, '\n')); err != nil {
				return fmt.Errorf("cannot write to the client: %w", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// send hands a frame to the writer.
func (l *lines) send(ctx context.Context, frame []byte) {
	select {
	case l.out <- frame:
	case <-ctx.Done():
	}
}

// read reads messages until the input ends.
func (l *lines) read(ctx context.Context) error {
	for ctx.Err() == nil {
		line, err := readLine(l.in)
		if len(line) > 0 {
			l.take(ctx, line, time.Now())
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read from the client: %w", err)
		}
	}
	return nil
}

// take serves one message that arrived at an instant.
func (l *lines) take(ctx context.Context, line []byte, arrival time.Time) {
	s, m := l.server, new(codec.Message)
	if err := codec.Decode(line, m); err != nil {
		fault := codec.ErrInternal
		errors.As(err, &fault)
		if m.Kind != codec.KindNotification {
			l.send(ctx, codec.AppendError(nil, m.ID, fault))
		}
		return
	}
	s.count.request(m.Method)
	modern := m.IsModern()
	switch {
	case m.Kind != codec.KindRequest:
	case modern && string(m.MetaVersion) != stateless:
		l.send(ctx, codec.AppendError(nil, m.ID, unsupported(m.MetaVersion)))
	case !modern && string(m.Method) == codec.MethodInitialize:
		l.initialize(ctx, m)
	case !modern && l.sess == nil && string(m.Method) != codec.MethodPing:
		l.send(ctx, appendFault(nil, m.ID, codec.CodeInvalidRequest, "begin with initialize"))
	case !modern && l.sess == nil:
		l.send(ctx, codec.AppendResult(nil, m.ID, []byte("{}")))
	default:
		l.begin(ctx, m, modern, arrival)
	}
}

// initialize opens the session, once.
func (l *lines) initialize(ctx context.Context, m *codec.Message) {
	if l.sess != nil {
		l.send(ctx, appendFault(nil, m.ID, codec.CodeInvalidRequest, "the session is initialized already"))
		return
	}
	sess, err := l.server.table.open() // and its one use keeps it until the input ends
	if err != nil {
		l.send(ctx, appendFault(nil, m.ID, codeSessionLimit, err.Error()))
		return
	}
	l.sess = sess
	box := l.server.table.attach(sess)
	l.updates.Go(func() {
		for {
			select {
			case frame := <-box.frames:
				l.server.count.updates.Add(1)
				l.send(ctx, frame)
			case <-sess.ended:
				return
			}
		}
	})
	l.send(ctx, l.server.answerInitialize(nil, m))
}

// begin answers a request when it is time, and lets the reader go on meanwhile.
func (l *lines) begin(ctx context.Context, m *codec.Message, modern bool, arrival time.Time) {
	select {
	case l.room <- struct{}{}:
	case <-ctx.Done():
		return
	}
	sess := l.sess
	if modern {
		sess = nil
	}
	due := l.server.enter(m, arrival)
	l.inFlight.Go(func() {
		defer func() { <-l.room }()
		if frame, err := l.server.leave(ctx, nil, sess, m, due); err == nil {
			l.send(ctx, frame)
		}
	})
}

// readLine reads a line of its own, without the line break. A line beyond maxBody is an error, after which the place in
// the input is lost.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxBody:
			return nil, errors.New("a line is longer than 4 MiB")
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		}
		return bytes.TrimSpace(line), err
	}
}
