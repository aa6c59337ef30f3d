package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
)

// DefaultAskTimeout is how long a request to the client may take where the
// caller sets no time: people answer some of them.
const DefaultAskTimeout = 5 * time.Minute

// CapabilityError means that the client has not declared what a request to it
// needs. Nothing was sent.
type CapabilityError struct {
	Capability string // as in "elicitation.url"
}

// Error names the capability.
func (e *CapabilityError) Error() string {
	return "engine: the client did not declare the capability " + e.Capability
}

// wire gives the error that 2026-07-28 has for it; in a legacy session nobody
// but the handler sees it, unless the handler passes it on.
func (e *CapabilityError) wire() *codec.Error {
	data := []byte(`{"requiredCapabilities":`)
	parts := strings.Split(e.Capability, ".")
	if name, ok := strings.CutPrefix(e.Capability, "extensions."); ok {
		parts = []string{"extensions", name}
	}
	for _, part := range parts {
		data = append(codec.AppendString(append(data, '{'), part), ':')
	}
	data = append(data, `{}`...)
	for range parts {
		data = append(data, '}')
	}
	return &codec.Error{
		Code: codec.CodeMissingClientCapability, Message: "Missing required client capability: " + e.Capability,
		Data: append(data, '}'),
	}
}

// ErrNoSession means that a request to the client was made where there is no
// session to send it in.
var ErrNoSession = errors.New("engine: no session to ask the client in")

// ErrNotOperating means that the client has not finished the handshake, before
// which it may be asked nothing but a ping.
var ErrNotOperating = errors.New("engine: the client has not sent notifications/initialized")

// ErrAskTimeout means that the client did not answer in time. It was told that
// the request is cancelled.
var ErrAskTimeout = errors.New("engine: the client did not answer in time")

// peerAnswer is what the client answered.
type peerAnswer struct {
	result []byte // raw, a copy
	err    *codec.Error
}

// ask sends a request to the client and waits for the answer. send queues and
// writes a frame on the stream that the request belongs to. params is a raw
// object, or nil. The error is that of the client (*codec.Error), of ctx, or
// one of this package.
func (s *Session) ask(ctx context.Context, method string, params []byte, timeout time.Duration,
	send func(frame []byte) error,
) ([]byte, error) {
	o, err := s.actor.Ask()
	if err != nil {
		return nil, fmt.Errorf("engine: asking the client: %w", err)
	}
	id := strconv.AppendUint(nil, o.ID, 10)
	if err := send(codec.AppendRequest(nil, id, method, params)); err != nil {
		s.actor.Forget(o)
		return nil, err
	}
	if timeout <= 0 {
		timeout = DefaultAskTimeout
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	var reason string
	for {
		select {
		case <-o.Done:
			return unwrapAnswer(o)
		case <-o.Alive:
			timer.Reset(timeout)
			continue
		case <-timer.C:
			err, reason = ErrAskTimeout, "timeout"
		case <-ctx.Done():
			err, reason = context.Cause(ctx), "cancelled"
		}
		break
	}
	s.actor.Forget(o)
	_ = send(codec.AppendCancelled(nil, id, reason))
	return nil, err
}

func unwrapAnswer(o *actors.Outgoing) ([]byte, error) {
	answer, err := o.Answer()
	if err != nil {
		return nil, fmt.Errorf("engine: asking the client: %w", err)
	}
	a, _ := answer.(*peerAnswer)
	if a.err != nil {
		return nil, a.err
	}
	return a.result, nil
}

// response hands an answer of the peer to whoever asked.
func (s *Session) response(m *codec.Message) {
	id, ok := m.UintID()
	if !ok {
		return
	}
	a := &peerAnswer{}
	if m.Kind == codec.KindError {
		code, _ := codec.Int(m.Error, "code")
		a.err = &codec.Error{Code: int(code), Message: codec.Text(m.Error, "message"), Data: clone(codec.Member(m.Error, "data"))}
	} else {
		a.result = clone(m.Result)
	}
	s.actor.Resolve(id, a)
}

// peerProgress takes note of progress on a request to the client, which makes
// its time begin anew.
func (s *Session) peerProgress(m *codec.Message) {
	if id, ok := codec.ParseUint(m.ParamToken); ok {
		s.actor.KeepWaiting(id)
	}
}

// clientHas reports whether the client declared a capability, named by its
// path in the capabilities object.
func (n *negotiated) clientHas(path ...string) bool {
	return codec.Member(n.capabilities, path...) != nil
}

// client gives what is known of the call's client: what its session settled, or
// what the request itself declares.
func (c *Call) client() *negotiated {
	if c.session != nil {
		return c.session.negotiated.Load()
	}
	return &negotiated{rev: c.rev, capabilities: c.message.ClientCapabilities}
}

// askClient sends a request that belongs to this call, on the stream of its
// reply.
func (c *Call) askClient(ctx context.Context, method string, params []byte, timeout time.Duration) ([]byte, error) {
	if c.session == nil {
		return nil, ErrNoSession
	}
	if !c.session.operating.Load() {
		return nil, ErrNotOperating
	}
	if c.task == nil {
		return c.session.ask(ctx, method, params, timeout, c.emit)
	}
	related := append([]byte(`"`+codec.MetaRelatedTask+`":{"taskId":`), codec.AppendString(nil, c.task.id)...)
	c.task.setStatus(TaskInputRequired)
	defer c.task.setStatus(TaskWorking)
	return c.session.ask(ctx, method, appendWithMeta(nil, params, append(related, '}')), timeout, c.emit)
}

// askAsTask sends a request to the client as a task of the client's
// (2025-11-25), and waits for the task's result.
func (c *Call) askAsTask(ctx context.Context, method string, params []byte, timeout time.Duration) ([]byte, error) {
	if timeout <= 0 {
		timeout = DefaultAskTimeout
	}
	params = append(params[:len(params)-1], `,"task":{"ttl":`...)
	params = append(strconv.AppendInt(params, timeout.Milliseconds(), 10), '}', '}')
	raw, err := c.askClient(ctx, method, params, timeout)
	if err != nil {
		return nil, err
	}
	id := codec.Member(raw, "task", "taskId")
	if id == nil {
		return raw, nil // the client answered at once, as one that does not know tasks would
	}
	about := append(append([]byte(`{"taskId":`), id...), '}')
	raw, err = c.askClient(ctx, codec.MethodTasksResult, about, timeout)
	if err != nil && (errors.Is(err, ErrAskTimeout) || ctx.Err() != nil) {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_, _ = c.askClient(ending, codec.MethodTasksCancel, about, time.Second)
	}
	return raw, err
}

// Ping asks the client whether it is there. ctx bounds the wait.
func (s *Session) Ping(ctx context.Context) error {
	_, err := s.ask(ctx, codec.MethodPing, nil, 0, s.send)
	return err
}

// Request sends a request of any method to the client, outside of any call, and
// gives the raw result. It checks no capability.
func (s *Session) Request(ctx context.Context, method string, params []byte) ([]byte, error) {
	return s.ask(ctx, method, params, 0, s.send)
}

// send sends a frame that belongs to no call.
func (s *Session) send(frame []byte) error {
	s.notify(frame)
	return nil
}

// PendingRequests tells how many requests the client has not answered.
func (s *Session) PendingRequests() int { return s.actor.PendingOutgoing() }

// Require tells whether the client declared a capability, as "sampling" or
// "elicitation.url": nil, or a *CapabilityError, which in 2026-07-28 becomes the
// error -32021 when the handler returns it.
func (c *Call) Require(capability string) error {
	if n := c.client(); n != nil && n.clientHas(strings.Split(capability, ".")...) {
		return nil
	}
	return &CapabilityError{capability}
}
