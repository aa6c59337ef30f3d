package scenario

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
	"github.com/mcpengine/mcpengine/codec"
)

// json writes a node as JSON. check sees every string that is a value.
func (r *reader) json(dst []byte, n ast.Node, check func(ast.Node, string) error) ([]byte, error) {
	r.depth++
	defer func() { r.depth-- }()
	if r.depth > codec.MaxDepth || len(dst) > maxFile { // aliases can make much of little, or lead in a circle
		return nil, r.wrong(n, "the value is nested too deeply, or too large with its aliases")
	}
	n, err := r.value(n)
	if err != nil {
		return nil, err
	}
	switch v := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return r.jsonObject(dst, n, check)
	case *ast.SequenceNode:
		dst = append(dst, '[')
		for i, e := range v.Values {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = r.json(dst, e, check); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case *ast.NullNode:
		return append(dst, "null"...), nil
	case *ast.BoolNode:
		return fmt.Append(dst, v.Value), nil
	case *ast.IntegerNode, *ast.FloatNode:
		return r.jsonNumber(dst, n)
	}
	s, err := r.text(n, "a value")
	if isPlain(n) && strings.IndexAny(s, "-0123456789") == 0 && codec.Valid([]byte(s)) {
		return append(dst, s...), nil // 1e4, which the library takes for a text
	}
	if err != nil {
		return nil, r.wrong(n, "JSON has no such value")
	}
	return codec.AppendString(dst, s), check(n, s)
}

// isPlain reports whether a text is written without quotes.
func isPlain(n ast.Node) bool {
	_, ok := n.(*ast.StringNode)
	return ok && n.GetToken().Type == token.StringType
}

func (r *reader) jsonObject(dst []byte, n ast.Node, check func(ast.Node, string) error) ([]byte, error) {
	pairs, err := r.pairs(n, "an object")
	if err != nil {
		return nil, err
	}
	dst = append(dst, '{')
	for i, pair := range pairs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(codec.AppendString(dst, pair.Key.GetToken().Value), ':')
		if dst, err = r.json(dst, pair.Value, check); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// jsonNumber keeps a number as it is written, where JSON writes it so too.
func (r *reader) jsonNumber(dst []byte, n ast.Node) ([]byte, error) {
	if text := n.GetToken().Value; codec.Valid([]byte(text)) {
		return append(dst, text...), nil
	}
	var value any
	switch v := n.(type) {
	case *ast.IntegerNode:
		value = v.Value
	case *ast.FloatNode:
		value = v.Value
	}
	b, err := json.Marshal(value)
	if err != nil {
		return nil, r.wrong(n, "JSON has no such number")
	}
	return append(dst, b...), nil
}
