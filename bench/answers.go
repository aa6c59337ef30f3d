package bench

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client/wire"
)

// Answer is a kind of request that a server may make of its client.
type Answer string

const (
	// AnswerSampling answers sampling/createMessage with one canned text.
	AnswerSampling Answer = "sampling"
	// AnswerElicitation accepts elicitation/create, with contents made from the schema that is asked for.
	AnswerElicitation Answer = "elicitation"
	// AnswerRoots answers roots/list with one root.
	AnswerRoots Answer = "roots"
)

// Answers is all that a run can be told to answer.
var Answers = []Answer{AnswerSampling, AnswerElicitation, AnswerRoots}

var answerMethods = map[Answer]string{
	AnswerSampling: codec.MethodSample, AnswerElicitation: codec.MethodElicit, AnswerRoots: codec.MethodRootsList,
}

const (
	answersAtOnce = 256 // under way; what a server asks beyond it gets no answer
	answersIdle   = 64  // connections that are kept for the next answer

	sampled = `{"role":"assistant","content":{"type":"text","text":"a canned answer of mcp-load"},` +
		`"model":"mcp-load","stopReason":"endTurn"}`
	rooted = `{"roots":[{"uri":"file:///mcp-load","name":"mcp-load"}]}`
)

// checkAnswers refuses what no server asks.
func (c *Config) checkAnswers() error {
	for _, a := range c.Answers {
		if !slices.Contains(Answers, a) {
			return usage("a server does not ask for %q: choose from sampling, elicitation and roots", string(a))
		}
	}
	if c.AnswerDelay < 0 {
		return usage("the delay of answers cannot be negative")
	}
	return nil
}

// capabilities is what the client says of itself: what it has been told to answer, and nothing else. An elicitation is
// the question of a person's consent, and a tool that measures gives it only when a person has told it to.
func (c *Config) capabilities() []byte {
	b := []byte{'{'}
	for _, a := range Answers {
		if slices.Contains(c.Answers, a) {
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = append(append(append(b, '"'), a...), `":{}`...)
		}
	}
	return append(b, '}')
}

// answerer answers what servers ask, over all sessions of a run.
type answerer struct {
	offers map[string]bool // by method
	delay  time.Duration

	sampling, elicitation, roots, ping, refused, failed atomic.Int64

	mu    sync.Mutex
	quiet *sync.Cond   // under mu: none is under way
	busy  int          // guarded by mu
	idle  []*wire.Conn // guarded by mu
}

func newAnswerer(c *Config) *answerer {
	a := &answerer{delay: c.AnswerDelay, offers: map[string]bool{}}
	a.quiet = sync.NewCond(&a.mu)
	for _, kind := range c.Answers {
		a.offers[answerMethods[kind]] = true
	}
	return a
}

// frame makes the answer to a request of the server, and counts it. asked tells that it takes the delay.
func (a *answerer) frame(m *codec.Message) (frame []byte, asked bool) {
	if string(m.Method) == codec.MethodPing {
		a.ping.Add(1)
		return codec.AppendResult(nil, m.ID, []byte("{}")), false
	}
	result := a.result(string(m.Method), m.Params)
	if result == nil {
		return codec.AppendError(nil, m.ID, codec.ErrMethodNotFound), false
	}
	return codec.AppendResult(nil, m.ID, result), true
}

// result makes and counts the result of a request of the server; nil where it has not been told to answer.
func (a *answerer) result(method string, params []byte) []byte {
	switch {
	case !a.offers[method]:
		a.refused.Add(1)
		return nil
	case method == codec.MethodSample:
		a.sampling.Add(1)
		return []byte(sampled)
	case method == codec.MethodElicit:
		a.elicitation.Add(1)
		return accepted(params)
	}
	a.roots.Add(1)
	return []byte(rooted)
}

// accepted is the answer of a person who agrees, and fills in the form as its schema says.
func accepted(params []byte) []byte {
	if codec.Text(params, "mode") == "url" {
		return []byte(`{"action":"accept"}`)
	}
	b := append([]byte(`{"action":"accept","content":`), argumentsFor(codec.Member(params, "requestedSchema"))...)
	return append(b, '}')
}

// post answers a request over HTTP, beside the calls and after the delay.
func (a *answerer) post(s *httpSession, m *codec.Message) {
	frame, asked := a.frame(m)
	a.begin(func() {
		if asked {
			time.Sleep(a.delay)
		}
		conn := a.take(s.peer.target)
		var rep wire.Reply
		if conn.Call(&wire.Request{Head: s.post, Body: frame}, time.Now().Add(sideTimeout), &rep) != nil {
			a.failed.Add(1)
		}
		a.give(conn)
	})
}

// send answers a request of a process.
func (a *answerer) send(p *wire.Process, m *codec.Message) {
	frame, asked := a.frame(m)
	say := func() {
		if p.Send(frame) != nil {
			a.failed.Add(1)
		}
	}
	if !asked || a.delay == 0 {
		say()
		return
	}
	a.begin(func() {
		time.Sleep(a.delay)
		say()
	})
}

// begin does f on a goroutine of its own, unless too many are under way.
func (a *answerer) begin(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.busy >= answersAtOnce {
		a.failed.Add(1)
		return
	}
	a.busy++
	go func() {
		f()
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.busy--; a.busy == 0 {
			a.quiet.Broadcast()
		}
	}()
}

// take gives a connection that is idle, or a new one.
func (a *answerer) take(t *wire.Target) *wire.Conn {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.idle); n > 0 {
		c := a.idle[n-1]
		a.idle = a.idle[:n-1]
		return c
	}
	return wire.NewConn(t)
}

// give keeps a connection for the next answer.
func (a *answerer) give(c *wire.Conn) {
	a.mu.Lock()
	keep := len(a.idle) < answersIdle
	if keep {
		a.idle = append(a.idle, c)
	}
	a.mu.Unlock()
	if !keep {
		c.Close()
	}
}

// settle waits for the answers under way, each of which has its time limit, and closes the connections.
func (a *answerer) settle() {
	a.mu.Lock()
	for a.busy > 0 {
		a.quiet.Wait()
	}
	idle := a.idle
	a.idle = nil
	a.mu.Unlock()
	for _, c := range idle {
		c.Close()
	}
}

// serverRequests counts what the server has asked; nil where it has asked nothing.
func (r *run) serverRequests() *ServerRequests {
	p, ok := r.cfg.peer.(interface{ asked() *answerer })
	if !ok {
		return nil
	}
	a := p.asked()
	a.settle()
	n := ServerRequests{
		Sampling: a.sampling.Load(), Elicitation: a.elicitation.Load(), Roots: a.roots.Load(), Ping: a.ping.Load(),
		Refused: a.refused.Load(), Failed: a.failed.Load(),
	}
	if n == (ServerRequests{}) {
		return nil
	}
	return &n
}

// subscribe asks to be told of changes of resources.
func subscribe(s session, c *caller, uris []string, deadline time.Time) error {
	for _, uri := range uris {
		params := append(codec.AppendString([]byte(`{"uri":`), uri), '}')
		q, err := s.query(codec.MethodResourcesSubscribe, "", params, nil)
		if err != nil {
			return err
		}
		if err := s.request(c, q, deadline); err != nil {
			return err
		}
		if c.reply.Message.Kind == codec.KindError {
			return &handshakeError{"the server refused to subscribe to " + clip([]byte(uri)) + ": " + describe(nil, &c.reply)}
		}
	}
	return nil
}
