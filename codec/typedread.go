package codec

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
)

// reader holds the text of one Decode. Its methods read the value at i and give
// the index after it.
type reader struct {
	b       []byte
	lenient bool
}

func (r *reader) value(n *node, i, depth int, v reflect.Value) (int, *PathError) {
	b := r.b
	switch n.op {
	case readBool:
		return r.boolean(i, v)
	case readInt:
		return r.integer(i, v)
	case readUint:
		return r.unsigned(i, v)
	case readFloat:
		return r.float(n, i, v)
	case readString:
		text, end, fault := r.text(i)
		if fault == nil {
			v.SetString(text)
		}
		return end, fault
	case readText:
		return r.unmarshalText(n, i, v)
	case readNumber:
		return r.number(i, v)
	case readJSON, readRaw:
		return r.raw(n, i, depth, v)
	case readAny:
		value, end, fault := r.any(i, depth)
		if value == nil {
			v.SetZero()
		} else {
			v.Set(reflect.ValueOf(value))
		}
		return end, fault
	}
	if nullable := n.op == readPointer || n.op == readSlice; nullable && i < len(b) && b[i] == 'n' {
		if end := scanLiteral(b, i, "null"); end > 0 {
			v.SetZero()
			return end, nil
		}
		return 0, notJSON(b, i)
	}
	if n.op == readPointer {
		v.Set(reflect.New(n.typ.Elem()))
		return r.value(n.elem, i, depth, v.Elem())
	}
	if depth <= 0 {
		return 0, tooDeep()
	}
	switch n.op {
	case readSlice:
		return r.slice(n, i, depth, v)
	case readArray:
		return r.array(n, i, depth, v)
	case readMap:
		return r.mapping(n, i, depth, v)
	}
	return r.structure(n, i, depth, v)
}

func (r *reader) boolean(i int, v reflect.Value) (int, *PathError) {
	if end := scanLiteral(r.b, i, "true"); end > 0 {
		v.SetBool(true)
		return end, nil
	}
	if end := scanLiteral(r.b, i, "false"); end > 0 {
		v.SetBool(false)
		return end, nil
	}
	if i < len(r.b) && (r.b[i] == 't' || r.b[i] == 'f') {
		return 0, notJSON(r.b, i)
	}
	return 0, mismatch(r.b, i, "true or false")
}

// numeral scans a number.
func (r *reader) numeral(i int, want string) (token []byte, end int, fault *PathError) {
	if i >= len(r.b) || r.b[i] != '-' && (r.b[i] < '0' || r.b[i] > '9') {
		return nil, 0, mismatch(r.b, i, want)
	}
	if end, _ = scanNumber(r.b, i); end < 0 {
		return nil, 0, notJSON(r.b, i)
	}
	return r.b[i:end], end, nil
}

func (r *reader) integer(i int, v reflect.Value) (int, *PathError) {
	token, end, fault := r.numeral(i, "an integer")
	if fault != nil {
		return 0, fault
	}
	switch n, whole, fits := toInt(token); {
	case !whole:
		return 0, mismatch(r.b, i, "an integer")
	case !fits || v.OverflowInt(n):
		return 0, outOfRange(v.Type())
	default:
		v.SetInt(n)
	}
	return end, nil
}

func (r *reader) unsigned(i int, v reflect.Value) (int, *PathError) {
	token, end, fault := r.numeral(i, "an integer")
	if fault != nil {
		return 0, fault
	}
	switch n, whole, fits := toUint(token); {
	case !whole:
		return 0, mismatch(r.b, i, "an integer")
	case !fits || v.OverflowUint(n):
		return 0, outOfRange(v.Type())
	default:
		v.SetUint(n)
	}
	return end, nil
}

func (r *reader) float(n *node, i int, v reflect.Value) (int, *PathError) {
	token, end, fault := r.numeral(i, "a number")
	if fault != nil {
		return 0, fault
	}
	f, err := strconv.ParseFloat(string(token), n.typ.Bits())
	if err != nil {
		return 0, outOfRange(n.typ)
	}
	v.SetFloat(f)
	return end, nil
}

// number reads a json.Number, which may stand in quotes.
func (r *reader) number(i int, v reflect.Value) (int, *PathError) {
	if i >= len(r.b) || r.b[i] != '"' {
		token, end, fault := r.numeral(i, "a number")
		v.SetString(string(token))
		return end, fault
	}
	text, end, fault := r.text(i)
	if fault != nil {
		return 0, fault
	}
	inner := reader{b: []byte(text)}
	if _, last, fault := inner.numeral(0, "a number"); fault != nil || last != len(text) {
		return 0, &PathError{Reason: "must be a number"}
	}
	v.SetString(text)
	return end, nil
}

// text reads a string.
func (r *reader) text(i int) (s string, end int, fault *PathError) {
	if i >= len(r.b) || r.b[i] != '"' {
		return "", 0, mismatch(r.b, i, "a string")
	}
	end, escaped := scanString(r.b, i)
	if end < 0 {
		return "", 0, notJSON(r.b, i)
	}
	if !escaped {
		return string(r.b[i+1 : end-1]), end, nil
	}
	var short [128]byte
	return string(AppendUnescaped(short[:0], r.b[i+1:end-1])), end, nil
}

func (r *reader) unmarshalText(n *node, i int, v reflect.Value) (int, *PathError) {
	text, end, fault := r.text(i)
	if fault != nil {
		return 0, fault
	}
	err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	switch {
	case err == nil:
		return end, nil
	case n.typ == timeType:
		return 0, &PathError{Reason: "must be a date and time of RFC 3339, such as 2026-01-31T12:00:00Z"}
	}
	return 0, &PathError{Reason: "is not valid: " + shorten(err.Error())}
}

// raw hands the bytes of a value to a type that reads them itself.
func (r *reader) raw(n *node, i, depth int, v reflect.Value) (int, *PathError) {
	end := scanValue(r.b, i, depth)
	if end < 0 {
		return 0, scanFault(r.b, i, end)
	}
	token := r.b[i:end:end]
	if n.op == readRaw {
		v.SetBytes(append([]byte(nil), token...))
		return end, nil
	}
	if err := v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(token); err != nil {
		return 0, &PathError{Reason: "is not valid: " + shorten(err.Error())}
	}
	return end, nil
}

// open steps over an opening bracket; empty is set where the closing one follows.
func (r *reader) open(i int, closing byte) (next int, empty bool) {
	i = skipSpace(r.b, i+1)
	if i < len(r.b) && r.b[i] == closing {
		return i + 1, true
	}
	return i, false
}

// more steps over what stands after a member or an element: a comma, or the
// closing bracket, after which done is set. next is below zero where it is
// neither.
func (r *reader) more(i int, closing byte) (next int, done bool) {
	i = skipSpace(r.b, i)
	switch {
	case i >= len(r.b):
		return scanBad, false
	case r.b[i] == ',':
		return skipSpace(r.b, i+1), false
	case r.b[i] == closing:
		return i + 1, true
	}
	return scanBad, false
}

// name reads the name of a member and the colon after it. at is where the
// member's value begins, or below zero.
func (r *reader) name(i int) (name []byte, at int) {
	b := r.b
	if i >= len(b) || b[i] != '"' {
		return nil, scanBad
	}
	end, escaped := scanString(b, i)
	if end < 0 {
		return nil, scanBad
	}
	name = b[i+1 : end-1]
	if escaped {
		name = AppendUnescaped(nil, name)
	}
	if i = skipSpace(b, end); i >= len(b) || b[i] != ':' {
		return nil, scanBad
	}
	return name, skipSpace(b, i+1)
}
