package engine

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/mcpengine/mcpengine/codec"
)

// plainValidator checks an object schema whose properties are of simple types
// and carry no other constraint, which most schemas of tools are. It allocates
// nothing where the arguments are right.
type plainValidator struct {
	properties []plainProperty
	required   uint64 // a bit for each property
	closed     bool   // other members are refused
}

type plainProperty struct {
	name string
	kind string // "string", "integer", "number", "boolean", "object", "array" or "" for any
}

// annotation members say nothing about what is valid.
var annotationMembers = map[string]bool{
	"title": true, "description": true, "default": true, "examples": true, "$schema": true, "$comment": true,
	"deprecated": true, "readOnly": true, "writeOnly": true, "x-mcp-header": true,
}

// plainSchema compiles a schema, unless it holds anything that a plainValidator
// does not know.
func plainSchema(raw []byte) (v *plainValidator, ok bool) {
	v = &plainValidator{}
	ok = true
	typed := false
	var required [][]byte
	walked := codec.EachMember(raw, func(name, value []byte) bool {
		switch string(name) {
		case "type":
			typed = string(value) == `"object"`
		case "properties":
			ok = ok && codec.EachMember(value, func(name, value []byte) bool {
				return v.addProperty(string(name), value)
			})
		case "required":
			ok = ok && codec.EachElement(value, func(value []byte) bool {
				required = append(required, value)
				return true
			})
		case "additionalProperties":
			v.closed = string(value) == "false"
			ok = ok && (v.closed || string(value) == "true" || string(value) == "{}")
		default:
			ok = ok && annotationMembers[string(name)]
		}
		return ok
	})
	for _, value := range required {
		name, _ := codec.String(value)
		i := v.find([]byte(name))
		if i < 0 {
			return nil, false
		}
		v.required |= 1 << i
	}
	return v, ok && typed && walked && len(v.properties) <= 64
}

// addProperty notes a property, unless its schema is more than a type.
func (v *plainValidator) addProperty(name string, schema []byte) bool {
	p := plainProperty{name: name}
	plain := true
	walked := codec.EachMember(schema, func(name, value []byte) bool {
		switch {
		case string(name) == "type":
			p.kind, plain = codec.String(value)
		case !annotationMembers[string(name)]:
			plain = false
		}
		return plain
	})
	switch p.kind {
	case "", "string", "integer", "number", "boolean", "object", "array":
	default:
		plain = false
	}
	v.properties = append(v.properties, p)
	return plain && walked
}

func (v *plainValidator) find(name []byte) int {
	for i := range v.properties {
		if v.properties[i].name == string(name) {
			return i
		}
	}
	return -1
}

func (v *plainValidator) validate(args []byte) error {
	var seen uint64
	var fault error
	walked := codec.EachMember(args, func(name, value []byte) bool {
		i := v.find(name)
		switch {
		case i < 0 && v.closed:
			fault = fmt.Errorf("/%s: unexpected member", name)
		case i < 0:
		case seen&(1<<i) != 0:
			fault = fmt.Errorf("/%s: occurs twice", name)
		case !isKind(value, v.properties[i].kind):
			fault = fmt.Errorf("/%s: must be of type %s", name, v.properties[i].kind)
		default:
			seen |= 1 << i
		}
		return fault == nil
	})
	if fault == nil && !walked {
		return errors.New("/: must be of type object")
	}
	if missing := v.required &^ seen; fault == nil && missing != 0 {
		return fmt.Errorf("/%s: required member is missing", v.properties[bits.TrailingZeros64(missing)].name)
	}
	return fault
}

// isKind reports whether a raw value is of a JSON Schema type.
func isKind(value []byte, kind string) bool {
	switch c := value[0]; kind {
	case "string":
		return c == '"'
	case "boolean":
		return c == 't' || c == 'f'
	case "object":
		return c == '{'
	case "array":
		return c == '['
	case "number":
		return c == '-' || '0' <= c && c <= '9'
	case "integer":
		return (c == '-' || '0' <= c && c <= '9') && codec.IsIntegral(value)
	}
	return true
}
