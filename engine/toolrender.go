package engine

import (
	"encoding/json"

	"github.com/mcpengine/mcpengine/codec"
)

// appendTo renders the definition for tools/list.
func (t *Tool) appendTo(dst []byte, rev Revision) []byte {
	dst = append(dst, `{"name":`...)
	dst = codec.AppendString(dst, t.Name)
	if rev >= Rev20250618 {
		dst = appendMember(dst, "title", t.Title)
	}
	dst = appendMember(dst, "description", t.Description)
	dst = append(dst, `,"inputSchema":`...)
	if t.InputSchema == nil { // a tool for a model, which nobody registered
		dst = append(dst, `{"type":"object"}`...)
	} else {
		dst = appendSchema(dst, t.InputSchema, rev)
	}
	if t.OutputSchema != nil && rev >= Rev20250618 && (rev.IsModern() || describesObject(t.OutputSchema)) {
		dst = append(dst, `,"outputSchema":`...)
		dst = appendSchema(dst, t.OutputSchema, rev)
	}
	if rev >= Rev20250326 {
		dst = t.annotationsFor(rev).appendTo(dst)
	}
	if rev >= Rev20251125 {
		dst = appendIcons(dst, t.Icons)
	}
	if rev == Rev20251125 && (t.TaskSupport == "optional" || t.TaskSupport == "required") {
		dst = append(dst, `,"execution":{"taskSupport":"`...)
		dst = append(append(dst, t.TaskSupport...), `"}`...)
	}
	return append(appendMeta(dst, rev, t.Meta), '}')
}

// annotationsFor gives the annotations, with the title folded in where the
// revision knows it only there.
func (t *Tool) annotationsFor(rev Revision) *ToolAnnotations {
	if rev >= Rev20250618 || t.Title == "" || t.Annotations != nil && t.Annotations.Title != "" {
		return t.Annotations
	}
	var a ToolAnnotations
	if t.Annotations != nil {
		a = *t.Annotations
	}
	a.Title = t.Title
	return &a
}

// appendSchema appends a schema. The legacy revisions take only objects as the
// schemas of properties, so that true and false are said in another way.
func appendSchema(dst []byte, schema json.RawMessage, rev Revision) []byte {
	if rev.IsModern() {
		return appendCompact(dst, schema)
	}
	plain := true
	codec.EachMember(codec.Member(schema, "properties"), func(_, v []byte) bool {
		plain = codec.IsObject(v)
		return plain
	})
	if plain {
		return appendCompact(dst, schema)
	}
	dst = append(dst, '{')
	start := len(dst)
	codec.EachMember(schema, func(name, value []byte) bool {
		dst = append(codec.AppendString(appendComma(dst, start), name), ':')
		if string(name) != "properties" {
			dst = appendCompact(dst, value)
			return true
		}
		dst = append(dst, '{')
		first := len(dst)
		codec.EachMember(value, func(name, schema []byte) bool {
			dst = append(codec.AppendString(appendComma(dst, first), name), ':')
			switch string(schema) {
			case "true":
				dst = append(dst, "{}"...)
			case "false":
				dst = append(dst, `{"not":{}}`...)
			default:
				dst = appendCompact(dst, schema)
			}
			return true
		})
		dst = append(dst, '}')
		return true
	})
	return append(dst, '}')
}

// appendCompact appends raw JSON as one line.
func appendCompact(dst, raw []byte) []byte {
	start := len(dst)
	return codec.CompactTail(append(dst, raw...), start)
}

func (a *ToolAnnotations) appendTo(dst []byte) []byte {
	if a == nil {
		return dst
	}
	dst = append(dst, `,"annotations":{`...)
	start := len(dst)
	if a.Title != "" {
		dst = append(dst, `"title":`...)
		dst = codec.AppendString(dst, a.Title)
	}
	for _, hint := range []struct {
		name  string
		value *bool
	}{
		{"readOnlyHint", a.ReadOnlyHint},
		{"destructiveHint", a.DestructiveHint},
		{"idempotentHint", a.IdempotentHint},
		{"openWorldHint", a.OpenWorldHint},
	} {
		if hint.value == nil {
			continue
		}
		dst = appendComma(dst, start)
		dst = append(dst, '"')
		dst = append(dst, hint.name...)
		dst = append(dst, '"', ':')
		if *hint.value {
			dst = append(dst, "true"...)
		} else {
			dst = append(dst, "false"...)
		}
	}
	return append(dst, '}')
}
