package bench

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/mcpengine/mcpengine/codec"
)

// maxSchemaDepth ends the descent into a schema that refers to itself.
const maxSchemaDepth = 8

// argumentsFor makes the simplest arguments that an input schema admits: the required properties only, each with a value
// that its own schema names (const, default, enum, examples) or the plainest one of its type.
func argumentsFor(schema []byte) []byte {
	a := argMaker{root: schema}
	out := a.value(nil, schema, 0)
	if len(out) == 0 || out[0] != '{' {
		return []byte("{}")
	}
	return out
}

// argMaker follows references within one schema.
type argMaker struct{ root []byte }

// value appends a value for a schema.
func (a *argMaker) value(dst, schema []byte, depth int) []byte {
	schema = a.resolve(schema)
	if depth > maxSchemaDepth {
		return append(dst, "null"...)
	}
	if v := codec.Member(schema, "const"); v != nil {
		return append(dst, v...)
	}
	if v := codec.Member(schema, "default"); v != nil {
		return append(dst, v...)
	}
	for _, list := range []string{"enum", "examples"} {
		if v := firstElement(codec.Member(schema, list)); v != nil {
			return append(dst, v...)
		}
	}
	for _, choice := range []string{"anyOf", "oneOf", "allOf"} {
		if v := firstElement(codec.Member(schema, choice)); v != nil && codec.Member(schema, "properties") == nil {
			return a.value(dst, v, depth+1)
		}
	}
	return a.ofType(dst, schema, depth)
}

// ofType appends the plainest value of the schema's type.
func (a *argMaker) ofType(dst, schema []byte, depth int) []byte {
	switch typeOf(schema) {
	case "string":
		return codec.AppendString(dst, plainString(schema))
	case "integer", "number":
		return append(dst, plainNumber(schema)...)
	case "boolean":
		return append(dst, "false"...)
	case "null":
		return append(dst, "null"...)
	case "array":
		n, _ := codec.Int(schema, "minItems")
		dst = append(dst, '[')
		for i := range min(max(n, 0), 100) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = a.value(dst, codec.Member(schema, "items"), depth+1)
		}
		return append(dst, ']')
	}
	return a.object(dst, schema, depth)
}

// object appends the required properties.
func (a *argMaker) object(dst, schema []byte, depth int) []byte {
	properties := codec.Member(schema, "properties")
	dst = append(dst, '{')
	first := true
	codec.EachElement(codec.Member(schema, "required"), func(v []byte) bool {
		name, ok := codec.String(v)
		if !ok {
			return true
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(codec.AppendString(dst, name), ':')
		dst = a.value(dst, codec.Member(properties, name), depth+1)
		return true
	})
	return append(dst, '}')
}

// resolve follows "$ref" within the document.
func (a *argMaker) resolve(schema []byte) []byte {
	for range maxSchemaDepth {
		ref := codec.Text(schema, "$ref")
		path, ok := strings.CutPrefix(ref, "#/")
		if !ok {
			break
		}
		at := a.root
		for _, name := range strings.Split(path, "/") {
			at = codec.Member(at, strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
		}
		if at == nil {
			break
		}
		schema = at
	}
	return schema
}

// typeOf gives the type of a schema, the first that is not null where it names several. A property without one may be
// anything, and a string is the usual thing; with properties it is an object.
func typeOf(schema []byte) string {
	v := codec.Member(schema, "type")
	if s, ok := codec.String(v); ok {
		return s
	}
	var found string
	codec.EachElement(v, func(e []byte) bool {
		if s, ok := codec.String(e); ok && s != "null" {
			found = s
		}
		return found == ""
	})
	switch {
	case found != "":
		return found
	case codec.Member(schema, "properties") != nil:
		return "object"
	}
	return "string"
}

func firstElement(list []byte) (first []byte) {
	codec.EachElement(list, func(v []byte) bool {
		first = v
		return false
	})
	return first
}

// plainString gives "x", longer where the schema wants it, or an example of the format that it names.
func plainString(schema []byte) string {
	switch codec.Text(schema, "format") {
	case "date":
		return "2026-01-01"
	case "date-time":
		return "2026-01-01T00:00:00Z"
	case "email":
		return "x@example.com"
	case "uri", "url":
		return "https://example.com/"
	case "uuid":
		return "00000000-0000-4000-8000-000000000000"
	}
	n, _ := codec.Int(schema, "minLength")
	return strings.Repeat("x", int(min(max(n, 1), 4096)))
}

// plainNumber gives 1, or the nearest bound of the schema.
func plainNumber(schema []byte) []byte {
	if v := codec.Member(schema, "minimum"); v != nil {
		if f, ok := codec.Number(schema, "minimum"); ok && f > 1 {
			return v
		}
	}
	if f, ok := codec.Number(schema, "exclusiveMinimum"); ok && f >= 1 {
		return strconv.AppendFloat(nil, f+1, 'f', -1, 64)
	}
	if v := codec.Member(schema, "maximum"); v != nil {
		if f, ok := codec.Number(schema, "maximum"); ok && f < 1 {
			return bytes.Clone(v)
		}
	}
	return []byte("1")
}
