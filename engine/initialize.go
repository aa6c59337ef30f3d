package engine

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/mcpengine/mcpengine/codec"
)

// capability is a set of what the server side declares.
// The bits are in sealed session ids: see sealedVersion.
type capability uint8

const (
	capTools capability = 1 << iota
	capResources
	capPrompts
	capCompletions
	capTasks
)

// capabilities gives what the catalog can do.
func (c *catalog) capabilities() (set capability) {
	if len(c.tools.entries) > 0 {
		set |= capTools
	}
	if len(c.resources.entries)+len(c.templates.entries) > 0 {
		set |= capResources
	}
	if len(c.prompts.entries) > 0 {
		set |= capPrompts
	}
	for _, e := range c.tools.entries {
		if e.taskSupport != "" {
			set |= capTasks
		}
	}
	for _, e := range c.prompts.entries {
		if e.prompt.Complete != nil {
			set |= capCompletions
		}
	}
	for _, e := range c.templates.entries {
		if e.complete != nil {
			set |= capCompletions
		}
	}
	return set
}

// appendCapabilities appends the server's capabilities, as far as a revision
// knows them.
func (c *catalog) appendCapabilities(dst []byte, set capability, rev Revision) []byte {
	dst = append(dst, `{"logging":{}`...)
	if rev < Rev20250326 {
		set &^= capCompletions
	}
	tasks := rev.IsModern() && set&capTasks != 0
	if rev.IsModern() {
		set &^= capTasks
	}
	dst = set.appendTo(dst)
	if len(c.extensions) > 0 || tasks {
		dst = append(dst, `,"extensions":{`...)
		start := len(dst)
		if tasks {
			dst = append(dst, `"`+extensionTasks+`":{}`...)
		}
		for _, id := range slices.Sorted(maps.Keys(c.extensions)) {
			dst = appendComma(dst, start)
			dst = append(codec.AppendString(dst, id), ':')
			dst = append(dst, c.extensions[id]...)
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// appendTo appends the members of the capabilities object.
func (set capability) appendTo(dst []byte) []byte {
	for _, c := range []struct {
		bit capability
		raw string
	}{
		{capTools, `"tools":{"listChanged":true}`},
		{capResources, `"resources":{"subscribe":true,"listChanged":true}`},
		{capPrompts, `"prompts":{"listChanged":true}`},
		{capCompletions, `"completions":{}`},
		{capTasks, `"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`},
	} {
		if set&c.bit != 0 {
			dst = append(append(dst, ','), c.raw...)
		}
	}
	return dst
}

// legacyNames are the revisions that initialize can settle on, for error data.
var legacyNames = func() string {
	var names []string
	for r := Rev20241105; r <= newestLegacy; r++ {
		names = append(names, `"`+r.String()+`"`)
	}
	return "[" + strings.Join(names, ",") + "]"
}()

// CheckInitialize tells what is wrong with the params of an initialize, or
// gives nil. A transport asks before it opens a session, so that a refused
// handshake leaves nothing behind.
func (e *Engine) CheckInitialize(m *codec.Message) *codec.Error {
	switch {
	case m.Version == nil:
		return codec.NewError(codec.CodeInvalidParams, "Invalid params: protocolVersion must be a string")
	case !objectOrAbsent(m.Params, "capabilities"):
		return codec.NewError(codec.CodeInvalidParams, "Invalid params: capabilities must be an object")
	case !objectOrAbsent(m.Params, "clientInfo"):
		return codec.NewError(codec.CodeInvalidParams, "Invalid params: clientInfo must be an object")
	}
	if rev := ParseRevision(m.Version); e.options.StrictVersion && (rev == 0 || rev > newestLegacy) {
		data := append([]byte(`{"supported":`), legacyNames...)
		data = append(data, `,"requested":`...)
		data = append(codec.AppendString(data, m.Version), '}')
		return &codec.Error{Code: codec.CodeInvalidParams, Message: "Unsupported protocol version", Data: data}
	}
	return nil
}

func objectOrAbsent(params []byte, name string) bool {
	v := codec.Member(params, name)
	return v == nil || codec.IsObject(v)
}

// initialize answers the handshake's request. A version that is unknown, or of
// the stateless era, is answered with the newest legacy revision, and the client
// decides whether that will do.
func (s *Session) initialize(ctx context.Context, m *codec.Message, stream Stream) {
	if fault := s.engine.CheckInitialize(m); fault != nil {
		answer(m.ID, fault, stream)
		return
	}
	principal, fault := s.engine.principalOf(ctx)
	if fault != nil {
		answer(m.ID, fault, stream)
		return
	}
	n := s.planned // what the session's id holds already
	if n == nil {
		n = s.engine.negotiate(m, principal)
	}
	if !s.negotiated.CompareAndSwap(nil, n) {
		answer(m.ID, errInitialized, stream)
		return
	}
	buf := takeBuffer()
	buf.b = codec.AppendResultHead(buf.b, m.ID)
	buf.b = append(buf.b, `{"protocolVersion":"`...)
	buf.b = append(buf.b, n.rev.String()...)
	buf.b = append(buf.b, `","capabilities":`...)
	buf.b = s.engine.catalog.Load().appendCapabilities(buf.b, n.declared, n.rev)
	buf.b = append(buf.b, `,"serverInfo":`...)
	buf.b = s.engine.info.appendTo(buf.b, n.rev)
	if text := s.engine.options.Instructions; text != "" {
		buf.b = append(buf.b, `,"instructions":`...)
		buf.b = codec.AppendString(buf.b, text)
	}
	buf.b = append(buf.b, '}', '}')
	stream.Finish(buf.b, 0)
	giveBuffer(buf)
	stream.Flush()
}

// negotiate gives what an initialize that passed CheckInitialize settles. A
// version that is unknown, or of the stateless era, becomes the newest legacy one.
func (e *Engine) negotiate(m *codec.Message, principal string) *negotiated {
	rev := ParseRevision(m.Version)
	if rev == 0 || rev > newestLegacy {
		rev = newestLegacy
	}
	n := &negotiated{
		rev:          rev,
		principal:    principal,
		seen:         e.announcer.seen(),
		declared:     e.catalog.Load().capabilities(),
		clientInfo:   clone(codec.Member(m.Params, "clientInfo")),
		capabilities: clone(codec.Member(m.Params, "capabilities")),
	}
	if rev != Rev20251125 {
		n.declared &^= capTasks
	}
	return n
}

func clone(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append(make([]byte, 0, len(b)), b...)
}

func (i *Info) appendTo(dst []byte, rev Revision) []byte {
	dst = append(dst, `{"name":`...)
	dst = codec.AppendString(dst, i.Name)
	dst = append(dst, `,"version":`...)
	dst = codec.AppendString(dst, i.Version)
	if rev >= Rev20250618 {
		dst = appendMember(dst, "title", i.Title)
	}
	if rev >= Rev20251125 {
		dst = appendMember(dst, "description", i.Description)
		dst = appendMember(dst, "websiteUrl", i.WebsiteURL)
		dst = appendIcons(dst, i.Icons)
	}
	return append(dst, '}')
}
