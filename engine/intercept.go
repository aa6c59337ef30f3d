package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/mcpengine/mcpengine/codec"
)

// Outcome is what a tools/call, prompts/get or resources/read has come to, for
// Options.After, before it is sent.
type Outcome struct {
	// Err is what the peer will be told as a protocol error, or nil where there
	// is a result, which Call.Result then gives. It may be set to another error,
	// or to nil after Call.SetResult.
	Err error
	// ToolError tells that the result is a tool's error (isError).
	ToolError bool
	// Refused tells that one of Options.Before did not let the call happen.
	Refused bool
}

// interceptors are Options.Before and Options.After.
type interceptors struct {
	before []func(ctx context.Context, c *Call) error
	after  []func(ctx context.Context, c *Call, o *Outcome)
}

// newInterceptors gives nil where there are none.
func newInterceptors(o *Options) *interceptors {
	if len(o.Before)+len(o.After) == 0 {
		return nil
	}
	return &interceptors{slices.Clone(o.Before), slices.Clone(o.After)}
}

// around puts a handler, which has its middleware already, into the hooks.
func (i *interceptors) around(h Handler) Handler {
	if i == nil {
		return h
	}
	return func(ctx context.Context, c *Call) error {
		for _, before := range i.before {
			if err := before(ctx, c); err != nil {
				return i.review(ctx, c, c.refusal(ctx, err), true)
			}
		}
		return i.review(ctx, c, h(ctx, c), false)
	}
}

// reviewed puts what a handler goes on with as a task under Options.After alone:
// the call was let through already.
func (i *interceptors) reviewed(h Handler) Handler {
	if i == nil {
		return h
	}
	return func(ctx context.Context, c *Call) error { return i.review(ctx, c, h(ctx, c), false) }
}

// refusal gives what the peer is told of the error of a Before hook: what it
// would be told of a handler's.
func (c *Call) refusal(ctx context.Context, err error) error {
	if c.hooks != nil && !errors.Is(err, errInputRequired) {
		c.hooks.refused = true
	}
	if string(c.message.Method) == codec.MethodToolsCall {
		return c.toolFailure(ctx, err)
	}
	return err
}

// review lets the After hooks see the outcome, unless there is none yet: the
// call goes on in a task, or in another round.
func (i *interceptors) review(ctx context.Context, c *Call, err error, refused bool) error {
	if errors.Is(err, errInputRequired) || c.resultType != "" {
		return err
	}
	if errors.Is(err, errAnswered) {
		err = nil
	}
	o := &Outcome{Err: err, Refused: refused}
	if err != nil {
		c.out = c.out[:c.result]
	} else {
		o.ToolError = c.isToolError(c.Result())
	}
	for _, after := range i.after {
		after(ctx, c, o)
	}
	return o.Err
}

// isToolError reports whether a result of the call is a tool's error.
func (c *Call) isToolError(result []byte) bool {
	return string(c.message.Method) == codec.MethodToolsCall && codec.Bool(result, "isError")
}

var errArguments = errors.New("engine: arguments are a JSON object")

// SetArguments replaces the arguments of the call for what comes after: the
// hooks and middleware that are further in, the check against the schema, the
// handler. The error tells that raw, of which a copy is kept, is no valid JSON
// object. Params and the sealed state of a request are about what the peer
// sent.
func (c *Call) SetArguments(raw json.RawMessage) error {
	if !codec.Valid(raw) || !codec.IsObject(raw) {
		return errArguments
	}
	if c.hooks == nil {
		c.hooks = new(callHooks)
	}
	if !c.hooks.replaced {
		c.hooks.replaced, c.hooks.given = true, c.message.Arguments
	}
	c.message.Arguments = clone(raw)
	return nil
}

// givenArguments gives the arguments that the peer sent.
func (c *Call) givenArguments() []byte {
	if c.hooks != nil && c.hooks.replaced {
		return c.hooks.given
	}
	return c.message.Arguments
}
