package engine_test

import (
	"context"
	"sync"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// questions are what a server has asked a legacy client.
type questions struct {
	answer answers // "" leaves a request without an answer

	mu     sync.Mutex
	frames []string
}

func (q *questions) note(frame []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.frames = append(q.frames, string(frame))
}

// taken gives the requests of the server since the last time.
func (q *questions) taken() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	frames := q.frames
	q.frames = nil
	return frames
}

// answering is a stream that answers the requests on it and keeps what else
// comes.
type answering struct {
	engine.Stream
	p *asked
}

func (a answering) Send(frame []byte) error {
	var m codec.Message
	if codec.Decode(frame, &m) != nil || m.Kind != codec.KindRequest {
		return a.Stream.Send(frame)
	}
	a.p.note(frame)
	if a.p.answer == nil {
		return nil
	}
	answer := a.p.answer(string(m.Method), append([]byte(nil), m.Params...))
	if answer == "" {
		return nil
	}
	member := "result"
	if codec.Member([]byte(answer), "code") != nil {
		member = "error"
	}
	response := `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"` + member + `":` + answer + `}`
	go a.p.peer.receive(context.Background(), response, new(reply))
	return nil
}

// frames gives the notifications of a request, and then its result.
func (p *asked) frames(id, method, params string) []string {
	p.t.Helper()
	r, done := p.begin(request(id, method, params))
	<-done
	frames := r.take()
	if len(frames) == 0 || r.finished() != 1 {
		p.t.Fatalf("%s %s: got frames %v, finished %d times, want one answer", method, params, frames, r.finished())
	}
	last := len(frames) - 1
	frames[last] = answerOf(p.t, frames[last], id)
	return frames
}

// begin hands a request to the session, and does not wait.
func (p *asked) begin(frame string) (r *reply, done <-chan struct{}) {
	r = new(reply)
	ended := make(chan struct{})
	var m codec.Message
	fault := codec.Decode([]byte(frame), &m)
	go func() {
		defer close(ended)
		p.session.Receive(context.Background(), &m, fault, watch(p.t, p.session.Revision, frame, answering{r, p}))
	}()
	return r, ended
}

// result gives the result of a request, or its error.
func (p *asked) result(method, params string) string {
	p.t.Helper()
	frames := p.frames("1", method, params)
	return frames[len(frames)-1]
}

// call gives the result of a tool.
func (p *asked) call(name, arguments string) string {
	p.t.Helper()
	return p.result(codec.MethodToolsCall, `{"name":"`+name+`","arguments":`+arguments+`}`)
}

// addTool registers a tool that gives a text.
func addTool(e *engine.Engine, t engine.Tool, h func(ctx context.Context, c *engine.Call) (string, error)) error {
	return e.AddRawTool(t, func(ctx context.Context, c *engine.Call, _, out []byte) ([]byte, error) {
		text, err := h(ctx, c)
		if err != nil {
			return nil, err
		}
		return engine.AppendTextResult(out, text), nil
	})
}

// nameForm is a form with one field.
const nameForm = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`

// askName asks for a name.
func askName(key string) *engine.ElicitRequest {
	return &engine.ElicitRequest{Key: key, Message: "Name?", Schema: []byte(nameForm)}
}
