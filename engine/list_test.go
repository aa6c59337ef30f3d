package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// lists are the four lists, each with how to add to and remove from it.
var lists = []struct {
	method, member, name string
	add                  func(e *engine.Engine, name string) error
	remove               func(e *engine.Engine, name string) bool
}{
	{codec.MethodToolsList, "tools", "name",
		func(e *engine.Engine, name string) error { return e.AddRawTool(engine.Tool{Name: name}, nil) },
		func(e *engine.Engine, name string) bool { return e.RemoveTool(name) }},
	{codec.MethodResourcesList, "resources", "uri",
		func(e *engine.Engine, name string) error {
			return e.AddResource(engine.Resource{URI: name, Name: "n"}, nil)
		},
		func(e *engine.Engine, name string) bool { return e.RemoveResource(name) }},
	{codec.MethodResourceTemplatesList, "resourceTemplates", "uriTemplate",
		func(e *engine.Engine, name string) error {
			return e.AddResourceTemplate(engine.ResourceTemplate{URITemplate: name, Name: "n"}, nil)
		}, nil},
	{codec.MethodPromptsList, "prompts", "name",
		func(e *engine.Engine, name string) error { return e.AddPrompt(engine.Prompt{Name: name}, nil) },
		func(e *engine.Engine, name string) bool { return e.RemovePrompt(name) }},
}

// page gives the names on a page and the cursor of the next.
func page(t *testing.T, result, member, name string) (names, cursor string) {
	t.Helper()
	var list []string
	if !codec.EachElement(codec.Member([]byte(result), member), func(item []byte) bool {
		list = append(list, codec.Text(item, name))
		return true
	}) {
		t.Fatalf("no %s in %s", member, result)
	}
	next := codec.Member([]byte(result), "nextCursor")
	if next == nil {
		return strings.Join(list, " "), ""
	}
	return strings.Join(list, " "), `{"cursor":` + string(next) + `}`
}

// TestPages walks each list while it changes between the pages.
func TestPages(t *testing.T) {
	for _, l := range lists {
		t.Run(l.member, func(t *testing.T) {
			e, _ := newEngine(t, &engine.Options{PageSize: 2})
			for i := range 5 {
				must(t, l.add(e, fmt.Sprint("a", i)))
			}
			p := connect(t, e, engine.Rev20251125)
			get := func(params, want string) string {
				t.Helper()
				names, next := page(t, p.result(l.method, params), l.member, l.name)
				check(t, l.method+" "+params, names, want)
				return next
			}
			second := get("", "a0 a1")
			if again := get("{}", "a0 a1"); again != second {
				t.Errorf("cursor of the same page: got %s, then %s", second, again)
			}
			third := get(second, "a2 a3")
			if end := get(third, "a4"); end != "" {
				t.Errorf("cursor of the last page: got %s, want none", end)
			}
			must(t, l.add(e, "a5"))
			must(t, l.add(e, "a1")) // replaced in its place
			get(third, "a4 a5")
			get(second, "a2 a3")
			if l.remove == nil {
				return
			}
			if !l.remove(e, "a1") || l.remove(e, "a1") {
				t.Error("remove: want true once")
			}
			l.remove(e, "a2")
			next := get(second, "a3 a4") // its entry is gone, its place is not
			get(next, "a5")
			for _, name := range []string{"a3", "a4", "a5"} {
				l.remove(e, name)
			}
			if end := get(next, ""); end != "" {
				t.Errorf("cursor of an empty page: got %s, want none", end)
			}
			get("", "a0")
			must(t, l.add(e, "a1"))
			must(t, l.add(e, "a2"))
			get("", "a0 a1")
		})
	}
}

func TestBogusCursor(t *testing.T) {
	e, _ := newEngine(t, &engine.Options{PageSize: 1})
	for _, l := range lists {
		must(t, l.add(e, "a"))
		must(t, l.add(e, "b"))
	}
	p := connect(t, e, engine.Rev20251125)
	_, foreign := page(t, p.result(codec.MethodPromptsList, ""), "prompts", "name")
	for _, l := range lists {
		cursors := []string{`{"cursor":""}`, `{"cursor":"1"}`, `{"cursor":"!!"}`, `{"cursor":7}`, `{"cursor":null}`,
			`{"cursor":"AAAAAAAAAAAAAAAA"}`, `{"cursor":{}}`}
		if l.member != "prompts" {
			cursors = append(cursors, foreign)
		}
		for _, cursor := range cursors {
			check(t, l.method+" "+cursor, p.result(l.method, cursor),
				"-32602 Invalid params: this cursor was not given out here")
		}
	}
}

// TestEmptyLists asks for lists of a capability whose entries are gone.
func TestEmptyLists(t *testing.T) {
	e, _ := newEngine(t, nil)
	for _, l := range lists {
		if l.remove != nil {
			must(t, l.add(e, "a"))
		}
	}
	p := connect(t, e, engine.Rev20250618)
	for _, l := range lists {
		if l.remove != nil {
			l.remove(e, "a")
		}
		check(t, l.method, p.result(l.method, ""), `{"`+l.member+`":[]}`)
	}
}
