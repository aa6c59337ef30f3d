package wire

import (
	"strings"
	"sync"
)

// stderrTail bounds what is kept of a process's standard error.
const stderrTail = 4 << 10

// tail keeps the end of what a process writes to its standard error.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

// Write never fails and never blocks the process.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b[max(0, len(b)-stderrTail):]...)
	if extra := len(t.buf) - stderrTail; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
	}
	return len(b), nil
}

// lastLine gives the last line that is not empty.
func (t *tail) lastLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.buf)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
