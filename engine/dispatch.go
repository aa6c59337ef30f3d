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
	handler, name, fault := e.route(m, n.rev, n.declared)
	if fault == nil && m.BadProgressToken {
		fault = errProgressToken
	}
	if fault != nil {
		answer(m.ID, fault, stream)
		return
	}
	e.lease(&Call{
		engine: e, session: s, rev: n.rev, stream: stream, message: m,
		handler: handler, name: name, ctx: callContext{base: ctx},
	}, s.actor)
}

// lease runs a call as an actor, of a session or of none.
func (e *Engine) lease(c *Call, a *actors.Session) {
	r, err := e.system.Lease(a, c.message.ID, c)
	if err != nil {
		answer(c.message.ID, e.wireError(err), c.stream)
		return
	}
	defer r.Release()
	c.request, c.generation = r, r.Generation()
	c.leased.Store(r)
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
func (e *Engine) route(m *codec.Message, rev Revision, declared capability) (Handler, string, *codec.Error) {
	cat := e.catalog.Load()
	need := capability(0)
	var h Handler
	switch string(m.Method) {
	case codec.MethodToolsList:
		h, need = handleToolsList, capTools
	case codec.MethodToolsCall:
		if declared&capTools == 0 {
			break
		}
		return cat.findTool(m, rev, declared)
	case codec.MethodResourcesList:
		h, need = handleResourcesList, capResources
	case codec.MethodResourceTemplatesList:
		h, need = handleTemplatesList, capResources
	case codec.MethodResourcesRead:
		if declared&capResources == 0 {
			break
		}
		return cat.findContents(m, rev)
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
		return cat.findPrompt(m)
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

func (c *catalog) findTool(m *codec.Message, rev Revision, declared capability) (Handler, string, *codec.Error) {
	if m.Name == nil {
		return nil, "", errNoName
	}
	if m.Arguments != nil && !codec.IsObject(m.Arguments) {
		return nil, "", codec.NewError(codec.CodeInvalidParams, "Invalid params: arguments must be an object")
	}
	if t := c.tools.byName[string(m.Name)]; t != nil {
		h, fault := t.taskRoute(m, rev, declared)
		return h, t.name, fault
	}
	return nil, "", codec.NewError(codec.CodeInvalidParams, "Unknown tool: "+clip(m.Name))
}

func (c *catalog) findPrompt(m *codec.Message) (Handler, string, *codec.Error) {
	if m.Name == nil {
		return nil, "", errNoName
	}
	if p := c.prompts.byName[string(m.Name)]; p != nil {
		return p.wrapped, p.name, nil
	}
	return nil, "", codec.NewError(codec.CodeInvalidParams, "Unknown prompt: "+clip(m.Name))
}

func (c *catalog) findContents(m *codec.Message, rev Revision) (Handler, string, *codec.Error) {
	if m.URI == nil {
		return nil, "", errNoURI
	}
	if r := c.findResource(m.URI); r != nil {
		return r.wrapped, string(m.URI), nil
	}
	return nil, "", notFound(rev, m.URI)
}

// listing answers a list request from the catalog as it is now.
func (c *Call) listing(l *list, member string) error {
	m := c.message
	out, err := l.page(c.out, c.rev, member, c.engine.options.PageSize, m.Cursor, m.CursorPresent,
		c.engine.options.ListCache)
	if err != nil {
		return err
	}
	c.out = out
	return nil
}

func handleToolsList(_ context.Context, c *Call) error {
	return c.listing(&c.engine.catalog.Load().tools, "tools")
}

func handleResourcesList(_ context.Context, c *Call) error {
	return c.listing(&c.engine.catalog.Load().resources, "resources")
}

func handleTemplatesList(_ context.Context, c *Call) error {
	return c.listing(&c.engine.catalog.Load().templates, "resourceTemplates")
}

func handlePromptsList(_ context.Context, c *Call) error {
	return c.listing(&c.engine.catalog.Load().prompts, "prompts")
}

func handleSubscribe(_ context.Context, c *Call) error {
	if c.message.URI == nil {
		return errNoURI
	}
	if err := c.session.subscribe(c.message.URI); err != nil {
		return err
	}
	c.SetResult(emptyObject)
	return nil
}

func handleUnsubscribe(_ context.Context, c *Call) error {
	if c.message.URI == nil {
		return errNoURI
	}
	c.session.actor.Unsubscribe(topicResource + string(c.message.URI))
	c.SetResult(emptyObject)
	return nil
}
