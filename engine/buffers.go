package engine

import "sync"

// buffer is a byte slice on its way through a pool.
type buffer struct{ b []byte }

// maxKept is the largest buffer that goes back into the pool, so that one huge
// message does not hold its memory for ever.
const maxKept = 64 << 10

var buffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, 1024)} }}

func takeBuffer() *buffer {
	b := buffers.Get().(*buffer)
	b.b = b.b[:0]
	return b
}

func giveBuffer(b *buffer) {
	if cap(b.b) <= maxKept {
		buffers.Put(b)
	}
}
