package engine

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"github.com/mcpengine/mcpengine/codec"
)

// AddMethod registers a request of the embedder's own, in every revision. The
// handler reads c.Params and gives the result with c.SetResult. Methods of the
// protocol cannot be replaced.
func (e *Engine) AddMethod(method string, h Handler) error {
	if method == "" || strings.HasPrefix(method, "notifications/") || isProtocolMethod(method) {
		return e.refuse(method, errors.New("not a name for a method of one's own"))
	}
	e.update(func(c *catalog) {
		c.methods = maps.Clone(c.methods)
		if c.methods == nil {
			c.methods = make(map[string]Handler)
		}
		c.methods[method] = h
	})
	return nil
}

// AddExtension declares an extension of the protocol, as MCP Apps
// ("io.modelcontextprotocol/ui"), in capabilities.extensions. settings is a raw
// object, nil for an empty one.
func (e *Engine) AddExtension(id string, settings json.RawMessage) error {
	if settings == nil {
		settings = emptyObject
	}
	if !strings.Contains(id, "/") || !codec.Valid(settings) || !codec.IsObject(settings) {
		return e.refuse(id, errors.New("an extension has a name with a prefix, and settings that are an object"))
	}
	e.update(func(c *catalog) {
		c.extensions = maps.Clone(c.extensions)
		if c.extensions == nil {
			c.extensions = make(map[string]json.RawMessage)
		}
		c.extensions[id] = codec.CompactTail(clone(settings), 0)
	})
	return nil
}

// update makes a new snapshot of the catalog without announcing it.
func (e *Engine) update(f func(*catalog)) {
	e.changing.Lock()
	defer e.changing.Unlock()
	c := e.catalog.Load().clone()
	f(c)
	e.catalog.Store(c)
}

// Params gives the request's raw params, or nil. They are borrowed.
func (c *Call) Params() json.RawMessage { return c.message.Params }

func isProtocolMethod(method string) bool {
	switch method {
	case codec.MethodInitialize, codec.MethodPing, codec.MethodDiscover, codec.MethodToolsList, codec.MethodToolsCall,
		codec.MethodResourcesList, codec.MethodResourceTemplatesList, codec.MethodResourcesRead,
		codec.MethodResourcesSubscribe, codec.MethodResourcesUnsubscribe, codec.MethodPromptsList,
		codec.MethodPromptsGet, codec.MethodComplete, codec.MethodSetLevel, codec.MethodSample, codec.MethodElicit,
		codec.MethodRootsList, codec.MethodTasksGet, codec.MethodTasksResult, codec.MethodTasksList,
		codec.MethodTasksCancel, codec.MethodTasksUpdate, codec.MethodListen:
		return true
	}
	return false
}
