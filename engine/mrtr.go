package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// Multi-round-trip requests (2026-07-28): the server cannot ask the client in
// the midst of a call. A call that needs an answer ends with what it wants to
// know, and the client sends the request again with the answers. The handler
// then runs from its beginning, and finds each answer where it asks.

// errInputRequired ends a round. A handler that gets it from Elicit, Sample or
// Roots has to return it, as it would any error.
var errInputRequired = errors.New("engine: the answer comes with the client's retry; return this error")

// maxRounds bounds how often one request may come back.
const maxRounds = 32

// stateLifetime is how long a client may take to come back.
const stateLifetime = 15 * time.Minute

// rounds is what a call of the stateless era knows of its earlier rounds.
type rounds struct {
	answers map[string]json.RawMessage // by key, of all rounds so far
	pending []question                 // of this round
	asked   int                        // how many questions had no key of their own
	n       int                        // rounds so far
	state   []byte                     // the handler's own
}

// question is what a round wants to know.
type question struct {
	key, method string
	params      []byte
}

// sealedState is what a requestState holds.
type sealedState struct {
	Expires int64                      `json:"e"` // seconds
	Rounds  int                        `json:"n"`
	Answers map[string]json.RawMessage `json:"a,omitempty"`
	State   []byte                     `json:"s,omitempty"`
}

// earlier opens the request's state and answers when a handler first asks.
func (c *Call) earlier() (*rounds, error) {
	if c.rounds != nil {
		return c.rounds, nil
	}
	r := &rounds{answers: make(map[string]json.RawMessage)}
	m := c.message
	if m.State != nil {
		plain, err := c.engine.seal.open(m.State, c.binding())
		if err != nil {
			return nil, errBadState
		}
		var s sealedState
		if json.Unmarshal(plain, &s) != nil || c.engine.now().Unix() > s.Expires {
			return nil, errBadState
		}
		r.n, r.state = s.Rounds, s.State
		for key, answer := range s.Answers {
			r.answers[key] = answer
		}
	}
	codec.EachMember(m.Responses, func(key, answer []byte) bool {
		if codec.IsObject(answer) {
			r.answers[string(key)] = clone(answer)
		}
		return true
	})
	c.rounds = r
	return r, nil
}

var errBadState = codec.NewError(codec.CodeInvalidParams, "Invalid params: requestState was not given out for this request, or its time is over")

// checkState refuses a state that is not ours before the handler runs.
func (c *Call) checkState() error {
	if c.message.State == nil {
		return nil
	}
	_, err := c.earlier()
	return err
}

// binding is what a state is bound to: who asks for what.
func (c *Call) binding() []byte {
	sum := sha256.Sum256(c.givenArguments())
	b := sum[:]
	for _, part := range []string{string(c.message.Method), c.name, c.principal()} {
		b = binary.AppendUvarint(b, uint64(len(part))) // so that no part can pass for two
		b = append(b, part...)
	}
	return b
}

// principal gives who makes the call, as the embedder tells.
func (c *Call) principal() string {
	if f := c.engine.options.Principal; f != nil {
		return boundPrincipal(f(c.ctx.base))
	}
	return ""
}

// input gives the answer to a question of this call, or notes the question for
// the client and gives errInputRequired. read tells whether an answer will do;
// one that will not is asked for again.
func (c *Call) input(key, method string, params []byte, read func(answer []byte) error) error {
	if c.task != nil {
		return c.task.input(&c.ctx, key, method, params, read)
	}
	switch string(c.message.Method) {
	case codec.MethodToolsCall, codec.MethodPromptsGet, codec.MethodResourcesRead:
	default:
		return errors.New("engine: this request cannot ask the client for anything")
	}
	r, err := c.earlier()
	if err != nil {
		return err
	}
	if key == "" {
		r.asked++
		key = "input-" + strconv.Itoa(r.asked)
	}
	if answer, ok := r.answers[key]; ok && read(answer) == nil {
		return nil
	}
	delete(r.answers, key)
	if !slices.ContainsFunc(r.pending, func(q question) bool { return q.key == key }) {
		r.pending = append(r.pending, question{key, method, params})
	}
	return errInputRequired
}

// State gives what SetState kept in an earlier round of this request, or nil.
// It comes back sealed: the client can neither read nor change it.
func (c *Call) State() []byte {
	if c.session != nil || c.message == nil {
		return nil
	}
	r, err := c.earlier()
	if err != nil {
		return nil
	}
	return r.state
}

// SetState keeps bytes for the next round of this request, if there is one. In
// a legacy session there are no rounds, and it does nothing.
func (c *Call) SetState(state []byte) {
	if c.session != nil {
		return
	}
	if r, err := c.earlier(); err == nil {
		r.state = append([]byte(nil), state...)
	}
}

// setInputRequired makes the result that asks the client for what is pending.
func (c *Call) setInputRequired() error {
	r := c.rounds
	if r == nil || len(r.pending) == 0 {
		return errors.New("the handler gave up without a question")
	}
	if r.n >= maxRounds {
		return codec.NewError(codec.CodeInternalError, "The request took too many rounds")
	}
	plain, err := json.Marshal(&sealedState{
		Expires: c.engine.now().Add(stateLifetime).Unix(), Rounds: r.n + 1, Answers: r.answers, State: r.state,
	})
	if err != nil {
		return fmt.Errorf("keeping the state of a request: %w", err)
	}
	dst := append(c.out[:c.result], `{"inputRequests":`...)
	dst = appendQuestions(dst, r.pending)
	dst = append(dst, `,"requestState":"`...)
	start := len(dst)
	dst = c.engine.seal.append(dst, plain, c.binding())
	if len(dst)-start > maxSealed { // it would not be taken back
		return codec.NewError(codec.CodeInvalidParams, "Invalid params: the answers are too long to be kept for the next round")
	}
	c.out = append(dst, '"', '}')
	c.resultType = "input_required"
	return nil
}

// appendQuestions appends an inputRequests object.
func appendQuestions(dst []byte, questions []question) []byte {
	dst = append(dst, '{')
	for i, q := range questions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(codec.AppendString(dst, q.key), `:{"method":`...)
		dst = codec.AppendString(dst, q.method)
		if q.params != nil {
			dst = append(dst, `,"params":`...)
			dst = append(dst, q.params...)
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// Ask is one of several questions for AskAll: an *ElicitRequest, a
// *SampleRequest or a RootsRequest.
type Ask interface {
	ask(ctx context.Context, c *Call) (Answer, error)
}

// RootsRequest asks for the client's roots, as Call.Roots does.
type RootsRequest struct{ Key string }

// Answer is the answer to an Ask: the field of its kind is set.
type Answer struct {
	Elicit *ElicitResult
	Sample *SampleResult
	Roots  []Root
}

func (r *ElicitRequest) ask(ctx context.Context, c *Call) (a Answer, err error) {
	a.Elicit, err = c.Elicit(ctx, r)
	return a, err
}

func (r *SampleRequest) ask(ctx context.Context, c *Call) (a Answer, err error) {
	a.Sample, err = c.Sample(ctx, r)
	return a, err
}

func (r RootsRequest) ask(ctx context.Context, c *Call) (a Answer, err error) {
	a.Roots, err = c.roots(ctx, r.Key)
	return a, err
}

// AskAll asks the client several things at once. In the stateless era that
// takes one round for all of them. The error is the first one.
func (c *Call) AskAll(ctx context.Context, asks ...Ask) ([]Answer, error) {
	answers, errs := make([]Answer, len(asks)), make([]error, len(asks))
	if c.session == nil && c.task == nil {
		for i, a := range asks {
			answers[i], errs[i] = a.ask(ctx, c)
		}
	} else {
		var asking sync.WaitGroup
		for i, a := range asks {
			asking.Go(func() { answers[i], errs[i] = a.ask(ctx, c) })
		}
		asking.Wait()
	}
	var waits error
	for _, err := range errs {
		if err != nil && !errors.Is(err, errInputRequired) {
			return nil, err
		}
		if err != nil {
			waits = err
		}
	}
	return answers, waits
}
