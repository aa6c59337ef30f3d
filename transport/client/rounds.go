package client

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/mcpengine/mcpengine/codec"
)

// requestStateless is Request for a server of the stateless revision. It answers
// from the cache where it can, and otherwise makes as many requests as it takes
// to get a result.
func (c *Client) requestStateless(ctx context.Context, e *era, method string, params []byte, o *CallOptions) ([]byte, error) {
	if !isObjectOrNil(params) {
		return nil, ErrBadParams
	}
	key, cacheable := cacheKeyOf(method, params)
	if cacheable && (o == nil || !o.NoCache) {
		if result := e.cache.get(key); result != nil {
			return result, nil
		}
	}
	stamp := e.cache.stamp()
	result, rounds, err := c.rounds(ctx, e, method, params, o)
	if err != nil {
		if hasCode(err, codec.CodeInvalidParams) && codec.Member(params, "cursor") != nil {
			e.cache.drop(method) // a cursor that is no longer good: the pages before it are not either
		}
		return nil, typedEraError(err)
	}
	if cacheable && rounds == 0 {
		e.cache.put(key, result, stamp)
	}
	return result, nil
}

// rounds makes a request, and makes it again with what the server wants to know
// (section Multi Round-Trip Requests). It gives the result and how many rounds
// came before it.
func (c *Client) rounds(ctx context.Context, e *era, method string, params []byte, o *CallOptions) (result []byte, n int, err error) {
	current := params
	for n = 0; ; n++ {
		if result, err = c.once(ctx, e, method, current, o); err != nil {
			return nil, n, err
		}
		kind := "complete" // where the member is absent
		if raw := codec.Member(result, "resultType"); raw != nil {
			kind, _ = codec.String(raw)
		}
		switch {
		case kind == "complete", kind == "task" && method == codec.MethodToolsCall && e.tasks:
			return result, n, nil
		case kind != "input_required" || !mayAsk(method):
			return nil, n, fmt.Errorf("%w: a result of type %q to %s", ErrMalformed, excerpt(kind), method)
		case n == c.o.MaxRounds:
			return nil, n, fmt.Errorf("%w (%d rounds of %s)", ErrTooManyRounds, n, method)
		}
		if current, err = c.nextRound(ctx, method, params, result); err != nil {
			return nil, n, err
		}
	}
}

// mayAsk reports whether a server may answer a method with a question.
func mayAsk(method string) bool {
	switch method {
	case codec.MethodToolsCall, codec.MethodPromptsGet, codec.MethodResourcesRead:
		return true
	}
	return false
}

// once makes one request. Two refusals, which come before a server has done
// anything, are tried again once: headers that do not match a tool, of which the
// client may know too little, and a version that the server does serve by its
// own account.
func (c *Client) once(ctx context.Context, e *era, method string, params []byte, o *CallOptions) ([]byte, error) {
	for retried := false; ; retried = true {
		k, err := c.newCall(ctx, method, params, o)
		if err != nil {
			return nil, err
		}
		result, err := c.run(k, o)
		switch {
		case err == nil || retried:
			return result, err
		case hasCode(err, codec.CodeHeaderMismatch) && e.http && method == codec.MethodToolsCall:
			e.cache.drop(codec.MethodToolsList)
			if _, listErr := c.ListTools(ctx); listErr != nil {
				return nil, err
			}
		case hasCode(err, codec.CodeUnsupportedProtocol):
			typed, ok := typedEraError(err).(*UnsupportedVersionError)
			if !ok || !slices.Contains(typed.Supported, ProtocolStateless) {
				return nil, err
			}
		default:
			return nil, err
		}
	}
}

// nextRound gives the params of the request that follows a result which asks for
// something: all that the first one had, the answers, and the state exactly as
// it came.
func (c *Client) nextRound(ctx context.Context, method string, params, result []byte) ([]byte, error) {
	asked, state := codec.Member(result, "inputRequests"), codec.Member(result, "requestState")
	switch {
	case asked == nil && state == nil, asked != nil && !codec.IsObject(asked), state != nil && state[0] != '"':
		return nil, fmt.Errorf("%w: %s: a result that wants input and does not say which: %s", ErrMalformed, method, excerpt(result))
	}
	out := []byte{'{'}
	add := func(name, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(codec.AppendString(out, name), ':')
		out = append(out, value...)
	}
	codec.EachMember(params, func(name, value []byte) bool {
		if string(name) != "inputResponses" && string(name) != "requestState" {
			add(name, value)
		}
		return true
	})
	if asked != nil {
		answers, err := c.answerInputs(ctx, asked, nil)
		if err != nil {
			return nil, err
		}
		add([]byte("inputResponses"), answers)
	}
	if state != nil {
		add([]byte("requestState"), state)
	}
	return append(out, '}'), nil
}

// maxInputs limits what a server may want to know at once.
const maxInputs = 256

// input is something that a server wants to know.
type input struct {
	key     string
	request *serverRequest
	handler handler
	answer  []byte
	err     error
}

// answerInputs answers input requests by the callbacks of Options, all at once as
// far as Options.MaxServerRequests allows, and gives the raw object of answers.
// Those that skip names are left out. Where one cannot be answered, none is.
func (c *Client) answerInputs(ctx context.Context, asked []byte, skip map[string]bool) ([]byte, error) {
	inputs, err := c.parseInputs(asked, skip)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(ErrClosed) })()
	var working sync.WaitGroup
	for _, in := range inputs {
		select {
		case c.handlers <- struct{}{}:
		case <-ctx.Done():
			in.err = context.Cause(ctx)
			continue
		}
		working.Add(1)
		started := c.spawn(func() {
			defer working.Done()
			defer func() { <-c.handlers }()
			if c.answerInput(ctx, in); in.err != nil {
				cancel(in.err)
			}
		})
		if !started {
			working.Done()
			<-c.handlers
			in.err = ErrClosed
		}
	}
	working.Wait()
	if cause := context.Cause(ctx); cause != nil { // the first that failed, or the end of the caller's patience
		return nil, cause
	}
	out := []byte{'{'}
	for i, in := range inputs {
		if in.err != nil {
			return nil, in.err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(codec.AppendString(out, in.key), ':')
		out = append(out, in.answer...)
	}
	return append(out, '}'), nil
}

// parseInputs reads input requests and finds what answers each.
func (c *Client) parseInputs(asked []byte, skip map[string]bool) (inputs []*input, err error) {
	codec.EachMember(asked, func(key, value []byte) bool {
		if skip[string(key)] {
			return true
		}
		method := codec.Text(value, "method")
		in := &input{key: string(key)}
		in.request = &serverRequest{
			c: c, method: method, params: bytes.Clone(codec.Member(value, "params")), progress: math.Inf(-1),
		}
		switch method {
		case codec.MethodSample, codec.MethodElicit, codec.MethodRootsList:
			in.handler = c.handler(method)
		}
		inputs = append(inputs, in)
		switch {
		case in.handler == nil:
			err = &InputError{Key: in.key, Method: method, Err: codec.ErrMethodNotFound}
		case len(inputs) > maxInputs:
			err = fmt.Errorf("%w: more than %d input requests at once", ErrTooLarge, maxInputs)
		}
		return err == nil
	})
	return inputs, err
}

// answerInput runs the callback for an input request.
func (c *Client) answerInput(ctx context.Context, in *input) {
	answer, fault := c.runHandler(ctx, in.request, in.handler)
	if fault != nil {
		in.err = &InputError{Key: in.key, Method: in.request.method, Err: fault}
		return
	}
	in.answer = answer
}
