package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"os"

	"github.com/mcpengine/mcpengine/engine"
)

// ServeStdio serves one session on a pair of streams, usually os.Stdin and
// os.Stdout: newline-delimited JSON-RPC messages, as the specification's stdio
// transport has it. It returns nil when the input has ended and the requests
// already read are answered, or LineOptions.DrainTimeout later; the context's
// cause when ctx ended first; else the error of a stream.
//
// Where out is os.Stdout, everything else that writes to standard output is led
// to standard error while it serves, so that a stray print in a tool cannot
// break the wire: the file descriptor on unix, the variable os.Stdout elsewhere.
func ServeStdio(ctx context.Context, e *engine.Engine, in io.Reader, out io.Writer, o ...*LineOptions) error {
	var options *LineOptions
	if len(o) > 0 {
		options = o[0]
	}
	if out == io.Writer(os.Stdout) {
		wire, restore, err := guardStdout()
		if err != nil {
			return err
		}
		defer restore()
		out = wire
	}
	err := serveLines(ctx, e, in, out, options)
	if errors.Is(err, os.ErrClosed) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// Pipe serves one session in memory and gives the client's end of it, which
// carries newline-delimited frames. Closing that end ends the session. served
// is closed when it is over.
func Pipe(ctx context.Context, e *engine.Engine, o ...*LineOptions) (client io.ReadWriteCloser, served <-chan struct{}) {
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = ours.Close() }()
		_ = ServeStdio(ctx, e, ours, ours, o...)
	}()
	return theirs, done
}
