package wire

import (
	"bytes"
	"io"
	"strconv"
	"time"
)

// replyHead is what a measurement needs of the status line and headers.
type replyHead struct {
	status   int
	length   int64 // Content-Length, -1 when there is none
	chunked  bool
	close    bool // the peer will close the connection after this reply
	sse      bool
	session  []byte // borrowed from the read buffer: copied by readHead
	location string
}

// fill reads more bytes behind those that have not been consumed.
func (c *Conn) fill() error {
	if c.r == c.w {
		c.r, c.w = 0, 0
	}
	if c.w == len(c.in) {
		if c.r > 0 {
			c.w = copy(c.in, c.in[c.r:c.w])
			c.r = 0
		} else {
			grown := make([]byte, max(firstBuffer, 2*len(c.in)))
			copy(grown, c.in[:c.w])
			c.in = grown
		}
	}
	n, err := c.src.Read(c.in[c.w:])
	c.w += n
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return ioError("read", err, c.aborted.Load())
}

// readHead reads status line and headers, passing over interim replies (1xx).
func (c *Conn) readHead(rep *Reply) error {
	scanned := 0
	for {
		end := bytes.Index(c.in[c.r+scanned:c.w], []byte("\r\n\r\n"))
		if end < 0 {
			if c.w-c.r > MaxHeadBytes {
				return &Error{Kind: KindProtocol, Op: "parse", Err: ErrTooLarge}
			}
			scanned = max(0, c.w-c.r-3)
			if err := c.fill(); err != nil {
				return err
			}
			if rep.FirstByte.IsZero() {
				rep.FirstByte = time.Now()
			}
			continue
		}
		end += c.r + scanned
		head := c.in[c.r : end+2]
		c.r = end + 4
		if err := c.head.parse(head); err != nil {
			return err
		}
		if c.head.status >= 200 {
			break
		}
		scanned = 0
	}
	rep.SessionID = nil
	if c.head.session != nil {
		rep.SessionID = bytes.Clone(c.head.session) // only the reply to initialize carries one as a rule
	}
	c.left.start(&c.head)
	return nil
}

// parse reads the head of one reply: lines that end with CR LF, the empty line left out.
func (h *replyHead) parse(b []byte) error {
	*h = replyHead{length: -1}
	line, rest := cutLine(b)
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return protocolError("not an HTTP/1.1 reply: %.40q", line)
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil || status < 100 {
		return protocolError("not an HTTP status: %.40q", line)
	}
	h.status = status
	h.close = line[7] == '0'
	for len(rest) > 0 {
		line, rest = cutLine(rest)
		colon := bytes.IndexByte(line, ':')
		if colon <= 0 {
			return protocolError("not a header line: %.40q", line)
		}
		if err := h.header(line[:colon], bytes.Trim(line[colon+1:], " \t")); err != nil {
			return err
		}
	}
	return nil
}

// header takes note of one header; the length of the name decides which it can be.
func (h *replyHead) header(name, value []byte) error {
	switch len(name) {
	case len("location"):
		if isName(name, "location") {
			h.location = string(value)
		}
	case len("connection"):
		if isName(name, "connection") && containsFold(value, "close") {
			h.close = true
		}
	case len("content-type"):
		if isName(name, "content-type") {
			h.sse = len(value) >= 17 && isName(value[:17], "text/event-stream")
		}
	case len("content-length"):
		switch {
		case isName(name, "mcp-session-id"):
			h.session = value
		case isName(name, "content-length"):
			n, err := strconv.ParseUint(string(value), 10, 62)
			if err != nil || h.length >= 0 && h.length != int64(n) {
				return protocolError("not a valid Content-Length: %.40q", value)
			}
			h.length = int64(n)
		}
	case len("transfer-encoding"):
		if isName(name, "transfer-encoding") {
			if !isName(value, "chunked") {
				return protocolError("transfer encoding %.40q was not asked for", value)
			}
			h.chunked = true
		}
	}
	return nil
}

// cutLine gives the bytes before the first CR LF and those behind it.
func cutLine(b []byte) (line, rest []byte) {
	if i := bytes.Index(b, []byte("\r\n")); i >= 0 {
		return b[:i], b[i+2:]
	}
	return b, nil
}

// isName compares without regard to the case of ASCII letters, as HTTP does for names. lower is in lower case.
func isName(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// containsFold reports whether lower, in lower case, occurs in b in any case.
func containsFold(b []byte, lower string) bool {
	for i := 0; i+len(lower) <= len(b); i++ {
		if isName(b[i:i+len(lower)], lower) {
			return true
		}
	}
	return false
}
