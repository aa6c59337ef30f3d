package engine_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

func progress(token, rest string) string {
	return `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + rest + `}}`
}

const doneFrame = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}`

func TestProgress(t *testing.T) {
	e, _ := newEngine(t, nil)
	must(t, e.AddRawTool(engine.Tool{Name: "steps"}, func(ctx context.Context, c *engine.Call, _, out []byte) ([]byte, error) {
		c.Progress(ctx, 0, 10)
		c.Progress(ctx, 0, 10) // not greater
		c.Progress(ctx, 2.5, 10)
		c.Progress(ctx, 1, 10) // less
		c.Progress(ctx, math.NaN(), 10)
		c.Progress(ctx, math.Inf(1), 10)
		c.ProgressMessage(ctx, 3, 0, "half\nway")
		c.Progress(ctx, 3, 0)
		c.Progress(ctx, 1e21, -1)
		return engine.AppendTextResult(out, "done"), nil
	}))
	for _, rev := range legacy {
		p := connect(t, e, rev)
		message := `,"message":"half\nway"`
		if rev < engine.Rev20250326 {
			message = ""
		}
		for _, token := range []string{`"t"`, `"7"`, `7`, `0`, `""`, `-3`, `9007199254740993`, `"\u00e9"`} {
			r := p.send(request("1", codec.MethodToolsCall, `{"name":"steps","_meta":{"progressToken":`+token+`}}`))
			checkFrames(t, fmt.Sprintf("%v, token %s", rev, token), r.take(),
				progress(token, `,"progress":0,"total":10`),
				progress(token, `,"progress":2.5,"total":10`),
				progress(token, `,"progress":3`+message),
				progress(token, `,"progress":1e+21`),
				doneFrame)
		}
		for _, meta := range []string{``, `,"_meta":{}`, `,"_meta":{"ProgressToken":1}`} {
			r := p.send(request("1", codec.MethodToolsCall, `{"name":"steps"`+meta+`}`))
			checkFrames(t, fmt.Sprintf("%v, no token%s", rev, meta), r.take(), doneFrame)
		}
	}
}

// TestLateProgress has a goroutine report progress after its handler has
// returned, and again while another request runs on the same actor.
func TestLateProgress(t *testing.T) {
	e, _ := newEngine(t, nil)
	var kept *engine.Call
	must(t, e.AddRawTool(engine.Tool{Name: "keep"}, func(ctx context.Context, c *engine.Call, _, out []byte) ([]byte, error) {
		kept = c
		c.Progress(ctx, 1, 0)
		return engine.AppendTextResult(out, "done"), nil
	}))
	must(t, e.AddRawTool(engine.Tool{Name: "other"}, func(ctx context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
		kept.Progress(ctx, 3, 0)
		return engine.AppendTextResult(out, "done"), nil
	}))
	p := connect(t, e, engine.Rev20251125)
	first := p.send(request("1", codec.MethodToolsCall, `{"name":"keep","_meta":{"progressToken":"a"}}`))
	checkFrames(t, "frames of the call", first.take(), progress(`"a"`, `,"progress":1`), doneFrame)
	kept.Progress(t.Context(), 2, 0)
	checkFrames(t, "frames after the answer", first.take())
	second := p.send(request("1", codec.MethodToolsCall, `{"name":"other","_meta":{"progressToken":"b"}}`))
	checkFrames(t, "frames of another call", second.take(), doneFrame)
	checkFrames(t, "frames of the first call meanwhile", first.take())
	checkFrames(t, "frames that belong to no request", p.notes.take())
}
