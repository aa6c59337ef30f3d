package client

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/mcpengine/mcpengine/codec"
)

// ApplyDefaults fills in what is absent from the content of an elicitation form
// with the defaults of its schema (section Elicitation, form mode): strings,
// numbers, integers, booleans, and enumerations of one and of several choices.
// What content has stays byte for byte, and in front. A default that its own
// property does not allow is left out. schema and content are raw objects; a
// content of nil is empty. It is an error where schema is no flat schema as the
// protocol has it, or content no object.
func ApplyDefaults(schema, content []byte) ([]byte, error) {
	f, content, err := prepareForm(schema, content)
	if err != nil {
		return nil, err
	}
	return f.applyDefaults(content), nil
}

// CheckForm tells what is wrong with the content of an elicitation form, so that
// a user can be asked again; nil where it matches the schema. Both are raw
// objects. Besides the properties of the schema, content may hold strings,
// numbers, booleans and arrays of strings.
func CheckForm(schema, content []byte) error {
	f, content, err := prepareForm(schema, content)
	if err != nil {
		return err
	}
	return f.check(content)
}

func prepareForm(schema, content []byte) (*form, []byte, error) {
	schema, content = bytes.TrimSpace(schema), bytes.TrimSpace(content)
	if len(content) == 0 {
		content = []byte("{}")
	}
	if !codec.Valid(schema) || !codec.Valid(content) || !codec.IsObject(content) {
		return nil, nil, errors.New("client: the schema and the content of a form must be JSON objects")
	}
	f, err := parseForm(schema)
	if err != nil {
		return nil, nil, fmt.Errorf("client: the schema of a form: %w", err)
	}
	return f, content, nil
}

// form is a flat schema: what form mode of elicitation allows of JSON Schema.
type form struct {
	fields   []field
	byName   map[string]int // index in fields
	required []string
}

type fieldKind uint8

const (
	kindString fieldKind = iota
	kindNumber
	kindInteger
	kindBoolean
	kindSingle
	kindMulti
)

// field is one property of a form.
type field struct {
	name    string
	kind    fieldKind
	schema  []byte
	options set // of kindSingle and kindMulti
}

// parseForm reads a requestedSchema, which borrows from it.
func parseForm(schema []byte) (*form, error) {
	if codec.Text(schema, "type") != "object" {
		return nil, errors.New(`requestedSchema must be of type "object"`)
	}
	f := &form{byName: map[string]int{}}
	var fault error
	ok := codec.EachMember(codec.Member(schema, "properties"), func(name, value []byte) bool {
		p, err := parseField(string(name), value)
		if err != nil {
			fault = fmt.Errorf("requestedSchema.properties.%s: %w", excerpt(name), err)
			return false
		}
		if _, again := f.byName[p.name]; !again {
			f.byName[p.name] = len(f.fields)
			f.fields = append(f.fields, p)
		}
		return true
	})
	if fault != nil {
		return nil, fault
	}
	if !ok {
		return nil, errors.New("requestedSchema.properties must be an object")
	}
	if required := codec.Member(schema, "required"); required != nil {
		names, ok := texts(required)
		if !ok {
			return nil, errors.New("requestedSchema.required must be an array of strings")
		}
		f.required = names
	}
	return f, nil
}

func parseField(name string, schema []byte) (field, error) {
	p := field{name: name, schema: schema}
	var ok bool
	switch kind := codec.Text(schema, "type"); kind {
	case "string":
		enum, oneOf := codec.Member(schema, "enum"), codec.Member(schema, "oneOf")
		switch {
		case enum != nil:
			p.kind = kindSingle
			p.options, ok = choices(enum)
		case oneOf != nil:
			p.kind = kindSingle
			p.options, ok = titled(oneOf)
		default:
			ok = true
		}
	case "number":
		p.kind, ok = kindNumber, true
	case "integer":
		p.kind, ok = kindInteger, true
	case "boolean":
		p.kind, ok = kindBoolean, true
	case "array":
		p.kind = kindMulti
		if p.options, ok = choices(codec.Member(schema, "items", "enum")); !ok {
			p.options, ok = titled(codec.Member(schema, "items", "anyOf"))
		}
	default:
		return p, errors.New("not a string, number, integer, boolean or array of choices")
	}
	if !ok {
		return p, errors.New("the choices must be an array of strings, or of objects with a const")
	}
	return p, nil
}

// texts reads an array of strings.
func texts(array []byte) ([]string, bool) {
	var all []string
	ok := codec.EachElement(array, func(v []byte) bool {
		s, isText := codec.String(v)
		all = append(all, s)
		return isText
	})
	return all, ok
}

// set holds strings to choose from.
type set map[string]struct{}

func (s set) has(text string) bool {
	_, ok := s[text]
	return ok
}

// choices reads an array of strings to choose from.
func choices(array []byte) (set, bool) {
	all, ok := texts(array)
	s := set{}
	for _, text := range all {
		s[text] = struct{}{}
	}
	return s, ok
}

// titled reads the choices of an array of {"const":…,"title":…}.
func titled(array []byte) (set, bool) {
	s := set{}
	ok := codec.EachElement(array, func(v []byte) bool {
		text, isText := codec.String(codec.Member(v, "const"))
		s[text] = struct{}{}
		return isText
	})
	return s, ok
}

// applyDefaults fills absent members of an object in.
func (f *form) applyDefaults(content []byte) []byte {
	out := []byte{'{'}
	present := map[string]bool{}
	add := func(name string, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(codec.AppendString(out, name), ':')
		out = append(out, value...)
	}
	if !codec.EachMember(content, func(name, value []byte) bool {
		present[string(name)] = true
		add(string(name), value)
		return true
	}) {
		return content
	}
	for i := range f.fields {
		p := &f.fields[i]
		value := codec.Member(p.schema, "default")
		if value != nil && !present[p.name] && p.check(value) == nil {
			add(p.name, value)
		}
	}
	return append(out, '}')
}

// check holds an object to the form.
func (f *form) check(content []byte) error {
	present := map[string]bool{}
	var fault error
	ok := codec.EachMember(content, func(name, value []byte) bool {
		present[string(name)] = true
		if i, known := f.byName[string(name)]; known {
			fault = f.fields[i].check(value)
		} else {
			fault = checkOther(value)
		}
		if fault != nil {
			fault = fmt.Errorf("%s: %w", excerpt(name), fault)
		}
		return fault == nil
	})
	if fault != nil {
		return fault
	}
	if !ok {
		return errors.New("not an object")
	}
	for _, name := range f.required {
		if !present[name] {
			return fmt.Errorf("%s: required", excerpt(name))
		}
	}
	return nil
}
