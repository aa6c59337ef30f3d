package main

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	logQueue = 1024                   // lines that wait for a slow reader
	logGrace = 200 * time.Millisecond // what they get at the end
)

// logWriter writes log lines on a goroutine of its own. Logging is best effort:
// when nobody reads standard error, lines are dropped and nothing waits. How
// many were dropped is told as soon as somebody reads again.
type logWriter struct {
	w       io.Writer
	lines   chan []byte
	dropped atomic.Int64
	closing sync.Once
	stop    chan struct{}
	done    chan struct{}
}

func newLogWriter(w io.Writer) *logWriter {
	l := &logWriter{w: w, lines: make(chan []byte, logQueue), stop: make(chan struct{}), done: make(chan struct{})}
	go l.run()
	return l
}

func (l *logWriter) run() {
	defer close(l.done)
	for {
		select {
		case line := <-l.lines:
			l.write(line)
			continue
		default:
		}
		select {
		case line := <-l.lines:
			l.write(line)
		case <-l.stop:
			return
		}
	}
}

func (l *logWriter) write(line []byte) {
	if n := l.dropped.Swap(0); n > 0 {
		_, _ = fmt.Fprintf(l.w, "%d log lines were dropped: nobody read them\n", n)
	}
	_, _ = l.w.Write(line)
}

// Write queues one line. It never waits and never fails. After close the line
// is lost.
func (l *logWriter) Write(line []byte) (int, error) {
	select {
	case l.lines <- append([]byte(nil), line...):
	default:
		l.dropped.Add(1)
	}
	return len(line), nil
}

// close waits a moment until what is queued is written.
func (l *logWriter) close() {
	l.closing.Do(func() { close(l.stop) })
	timer := time.NewTimer(logGrace)
	defer timer.Stop()
	select {
	case <-l.done:
	case <-timer.C:
	}
}
