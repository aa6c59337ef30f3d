package engine_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// everything are the capabilities of a client that can do all.
const everything = `{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}},` +
	`"tasks":{"list":{},"cancel":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}},` +
	`"extensions":{"io.modelcontextprotocol/tasks":{}}}`

const serverInfo = `"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}`

// complete is a result of the stateless era, made of the members between the
// type and the server's name.
func complete(members string) string {
	if members != "" {
		members += ","
	}
	return `{"resultType":"complete",` + members + `"_meta":{` + serverInfo + `}}`
}

// modern is a client of 2026-07-28.
type modern struct {
	t    *testing.T
	e    *engine.Engine
	ctx  context.Context
	caps string       // its capabilities
	meta string       // further members of _meta
	pipe *engine.Peer // where it speaks over a pipe
}

func newModern(t *testing.T, e *engine.Engine) *modern {
	return &modern{t: t, e: e, ctx: context.Background(), caps: "{}"}
}

// with gives a copy of the client with other capabilities.
func (c *modern) with(caps string) *modern {
	d := *c
	d.caps = caps
	return &d
}

// asking gives a copy of the client with further members of _meta.
func (c *modern) asking(meta string) *modern {
	d := *c
	d.meta = meta
	return &d
}

// frame makes a request.
func (c *modern) frame(id, method, params string) string {
	meta := `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + c.caps
	if c.meta != "" {
		meta += "," + c.meta
	}
	meta += "}"
	if params = strings.TrimPrefix(params, "{"); params != "" && params != "}" {
		meta += ","
	} else {
		params = "}"
	}
	return request(id, method, meta+params)
}

// headersFor gives the header lines that a client sends with a request.
func headersFor(frame string) http.Header {
	h := http.Header{}
	var m codec.Message
	if codec.Decode([]byte(frame), &m) != nil {
		return h
	}
	h.Set("Mcp-Protocol-Version", string(m.MetaVersion))
	h.Set("Mcp-Method", string(m.Method))
	switch name := string(m.Method); {
	case name == codec.MethodToolsCall || name == codec.MethodPromptsGet:
		h.Set("Mcp-Name", string(m.Name))
	case name == codec.MethodResourcesRead:
		h.Set("Mcp-Name", string(m.URI))
	case strings.HasPrefix(name, "tasks/"):
		h.Set("Mcp-Name", string(m.TaskID))
	}
	return h
}

// modernRevision is what frames of the stateless era are held to.
func modernRevision() engine.Revision { return engine.Rev20260728 }

// receive hands a frame to the engine and waits. headers is nil over a pipe.
func (c *modern) receive(ctx context.Context, frame string, headers http.Header, r engine.Stream) {
	var m codec.Message
	if err := codec.Decode([]byte(frame), &m); err != nil {
		c.t.Errorf("Decode(%s): %v", frame, err)
		return
	}
	var h engine.Headers
	if headers != nil {
		h = headers
	}
	c.e.ReceiveModern(ctx, c.pipe, &m, h, watch(c.t, modernRevision, frame, r))
}

// send hands a frame to the engine and gives the reply.
func (c *modern) send(frame string) *reply {
	c.t.Helper()
	r := new(reply)
	if c.pipe != nil {
		c.receive(c.ctx, frame, nil, r)
	} else {
		c.receive(c.ctx, frame, headersFor(frame), r)
	}
	return r
}

// sent gives the one frame that answers another, with headers of the test's.
func (c *modern) sent(frame string, headers http.Header) string {
	c.t.Helper()
	r := new(reply)
	c.receive(c.ctx, frame, headers, r)
	frames := r.take()
	if len(frames) != 1 || r.finished() != 1 {
		c.t.Fatalf("%s: got frames %v, finished %d times, want one answer", frame, frames, r.finished())
	}
	return frames[0]
}

var ids atomic.Int64

// result gives the result of a request, or its error as code, message and data.
func (c *modern) result(method, params string) string {
	c.t.Helper()
	frames := c.frames(method, params)
	if len(frames) != 1 {
		c.t.Fatalf("%s %s: got frames %v, want one", method, params, frames)
	}
	return frames[0]
}

// frames gives the notifications of a request, and then its result.
func (c *modern) frames(method, params string) []string {
	c.t.Helper()
	id := strconv.FormatInt(ids.Add(1), 10)
	r := c.send(c.frame(id, method, params))
	frames := r.take()
	if len(frames) == 0 || r.finished() != 1 {
		c.t.Fatalf("%s %s: got frames %v, finished %d times, want one answer", method, params, frames, r.finished())
	}
	last := len(frames) - 1
	frames[last] = answerOf(c.t, frames[last], id)
	return frames
}

// call gives the result of a tool.
func (c *modern) call(name, arguments string) string {
	c.t.Helper()
	return c.result(codec.MethodToolsCall, `{"name":"`+name+`","arguments":`+arguments+`}`)
}

// start hands a request to the engine and does not wait.
func (c *modern) start(ctx context.Context, frame string) (r *reply, done <-chan struct{}) {
	r = new(reply)
	ended := make(chan struct{})
	headers := headersFor(frame)
	if c.pipe != nil {
		headers = nil
	}
	go func() {
		defer close(ended)
		c.receive(ctx, frame, headers, r)
	}()
	return r, ended
}

// answers gives what a client answers to a question: the result, or an error
// object where there is an "error" member.
type answers func(method string, params []byte) string

// yes agrees to everything.
func yes(method string, params []byte) string {
	switch {
	case method == codec.MethodRootsList:
		return `{"roots":[{"uri":"file:///x","name":"X"}]}`
	case method == codec.MethodSample:
		return `{"role":"assistant","content":{"type":"text","text":"sampled"},"model":"m","stopReason":"endTurn"}`
	case codec.Text(params, "mode") == "url":
		return `{"action":"accept"}`
	}
	return `{"action":"accept","content":{"name":"Ann"}}`
}

// retry makes the params of the next round of a request: those of the first, the
// answers, and the state, unless it is "".
func retry(params, responses, state string) string {
	params = strings.TrimSuffix(params, "}") + `,"inputResponses":` + responses
	if state != "" {
		params += `,"requestState":"` + state + `"`
	}
	return params + "}"
}

// inputs gives the keys and methods of what a round asks for, and its state.
func inputs(result string) (asked, state string) {
	var list []string
	codec.EachMember(codec.Member([]byte(result), "inputRequests"), func(key, question []byte) bool {
		list = append(list, string(key)+"="+codec.Text(question, "method"))
		return true
	})
	return strings.Join(list, " "), codec.Text([]byte(result), "requestState")
}

// rounds goes on with a request until it is complete, and gives its result and
// the number of requests it took.
func (c *modern) rounds(method, params string, answer answers) (result string, n int) {
	c.t.Helper()
	next := params
	for n = 1; n < 100; n++ {
		result = c.result(method, next)
		if codec.Text([]byte(result), "resultType") != "input_required" {
			return result, n
		}
		responses := "{"
		codec.EachMember(codec.Member([]byte(result), "inputRequests"), func(key, question []byte) bool {
			if len(responses) > 1 {
				responses += ","
			}
			responses += strconv.Quote(string(key)) + ":" + answer(codec.Text(question, "method"), codec.Member(question, "params"))
			return true
		})
		next = retry(params, responses+"}", codec.Text([]byte(result), "requestState"))
	}
	c.t.Fatalf("%s %s: no end of rounds", method, params)
	return "", 0
}

// asked is a legacy client that answers the server's requests.
type asked struct {
	*peer
	*questions
}

// connectWith opens a session with a handshake in which the client declares
// capabilities.
func connectWith(t *testing.T, e *engine.Engine, rev engine.Revision, caps string, answer answers) *asked {
	t.Helper()
	p := &asked{open(t, e), &questions{answer: answer}}
	p.session.Attach(watch(t, p.session.Revision, "", answering{p.notes, p}))
	p.result(codec.MethodInitialize, `{"protocolVersion":"`+rev.String()+`","capabilities":`+caps+`,"clientInfo":{"name":"c","version":"1"}}`)
	p.notify(codec.NotifyInitialized, "{}")
	return p
}
