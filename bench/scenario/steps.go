package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/codec"
)

// actions are what a step can do, and the other keys that go with it.
var actions = map[string][]string{
	"call":        {"arguments", "cancel-after", "expect", "extract"},
	"list":        {"cursor", "cancel-after", "expect", "extract"},
	"read":        {"cancel-after", "expect", "extract"},
	"get":         {"arguments", "cancel-after", "expect", "extract"},
	"subscribe":   {},
	"unsubscribe": {},
	"ping":        {"cancel-after"},
	"wait":        {"uri", "timeout"},
	"think":       {},
}

// lists are what a list step can list.
var lists = map[string]string{
	"tools": codec.MethodToolsList, "resources": codec.MethodResourcesList, "prompts": codec.MethodPromptsList,
	"resource-templates": codec.MethodResourceTemplatesList,
}

// stepReader reads one step.
type stepReader struct {
	*reader
	variables map[string]bool // that may be used
	step      bench.Step
	wait      bench.Await
	action    string // the key that says what the step does
}

func (r *stepReader) read(n ast.Node) error {
	pairs, err := r.pairs(n, "a step")
	if err != nil {
		return err
	}
	for _, pair := range pairs {
		key := pair.Key.GetToken().Value
		if _, ok := actions[key]; !ok {
			continue
		}
		if r.action != "" {
			return r.wrong(pair.Key, "a step does one thing, and this one both %s and %s: begin another step with a dash",
				r.action, key)
		}
		r.action = key
	}
	for _, pair := range pairs {
		if err := r.fits(pair.Key); err != nil {
			return err
		}
	}
	err = r.object(n, "a step", fields{
		"call":         r.call,
		"list":         r.what,
		"read":         r.uriOf(codec.MethodResourcesRead),
		"get":          r.get,
		"subscribe":    r.uriOf(codec.MethodResourcesSubscribe),
		"unsubscribe":  r.uriOf(codec.MethodResourcesUnsubscribe),
		"ping":         r.ping,
		"wait":         parsed(r.reader, &r.wait.Method, "wait", notification),
		"think":        parsed(r.reader, &r.step.Think, "think", bench.ParseThink),
		"arguments":    r.arguments,
		"cursor":       r.template(&r.step.Cursor, "cursor"),
		"uri":          r.template(&r.wait.URI, "uri"),
		"timeout":      duration(r.reader, &r.wait.Timeout, "timeout"),
		"cancel-after": duration(r.reader, &r.step.CancelAfter, "cancel-after"),
		"expect":       r.expect,
		"extract":      r.extract,
	})
	switch {
	case err != nil:
		return err
	case r.action == "wait":
		r.step.Await = &r.wait
	}
	if r.step.Method == "" && r.step.Await == nil && r.action != "think" || r.action == "wait" && r.wait.Method == "" {
		return r.wrong(n, "the key %q has no value", r.action)
	}
	for _, e := range r.step.Extract {
		r.variables[e.Name] = true
	}
	return nil
}

// fits refuses a key that does not go with what the step does.
func (r *stepReader) fits(key ast.MapKeyNode) error {
	name := key.GetToken().Value
	known := slices.Sorted(maps.Keys(actions))
	if r.action == "" {
		for _, with := range actions {
			if slices.Contains(with, name) {
				return r.wrong(key, "the step does not say what it does: one of its keys has to be %s", strings.Join(known, ", "))
			}
		}
		return r.wrong(key, "a step has no key %q%s", name, choices(name, known))
	}
	with := append([]string{r.action}, actions[r.action]...)
	if !slices.Contains(with, name) {
		return r.wrong(key, "%q does not go with %q%s", name, r.action, choices(name, with[1:]))
	}
	return nil
}

// call names the tool. It is written out, so that it is known before the run which tools are called.
func (r *stepReader) call(n ast.Node) error {
	r.step.Method = codec.MethodToolsCall
	return parsed(r.reader, &r.step.Tool, "call", func(s string) (string, error) {
		if strings.Contains(s, "${") {
			return "",
				fmt.Errorf("the name of a tool holds no variable: it has to be known before the run which tools are called")
		}
		return notEmpty(s)
	})(n)
}

func (r *stepReader) what(n ast.Node) error {
	what := ""
	err := oneOf(r.reader, &what, "list", slices.Sorted(maps.Keys(lists))...)(n)
	r.step.Method = lists[what]
	return err
}

func (r *stepReader) get(n ast.Node) error {
	r.step.Method = codec.MethodPromptsGet
	return parsed(r.reader, &r.step.Prompt, "get", notEmpty)(n)
}

func (r *stepReader) uriOf(method string) func(ast.Node) error {
	return func(n ast.Node) error {
		r.step.Method = method
		return r.template(&r.step.URI, r.action)(n)
	}
}

// ping takes true, or an empty object.
func (r *stepReader) ping(n ast.Node) error {
	r.step.Method = codec.MethodPing
	yes := false
	if err := truth(r.reader, &yes, "ping")(n); err != nil || !yes {
		return r.wrong(n, "write ping: true")
	}
	return nil
}

var notificationForm = regexp.MustCompile(`^notifications/[A-Za-z_/]+$`)

func notification(s string) (string, error) {
	if !notificationForm.MatchString(s) {
		return "", fmt.Errorf("%q is not a notification: write for example notifications/resources/updated", s)
	}
	return s, nil
}

// template reads a text in which variables may occur.
func (r *stepReader) template(into *string, what string) func(ast.Node) error {
	return func(n ast.Node) error {
		s, err := r.text(n, what)
		if err != nil {
			return err
		}
		if s == "" {
			return r.wrong(n, "%s is empty", what)
		}
		*into = s
		return r.check(n, s)
	}
}

// check refuses a template that names a variable which is not set here.
func (r *stepReader) check(n ast.Node, s string) error {
	names, err := bench.TemplateNames(s)
	if err != nil {
		return r.wrong(n, "%v", err)
	}
	for _, name := range names {
		if !r.variables[name] {
			return r.wrong(n, "there is no variable %q at this step%s",
				name, choices(name, slices.Sorted(maps.Keys(r.variables))))
		}
	}
	return nil
}

func (r *stepReader) arguments(n ast.Node) (err error) {
	if _, err = r.pairs(n, "arguments"); err == nil {
		r.step.Arguments, err = r.json(nil, n, r.check)
	}
	return err
}

func (r *stepReader) expect(n ast.Node) error {
	return r.object(n, "expect", fields{
		"isError": func(n ast.Node) error {
			r.step.Expect.IsError = new(bool)
			return truth(r.reader, r.step.Expect.IsError, "isError")(n)
		},
		"contains": func(n ast.Node) error {
			add := func(_ int, n ast.Node) error {
				text := ""
				err := r.template(&text, "contains")(n)
				r.step.Expect.Contains = append(r.step.Expect.Contains, text)
				return err
			}
			if _, several := n.(*ast.SequenceNode); several {
				return r.list(n, "contains", add)
			}
			return add(0, n)
		},
	})
}

var variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// extract reads pairs of a variable and the path of its value.
func (r *stepReader) extract(n ast.Node) error {
	pairs, err := r.pairs(n, "extract")
	for _, pair := range pairs {
		name := pair.Key.GetToken().Value
		if !variableForm.MatchString(name) || name == "instance" {
			return r.wrong(pair.Key, "a variable cannot be called %q: write letters, digits, - and _", name)
		}
		var v ast.Node
		if v, err = r.value(pair.Value); err != nil {
			return err
		}
		e := bench.Extraction{Name: name}
		err = parsed(r.reader, &e.Path, "extract", func(s string) (string, error) {
			_, err := bench.ParsePath(s)
			return s, err
		})(v)
		if err != nil {
			return err
		}
		r.step.Extract = append(r.step.Extract, e)
	}
	return err
}
