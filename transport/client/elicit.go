package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/mcpengine/mcpengine/codec"
)

// ElicitRequest is what a server asks of the user with elicitation/create
// (section Elicitation of the client features).
type ElicitRequest struct {
	// Message tells the user why the server asks.
	Message string
	// Schema is the raw requestedSchema of form mode: a flat object schema. It
	// is nil in URL mode.
	Schema []byte
	// URL is the page of URL mode, http or https, and empty in form mode. It
	// must be shown to the user in full, and must not be opened or fetched
	// without the user's consent.
	URL string
	// ElicitationID is what OnElicitationComplete names in URL mode. It is empty
	// on the stateless revision, where the server asks again until it is done.
	ElicitationID string
	// Raw is the whole of params.
	Raw []byte
}

// ElicitAction is what the user did with an elicitation.
type ElicitAction string

// The three things that a user can do.
const (
	// ElicitAccept: the form was sent, or the user agreed to open the URL.
	ElicitAccept ElicitAction = "accept"
	// ElicitDecline: the user said no.
	ElicitDecline ElicitAction = "decline"
	// ElicitCancel: the user went away without a choice.
	ElicitCancel ElicitAction = "cancel"
)

// ElicitResult is the user's answer.
type ElicitResult struct {
	Action ElicitAction
	// Content is what the user filled in, sent only where a form was accepted:
	// raw JSON in a []byte or a json.RawMessage, or a value that is marshalled;
	// nil is the empty object. It must match the schema once ApplyDefaults has
	// filled in what is absent, or the server gets an internal error.
	Content any
}

// elicit answers elicitation/create. The mode must be one that was declared.
func (c *Client) elicit(ctx context.Context, r *serverRequest) ([]byte, error) {
	request, f, err := parseElicit(r.params, c.features.Load())
	if err != nil {
		return nil, invalid(err)
	}
	if request.ElicitationID != "" {
		c.asked.add(request.ElicitationID)
	}
	if c.o.OnElicit == nil {
		h := c.custom()
		if h == nil {
			return nil, codec.ErrMethodNotFound
		}
		return h(ctx, r)
	}
	result, err := c.o.OnElicit(ctx, request)
	switch {
	case err != nil:
		return nil, err
	case result == nil:
		return nil, errors.New("client: OnElicit returned neither a result nor an error")
	}
	return c.encodeElicit(result, f)
}

// parseElicit reads and checks the params of elicitation/create. The form is
// nil in URL mode.
func parseElicit(params []byte, declared *features) (*ElicitRequest, *form, error) {
	r := &ElicitRequest{Message: codec.Text(params, "message"), Raw: params}
	mode := "form"
	if m := codec.Member(params, "mode"); m != nil {
		mode, _ = codec.String(m)
	}
	switch {
	case mode == "form" && declared.elicitForm:
		r.Schema = codec.Member(params, "requestedSchema")
		f, err := parseForm(r.Schema)
		return r, f, err
	case mode == "url" && declared.elicitURL:
		asked, err := parseURLElicitation(params, declared.revision)
		r.URL, r.ElicitationID = asked.URL, asked.ElicitationID
		return r, nil, err
	}
	return nil, nil, fmt.Errorf("the client did not declare elicitation mode %s", excerpt(mode))
}

// encodeElicit makes the result of an elicitation; f is nil in URL mode, where
// accept is no more than consent.
func (c *Client) encodeElicit(r *ElicitResult, f *form) ([]byte, error) {
	switch r.Action {
	case ElicitAccept, ElicitDecline, ElicitCancel:
	default:
		return nil, fmt.Errorf("client: OnElicit returned the action %q", r.Action)
	}
	out := codec.AppendString([]byte(`{"action":`), r.Action)
	if r.Action != ElicitAccept || f == nil {
		return append(out, '}'), nil
	}
	content, err := rawValue(r.Content)
	if err != nil {
		return nil, fmt.Errorf("client: the content of an elicitation: %w", err)
	}
	if content == nil {
		content = []byte("{}")
	}
	content = bytes.TrimSpace(content)
	if !c.o.NoElicitDefaults {
		content = f.applyDefaults(content)
	}
	if err := f.check(content); err != nil {
		return nil, fmt.Errorf("client: the content of an elicitation: %w", err)
	}
	return append(append(append(out, `,"content":`...), content...), '}'), nil
}

// URLElicitation is a page that a user has to go to before a request can be
// served (2025-11-25).
type URLElicitation struct {
	ElicitationID, URL, Message string
}

// codeURLElicitation is the error code of a request that needs the user to go
// to a page first.
const codeURLElicitation = -32042

// URLElicitationError is the answer -32042 to a request: the user has to go to
// all of these pages first, by the same rules as for OnElicit in URL mode. The
// request may then be made again; Options.OnElicitationComplete tells when, if
// the server reports it.
type URLElicitationError struct {
	Elicitations []URLElicitation
	// Err is the error of the request as it would be otherwise, which holds a
	// *codec.Error.
	Err error
}

// Error gives the server's error.
func (e *URLElicitationError) Error() string { return e.Err.Error() }

// Unwrap gives the server's error.
func (e *URLElicitationError) Unwrap() error { return e.Err }

// typedError makes a *URLElicitationError of the error of a request where it is
// one, and notes what may be completed.
func (c *Client) typedError(err error) error {
	var e *codec.Error
	if !errors.As(err, &e) || e.Code != codeURLElicitation || c.features.Load().revision != revision20251125 {
		return err
	}
	typed := &URLElicitationError{Err: err}
	ok := codec.EachElement(codec.Member(e.Data, "elicitations"), func(v []byte) bool {
		u, err := parseURLElicitation(v, revision20251125)
		if err == nil && codec.Text(v, "mode") == "url" {
			typed.Elicitations = append(typed.Elicitations, u)
			return true
		}
		return false
	})
	if !ok || len(typed.Elicitations) == 0 {
		c.log.Warn("client: an error -32042 without valid elicitations", "data", excerpt(e.Data))
		return err
	}
	for _, u := range typed.Elicitations {
		c.asked.add(u.ElicitationID)
	}
	return typed
}

// parseURLElicitation reads an elicitation in URL mode. Only pages of the web
// are taken: a URL of another scheme may run a program.
func parseURLElicitation(v []byte, revision string) (URLElicitation, error) {
	e := URLElicitation{
		ElicitationID: codec.Text(v, "elicitationId"),
		URL:           codec.Text(v, "url"),
		Message:       codec.Text(v, "message"),
	}
	u, err := url.Parse(e.URL)
	switch {
	case e.ElicitationID == "" && revision == revision20251125:
		return e, errors.New("elicitationId is missing")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return e, errors.New("url must be an absolute http or https URL")
	}
	return e, nil
}
