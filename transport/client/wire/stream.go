package wire

import (
	"io"
	"time"
)

// Stream sends a GET request and hands every event of its SSE reply to onEvent until the stream ends, which is nil, or
// breaks. opened is called once, when the peer has accepted. A peer that offers no stream answers 405, which comes back
// as a *StatusError. The deadline concerns the opening only; Abort ends the stream.
func (c *Conn) Stream(head []byte, deadline time.Time, opened func(), onEvent func(*Event)) error {
	defer c.Close()
	begin := c.beginStream
	if c.target.shared != nil {
		begin = c.beginShared
	}
	if err := begin(head, deadline); err != nil {
		return err
	}
	opened()
	c.sse.reset(MaxReplyBytes)
	for {
		piece, err := c.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := c.sse.feed(piece, onEvent); err != nil {
			return err
		}
	}
}

// beginStream sends the GET request and reads the head of its reply.
func (c *Conn) beginStream(head []byte, deadline time.Time) error {
	var rep Reply
	c.build(&Request{Head: head})
	if _, err := c.connect(deadline); err != nil {
		return err
	}
	if _, err := c.nc.Write(c.out); err != nil {
		return ioError("write", err, c.aborted.Load())
	}
	if err := c.readHead(&rep); err != nil {
		return err
	}
	if err := c.acceptsStream(&rep); err != nil {
		return err
	}
	if err := c.nc.SetDeadline(time.Time{}); err != nil {
		return ioError("read", err, c.aborted.Load())
	}
	if c.aborted.Load() {
		return ioError("read", io.ErrClosedPipe, true)
	}
	return nil
}

// acceptsStream judges the head of the reply to a GET.
func (c *Conn) acceptsStream(rep *Reply) error {
	if c.head.status != 200 {
		return c.readStatus(rep)
	}
	if !c.head.sse {
		return protocolError("reply to GET is not text/event-stream")
	}
	return nil
}
