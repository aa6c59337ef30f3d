package codec

import "strconv"

// Error codes of JSON-RPC 2.0 and of the protocol's revisions.
const (
	CodeParseError     = -32700 // the bytes are not JSON
	CodeInvalidRequest = -32600 // JSON, but not a message
	CodeMethodNotFound = -32601 // no such method, or its capability was not declared
	CodeInvalidParams  = -32602 // params that the method cannot take
	CodeInternalError  = -32603 // the fault is on this side

	CodeResourceNotFound       = -32002 // legacy revisions only
	CodeURLElicitationRequired = -32042 // 2025-11-25 only

	CodeHeaderMismatch          = -32020 // 2026-07-28: a header is missing or differs from the body
	CodeMissingClientCapability = -32021 // 2026-07-28: the request needs a capability that was not declared
	CodeUnsupportedProtocol     = -32022 // 2026-07-28: the version in _meta is not served here
	CodeOverloaded              = -31900 // this engine's own, outside the reserved range: not admitted, try later
	CodeTimeout                 = -31901 // this engine's own: the handler's time limit passed
	CodeRequestCancelled        = -31902 // this engine's own: stopped by the receiver's side before it was done
	CodeConnectionClosed        = -31903 // this engine's own: the peer went away before it answered
)

// Error is the error object of a JSON-RPC response. It is also a Go error, so
// that a handler returns it to choose code and data, and a caller finds it with
// errors.As. Two Errors match under errors.Is when their codes are equal.
type Error struct {
	Code    int
	Message string
	Data    []byte // raw JSON, nil for none
}

// Sentinels to compare with errors.Is; only the code counts.
var (
	ErrParse          = &Error{Code: CodeParseError, Message: "Parse error"}
	ErrInvalidRequest = &Error{Code: CodeInvalidRequest, Message: "Invalid Request"}
	ErrMethodNotFound = &Error{Code: CodeMethodNotFound, Message: "Method not found"}
	ErrInvalidParams  = &Error{Code: CodeInvalidParams, Message: "Invalid params"}
	ErrInternal       = &Error{Code: CodeInternalError, Message: "Internal error"}
	ErrOverloaded     = &Error{Code: CodeOverloaded, Message: "Server is overloaded, try again later"}
	ErrTimeout        = &Error{Code: CodeTimeout, Message: "The time limit for this request has passed"}
	ErrCancelled      = &Error{Code: CodeRequestCancelled, Message: "The request was stopped"}
)

// NewError returns an Error with a code and a message, without data.
func NewError(code int, message string) *Error {
	return &Error{Code: code, Message: message}
}

// Error gives the message and the code.
func (e *Error) Error() string {
	return e.Message + " (" + strconv.Itoa(e.Code) + ")"
}

// Is reports whether target is an Error of the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}
