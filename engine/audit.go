package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/mcpengine/mcpengine/codec"
)

// What Record.Outcome may be.
const (
	AuditOK        = "ok"         // a result
	AuditToolError = "tool_error" // the result of a tool that failed (isError)
	AuditError     = "error"      // an error response; Code says which
	AuditCancelled = "cancelled"  // by the peer, or by the end of its session or of the server
	AuditTimeout   = "timeout"    // Options.HandlerTimeout, or a time limit of the handler's own
	AuditRefused   = "refused"    // by a limit, by Options.Visible, or by one of Options.Before
	AuditPanic     = "panic"      // the handler, or a hook around it, panicked
)

// maxAudited bounds, in bytes, what a record repeats of a peer's words.
const maxAudited = 256

// Record is what Options.Audit is told of one request.
type Record struct {
	Time     time.Time     // when the request reached the engine
	Duration time.Duration // until its answer was queued, or it was given up
	// Principal is who made this request, as Options.Principal tells.
	Principal string
	// Session tells sessions apart: 32 hexadecimal digits from the SHA-256 of
	// Session.Key, which is a secret over HTTP. "" in the stateless era.
	Session  string
	Revision Revision // 0 before the handshake
	Method   string
	// Name is what the request is about, as the peer has it: the name of a tool
	// or prompt, a URI, a task's id. Like Method and RequestID it is cut after
	// 256 bytes.
	Name      string
	RequestID string // the exact token of its id
	// Task is the id of a task, in the record of what was done in it. The request
	// that began the task, whose id RequestID is, has a record of its own.
	Task string
	// Outcome is one of the Audit constants.
	Outcome string
	// Code is that of the error response, or 0 where there was none.
	Code int
	// Arguments are what the peer sent, where Options.AuditArguments is set.
	Arguments json.RawMessage
}

// callHooks is what the hooks have to remember of one request. Where no hook is
// set there is none.
type callHooks struct {
	// What the record begins with. It does not change while the handler runs.
	record Record

	// The handler's goroutine alone, as what came before it.
	refused  bool            // by a filter or a Before hook
	replaced bool            // SetArguments was called
	given    json.RawMessage // the arguments before that
}

// observe begins to watch a request, where Options.Audit is set. The fault is
// that of a request which cannot be served.
func (e *Engine) observe(ctx context.Context, s *Session, rev Revision, m *codec.Message) (*callHooks, *codec.Error) {
	if e.options.Audit == nil {
		return nil, nil
	}
	h := &callHooks{record: Record{
		Time: time.Now(), Revision: rev,
		Method: bounded(m.Method), Name: bounded(namedBy(m)), RequestID: bounded(m.ID),
	}}
	if s != nil {
		h.record.Session = s.audited
	}
	if e.options.AuditArguments {
		h.record.Arguments = clone(m.Arguments)
	}
	var fault *codec.Error
	h.record.Principal, fault = e.principalOf(ctx)
	return h, fault
}

// forTask gives what is remembered of the work of a task.
func (h *callHooks) forTask(id string) *callHooks {
	if h == nil {
		return nil
	}
	t := &callHooks{record: h.record}
	t.record.Time, t.record.Task = time.Now(), id
	return t
}

// audit hands a record to the embedder.
func (e *Engine) audit(r Record) {
	defer func() {
		if reason := recover(); reason != nil {
			e.log.Error("Options.Audit panicked", "panic", fmt.Sprint(reason))
		}
	}()
	e.options.Audit(r)
}

// awaitAudits gives the records of what Shutdown has cut off a moment to be
// written.
func (e *Engine) awaitAudits() {
	for range 50 {
		if e.auditing.Load() == 0 {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// auditName gives what records call the session of a key.
func auditName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// bounded copies a peer's words, up to a limit.
func bounded(b []byte) string {
	if len(b) > maxAudited {
		n := maxAudited
		for n > 0 && !utf8.RuneStart(b[n]) {
			n--
		}
		b = b[:n]
	}
	return string(b)
}

// turnAway answers a request that does not get as far as its handler.
func (e *Engine) turnAway(h *callHooks, id []byte, fault *codec.Error, stream Stream) {
	answer(id, fault, stream)
	if h == nil {
		return
	}
	r := h.record
	r.Outcome, r.Code, r.Duration = h.outcomeOf(fault), fault.Code, time.Since(r.Time)
	e.audit(r)
}

// reject is turnAway for a request that was not observed before.
func (e *Engine) reject(ctx context.Context, s *Session, m *codec.Message, fault *codec.Error, stream Stream) {
	h, bad := e.observe(ctx, s, 0, m)
	if bad != nil {
		fault = bad
	}
	e.turnAway(h, m.ID, fault, stream)
}

// outcomeOf names what an error response means.
func (h *callHooks) outcomeOf(fault *codec.Error) string {
	switch {
	case h.refused, fault.Code == codec.CodeOverloaded:
		return AuditRefused
	case fault.Code == codec.CodeRequestCancelled:
		return AuditCancelled
	case fault.Code == codec.CodeTimeout:
		return AuditTimeout
	}
	return AuditError
}

// concluded gives the record of a call whose handler is done. The answer, which
// nobody gets where the peer is gone, is still in c.out.
func (c *Call) concluded(reason any, fault *codec.Error, gone bool) Record {
	if c.engine.options.Audit == nil {
		return Record{}
	}
	r := c.hooks.record
	switch {
	case reason != nil:
		r.Outcome, r.Code = AuditPanic, fault.Code
	case gone:
		r.Outcome = AuditCancelled
	case fault != nil:
		r.Outcome, r.Code = c.hooks.outcomeOf(fault), fault.Code
	case c.hooks.refused:
		r.Outcome = AuditRefused
	case c.isToolError(c.out[c.result : len(c.out)-1]):
		r.Outcome = AuditToolError
	default:
		r.Outcome = AuditOK
	}
	r.Duration = time.Since(r.Time)
	return r
}

// auditEnd records a call that was ended from outside, on a goroutine of its own:
// whoever ended it does not wait.
func (c *Call) auditEnd(cause error, code int) {
	if c.engine.options.Audit == nil {
		return
	}
	r := c.hooks.record
	r.Outcome, r.Code, r.Duration = AuditCancelled, code, time.Since(r.Time)
	if cause == errHandlerTimeout {
		r.Outcome = AuditTimeout
	}
	c.engine.auditing.Add(1)
	go func() {
		defer c.engine.auditing.Add(-1)
		c.engine.audit(r)
	}()
}
