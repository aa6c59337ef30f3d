package client

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"
)

// Event is one event of an SSE stream.
type Event struct {
	// Type is the event's type, "message" where the stream names none.
	Type string
	// Data is the event's data, lines joined with a line feed. It is borrowed
	// until the next call of Next.
	Data []byte
}

// SSEReader reads the events of a text/event-stream, as the HTML Living
// Standard defines the format ("Server-sent events"): lines end with CR, LF or
// CRLF, comments are skipped, data may span several lines, and an event that
// the end of the stream cuts off is dropped. An event is given as soon as its
// last byte has arrived. It must be used by one goroutine at a time.
type SSEReader struct {
	r     *bufio.Reader
	limit int

	started bool // a byte order mark was looked for
	skipLF  bool // the last line ended with CR; an LF that follows belongs to it
	line    []byte
	data    []byte
	kind    string
	id      string // of the event being read, and of those after it

	lastID   string
	retry    time.Duration
	hasRetry bool
}

// NewSSEReader reads from r events of up to limit bytes: that bounds one line,
// and the data of one event.
func NewSSEReader(r io.Reader, limit int) *SSEReader {
	return &SSEReader{r: bufio.NewReader(r), limit: limit}
}

// LastEventID gives the id of the last event that was read to its end, an event
// without data included; it is what the Last-Event-ID header takes.
func (s *SSEReader) LastEventID() string { return s.lastID }

// Retry gives the last time to wait before a reconnection that the stream asked
// for, and whether it asked at all.
func (s *SSEReader) Retry() (time.Duration, bool) { return s.retry, s.hasRetry }

// Next gives the next event that has a data field, be it empty. The error is
// io.EOF at the end of the stream, ErrTooLarge for a line or an event over the
// limit, or the reader's. After an error the stream is of no more use.
func (s *SSEReader) Next() (Event, error) {
	s.data = s.data[:0]
	s.kind = ""
	for {
		line, err := s.readLine()
		if err != nil {
			return Event{}, err
		}
		if len(line) > 0 {
			if err := s.field(line); err != nil {
				return Event{}, err
			}
			continue
		}
		s.lastID = s.id
		if len(s.data) == 0 {
			s.kind = ""
			continue
		}
		e := Event{Type: s.kind, Data: s.data[:len(s.data)-1]}
		if e.Type == "" {
			e.Type = "message"
		}
		return e, nil
	}
}

// field takes a line that is not empty.
func (s *SSEReader) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if len(s.data)+len(value) > s.limit {
			return fmt.Errorf("%w: an event of more than %d bytes", ErrTooLarge, s.limit)
		}
		s.data = append(s.data, value...)
		s.data = append(s.data, '\n')
	case "event":
		s.kind = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			s.id = string(value)
		}
	case "retry":
		s.setRetry(value)
	}
	return nil
}

// maxRetry bounds what a stream may ask for, so that it cannot overflow.
const maxRetry = 24 * time.Hour

func (s *SSEReader) setRetry(value []byte) {
	for _, c := range value {
		if c < '0' || c > '9' {
			return
		}
	}
	if len(value) == 0 {
		return
	}
	ms, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || ms > int64(maxRetry/time.Millisecond) {
		ms = int64(maxRetry / time.Millisecond)
	}
	s.retry, s.hasRetry = time.Duration(ms)*time.Millisecond, true
}

// readLine gives the next line without its end, valid until the next call. A
// CR ends a line at once: to look for the LF after it could mean to wait.
func (s *SSEReader) readLine() ([]byte, error) {
	s.line = s.line[:0]
	for {
		if _, err := s.r.Peek(1); err != nil {
			return nil, err
		}
		buf, _ := s.r.Peek(s.r.Buffered())
		if s.skipLF {
			s.skipLF = false
			if buf[0] == '\n' {
				s.discard(1)
				continue
			}
		}
		end := bytes.IndexByte(buf, '\n')
		if end < 0 {
			end = len(buf)
		}
		if cr := bytes.IndexByte(buf[:end], '\r'); cr >= 0 {
			end = cr
		}
		if len(s.line)+end > s.limit+len("data: ") {
			return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrTooLarge, s.limit)
		}
		s.line = append(s.line, buf[:end]...)
		if end == len(buf) {
			s.discard(end)
			continue
		}
		s.skipLF = buf[end] == '\r'
		s.discard(end + 1)
		return s.withoutMark(), nil
	}
}

// withoutMark drops the byte order mark that a stream may begin with.
func (s *SSEReader) withoutMark() []byte {
	if s.started {
		return s.line
	}
	s.started = true
	return bytes.TrimPrefix(s.line, utf8.AppendRune(nil, '\uFEFF'))
}

// discard drops bytes that are in the buffer, which cannot fail.
func (s *SSEReader) discard(n int) {
	if _, err := s.r.Discard(n); err != nil {
		panic("client: discarding buffered bytes failed: " + err.Error())
	}
}
