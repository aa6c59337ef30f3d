package client

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// Cache keeps results that a server of the stateless revision (2026-07-28) allows
// to be kept: lists, what server/discover says, and resources (section Caching
// of the server utilities). A Client has one of its own; several Clients that
// are given the same one in Options.Cache share what the server calls public.
// What is private stays with the Client that asked. It may be used by several
// goroutines at once.
type Cache struct {
	limit int

	mu      sync.Mutex // guards the following
	entries map[string]*cacheEntry
	bytes   int
	changes uint64 // how often something was dropped because the server said so
}

type cacheEntry struct {
	key     cacheKey
	result  []byte
	expires time.Time
}

// cacheKey is what a result depends on, besides who asked.
type cacheKey struct{ target, method, params, uri string }

// NewCache makes a cache that holds up to maxBytes of results; zero stands for
// 16 MiB. A result larger than a quarter of that is not kept.
func NewCache(maxBytes int) *Cache {
	orDefault(&maxBytes, 16<<20)
	return &Cache{limit: maxBytes, entries: map[string]*cacheEntry{}}
}

// cacheKeyOf gives the key of a request without its target, and whether its
// result may be kept at all.
func cacheKeyOf(method string, params []byte) (cacheKey, bool) {
	switch method {
	case codec.MethodDiscover, codec.MethodToolsList, codec.MethodPromptsList, codec.MethodResourcesList,
		codec.MethodResourceTemplatesList, codec.MethodResourcesRead:
	default:
		return cacheKey{}, false
	}
	for _, member := range []string{"inputResponses", "requestState"} {
		if codec.Member(params, member) != nil {
			return cacheKey{}, false
		}
	}
	var p []byte
	codec.EachMember(params, func(name, value []byte) bool {
		if string(name) != "_meta" {
			p = appendMember(p, name, value)
		}
		return true
	})
	return cacheKey{method: method, params: string(p), uri: codec.Text(params, "uri")}, true
}

// cacheView is a Cache as one Client sees it. Without a Cache it keeps nothing.
type cacheView struct {
	cache         *Cache
	owner, target string
}

// owners numbers the views, so that none sees what is private to another.
var owners atomic.Uint64

func newCacheView(o *Options, target string) *cacheView {
	v := &cacheView{cache: o.Cache, owner: strconv.FormatUint(owners.Add(1), 10), target: target}
	if v.cache == nil && !o.NoCache {
		v.cache = NewCache(0)
	}
	if o.NoCache {
		v.cache = nil
	}
	if target == "" { // a pipe leads to nobody but its own server
		v.target = "pipe " + v.owner
	}
	return v
}

// name gives the map key for an owner, or for everybody.
func (v *cacheView) name(owner string, key cacheKey) string {
	return strings.Join([]string{owner, v.target, key.method, key.params}, "\x00")
}

// get gives a copy of a result that is still fresh, or nil.
func (v *cacheView) get(key cacheKey) []byte {
	if v.cache == nil {
		return nil
	}
	c := v.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, owner := range []string{v.owner, ""} {
		name := v.name(owner, key)
		e := c.entries[name]
		switch {
		case e == nil:
		case time.Now().Before(e.expires):
			return bytes.Clone(e.result)
		default:
			c.remove(name, e)
		}
	}
	return nil
}

// stamp is taken before a request, for put to see whether the server said in the
// meantime that something has changed.
func (v *cacheView) stamp() uint64 {
	if v.cache == nil {
		return 0
	}
	v.cache.mu.Lock()
	defer v.cache.mu.Unlock()
	return v.cache.changes
}

// put keeps a result for as long as it allows.
func (v *cacheView) put(key cacheKey, result []byte, stamp uint64) {
	ttl, _ := milliseconds(result, "ttlMs")
	if v.cache == nil || ttl == 0 || len(result)+len(key.params) > v.cache.limit/4 {
		return
	}
	owner := v.owner
	if codec.Text(result, "cacheScope") == "public" {
		owner = ""
	}
	name := v.name(owner, key)
	key.target = v.target
	c := v.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes != stamp {
		return
	}
	if old := c.entries[name]; old != nil {
		c.remove(name, old)
	}
	e := &cacheEntry{key: key, result: bytes.Clone(result), expires: time.Now().Add(ttl)}
	c.makeRoom(e.size())
	c.entries[name] = e
	c.bytes += e.size()
}

func (e *cacheEntry) size() int { return len(e.result) + len(e.key.params) }

// remove takes an entry out. The caller holds mu.
func (c *Cache) remove(name string, e *cacheEntry) {
	delete(c.entries, name)
	c.bytes -= e.size()
}

// makeRoom takes out what is stale, and then others, until size bytes fit. The
// caller holds mu.
func (c *Cache) makeRoom(size int) {
	if c.bytes+size <= c.limit {
		return
	}
	now := time.Now()
	for name, e := range c.entries {
		if !now.Before(e.expires) {
			c.remove(name, e)
		}
	}
	for name, e := range c.entries {
		if c.bytes+size <= c.limit {
			return
		}
		c.remove(name, e)
	}
}

// drop forgets the results of methods, for all who share them.
func (v *cacheView) drop(methods ...string) {
	v.dropWhere(func(key *cacheKey) bool {
		for _, m := range methods {
			if key.method == m {
				return true
			}
		}
		return false
	})
}

// dropResource forgets a resource that has changed, and those that it is a part
// of as far as their URIs tell.
func (v *cacheView) dropResource(uri string) {
	v.dropWhere(func(key *cacheKey) bool {
		return key.method == codec.MethodResourcesRead && strings.HasPrefix(uri, key.uri)
	})
}

func (v *cacheView) dropWhere(gone func(*cacheKey) bool) {
	if v.cache == nil {
		return
	}
	c := v.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	for name, e := range c.entries {
		if e.key.target == v.target && gone(&e.key) {
			c.remove(name, e)
		}
	}
}

// changed forgets what a notification says is no longer right.
func (v *cacheView) changed(m *codec.Message) {
	switch string(m.Method) {
	case codec.NotifyToolsChanged:
		v.drop(codec.MethodToolsList)
	case codec.NotifyPromptsChanged:
		v.drop(codec.MethodPromptsList)
	case codec.NotifyResourcesChanged:
		v.drop(codec.MethodResourcesList, codec.MethodResourceTemplatesList)
	case codec.NotifyResourceUpdated:
		v.dropResource(string(m.URI))
	}
}
