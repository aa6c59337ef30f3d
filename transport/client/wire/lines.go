package wire

import (
	"bytes"
	"io"
	"time"
)

// lineReader splits a stream into lines and notes when the first byte of a line arrived.
type lineReader struct {
	src   io.Reader
	buf   []byte
	r, w  int
	began time.Time // when the first byte of the current line had been read
	fresh bool      // began belongs to the line under way
	last  time.Time // of the last read
}

// next gives the next line without its end, borrowed until the following call. Empty lines are passed over. A last line
// without an end is given before io.EOF.
func (l *lineReader) next() ([]byte, error) {
	l.began, l.fresh = l.last, l.r < l.w
	for scanned := 0; ; {
		if end := bytes.IndexByte(l.buf[l.r+scanned:l.w], '\n'); end >= 0 {
			line := bytes.TrimSuffix(l.buf[l.r:l.r+scanned+end], []byte("\r"))
			l.r += scanned + end + 1
			if len(line) > 0 {
				return line, nil
			}
			scanned = 0
			l.fresh = l.r < l.w
			continue
		}
		scanned = l.w - l.r
		if scanned > MaxLineBytes {
			return nil, ErrTooLarge
		}
		if err := l.fill(); err != nil {
			if err == io.EOF && l.r < l.w {
				line := l.buf[l.r:l.w]
				l.r = l.w
				return line, nil
			}
			return nil, err
		}
	}
}

// fill reads more bytes behind those that have not been consumed.
func (l *lineReader) fill() error {
	if l.r == l.w {
		l.r, l.w = 0, 0
	}
	if l.w == len(l.buf) {
		if l.r > 0 {
			l.w = copy(l.buf, l.buf[l.r:l.w])
			l.r = 0
		} else {
			grown := make([]byte, max(64<<10, 2*len(l.buf)))
			copy(grown, l.buf[:l.w])
			l.buf = grown
		}
	}
	n, err := l.src.Read(l.buf[l.w:])
	l.w += n
	if n == 0 {
		if err == nil {
			err = io.ErrNoProgress
		}
		return err
	}
	l.last = time.Now()
	if !l.fresh {
		l.began, l.fresh = l.last, true
	}
	return nil
}
