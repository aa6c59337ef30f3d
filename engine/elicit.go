package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// ElicitRequest asks the user of the client for something: a form to fill in
// (from 2025-06-18 on), or a page to visit (URL mode, from 2025-11-25 on).
type ElicitRequest struct {
	// Key names the question within its call, where answers come with a
	// retry of the request (2026-07-28). Default: its position in the call.
	Key     string
	Message string
	// Schema describes the form: an object whose properties are strings,
	// numbers, integers, booleans and enumerations. Form mode.
	Schema json.RawMessage
	// URL makes it URL mode. ElicitationID names it to the client; it must be
	// unique, and NotifyElicitationComplete takes it (2025-11-25).
	URL           string
	ElicitationID string
	// AsTask lets a client that can (2025-11-25) treat it as a task, so that
	// the question outlives a broken connection.
	AsTask bool
	// Timeout bounds the wait. Default: DefaultAskTimeout.
	Timeout time.Duration
}

// ElicitResult is the user's answer.
type ElicitResult struct {
	Action  string          // "accept", "decline" or "cancel"
	Content json.RawMessage // the form's values, an object; nil unless accepted
}

// Elicit asks the user through the client and waits for the answer. A client
// that did not declare the mode gives a *CapabilityError, with nothing sent. A
// form's answer that does not fit the schema is an error.
func (c *Call) Elicit(ctx context.Context, r *ElicitRequest) (*ElicitResult, error) {
	n := c.client()
	if err := n.mayElicit(r); err != nil {
		return nil, err
	}
	params, err := r.params(n.rev)
	if err != nil {
		return nil, err
	}
	if c.session == nil {
		var result *ElicitResult
		err := c.input(r.Key, codec.MethodElicit, params, func(answer []byte) (err error) {
			result, err = r.read(answer)
			return err
		})
		return result, err
	}
	ask := c.askClient
	if r.AsTask && n.clientHas("tasks", "requests", "elicitation", "create") {
		ask = c.askAsTask
	}
	raw, err := ask(ctx, codec.MethodElicit, params, r.Timeout)
	if err != nil {
		return nil, err
	}
	return r.read(raw)
}

// mayElicit tells whether the client can be asked so.
func (n *negotiated) mayElicit(r *ElicitRequest) error {
	elicitation := codec.Member(n.capabilities, "elicitation")
	switch {
	case n.rev < Rev20250618 || elicitation == nil:
		return &CapabilityError{"elicitation"}
	case r.URL != "" && (n.rev < Rev20251125 || codec.Member(elicitation, "url") == nil):
		return &CapabilityError{"elicitation.url"}
	case r.URL == "" && n.rev >= Rev20251125 && codec.Member(elicitation, "form") == nil &&
		codec.Member(elicitation, "url") != nil:
		return &CapabilityError{"elicitation.form"}
	}
	return nil
}

// params renders the request for a revision.
func (r *ElicitRequest) params(rev Revision) ([]byte, error) {
	dst := []byte{'{'}
	if r.URL != "" {
		if r.ElicitationID == "" && !rev.IsModern() {
			return nil, errors.New("engine: an elicitation in URL mode has an ElicitationID")
		}
		dst = append(dst, `"mode":"url","message":`...)
		dst = codec.AppendString(dst, r.Message)
		if !rev.IsModern() {
			dst = appendMember(dst, "elicitationId", r.ElicitationID)
		}
		dst = appendMember(dst, "url", r.URL)
		return append(dst, '}'), nil
	}
	schema, err := projectForm(r.Schema, rev)
	if err != nil {
		return nil, err
	}
	if rev >= Rev20251125 {
		dst = append(dst, `"mode":"form",`...)
	}
	dst = append(dst, `"message":`...)
	dst = codec.AppendString(dst, r.Message)
	dst = append(dst, `,"requestedSchema":`...)
	dst = appendCompact(dst, schema)
	return append(dst, '}'), nil
}

// read reads and checks the answer.
func (r *ElicitRequest) read(raw []byte) (*ElicitResult, error) {
	result := &ElicitResult{Action: codec.Text(raw, "action")}
	switch result.Action {
	case "decline", "cancel":
		return result, nil
	case "accept":
	default:
		return nil, fmt.Errorf("engine: the client's answer to an elicitation has the action %q", clip([]byte(result.Action)))
	}
	if r.URL != "" {
		return result, nil
	}
	content := codec.Member(raw, "content")
	if content == nil {
		content = emptyObject
	}
	v, err := compileSchema(r.Schema)
	if err != nil {
		return nil, err
	}
	if !codec.IsObject(content) {
		return nil, errors.New("engine: the client's answer to an elicitation is no object")
	}
	if err := v.validate(content); err != nil {
		return nil, fmt.Errorf("engine: the client's answer to an elicitation does not fit the form: %w", err)
	}
	result.Content = content
	return result, nil
}

// NotifyElicitationComplete tells the client that what an elicitation in URL
// mode sent the user away for is done. Only sessions of 2025-11-25 whose client
// declared the mode are told.
func (s *Session) NotifyElicitationComplete(elicitationID string) {
	n := s.negotiated.Load()
	if n == nil || n.rev != Rev20251125 || !n.clientHas("elicitation", "url") {
		return
	}
	params := codec.AppendString([]byte(`{"elicitationId":`), elicitationID)
	s.notify(codec.AppendNotification(nil, codec.NotifyElicitationComplete, append(params, '}')))
}

// NeedURL is for a handler to return: the request cannot go on before the user
// has been to these pages. A client of 2025-11-25 that declared URL mode gets
// the error -32042 that lists them. One of 2026-07-28 is asked to visit them and
// sends the request again, and the handler finds out whether it may go on now.
// Any other peer gets a plain error.
func NeedURL(message string, pages ...*ElicitRequest) error { return &urlNeeded{message, pages} }

type urlNeeded struct {
	message string
	pages   []*ElicitRequest
}

func (e *urlNeeded) Error() string { return e.message }

// inputs makes the pages what the round asks for, whatever was answered before:
// the handler knows best.
func (e *urlNeeded) inputs(c *Call) error {
	for _, page := range e.pages {
		params, err := page.params(c.rev)
		if err != nil {
			return err
		}
		again := func([]byte) error { return errInputRequired }
		if err := c.input(page.Key, codec.MethodElicit, params, again); !errors.Is(err, errInputRequired) {
			return err
		}
	}
	return errInputRequired
}

// wire gives the error for the call's peer, or nil where the peer knows none
// that lists pages.
func (e *urlNeeded) wire(c *Call) error {
	n := c.client()
	switch {
	case n == nil || n.rev < Rev20251125 || !n.clientHas("elicitation", "url") || len(e.pages) == 0:
		return nil
	case n.rev.IsModern() && c.task != nil: // its handler is over and cannot go on
		return nil
	case n.rev.IsModern():
		return e.inputs(c)
	}
	data := []byte(`{"elicitations":[`)
	for i, page := range e.pages {
		params, err := page.params(n.rev)
		if err != nil {
			return err
		}
		if i > 0 {
			data = append(data, ',')
		}
		data = append(data, params...)
	}
	return &codec.Error{Code: codec.CodeURLElicitationRequired, Message: e.message, Data: append(data, ']', '}')}
}
