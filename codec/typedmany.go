package codec

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
)

// The values that hold others: structs, maps, slices, arrays and any.

func (r *reader) structure(n *node, i, depth int, v reflect.Value) (int, *PathError) {
	if i >= len(r.b) || r.b[i] != '{' {
		return 0, mismatch(r.b, i, "an object")
	}
	var seen fieldSet
	expected := 0
	i, done := r.open(i, '}')
	for !done {
		name, at := r.name(i)
		if at < 0 {
			return 0, notJSON(r.b, i)
		}
		k := n.find(name, expected)
		if k < 0 {
			if !r.lenient {
				return 0, n.unknown(name)
			}
			end := scanValue(r.b, at, depth-1)
			if end < 0 {
				return 0, scanFault(r.b, at, end)
			}
			if i, done = r.more(end, '}'); i < 0 {
				return 0, notJSON(r.b, skipSpace(r.b, end))
			}
			continue
		}
		if seen.has(k) {
			return 0, twice(name)
		}
		seen.add(k)
		expected = k + 1
		f := &n.fields[k]
		end, fault := r.value(f.node, at, depth-1, f.in(v))
		if fault != nil {
			return 0, fault.under(f.name)
		}
		if i, done = r.more(end, '}'); i < 0 {
			return 0, notJSON(r.b, skipSpace(r.b, end))
		}
	}
	if r.lenient {
		return i, nil
	}
	return i, n.missing(&seen)
}

// fewFields is up to how many fields a search one by one is quicker than a map.
const fewFields = 8

// find gives the index of the field of that name, or -1. Most peers send the
// members in the order of the schema, so the expected one is looked at first.
func (n *node) find(name []byte, expected int) int {
	if expected < len(n.fields) && n.fields[expected].name == string(name) {
		return expected
	}
	if len(n.fields) > fewFields {
		if k, ok := n.byName[string(name)]; ok {
			return k
		}
		return -1
	}
	for k := range n.fields {
		if n.fields[k].name == string(name) {
			return k
		}
	}
	return -1
}

// in gives the field of a struct, and makes the embedded ones on the way.
func (f *field) in(v reflect.Value) reflect.Value {
	for depth, k := range f.index {
		if depth > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(k)
	}
	return v
}

func (r *reader) mapping(n *node, i, depth int, v reflect.Value) (int, *PathError) {
	if i >= len(r.b) || r.b[i] != '{' {
		return 0, mismatch(r.b, i, "an object")
	}
	v.Set(reflect.MakeMap(n.typ))
	elem := reflect.New(n.typ.Elem()).Elem()
	i, done := r.open(i, '}')
	for !done {
		name, at := r.name(i)
		if at < 0 {
			return 0, notJSON(r.b, i)
		}
		key := reflect.New(n.typ.Key()).Elem()
		if !n.textKeys {
			key.SetString(string(name))
		} else if err := key.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText(name); err != nil {
			return 0, (&PathError{Reason: "has a name that is not valid: " + shorten(err.Error())}).under(string(name))
		}
		if v.MapIndex(key).IsValid() {
			return 0, twice(name)
		}
		elem.SetZero()
		end, fault := r.value(n.elem, at, depth-1, elem)
		if fault != nil {
			return 0, fault.under(string(name))
		}
		v.SetMapIndex(key, elem)
		if i, done = r.more(end, '}'); i < 0 {
			return 0, notJSON(r.b, skipSpace(r.b, end))
		}
	}
	return i, nil
}

func (r *reader) slice(n *node, i, depth int, v reflect.Value) (int, *PathError) {
	if i >= len(r.b) || r.b[i] != '[' {
		return 0, mismatch(r.b, i, "an array")
	}
	v.Set(reflect.MakeSlice(n.typ, 0, 0))
	i, done := r.open(i, ']')
	for k := 0; !done; k++ {
		if k == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(k + 1)
		end, fault := r.value(n.elem, i, depth-1, v.Index(k))
		if fault != nil {
			return 0, fault.underIndex(k)
		}
		if i, done = r.more(end, ']'); i < 0 {
			return 0, notJSON(r.b, skipSpace(r.b, end))
		}
	}
	return i, nil
}

func (r *reader) array(n *node, i, depth int, v reflect.Value) (int, *PathError) {
	if i >= len(r.b) || r.b[i] != '[' {
		return 0, mismatch(r.b, i, "an array")
	}
	i, done := r.open(i, ']')
	k := 0
	for ; !done; k++ {
		if k == v.Len() {
			return 0, wrongLength(k)
		}
		end, fault := r.value(n.elem, i, depth-1, v.Index(k))
		if fault != nil {
			return 0, fault.underIndex(k)
		}
		if i, done = r.more(end, ']'); i < 0 {
			return 0, notJSON(r.b, skipSpace(r.b, end))
		}
	}
	if k != v.Len() {
		return 0, wrongLength(v.Len())
	}
	return i, nil
}

func wrongLength(want int) *PathError {
	return &PathError{Reason: "must have exactly " + strconv.Itoa(want) + " elements"}
}

// any reads a value whose type is not known.
func (r *reader) any(i, depth int) (value any, end int, fault *PathError) {
	if i >= len(r.b) {
		return nil, 0, notJSON(r.b, i)
	}
	switch c := r.b[i]; {
	case c == '"':
		s, end, fault := r.text(i)
		return s, end, fault
	case c == '{':
		return r.anyObject(i, depth)
	case c == '[':
		return r.anyArray(i, depth)
	case c == '-' || '0' <= c && c <= '9':
		token, end, fault := r.numeral(i, "a number")
		return json.Number(token), end, fault
	}
	if end = scanValue(r.b, i, depth); end < 0 {
		return nil, 0, notJSON(r.b, i)
	}
	if c := r.b[i]; c != 'n' {
		return c == 't', end, nil
	}
	return nil, end, nil
}

func (r *reader) anyObject(i, depth int) (any, int, *PathError) {
	if depth <= 0 {
		return nil, 0, tooDeep()
	}
	object := map[string]any{}
	i, done := r.open(i, '}')
	for !done {
		name, at := r.name(i)
		if at < 0 {
			return nil, 0, notJSON(r.b, i)
		}
		if _, ok := object[string(name)]; ok {
			return nil, 0, twice(name)
		}
		value, end, fault := r.any(at, depth-1)
		if fault != nil {
			return nil, 0, fault.under(string(name))
		}
		object[string(name)] = value
		if i, done = r.more(end, '}'); i < 0 {
			return nil, 0, notJSON(r.b, skipSpace(r.b, end))
		}
	}
	return object, i, nil
}

func (r *reader) anyArray(i, depth int) (any, int, *PathError) {
	if depth <= 0 {
		return nil, 0, tooDeep()
	}
	array := []any{}
	i, done := r.open(i, ']')
	for k := 0; !done; k++ {
		value, end, fault := r.any(i, depth-1)
		if fault != nil {
			return nil, 0, fault.underIndex(k)
		}
		array = append(array, value)
		if i, done = r.more(end, ']'); i < 0 {
			return nil, 0, notJSON(r.b, skipSpace(r.b, end))
		}
	}
	return array, i, nil
}
