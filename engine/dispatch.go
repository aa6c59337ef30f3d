package engine

import (
	"context"
	"errors"
	"time"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
)

// dispatch finds the handler of a request and runs it as an actor.
func (e *Engine) dispatch(ctx context.Context, s *Session, n *negotiated, m *codec.Message, stream Stream) {
	hooks, fault := e.observe(ctx, s, n.rev, m)
	var handler Handler
	var name string
	if fault == nil {
		handler, name, fault = e.route(m, n, e.viewOf(n.principal, hooks))
	}
	if fault == nil && m.BadProgressToken {
		fault = errProgressToken
	}
	if fault == nil {
		fault = e.checkRate(ctx, m, name)
	}
	if fault != nil {
		e.turnAway(hooks, m.ID, fault, stream)
		return
	}
	e.lease(&Call{
		engine: e, session: s, rev: n.rev, stream: stream, message: m,
		handler: handler, name: name, hooks: hooks, ctx: callContext{base: ctx},
	}, s.actor)
}

// lease runs a call as an actor, of a session or of none.
func (e *Engine) lease(c *Call, a *actors.Session) {
	r, err := e.system.Lease(a, c.message.ID, c)
	if err != nil {
		e.turnAway(c.hooks, c.message.ID, e.wireError(err), c.stream)
		return
	}
	defer r.Release()
	c.mu.Lock() // a cancellation may look already
	c.request, c.generation = r, r.Generation()
	c.mu.Unlock()
	if limit := e.options.HandlerTimeout; limit > 0 {
		timer := time.AfterFunc(limit, func() { r.EndLease(c.generation, errHandlerTimeout) })
		defer timer.Stop()
	}
	if s, ok := c.stream.(Starter); ok {
		s.Start()
	}
	c.run()
}

var errHandlerTimeout = errors.New("engine: the handler's time limit has passed")

// route is the method table: it finds the handler of a request, and the name of
// what the request is about.
func (e *Engine) route(m *codec.Message, n *negotiated, v view) (Handler, string, *codec.Error) {
	cat, rev, declared := e.catalog.Load(), n.rev, n.declared
	need := capability(0)
	var h Handler
	switch string(m.Method) {
	case codec.MethodToolsList:
		h, need = handleToolsList, capTools
	case codec.MethodToolsCall:
		if declared&capTools == 0 {
			break
		}
		return cat.findTool(m, rev, declared, v)
	case codec.MethodResourcesList:
		h, need = handleResourcesList, capResources
	case codec.MethodResourceTemplatesList:
		h, need = handleTemplatesList, capResources
	case codec.MethodResourcesRead:
		if declared&capResources == 0 {
			break
		}
		return cat.findContents(m, rev, v)
	case codec.MethodResourcesSubscribe:
		h, need = handleSubscribe, capResources
	case codec.MethodResourcesUnsubscribe:
		h, need = handleUnsubscribe, capResources
	case codec.MethodPromptsList:
		h, need = handlePromptsList, capPrompts
	case codec.MethodPromptsGet:
		if declared&capPrompts == 0 {
			break
		}
		return cat.findPrompt(m, v)
	case codec.MethodSetLevel:
		h = handleSetLevel
	case codec.MethodTasksGet:
		h, need = handleTaskGet, capTasks
	case codec.MethodTasksResult:
		h, need = handleTaskResult, capTasks
	case codec.MethodTasksList:
		h, need = handleTaskList, capTasks
	case codec.MethodTasksCancel:
		h, need = handleTaskCancel, capTasks
	case codec.MethodComplete:
		if h = handleComplete; rev >= Rev20250326 {
			need = capCompletions
		}
	default:
		h = cat.methods[string(m.Method)]
	}
	if h == nil || declared&need != need {
		return nil, "", unknownMethod(m.Method)
	}
	return wrap(h, cat.middleware), "", nil
}

func unknownMethod(method []byte) *codec.Error {
	return codec.NewError(codec.CodeMethodNotFound, "Method not found: "+clip(method))
}

// clip bounds what an error message repeats of a peer's words.
func clip(b []byte) string {
	const most = 128
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}

var errNoName = codec.NewError(codec.CodeInvalidParams, `Invalid params: "name" must be a string`)

func (c *catalog) findTool(m *codec.Message, rev Revision, declared capability, v view) (Handler, string, *codec.Error) {
	if m.Name == nil {
		return nil, "", errNoName
	}
	if m.Arguments != nil && !codec.IsObject(m.Arguments) {
		return nil, "", codec.NewError(codec.CodeInvalidParams, "Invalid params: arguments must be an object")
	}
	if t := v.finds(KindTool, c.tools.byName[string(m.Name)]); t != nil {
		h, fault := t.taskRoute(m, rev, declared)
		return h, t.name, fault
	}
	return nil, "", codec.NewError(codec.CodeInvalidParams, "Unknown tool: "+clip(m.Name))
}

func (c *catalog) findPrompt(m *codec.Message, v view) (Handler, string, *codec.Error) {
	if m.Name == nil {
		return nil, "", errNoName
	}
	if p := v.finds(KindPrompt, c.prompts.byName[string(m.Name)]); p != nil {
		return p.wrapped, p.name, nil
	}
	return nil, "", codec.NewError(codec.CodeInvalidParams, "Unknown prompt: "+clip(m.Name))
}

func (c *catalog) findContents(m *codec.Message, rev Revision, v view) (Handler, string, *codec.Error) {
	if m.URI == nil {
		return nil, "", errNoURI
	}
	if r := v.findsResource(c, m.URI); r != nil {
		return r.wrapped, string(m.URI), nil
	}
	return nil, "", notFound(rev, m.URI)
}

// listing answers a list request from the catalog as it is now.
func (c *Call) listing(l *list, member string, kind Kind) error {
	m := c.message
	r := &listRequest{
		view: c.view(), kind: kind, rev: c.rev, member: member, size: c.engine.options.PageSize,
		cursor: m.Cursor, hasCursor: m.CursorPresent, cache: c.engine.options.ListCache,
	}
	out, err := l.page(c.out, r)
	if err != nil {
		return err
	}
	c.out = out
	return nil
}

func handleToolsList(_ context.Context, c *Call) error {
	return c.listing(&c.engine.catalog.Load().tools, "tools", KindTool)
}

func handleResourcesList(_ context.Context, c *Call) error {
	return c.listing(&c.engine.catalog.Load().resources, "resources", KindResource)
}

func handleTemplatesList(_ context.Context, c *Call) error {
	return c.listing(&c.engine.catalog.Load().templates, "resourceTemplates", KindTemplate)
}

func handlePromptsList(_ context.Context, c *Call) error {
	return c.listing(&c.engine.catalog.Load().prompts, "prompts", KindPrompt)
}

func handleSubscribe(ctx context.Context, c *Call) error {
	if c.message.URI == nil {
		return errNoURI
	}
	if err := c.session.subscribe(c.message.URI); err != nil {
		return err
	}
	c.session.persist(ctx)
	c.SetResult(emptyObject)
	return nil
}

func handleUnsubscribe(ctx context.Context, c *Call) error {
	if c.message.URI == nil {
		return errNoURI
	}
	if c.session.actor.Unsubscribe(topicResource + string(c.message.URI)) {
		c.session.persist(ctx)
	}
	c.SetResult(emptyObject)
	return nil
}
