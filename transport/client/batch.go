package client

import (
	"errors"
	"sync"

	"github.com/mcpengine/mcpengine/codec"
)

// maxBatch limits the messages of one batch.
const maxBatch = 1000

// batch collects the answers to the requests of one batch, which only revision
// 2025-03-26 has: they go back in one array once the last of them is there.
type batch struct {
	c *Client

	mu   sync.Mutex // guards the following
	left int        // requests without an outcome, and one while the batch is read
	out  []byte     // the answers, joined
}

// receiveBatch dispatches the messages of a batch.
func (c *Client) receiveBatch(m *codec.Message, frame []byte, own *call) {
	b := &batch{c: c, left: 1}
	err := codec.SplitBatch(frame, maxBatch, func(f []byte) { c.receiveOne(m, f, own, b) })
	if err == nil {
		b.settle(nil)
		return
	}
	c.noteFault("a malformed batch: " + err.Error())
	var e *codec.Error
	if errors.As(err, &e) {
		c.reply(nil, nil, nil, e)
	}
}

// expect counts a request that settle will be called for.
func (b *batch) expect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left++
}

// settle takes the answer to a request, nil where there is none because the
// server cancelled it. The last one sends them all.
func (b *batch) settle(frame []byte) {
	b.mu.Lock()
	if frame != nil {
		if len(b.out) > 0 {
			b.out = append(b.out, ',')
		}
		b.out = append(b.out, frame...)
	}
	b.left--
	ready := b.left == 0 && len(b.out) > 0
	b.mu.Unlock()
	if ready {
		out := append(make([]byte, 0, len(b.out)+2), '[')
		b.c.sendAside(append(append(out, b.out...), ']'))
	}
}
