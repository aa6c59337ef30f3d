package engine

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"maps"
	"sort"
	"sync"

	"github.com/mcpengine/mcpengine/codec"
)

// entry is one registered thing. It never changes; a change makes another.
type entry struct {
	seq     uint64 // position in its list: that of the registration
	name    string // or uri, or uri template
	bare    Handler
	wrapped Handler // bare within the middleware
	append  func(dst []byte, rev Revision) []byte

	template *templateMatcher // of a resource template
	complete CompleteFunc     // of a resource template

	taskSupport string        // of a tool: "", "optional" or "required"
	headers     []paramHeader // of a tool
	prompt      *Prompt       // of a prompt
}

// list is a snapshot of one kind of entries, in the order of registration.
type list struct {
	entries []*entry
	byName  map[string]*entry
	nextSeq uint64
	pages   [newest + 1]*pages // by revision
}

// pages are the answers to a list request in one revision, rendered when first
// asked for.
type pages struct {
	once  sync.Once
	first []byte // result object of the first page
	entry [][]byte
	tail  []byte // the members after the list
}

// catalog is an immutable snapshot of all that is registered.
type catalog struct {
	tools, resources, templates, prompts list
	middleware                           []Middleware
	interceptors                         *interceptors
	methods                              map[string]Handler         // the embedder's own
	extensions                           map[string]json.RawMessage // settings by name
}

// clone gives a copy to change. Rendered pages are kept only where the entries
// stay the same, which put and remove see to.
func (c *catalog) clone() *catalog {
	d := *c
	return &d
}

// put adds an entry, or replaces the one of its name in its place.
func (l *list) put(e *entry) {
	l.byName = maps.Clone(l.byName)
	if l.byName == nil {
		l.byName = make(map[string]*entry)
	}
	entries := append([]*entry(nil), l.entries...)
	if old := l.byName[e.name]; old != nil {
		e.seq = old.seq
		entries[l.index(old.seq)] = e
	} else {
		l.nextSeq++
		e.seq = l.nextSeq
		entries = append(entries, e)
	}
	l.byName[e.name] = e
	l.entries = entries
	l.forget()
}

// remove takes an entry out.
func (l *list) remove(name string) bool {
	old := l.byName[name]
	if old == nil {
		return false
	}
	l.byName = maps.Clone(l.byName)
	delete(l.byName, name)
	i := l.index(old.seq)
	l.entries = append(append([]*entry(nil), l.entries[:i]...), l.entries[i+1:]...)
	l.forget()
	return true
}

// forget drops the rendered pages.
func (l *list) forget() {
	for r := range l.pages {
		l.pages[r] = new(pages)
	}
}

// index gives the position of the first entry whose seq is at least seq.
func (l *list) index(seq uint64) int {
	return sort.Search(len(l.entries), func(i int) bool { return l.entries[i].seq >= seq })
}

// rewrap puts the entries of a list into the middleware anew.
func (c *catalog) rewrap(l *list) {
	entries := make([]*entry, len(l.entries))
	l.byName = make(map[string]*entry, len(entries))
	for i, old := range l.entries {
		e := *old
		e.wrapped = c.around(e.bare)
		entries[i] = &e
		l.byName[e.name] = &e
	}
	l.entries = entries
	l.forget()
}

// wrap puts a handler into middleware, the first of which is the outermost.
func wrap(h Handler, m []Middleware) Handler {
	for i := len(m) - 1; i >= 0; i-- {
		h = m[i](h)
	}
	return h
}

// listRequest is what a list request asks for.
type listRequest struct {
	view      view
	kind      Kind
	rev       Revision
	member    string // of the result, that holds the list
	size      int    // of a page
	cursor    []byte
	hasCursor bool
	cache     Cache
}

// page appends the result of a list request: the entries after the cursor.
func (l *list) page(dst []byte, r *listRequest) ([]byte, error) {
	p := l.pages[r.rev]
	if p == nil {
		p = &pages{}
	}
	p.once.Do(func() {
		for _, e := range l.entries {
			p.entry = append(p.entry, e.append(nil, r.rev))
		}
		if r.rev.IsModern() {
			p.tail = r.cache.appendTo(nil)
		}
		if r.view.engine == nil {
			p.first = l.render(nil, p, r, 0)
		}
	})
	switch {
	case r.hasCursor:
		after, ok := parseCursor(r.member, r.cursor)
		if !ok {
			return nil, errCursor
		}
		return l.render(dst, p, r, l.index(after+1)), nil
	case r.view.engine != nil:
		return l.render(dst, p, r, 0), nil
	}
	return append(dst, p.first...), nil
}

var errCursor = codec.NewError(codec.CodeInvalidParams, "Invalid params: this cursor was not given out here")

// render appends a page that begins at an entry's index, of what the caller
// sees.
func (l *list) render(dst []byte, p *pages, r *listRequest, from int) []byte {
	dst = append(dst, `{"`...)
	dst = append(dst, r.member...)
	dst = append(dst, `":[`...)
	n, last := 0, uint64(0)
	for i := from; i < len(l.entries); i++ {
		if !r.view.sees(r.kind, l.entries[i].name) {
			continue
		}
		if n == r.size {
			n++
			break
		}
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, p.entry[i]...)
		n, last = n+1, l.entries[i].seq
	}
	dst = append(dst, ']')
	if n > r.size {
		dst = append(dst, `,"nextCursor":"`...)
		dst = appendCursor(dst, r.member, last)
		dst = append(dst, '"')
	}
	dst = append(dst, p.tail...)
	return append(dst, '}')
}

// A cursor names the last entry of a page, so that it survives changes of the
// list: the next page begins after it, whatever came or went. It carries a
// checksum, so that a string that is no cursor of this list is told apart.

func cursorSum(member string, seq []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE([]byte(member)), crc32.IEEETable, seq)
}

func appendCursor(dst []byte, member string, seq uint64) []byte {
	var raw [12]byte
	binary.BigEndian.PutUint64(raw[:8], seq)
	binary.BigEndian.PutUint32(raw[8:], cursorSum(member, raw[:8]))
	return base64.RawURLEncoding.AppendEncode(dst, raw[:])
}

func parseCursor(member string, cursor []byte) (seq uint64, ok bool) {
	var raw [12]byte
	if base64.RawURLEncoding.DecodedLen(len(cursor)) != len(raw) {
		return 0, false
	}
	if n, err := base64.RawURLEncoding.Decode(raw[:], cursor); err != nil || n != len(raw) {
		return 0, false
	}
	if binary.BigEndian.Uint32(raw[8:]) != cursorSum(member, raw[:8]) {
		return 0, false
	}
	return binary.BigEndian.Uint64(raw[:8]), true
}

// around puts a handler into the middleware, and that into the hooks.
func (c *catalog) around(h Handler) Handler { return c.interceptors.around(wrap(h, c.middleware)) }

// put adds an entry to one of the catalog's lists, within the middleware.
func (c *catalog) put(l *list, e *entry) bool {
	e.wrapped = c.around(e.bare)
	l.put(e)
	return true
}
