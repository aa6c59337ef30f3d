package engine

import (
	"context"
	"sync"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
)

// Headers are the headers of the HTTP request that a message came in. Values
// gives those of one name, none where it is missing; http.Header has it.
type Headers interface{ Values(name string) []string }

// Peer is a pipe on which requests of the stateless era share ids, so that a
// notification can cancel one: stdio. Over HTTP each request stands for itself
// and there is none.
type Peer struct {
	mu       sync.Mutex // guards inFlight
	inFlight map[string]*Call
}

// NewPeer makes the peer of a pipe.
func NewPeer() *Peer { return &Peer{inFlight: make(map[string]*Call)} }

// add notes a call, unless its id is in flight.
func (p *Peer) add(id string, c *Call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inFlight[id] != nil {
		return false
	}
	p.inFlight[id] = c
	return true
}

// remove forgets a call, so that its id can be used again.
func (p *Peer) remove(id []byte, c *Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inFlight[string(id)] == c {
		delete(p.inFlight, string(id))
	}
}

// Cancel ends the request of an id, without an answer. It reports whether there
// is one.
func (p *Peer) Cancel(id []byte) bool {
	p.mu.Lock()
	c := p.inFlight[string(id)]
	p.mu.Unlock()
	return c != nil && c.cancel()
}

// Close cancels all requests of the pipe, or only the subscriptions, which would
// never end by themselves.
func (p *Peer) Close(onlySubscriptions bool) {
	p.mu.Lock()
	var left []*Call
	for _, c := range p.inFlight {
		if !onlySubscriptions || c.listens {
			left = append(left, c)
		}
	}
	p.mu.Unlock()
	for _, c := range left {
		c.cancel()
	}
}

// IsModern reports whether a message on a pipe belongs to the stateless era: it
// carries one of the era's marks in _meta, or its method exists only there.
func IsModern(m *codec.Message) bool {
	if m.MetaVersionPresent || m.ClientCapabilities != nil || m.ClientInfo != nil || m.MetaLogLevel != nil {
		return true
	}
	switch string(m.Method) {
	case codec.MethodDiscover, codec.MethodListen, codec.MethodTasksUpdate:
		return true
	}
	return false
}

// ReceiveModern handles a request of the stateless era (2026-07-28). No session
// is touched. The end of ctx is the cancellation: over HTTP, the client's
// disconnect. headers is nil where the transport has none. It returns when the
// handler has returned.
func (e *Engine) ReceiveModern(ctx context.Context, p *Peer, m *codec.Message, headers Headers, stream Stream) {
	hooks, fault := e.observe(ctx, nil, Rev20260728, m)
	if fault == nil {
		fault = e.checkModern(m, headers)
	}
	var v view
	if fault == nil {
		v, fault = e.viewFor(ctx, hooks)
	}
	if fault != nil {
		e.turnAway(hooks, m.ID, fault, stream)
		return
	}
	cat := e.catalog.Load()
	handler, name, fault := e.routeModern(cat, m, v)
	if fault == nil && headers != nil && string(m.Method) == codec.MethodToolsCall {
		fault = cat.tools.byName[name].checkParamHeaders(m.Arguments, headers)
	}
	if fault == nil && m.BadProgressToken {
		fault = errProgressToken
	}
	if fault == nil {
		fault = e.checkRate(ctx, m, name)
	}
	if fault == nil && m.MetaLogLevel != nil {
		if _, ok := parseLevel(m.MetaLogLevel); !ok {
			fault = codec.NewError(codec.CodeInvalidParams, "Invalid params: unknown log level "+clip(m.MetaLogLevel))
		}
	}
	if fault != nil {
		e.turnAway(hooks, m.ID, fault, stream)
		return
	}
	c := &Call{
		engine: e, rev: Rev20260728, stream: stream, message: m, handler: handler, name: name, hooks: hooks,
		ctx: callContext{base: ctx, follows: true}, listens: string(m.Method) == codec.MethodListen,
	}
	if err := c.checkState(); err != nil {
		e.turnAway(hooks, m.ID, e.wireError(err), stream)
		return
	}
	if p != nil {
		c.peer = p
		if !p.add(string(m.ID), c) {
			e.turnAway(hooks, m.ID, e.wireError(actors.ErrDuplicateID), stream)
			return
		}
		defer p.remove(m.ID, c) // where it was not admitted
	}
	e.lease(c, nil)
}

// checkModern checks what every request of the era has to carry, in the order
// that tells the client most.
func (e *Engine) checkModern(m *codec.Message, headers Headers) *codec.Error {
	switch {
	case m.MetaVersion == nil:
		return errNoMetaVersion
	case m.ClientCapabilities == nil:
		return errNoMetaCapabilities
	}
	if headers != nil {
		if fault := checkVersionHeader(m, headers); fault != nil {
			return fault
		}
	}
	if string(m.MetaVersion) != newest.String() || e.options.LegacyOnly {
		return e.unsupported(m.MetaVersion)
	}
	if headers != nil {
		return checkMethodHeaders(m, headers)
	}
	return nil
}

var (
	errNoMetaVersion = codec.NewError(codec.CodeInvalidParams,
		"Invalid params: _meta must hold "+codec.MetaProtocolVersion+", a string")
	errNoMetaCapabilities = codec.NewError(codec.CodeInvalidParams,
		"Invalid params: _meta must hold "+codec.MetaClientCapabilities+", an object")
)

// unsupported is the error for a version that is not served statelessly.
func (e *Engine) unsupported(requested []byte) *codec.Error {
	data := append([]byte(`{"supported":`), e.supportedVersions()...)
	data = append(data, `,"requested":`...)
	data = append(codec.AppendString(data, requested), '}')
	return &codec.Error{Code: codec.CodeUnsupportedProtocol, Message: "Unsupported protocol version", Data: data}
}

// Unsupported gives the error -32022 for a version that is not served here.
func (e *Engine) Unsupported(requested []byte) *codec.Error { return e.unsupported(requested) }

// ModernOnly reports whether the legacy era is left out.
func (e *Engine) ModernOnly() bool { return e.options.ModernOnly }

// supportedVersions is the raw list of the versions that are served, the newest
// first.
func (e *Engine) supportedVersions() string {
	switch {
	case e.options.LegacyOnly:
		return `["2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`
	case e.options.ModernOnly:
		return `["2026-07-28"]`
	}
	return `["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`
}

// routeModern is the method table of the stateless era.
func (e *Engine) routeModern(cat *catalog, m *codec.Message, v view) (Handler, string, *codec.Error) {
	set := cat.capabilities()
	need := capability(0)
	var h Handler
	switch string(m.Method) {
	case codec.MethodDiscover:
		h = handleDiscover
	case codec.MethodToolsList:
		h, need = handleToolsList, capTools
	case codec.MethodToolsCall:
		if set&capTools == 0 {
			break
		}
		return cat.findTool(m, Rev20260728, set, v)
	case codec.MethodResourcesList:
		h, need = handleResourcesList, capResources
	case codec.MethodResourceTemplatesList:
		h, need = handleTemplatesList, capResources
	case codec.MethodResourcesRead:
		if set&capResources == 0 {
			break
		}
		return cat.findContents(m, Rev20260728, v)
	case codec.MethodPromptsList:
		h, need = handlePromptsList, capPrompts
	case codec.MethodPromptsGet:
		if set&capPrompts == 0 {
			break
		}
		return cat.findPrompt(m, v)
	case codec.MethodComplete:
		h, need = handleComplete, capCompletions
	case codec.MethodListen:
		h = handleListen
	case codec.MethodTasksGet:
		h, need = handleModernTaskGet, capTasks
	case codec.MethodTasksUpdate:
		h, need = handleModernTaskUpdate, capTasks
	case codec.MethodTasksCancel:
		h, need = handleModernTaskCancel, capTasks
	default:
		h = cat.methods[string(m.Method)]
	}
	if h == nil || set&need != need {
		return nil, "", e.unknownModern(m.Method)
	}
	return wrap(h, cat.middleware), "", nil
}

// unknownModern is the error for a method that the era does not have. Whoever
// tries the handshake of the legacy era learns what is spoken.
func (e *Engine) unknownModern(method []byte) *codec.Error {
	fault := unknownMethod(method)
	if string(method) == codec.MethodInitialize {
		fault.Data = append(append([]byte(`{"supported":`), e.supportedVersions()...), '}')
	}
	return fault
}

// handleDiscover serves server/discover.
func handleDiscover(_ context.Context, c *Call) error {
	e, cat := c.engine, c.engine.catalog.Load()
	dst := append(c.out, `{"supportedVersions":`...)
	dst = append(dst, e.supportedVersions()...)
	dst = append(dst, `,"capabilities":`...)
	dst = cat.appendCapabilities(dst, cat.capabilities(), c.rev)
	if text := e.options.Instructions; text != "" {
		dst = append(dst, `,"instructions":`...)
		dst = codec.AppendString(dst, text)
	}
	dst = e.options.ListCache.appendTo(dst)
	c.out = append(dst, '}')
	return nil
}
