package engine

import (
	"context"
	"sync"

	"github.com/mcpengine/mcpengine/codec"
)

// ReceiveBatch handles a frame that is an array of messages. Only revision
// 2025-03-26 has batches; in any other it is refused with -32600. The requests
// run side by side, so that a slow one delays no other; their responses go out
// together, as one array. It returns when all are done, and reports whether
// there was anything to answer.
func (s *Session) ReceiveBatch(ctx context.Context, frame []byte, stream Stream) (answered bool) {
	if s.Revision() != Rev20250326 {
		var m codec.Message
		answer(nil, s.engine.wireError(codec.Decode(frame, &m)), stream)
		return true
	}
	b := &batchStream{stream: stream, out: []byte{'['}}
	var running sync.WaitGroup
	err := codec.SplitBatch(frame, s.engine.options.MaxBatch, func(element []byte) {
		m := new(codec.Message)
		fault := codec.Decode(element, m)
		if fault == nil && m.Kind == codec.KindRequest && string(m.Method) == codec.MethodInitialize {
			fault = errInitializeInBatch
		}
		if fault == nil && m.Kind == codec.KindRequest {
			running.Go(func() { s.Receive(ctx, m, nil, b) })
			return
		}
		s.Receive(ctx, m, fault, b)
	})
	if err != nil {
		s.engine.sessions.batches.Add(1)
		answer(nil, s.engine.wireError(err), stream)
		return true
	}
	running.Wait()
	return b.finish()
}

var errInitializeInBatch = codec.NewError(codec.CodeInvalidRequest, "Invalid Request: initialize must not be part of a batch")

// batchStream gathers the responses of a batch, and passes other frames on.
type batchStream struct {
	stream Stream

	mu  sync.Mutex // guards out
	out []byte
}

func (b *batchStream) Send(frame []byte) error { return b.stream.Send(frame) }

func (b *batchStream) Flush() { b.stream.Flush() }

func (b *batchStream) Finish(frame []byte, _ int) {
	if frame == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.out) > 1 {
		b.out = append(b.out, ',')
	}
	b.out = append(b.out, frame...)
}

// finish sends what was gathered, if anything.
func (b *batchStream) finish() bool {
	b.mu.Lock()
	out := append(b.out, ']')
	b.mu.Unlock()
	if len(out) == 2 {
		return false
	}
	b.stream.Finish(out, 0)
	b.stream.Flush()
	return true
}
