package wire

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// bodyState is how much of a reply's body is still to come.
type bodyState struct {
	chunked  bool
	untilEOF bool
	remain   int64 // of the body, or of the current chunk
	inChunk  bool  // a chunk was begun, so its CR LF has to be read before the next size
	done     bool
}

// start prepares for the body that the head announces.
func (s *bodyState) start(h *replyHead) {
	*s = bodyState{}
	switch {
	case h.status == 204 || h.status == 304:
		s.done = true
	case h.chunked:
		s.chunked = true
	case h.length >= 0:
		s.remain = h.length
		s.done = h.length == 0
	default:
		s.untilEOF = true
		h.close = true
	}
}

// next gives the next piece of the body, borrowed until the following call, or io.EOF at its end.
func (c *Conn) next() ([]byte, error) {
	s := &c.left
	if s.done {
		return nil, io.EOF
	}
	if s.chunked && s.remain == 0 {
		if err := c.chunkSize(); err != nil {
			return nil, err
		}
		if s.done {
			return nil, io.EOF
		}
	}
	if c.r == c.w {
		if err := c.fill(); err != nil {
			if s.untilEOF && errors.Is(err, io.EOF) {
				s.done = true
				return nil, io.EOF
			}
			return nil, err
		}
	}
	n := int64(c.w - c.r)
	if !s.untilEOF {
		n = min(n, s.remain)
		s.remain -= n
		s.done = s.remain == 0 && !s.chunked
	}
	piece := c.in[c.r : c.r+int(n)]
	c.r += int(n)
	return piece, nil
}

// chunkSize reads the line that begins the next chunk, and after the last chunk the trailers.
func (c *Conn) chunkSize() error {
	s := &c.left
	if s.inChunk {
		line, err := c.line()
		if err != nil {
			return err
		}
		if len(line) != 0 {
			return protocolError("a chunk is longer than it says")
		}
	}
	line, err := c.line()
	if err != nil {
		return err
	}
	digits, _, _ := bytes.Cut(line, []byte(";"))
	size, err := strconv.ParseUint(string(bytes.TrimSpace(digits)), 16, 62)
	if err != nil {
		return protocolError("not a chunk size: %.20q", line)
	}
	s.inChunk = true
	s.remain = int64(size)
	for size == 0 && !s.done {
		trailer, err := c.line()
		if err != nil {
			return err
		}
		s.done = len(trailer) == 0
	}
	return nil
}

// line reads one line of chunk framing.
func (c *Conn) line() ([]byte, error) {
	for {
		if i := bytes.IndexByte(c.in[c.r:c.w], '\n'); i >= 0 {
			line := c.in[c.r : c.r+i]
			c.r += i + 1
			return bytes.TrimSuffix(line, []byte("\r")), nil
		}
		if c.w-c.r > 4<<10 {
			return nil, protocolError("a line of chunk framing is too long")
		}
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
}

// whole reads the body to its end. A body of known length is left where it was read, others are joined in c.body.
func (c *Conn) whole() ([]byte, error) {
	if !c.left.chunked && !c.left.untilEOF {
		n := c.left.remain
		if n > MaxReplyBytes {
			return nil, &Error{Kind: KindProtocol, Op: "parse", Err: ErrTooLarge}
		}
		for int64(c.w-c.r) < n {
			if err := c.fill(); err != nil {
				return nil, err
			}
		}
		b := c.in[c.r : c.r+int(n)]
		c.r += int(n)
		c.left.remain, c.left.done = 0, true
		return b, nil
	}
	c.body = c.body[:0]
	for {
		piece, err := c.next()
		if err == io.EOF {
			return c.body, nil
		}
		if err != nil {
			return nil, err
		}
		if len(c.body)+len(piece) > MaxReplyBytes {
			return nil, &Error{Kind: KindProtocol, Op: "parse", Err: ErrTooLarge}
		}
		c.body = append(c.body, piece...)
	}
}

// readJSON reads a reply that is one JSON message.
func (c *Conn) readJSON(id []byte, rep *Reply) error {
	b, err := c.whole()
	if err != nil {
		return err
	}
	rep.Done = time.Now()
	if len(b) == 0 {
		return &Error{Kind: KindProtocol, Op: "parse", Err: ErrNoResponse}
	}
	if err := codec.Decode(b, &rep.Message); err != nil {
		if bytes.HasPrefix(bytes.TrimSpace(b), []byte("<")) {
			return &Error{Kind: KindProtocol, Op: "parse", Err: ErrWebPage}
		}
		return protocolError("reply is not a JSON-RPC message: %w", err)
	}
	if !isResponse(&rep.Message, id) {
		return protocolError("reply answers id %.40q and not %.40q", rep.Message.ID, id)
	}
	return nil
}

// isResponse reports whether m is the response to id. An error without an id can only be the answer to the one request
// that was sent.
func isResponse(m *codec.Message, id []byte) bool {
	switch m.Kind {
	case codec.KindResponse:
		return bytes.Equal(m.ID, id)
	case codec.KindError:
		return m.ID == nil || bytes.Equal(m.ID, id)
	}
	return false
}

// readEvents reads an SSE reply up to the event that carries the response, notes the time, and then sees the stream out
// so that the connection can be used again. A stream that does not end soon after its response costs the connection.
func (c *Conn) readEvents(id []byte, deadline time.Time, rep *Reply) error {
	c.sse.reset(MaxReplyBytes)
	found := false
	var bad error
	take := func(ev *Event) {
		if found || bad != nil || !ev.message() {
			return
		}
		if err := codec.Decode(ev.Data, &rep.Message); err != nil {
			bad = protocolError("event is not a JSON-RPC message: %w", err)
			return
		}
		if isResponse(&rep.Message, id) {
			rep.Done = time.Now()
			found = true
			c.resp, c.sse.data = c.sse.data, c.resp[:0]
			return
		}
		if c.OnMessage != nil {
			c.OnMessage(&rep.Message)
		}
	}
	for !found {
		piece, err := c.next()
		if err == io.EOF {
			return &Error{Kind: KindProtocol, Op: "parse", Err: ErrNoResponse}
		}
		if err != nil {
			return err
		}
		if err := c.sse.feed(piece, take); err != nil {
			return err
		}
		if bad != nil {
			return bad
		}
	}
	c.seeOut(deadline)
	return nil
}

// seeOut reads and ignores the rest of a reply whose response is there. keepAlive tells whether it came to an end.
func (c *Conn) seeOut(deadline time.Time) {
	if c.left.done {
		return
	}
	if c.target.shared != nil {
		c.seeOutShared()
		return
	}
	armed := false
	for !c.left.done {
		if c.r == c.w && !armed {
			armed = true
			if limit := time.Now().Add(drainWait); limit.Before(deadline) {
				_ = c.nc.SetReadDeadline(limit) // a failure shows in the read that follows
			}
		}
		if _, err := c.next(); err != nil {
			return
		}
	}
}

// skipBody reads the reply to a request that has no response: a notification, or a DELETE.
func (c *Conn) skipBody(rep *Reply) error {
	if c.head.sse {
		rep.Done = time.Now()
		return nil
	}
	_, err := c.whole()
	rep.Done = time.Now()
	return err
}

// readStatus turns a reply that is not 2xx into a *StatusError with the beginning of its body.
func (c *Conn) readStatus(rep *Reply) error {
	e := &StatusError{Status: c.head.status, Location: c.head.location}
	b, err := c.whole()
	rep.Done = time.Now()
	e.Body = bytes.Clone(b[:min(len(b), 2048)])
	if err != nil || !c.keepAlive() {
		c.Close()
	}
	return e
}
