package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// principalKey is under which a test's context has who makes a request.
type principalKey struct{}

func as(who string) context.Context {
	return context.WithValue(context.Background(), principalKey{}, who)
}

func principal(ctx context.Context) string {
	who, _ := ctx.Value(principalKey{}).(string)
	return who
}

// caller is a client of either era.
type caller interface {
	result(method, params string) string
}

// connectAs opens a session whose initialize comes from somebody.
func connectAs(t *testing.T, e *engine.Engine, rev engine.Revision, who string) *peer {
	t.Helper()
	p := open(t, e)
	r := new(reply)
	p.receive(as(who), request("1", codec.MethodInitialize,
		`{"protocolVersion":"`+rev.String()+`","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`), r)
	if got := p.session.Revision(); got != rev {
		t.Fatalf("initialize as %s: got revision %v and %v, want %v", who, got, r.take(), rev)
	}
	p.notify(codec.NotifyInitialized, "{}")
	return p
}

// modernAs is a client of 2026-07-28 that is somebody.
func modernAs(t *testing.T, e *engine.Engine, who string) *modern {
	c := newModern(t, e)
	c.ctx = as(who)
	return c
}

// callerAs gives a client of a revision.
func callerAs(t *testing.T, e *engine.Engine, rev engine.Revision, who string) caller {
	if rev.IsModern() {
		return modernAs(t, e, who)
	}
	return connectAs(t, e, rev, who)
}

// bothEras are a revision of each era.
var bothEras = []engine.Revision{engine.Rev20251125, engine.Rev20260728}

// notFor hides from everybody but the boss what has "secret" in its name.
func notFor(who string, _ engine.Kind, name string) bool {
	return who == "boss" || !strings.Contains(name, "secret")
}

// guarded makes an engine with something open and something secret of each
// kind.
func guarded(t *testing.T, o engine.Options) *engine.Engine {
	t.Helper()
	o.Principal = principal
	if o.Visible == nil {
		o.Visible = notFor
	}
	e, _ := newEngine(t, &o)
	register(t, e, "open")
	register(t, e, "secret")
	return e
}

// register registers something of each kind.
func register(t *testing.T, e *engine.Engine, name string) {
	t.Helper()
	echo(t, e, name)
	complete := func(context.Context, *engine.Call, string, string, map[string]string) (engine.Completion, error) {
		return engine.Completion{Values: []string{name}}, nil
	}
	must(t, e.AddPrompt(engine.Prompt{
		Name: name, Arguments: []engine.PromptArgument{{Name: "a"}}, Complete: complete,
	}, func(context.Context, *engine.Call, map[string]string) (*engine.PromptResult, error) {
		return &engine.PromptResult{Messages: []engine.PromptMessage{{Role: "user", Content: engine.Text{Text: name}}}}, nil
	}))
	must(t, e.AddResource(engine.Resource{URI: "r:" + name, Name: "n", Cache: engine.Cache{Public: true}}, readsAs(name)))
	must(t, e.AddResourceTemplate(engine.ResourceTemplate{
		URITemplate: "t-" + name + ":{x}", Name: "n", Complete: complete, Cache: engine.Cache{Public: true},
	}, func(_ context.Context, _ *engine.Call, uri string, _ map[string]string) ([]engine.ResourceContents, error) {
		return []engine.ResourceContents{{Text: name}}, nil
	}))
}

func readsAs(text string) engine.ResourceHandler {
	return func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) {
		return []engine.ResourceContents{{Text: text}}, nil
	}
}

// records keep what an audit hook is told.
type records struct {
	mu   sync.Mutex
	list []engine.Record
}

func (r *records) add(record engine.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, record)
}

// take gives the records since the last time.
func (r *records) take() []engine.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.list = nil
	return list
}

// outcomes gives the records since the last time, each as method, name, outcome
// and code.
func (r *records) outcomes() []string {
	var list []string
	for _, record := range r.take() {
		list = append(list, strings.TrimSpace(fmt.Sprintln(record.Method, record.Name, record.Outcome, record.Code)))
	}
	return list
}

func checkList(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}
