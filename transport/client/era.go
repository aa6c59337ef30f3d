package client

import (
	"bytes"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client/wire"
)

const (
	// ProtocolStateless is the revision without sessions and handshake.
	ProtocolStateless = "2026-07-28"
	// ProtocolAuto finds out what the server speaks.
	ProtocolAuto = "auto"
)

// extensionTasks is the identifier of the tasks extension.
const extensionTasks = "io.modelcontextprotocol/tasks"

// era is what the client keeps for a server of the stateless revision, in which
// each request stands for itself and says in _meta who asks and what it can do.
// A Client in a session has none.
type era struct {
	// Set when it is made and not changed later.

	http  bool   // headers repeat parts of the body, and a call is cancelled by closing its stream
	tasks bool   // the client has declared the tasks extension
	meta  []byte // the members of _meta that every request has
	cache *cacheView

	// blind is set where the server did not answer server/discover, so that its
	// capabilities are not known. Written by the handshake.
	blind bool

	level atomic.Value // LogLevel that requests ask for

	mu    sync.Mutex // guards the following
	tools map[string]toolHeaders
	subs  map[uint64]*Subscription // by the id of the request
	byURI map[string]*Subscription // those of Client.Subscribe
}

// toolHeaders is what is known of a tool's x-mcp-header members.
type toolHeaders struct {
	mirrors []wire.Mirror
	fault   error // why the tool is not offered, or nil
}

func newEra(c *Client, target string) *era {
	_, overHTTP := c.link.(*statelessLink)
	capabilities := c.statelessCapabilities
	e := &era{
		http:  overHTTP,
		tasks: codec.IsObject(codec.Member(capabilities, "extensions", extensionTasks)),
		cache: newCacheView(&c.o, target),
		subs:  map[uint64]*Subscription{},
		byURI: map[string]*Subscription{},
	}
	e.level.Store(c.o.LogLevel)
	m := codec.AppendString(nil, codec.MetaProtocolVersion)
	m = codec.AppendString(append(m, ':'), ProtocolStateless)
	m = codec.AppendString(append(m, ','), codec.MetaClientCapabilities)
	m = append(append(m, ':'), capabilities...)
	m = codec.AppendString(append(m, ','), codec.MetaClientInfo)
	e.meta = c.appendClientInfo(append(m, ':'))
	return e
}

// statelessCapabilities makes of the capabilities for a session those for the
// stateless revision: the tasks of 2025-11-25 are gone, and roots have no
// notification.
func statelessCapabilities(session []byte, tasks bool) []byte {
	out := []byte{'{'}
	add := func(name, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(codec.AppendString(out, name), ':')
		out = append(out, value...)
	}
	codec.EachMember(session, func(name, value []byte) bool {
		switch {
		case string(name) == "tasks":
		case string(name) == "roots" && codec.IsObject(value):
			add(name, []byte("{}"))
		default:
			add(name, value)
		}
		return true
	})
	if tasks {
		add([]byte("extensions"), []byte(`{"`+extensionTasks+`":{}}`))
	}
	return append(out, '}')
}

// isReserved reports whether a member of _meta is one that the client writes.
func isReserved(name []byte) bool {
	switch string(name) {
	case codec.MetaProtocolVersion, codec.MetaClientCapabilities, codec.MetaClientInfo, codec.MetaProgressToken:
		return true
	}
	return false
}

// params checks params and puts into their _meta what every request has to
// carry. Other members of _meta stay, and so does a log level of the caller's.
func (e *era) params(params, token []byte) ([]byte, error) {
	if !isObjectOrNil(params) {
		return nil, ErrBadParams
	}
	given := codec.Member(params, "_meta")
	out := append(make([]byte, 0, len(params)+len(e.meta)+64), `{"_meta":{`...)
	out = append(out, e.meta...)
	if token != nil {
		out = appendMember(out, []byte(codec.MetaProgressToken), token)
	}
	if level := e.level.Load().(LogLevel); level != "" && codec.Member(given, codec.MetaLogLevel) == nil {
		out = appendMember(out, []byte(codec.MetaLogLevel), codec.AppendString(nil, level))
	}
	codec.EachMember(given, func(name, value []byte) bool {
		if !isReserved(name) {
			out = appendMember(out, name, value)
		}
		return true
	})
	out = append(out, '}')
	codec.EachMember(params, func(name, value []byte) bool {
		if string(name) != "_meta" {
			out = appendMember(out, name, value)
		}
		return true
	})
	return append(out, '}'), nil
}

// isObjectOrNil reports whether params are what a request may have.
func isObjectOrNil(params []byte) bool {
	return params == nil || codec.Valid(params) && codec.IsObject(bytes.TrimLeft(params, " \t\r\n"))
}

// headers gives the headers that repeat parts of a request's body; nil where the
// transport has none.
func (e *era) headers(method string, params []byte) (http.Header, error) {
	if !e.http {
		return nil, nil
	}
	name := ""
	if member := wire.NamedBy(method); member != "" {
		name = codec.Text(params, member)
	}
	h := wire.MethodHeaders(ProtocolStateless, method, name)
	if method != codec.MethodToolsCall {
		return h, nil
	}
	e.mu.Lock()
	tool := e.tools[name]
	e.mu.Unlock()
	if tool.fault != nil {
		return nil, &ToolExcludedError{Tool: name, Reason: tool.fault.Error()}
	}
	arguments := codec.Member(params, "arguments")
	for i := range tool.mirrors {
		if value, ok := tool.mirrors[i].Value(arguments); ok {
			h.Set(tool.mirrors[i].Header, value)
		}
	}
	return h, nil
}

// learnTools keeps what the headers of calls need to know of the tools that were
// listed, and leaves out those whose x-mcp-header members break the rules
// (section Custom Headers from Tool Parameters). On other transports nothing
// depends on these members.
func (c *Client) learnTools(e *era, tools []Tool) []Tool {
	if !e.http {
		return tools
	}
	known := map[string]toolHeaders{}
	kept := tools[:0]
	for _, t := range tools {
		mirrors, err := wire.Mirrors(t.InputSchema)
		if err == nil {
			kept = append(kept, t)
		}
		if err != nil || len(mirrors) > 0 {
			known[t.Name] = toolHeaders{mirrors: mirrors, fault: err}
		}
	}
	e.mu.Lock()
	before := e.tools
	e.tools = known
	e.mu.Unlock()
	for name, t := range known {
		if old := before[name].fault; t.fault != nil && (old == nil || old.Error() != t.fault.Error()) {
			c.log.Warn("client: a tool is left out", "tool", excerpt(name), "reason", t.fault)
		}
	}
	return kept
}
