package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// batch hands a batch to the session and gives the elements of the answers,
// sorted, since they come in any order. single is set where the answer is no
// array.
func (p *peer) batch(frame string) (answers []string, single bool) {
	p.t.Helper()
	r := new(reply)
	answered := p.session.ReceiveBatch(context.Background(), []byte(frame), r)
	frames := r.take()
	if answered != (len(frames) == 1) || len(frames) > 1 || answered != (r.finished() == 1) {
		p.t.Errorf("ReceiveBatch(%s): got %t, frames %v, finished %d times", frame, answered, frames, r.finished())
	}
	if len(frames) == 0 {
		return nil, false
	}
	if !codec.IsBatch([]byte(frames[0])) {
		return frames, true
	}
	codec.EachElement([]byte(frames[0]), func(element []byte) bool {
		answers = append(answers, string(element))
		return true
	})
	slices.Sort(answers)
	return answers, false
}

func TestBatch(t *testing.T) {
	e, _ := newEngine(t, &engine.Options{MaxBatch: 4})
	echo(t, e, "echo")
	p := connect(t, e, engine.Rev20250326)
	const ping1, ping2 = `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":"2","method":"ping"}`
	const pong1, pong2 = `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":"2","result":{}}`
	const note = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	const answer = `{"jsonrpc":"2.0","id":5,"result":{}}`
	for _, c := range []struct {
		frame  string
		want   []string // whole frames, or codes
		single bool
	}{
		{`[` + ping1 + `]`, []string{pong1}, false},
		{` [` + ping1 + ` , ` + ping2 + `] `, []string{pong2, pong1}, false},
		{`[` + ping1 + `,` + note + `,` + ping2 + `]`, []string{pong2, pong1}, false},
		{`[` + note + `]`, nil, false},
		{`[` + note + `,` + note + `]`, nil, false},
		{`[` + answer + `,` + answer + `]`, nil, false},
		{`[` + request("1", "no/such", "") + `,` + request("2", codec.MethodToolsCall, `{"name":"echo","arguments":{"a":[1]}}`) + `]`,
			[]string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: no/such"}}`,
				`{"jsonrpc":"2.0","id":2,"result":` + text(`{\"a\":[1]}`) + `}`}, false},
		{`[1,` + ping1 + `,[],{"jsonrpc":"2.0","method":7}]`, []string{"-32600", "-32600", "-32600", pong1}, false},
		{`[` + request("9", "initialize", `{"protocolVersion":"2025-03-26"}`) + `,` + ping1 + `]`, []string{pong1, "-32600"}, false},
		{`[]`, []string{"-32600"}, true},
		{`[` + strings.Repeat(note+",", 4) + note + `]`, []string{"-32600"}, true},
		{`[` + ping1, []string{"-32700"}, true},
		{`[` + ping1 + `,]`, []string{"-32700"}, true},
	} {
		got, single := p.batch(c.frame)
		for i := range got {
			if code := codec.Member([]byte(got[i]), "error", "code"); code != nil && i < len(c.want) && !slices.Contains(c.want, got[i]) {
				got[i] = string(code)
			}
		}
		slices.Sort(got)
		want := slices.Sorted(slices.Values(c.want))
		checkFrames(t, c.frame, got, want...)
		if single != c.single {
			t.Errorf("%s: answered by a single object: %t, want %t", c.frame, single, c.single)
		}
	}
	if got := e.Stats().Refusals.Batches; got != 4 {
		t.Errorf("Refusals.Batches: got %d, want the 4 that were refused whole", got)
	}
}

// TestBatchElsewhere sends batches where there are none.
func TestBatchElsewhere(t *testing.T) {
	e, _ := newEngine(t, nil)
	for _, rev := range []engine.Revision{0, engine.Rev20241105, engine.Rev20250618, engine.Rev20251125} {
		p := open(t, e)
		if rev != 0 {
			p = connect(t, e, rev)
		}
		for _, frame := range []string{`[` + request("1", "ping", "") + `]`, `[]`,
			`[` + request("1", "initialize", `{"protocolVersion":"2025-03-26"}`) + `]`} {
			got, single := p.batch(frame)
			if len(got) != 1 || !single || string(codec.Member([]byte(got[0]), "error", "code")) != "-32600" {
				t.Errorf("revision %q, %s: got %v, want one -32600", rev, frame, got)
			}
		}
		if got := p.session.Revision(); got != rev {
			t.Errorf("Revision: got %v, want %v", got, rev)
		}
	}
}

// TestBatchSideBySide checks that the requests of a batch run at the same time,
// that a cancelled one has no answer in it, and what progress does.
func TestBatchSideBySide(t *testing.T) {
	e, _ := newEngine(t, nil)
	b := addBlocker(t, e)
	must(t, e.AddRawTool(engine.Tool{Name: "unblock"}, func(ctx context.Context, c *engine.Call, _, out []byte) ([]byte, error) {
		c.Progress(ctx, 1, 0)
		for range 2 {
			<-b.started
		}
		c.Session().Receive(ctx, cancellation("1"), nil, nil)
		<-b.ended
		close(b.release)
		return engine.AppendTextResult(out, "done"), nil
	}))
	p := connect(t, e, engine.Rev20250326)
	r := new(reply)
	p.session.ReceiveBatch(t.Context(), []byte(`[`+block("1")+`,`+block("2")+`,`+
		request("3", codec.MethodToolsCall, `{"name":"unblock","_meta":{"progressToken":"t"}}`)+`]`), r)
	frames := r.take()
	if len(frames) != 2 {
		t.Fatalf("frames: got %v, want progress and the answers", frames)
	}
	check(t, "first frame", frames[0], progress(`"t"`, `,"progress":1`))
	var ids []string
	codec.EachElement([]byte(frames[1]), func(element []byte) bool {
		ids = append(ids, string(codec.Member(element, "id")))
		return true
	})
	slices.Sort(ids)
	check(t, "ids that are answered", fmt.Sprint(ids), "[2 3]")
}

// cancellation is a decoded notification that cancels the request of an id.
func cancellation(id string) *codec.Message {
	m := new(codec.Message)
	if err := codec.Decode(codec.AppendCancelled(nil, []byte(id), ""), m); err != nil {
		panic(err)
	}
	return m
}
