package engine

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mcpengine/mcpengine/codec"
)

// projectForm checks the schema of a form and brings it into the shape that a
// revision knows. 2025-06-18 lacks defaults (but for booleans), enumerations
// with oneOf, and lists; what can be said otherwise is, and a list, which
// cannot, is an error before anything is sent.
func projectForm(schema json.RawMessage, rev Revision) (json.RawMessage, error) {
	if !codec.Valid(schema) || codec.Text(schema, "type") != "object" {
		return nil, fmt.Errorf(`engine: the schema of a form is an object with "type":"object"`)
	}
	properties := codec.Member(schema, "properties")
	if properties == nil {
		properties = emptyObject
	}
	var fault error
	out := []byte(`{"type":"object","properties":{`)
	start := len(out)
	walked := codec.EachMember(properties, func(name, field []byte) bool {
		out = appendComma(out, start)
		out = append(codec.AppendString(out, name), ':')
		out, fault = appendField(out, string(name), field, rev)
		return fault == nil
	})
	if fault != nil {
		return nil, fault
	}
	if !walked {
		return nil, fmt.Errorf("engine: the properties of a form are an object")
	}
	out = append(out, '}')
	if required := codec.Member(schema, "required"); required != nil {
		out = append(out, `,"required":`...)
		out = append(out, required...)
	}
	return append(out, '}'), nil
}

// appendField appends the schema of one field.
func appendField(dst []byte, name string, field []byte, rev Revision) ([]byte, error) {
	kind := codec.Text(field, "type")
	switch kind {
	case "string", "number", "integer", "boolean":
	case "array":
		if rev < Rev20251125 {
			return nil, fmt.Errorf("engine: the client's revision %v has no list fields, as %q is", rev, name)
		}
	default:
		return nil, fmt.Errorf("engine: field %q of a form is of type %q: forms are flat", name, kind)
	}
	if rev >= Rev20251125 {
		return append(dst, field...), nil
	}
	dst = append(dst, '{')
	start := len(dst)
	codec.EachMember(field, func(member, value []byte) bool {
		switch string(member) {
		case "default":
			if kind != "boolean" {
				return true
			}
		case "oneOf":
			dst = appendComma(dst, start)
			dst = appendEnum(dst, value)
			return true
		}
		dst = appendComma(dst, start)
		dst = append(codec.AppendString(dst, member), ':')
		dst = append(dst, value...)
		return true
	})
	return append(dst, '}'), nil
}

// appendEnum says an enumeration with titles as older revisions do.
func appendEnum(dst, oneOf []byte) []byte {
	var values, titles [][]byte
	codec.EachElement(oneOf, func(option []byte) bool {
		value, title := codec.Member(option, "const"), codec.Member(option, "title")
		if title == nil {
			title = value
		}
		values, titles = append(values, value), append(titles, title)
		return true
	})
	dst = append(dst, `"enum":[`...)
	dst = append(dst, bytes.Join(values, []byte(","))...)
	dst = append(dst, `],"enumNames":[`...)
	dst = append(dst, bytes.Join(titles, []byte(","))...)
	return append(dst, ']')
}
