package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Error is what is wrong with a scenario, and where.
type Error struct {
	File         string
	Line, Column int // counted from 1
	Text         string
}

// Error gives file, line, column and text, as compilers do.
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Text)
}

// reader walks the tree of a file.
type reader struct {
	file    string
	anchors map[string]ast.Node
	depth   int // of the JSON value that is being written
}

// wrong makes the error of a node.
func (r *reader) wrong(n ast.Node, format string, args ...any) error {
	return r.wrongAt(tokenOf(n), format, args...)
}

func (r *reader) wrongAt(t *token.Token, format string, args ...any) error {
	e := &Error{File: r.file, Line: 1, Column: 1, Text: fmt.Sprintf(format, args...)}
	if t != nil && t.Position != nil {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
	return e
}

// tokenOf gives the token at which a node begins.
func tokenOf(n ast.Node) *token.Token {
	switch n := n.(type) {
	case nil:
		return nil
	case *ast.MappingNode:
		if len(n.Values) > 0 {
			return n.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		return n.Key.GetToken()
	}
	return n.GetToken()
}

// value looks through anchors, aliases and tags. An alias to what is not there is an error.
func (r *reader) value(n ast.Node) (ast.Node, error) {
	for range 100 { // more aliases of aliases than anybody writes
		switch v := n.(type) {
		case *ast.AnchorNode:
			n = v.Value
		case *ast.TagNode:
			n = v.Value
		case *ast.AliasNode:
			name := v.Value.GetToken().Value
			target, ok := r.anchors[name]
			if !ok {
				return nil, r.wrong(v, "there is no anchor &%s above", name)
			}
			n = target
		default:
			return n, nil
		}
	}
	return nil, r.wrong(n, "the aliases lead in a circle")
}

// gather notes the anchors of a tree.
func (r *reader) gather(n ast.Node) {
	ast.Walk(visitor(func(n ast.Node) {
		if a, ok := n.(*ast.AnchorNode); ok {
			r.anchors[a.Name.GetToken().Value] = a.Value
		}
	}), n)
}

type visitor func(ast.Node)

// Visit is called by ast.Walk.
func (v visitor) Visit(n ast.Node) ast.Visitor {
	v(n)
	return v
}

// fields says what reads the value of each key of an object.
type fields map[string]func(ast.Node) error

// object reads an object. what names it in messages. A key without a value is as good as none.
func (r *reader) object(n ast.Node, what string, known fields) error {
	pairs, err := r.pairs(n, what)
	if err != nil {
		return err
	}
	for _, pair := range pairs {
		key := pair.Key.GetToken().Value
		read, ok := known[key]
		if !ok {
			return r.wrong(pair.Key, "%s has no key %q%s", what, key, choices(key, slices.Sorted(maps.Keys(known))))
		}
		v, err := r.value(pair.Value)
		if err != nil {
			return err
		}
		if isNull(v) {
			continue
		}
		if err := read(v); err != nil {
			return err
		}
	}
	return nil
}

// pairs gives the pairs of an object.
func (r *reader) pairs(n ast.Node, what string) ([]*ast.MappingValueNode, error) {
	v, err := r.value(n)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case *ast.MappingNode:
		for _, pair := range v.Values {
			if pair.Key.IsMergeKey() {
				return nil, r.wrong(pair.Key,
					"merge keys (<<) are not read: write the keys out, or use an alias for the whole value")
			}
		}
		return v.Values, nil
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{v}, nil
	}
	return nil, r.wrong(n, "%s has to be an object of keys and values, not %s", what, kindOf(v))
}

// list reads a list, element by element.
func (r *reader) list(n ast.Node, what string, each func(i int, n ast.Node) error) error {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		return r.wrong(n, "%s has to be a list, each entry after a dash, not %s", what, kindOf(n))
	}
	for i, e := range s.Values {
		v, err := r.value(e)
		if err == nil {
			err = each(i, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// text gives a scalar as it is written.
func (r *reader) text(n ast.Node, what string) (string, error) {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value, nil
	case *ast.LiteralNode:
		return v.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, nil
	}
	return "", r.wrong(n, "%s has to be a text, not %s", what, kindOf(n))
}

// parsed reads a text with a function whose errors tell what was expected.
func parsed[T any](r *reader, into *T, what string, parse func(string) (T, error)) func(ast.Node) error {
	return func(n ast.Node) error {
		s, err := r.text(n, what)
		if err != nil {
			return err
		}
		v, err := parse(s)
		if err != nil {
			return r.wrong(n, "%s: %v", what, err)
		}
		*into = v
		return nil
	}
}

// count reads a whole number of at least 1.
func count[T int | int64 | uint64](r *reader, into *T, what string) func(ast.Node) error {
	return parsed(r, into, what, func(s string) (T, error) {
		n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
		if err != nil || n < 1 || int64(T(n)) != n {
			return 0, fmt.Errorf("%q is not a whole number of at least 1", s)
		}
		return T(n), nil
	})
}

// duration reads a Go duration of more than zero.
func duration(r *reader, into *time.Duration, what string) func(ast.Node) error {
	return parsed(r, into, what, func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			return 0, fmt.Errorf("%q is not a duration: write for example 500ms, 30s or 1m30s", s)
		}
		return d, nil
	})
}

// oneOf reads one of several words.
func oneOf[T ~string](r *reader, into *T, what string, words ...string) func(ast.Node) error {
	return parsed(r, into, what, func(s string) (T, error) {
		if !slices.Contains(words, s) {
			return "", fmt.Errorf("%q is not known%s", s, choices(s, words))
		}
		return T(s), nil
	})
}

// truth reads true or false.
func truth(r *reader, into *bool, what string) func(ast.Node) error {
	return func(n ast.Node) error {
		b, ok := n.(*ast.BoolNode)
		if !ok {
			return r.wrong(n, "%s has to be true or false, not %s", what, kindOf(n))
		}
		*into = b.Value
		return nil
	}
}

func isNull(n ast.Node) bool {
	_, ok := n.(*ast.NullNode)
	return ok || n == nil
}

// kindOf names what a node is.
func kindOf(n ast.Node) string {
	switch n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "an object"
	case *ast.SequenceNode:
		return "a list"
	case *ast.BoolNode:
		return "true or false"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	}
	return "a text"
}

// choices says what a word should have been: the most similar one, or all of them.
func choices(word string, known []string) string {
	best, least := "", 1+len(word)/3
	for _, k := range known {
		if d := distance(strings.ToLower(word), k); d <= least {
			best, least = k, d-1
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf(": did you mean %q?", best)
	case len(known) == 0:
		return ""
	}
	return ": known are " + strings.Join(known, ", ")
}

// distance is how many letters have to be changed, added or left out to make one word of another.
func distance(a, b string) int {
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		diagonal := last[0]
		last[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = last[j+1]
			last[j+1] = min(cost, last[j]+1, last[j+1]+1)
		}
	}
	return last[len(b)]
}
