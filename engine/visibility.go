package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/mcpengine/mcpengine/codec"
)

// Kind tells Options.Visible what a name is the name of.
type Kind uint8

// The kinds of what is registered.
const (
	KindTool     Kind = iota // its name
	KindPrompt               // its name
	KindResource             // its URI
	KindTemplate             // the URI template of a resource template
)

// String gives the kind in a word.
func (k Kind) String() string {
	switch k {
	case KindTool:
		return "tool"
	case KindPrompt:
		return "prompt"
	case KindResource:
		return "resource"
	case KindTemplate:
		return "template"
	}
	return ""
}

// list gives the list whose change is announced for a kind.
func (k Kind) list() listKind {
	switch k {
	case KindTool:
		return listTools
	case KindPrompt:
		return listPrompts
	}
	return listResources
}

// maxPrincipal is how long a principal may be, in bytes. A longer one is known
// by its digest, so that none can be taken for another.
const maxPrincipal = 512

// principalOf asks the embedder who makes a request. Where that panics, nobody
// is served.
func (e *Engine) principalOf(ctx context.Context) (principal string, fault *codec.Error) {
	if e.options.Principal == nil {
		return "", nil
	}
	defer func() {
		if reason := recover(); reason != nil {
			e.log.Error("Options.Principal panicked", "panic", fmt.Sprint(reason))
			principal, fault = "", codec.ErrInternal
		}
	}()
	return boundPrincipal(e.options.Principal(ctx)), nil
}

func boundPrincipal(p string) string {
	if len(p) <= maxPrincipal {
		return p
	}
	sum := sha256.Sum256([]byte(p))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// view is the catalog as one principal sees it. The zero view sees everything.
type view struct {
	engine    *Engine // nil where there is no filter
	principal string
	hooks     *callHooks // of the request that looks, or nil
}

// viewOf gives what a principal sees.
func (e *Engine) viewOf(principal string, h *callHooks) view {
	if e.options.Visible == nil {
		return view{}
	}
	return view{e, principal, h}
}

// viewFor gives what the maker of a request sees.
func (e *Engine) viewFor(ctx context.Context, h *callHooks) (view, *codec.Error) {
	if e.options.Visible == nil {
		return view{}, nil
	}
	if h != nil {
		return e.viewOf(h.record.Principal, h), nil
	}
	principal, fault := e.principalOf(ctx)
	return e.viewOf(principal, nil), fault
}

// view gives what the session sees, which is settled by who made it.
func (s *Session) view() view {
	if n := s.negotiated.Load(); n != nil {
		return s.engine.viewOf(n.principal, nil)
	}
	return s.engine.viewOf("", nil)
}

// view gives what the caller sees.
func (c *Call) view() view {
	switch {
	case c.engine.options.Visible == nil:
		return view{}
	case c.session != nil:
		v := c.session.view()
		v.hooks = c.hooks
		return v
	}
	return c.engine.viewOf(c.principal(), c.hooks)
}

// sees judges a name.
func (v view) sees(kind Kind, name string) bool { return v.engine == nil || v.ask(kind, name) }

// ask asks the filter. Where that panics, nothing is seen.
func (v view) ask(kind Kind, name string) (visible bool) {
	defer func() {
		if reason := recover(); reason != nil {
			v.engine.log.Error("Options.Visible panicked", "kind", kind.String(), "name", name, "panic", fmt.Sprint(reason))
			visible = false
		}
	}()
	return v.engine.options.Visible(v.principal, kind, name)
}

// finds gives an entry back if it is there and visible. One that is hidden is
// as good as none; only the audit gets to know.
func (v view) finds(kind Kind, e *entry) *entry {
	if e == nil || v.sees(kind, e.name) {
		return e
	}
	if v.hooks != nil {
		v.hooks.refused = true
	}
	return nil
}

// findsResource is finds for who serves a URI. A filter decides whether a URI is
// served, never by whom: what is hidden is not looked for in another template.
func (v view) findsResource(c *catalog, uri []byte) *entry {
	e := c.findResource(uri)
	if e == nil {
		return nil
	}
	return v.finds(e.resourceKind(), e)
}

// resourceKind tells apart the two kinds of entries that serve a URI.
func (e *entry) resourceKind() Kind {
	if e.template != nil {
		return KindTemplate
	}
	return KindResource
}

// hears reports whether an update of a URI may be told. A URI that nobody
// serves is no secret.
func (v view) hears(uri string) bool {
	if v.engine == nil {
		return true
	}
	e := v.engine.catalog.Load().findResource([]byte(uri))
	return e == nil || v.sees(e.resourceKind(), e.name)
}

// maxChanges is how many changes of one list are remembered for the sake of a
// filter. Where more happen within one interval, everybody is told.
const maxChanges = 1024

// listChange is a change of a list: of one name, or of what cannot be named.
type listChange struct {
	count uint32 // how many changes of the list there were, with this one
	kind  Kind
	name  string
	all   bool // it concerns everybody
}

// later compares two counts, which may wrap around.
func later(a, b uint32) bool { return int32(a-b) > 0 }

// note remembers a change. a.mu is held.
func (a *announcer) note(list listKind, c listChange) {
	log := append(a.log[list], c)
	if len(log) > maxChanges {
		log = log[len(log)-maxChanges:]
	}
	a.log[list] = log
}

// since gives the changes of a list after a count, and the count now. a.mu is
// held. What it gives is not written to any more.
func (a *announcer) since(list listKind, count uint32) (changes []listChange, now uint32) {
	now = a.changes[list].Load()
	if !later(now, count) {
		return nil, now
	}
	log := a.log[list]
	if len(log) == 0 || later(log[0].count, count+1) {
		return []listChange{{count: now, all: true}}, now
	}
	for !later(log[0].count, count) {
		log = log[1:]
	}
	return log[:len(log):len(log)], now
}

// catchUp is since for whoever keeps the count of what was told.
func (a *announcer) catchUp(list listKind, told *uint32) (changes []listChange, from uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	from = *told
	changes, *told = a.since(list, from)
	return changes, from
}

// concern reports whether any of the changes after a count is of something
// that the view shows. The filter judges by name, so that it makes no
// difference whether the thing came or went.
func (v view) concern(changes []listChange, after uint32) bool {
	for _, c := range changes {
		if later(c.count, after) && (c.all || v.sees(c.kind, c.name)) {
			return true
		}
	}
	return false
}

// broadcastVisible is broadcast where there is a filter: a session is told only
// of what it sees. Sessions of one principal and one age are judged once.
func (e *Engine) broadcastVisible(list listKind) {
	changes, from := e.announcer.catchUp(list, &e.announcer.told[list])
	type group struct {
		principal string
		after     uint32
	}
	judged := make(map[group]bool)
	e.EachSession(func(s *Session) {
		n := s.negotiated.Load()
		if n == nil || n.declared&listCapability[list] == 0 {
			return
		}
		who := group{n.principal, from}
		if later(n.seen[list], from) {
			who.after = n.seen[list]
		}
		concerned, known := judged[who]
		if !known {
			concerned = s.view().concern(changes, who.after)
			judged[who] = concerned
		}
		if concerned {
			s.notify(changedFrames[list])
		}
	})
}

// audience is who holds a subscriptions/listen: what it sees, and of each list
// the count of changes that it was told of.
type audience struct {
	view view
	told [listKinds]uint32
}

// audience is made before the subscription begins, so that no change falls
// between the two.
func (c *Call) audience() audience {
	return audience{c.view(), c.engine.announcer.seen()}
}

// hears reports whether what happened to a topic may be told.
func (a *audience) hears(topic string) bool {
	if a.view.engine == nil {
		return true
	}
	for list, name := range listTopics {
		if topic == name {
			changes, from := a.view.engine.announcer.catchUp(listKind(list), &a.told[list])
			return a.view.concern(changes, from)
		}
	}
	uri, ok := strings.CutPrefix(topic, topicResource)
	return !ok || a.view.hears(uri)
}
