package engine_test

import (
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// watched is a Stream that holds every frame to the schema of the revision in
// use before it goes on.
type watched struct {
	engine.Stream
	t       testing.TB
	rev     func() engine.Revision
	methods map[string]string
}

// watch wraps the stream for the replies to a frame.
func watch(t testing.TB, rev func() engine.Revision, request string, to engine.Stream) engine.Stream {
	w := &watched{Stream: to, t: t, rev: rev, methods: make(map[string]string)}
	note := func(frame []byte) {
		var m codec.Message
		if codec.Decode(frame, &m) == nil {
			w.methods[string(m.ID)] = string(m.Method)
		}
	}
	if codec.IsBatch([]byte(request)) {
		_ = codec.SplitBatch([]byte(request), 1000, note) // what is no batch has no members
	} else {
		note([]byte(request))
	}
	return w
}

func (w *watched) Send(frame []byte) error {
	w.judge(frame)
	return w.Stream.Send(frame)
}

func (w *watched) Finish(frame []byte, code int) {
	if frame != nil {
		w.judge(frame)
	}
	w.Stream.Finish(frame, code)
}

func (w *watched) judge(frame []byte) {
	rev := w.rev()
	if rev == 0 {
		rev = engine.Rev20251125
	}
	if err := judge(rev, w.methods, frame); err != nil {
		w.t.Errorf("%v: %s: %v", rev, frame, err)
	}
}
