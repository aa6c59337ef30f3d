package client

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mcpengine/mcpengine/codec"
)

// Errors of the stateless revision (2026-07-28) to compare with errors.Is.
var (
	// ErrTooManyRounds tells that a server wanted to know more and more
	// (Options.MaxRounds) without ever answering the request.
	ErrTooManyRounds = errors.New("client: the server keeps asking instead of answering")
	// ErrSubscriptionEnded tells that the server has ended a subscription in good
	// order. Listening again is fine.
	ErrSubscriptionEnded = errors.New("client: the server ended the subscription")
	// ErrTaskCancelled is what Task.Result gives for a task of the extension that
	// was cancelled, which then has no result.
	ErrTaskCancelled = errors.New("client: the task was cancelled")
)

// RequiredCapabilityError is the answer -32021: the server cannot do without a
// capability that the client did not declare on the request.
type RequiredCapabilityError struct {
	// Required is the raw object in the shape of the client's capabilities, or
	// nil where the server named none.
	Required []byte
	// Err holds the server's *codec.Error.
	Err error
}

// Error gives the server's error and what it requires.
func (e *RequiredCapabilityError) Error() string {
	if e.Required == nil {
		return e.Err.Error()
	}
	return e.Err.Error() + "; required: " + excerpt(e.Required)
}

// Unwrap gives the server's error.
func (e *RequiredCapabilityError) Unwrap() error { return e.Err }

// UnsupportedVersionError is the answer -32022: the server does not serve the
// revision of the request, and names those that it serves.
type UnsupportedVersionError struct {
	Requested string
	Supported []string
	// Err holds the server's *codec.Error.
	Err error
}

// Error names the revisions.
func (e *UnsupportedVersionError) Error() string {
	return fmt.Sprintf("client: the server does not serve revision %q but %s", e.Requested, excerpt(strings.Join(e.Supported, ", ")))
}

// Unwrap gives the server's error.
func (e *UnsupportedVersionError) Unwrap() error { return e.Err }

// InputError tells that a request was given up because the client could not, or
// was not allowed to, give an answer that the server asked for in the midst of
// it (section Multi Round-Trip Requests). Nothing was sent in reply.
type InputError struct {
	// Key and Method are those of the input request.
	Key, Method string
	// Err says why; where a callback of Options failed it is the *codec.Error that
	// a server of an older revision would have got.
	Err error
}

// Error names the input request and the reason.
func (e *InputError) Error() string {
	return fmt.Sprintf("client: the server's %s (%s) was not answered: %v", excerpt(e.Method), excerpt(e.Key), e.Err)
}

// Unwrap gives the reason.
func (e *InputError) Unwrap() error { return e.Err }

// ToolExcludedError tells that a tool cannot be called over HTTP because the
// x-mcp-header members of its schema break the rules. ListTools leaves it out.
type ToolExcludedError struct{ Tool, Reason string }

// Error gives the reason.
func (e *ToolExcludedError) Error() string {
	return fmt.Sprintf("client: the tool %q cannot be called over HTTP: %s", excerpt(e.Tool), e.Reason)
}

// typedEraError makes a typed error of what a server of the stateless revision
// has answered.
func typedEraError(err error) error {
	var e *codec.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case codec.CodeMissingClientCapability:
		required := codec.Member(e.Data, "requiredCapabilities")
		if !codec.IsObject(required) {
			required = nil
		}
		return &RequiredCapabilityError{Required: required, Err: err}
	case codec.CodeUnsupportedProtocol:
		return &UnsupportedVersionError{Requested: ProtocolStateless, Supported: textList(codec.Member(e.Data, "supported")), Err: err}
	}
	return err
}

// textList gives the strings of an array.
func textList(array []byte) (list []string) {
	codec.EachElement(array, func(v []byte) bool {
		if s, ok := codec.String(v); ok {
			list = append(list, s)
		}
		return true
	})
	return list
}

// hasCode reports whether an error holds an answer of a code.
func hasCode(err error, code int) bool {
	var e *codec.Error
	return errors.As(err, &e) && e.Code == code
}
