package codec

import (
	"encoding"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"reflect"
	"strings"
	"time"
)

// Decoder reads JSON into one Go type, strictly: as the JSON Schema that is
// inferred from the type (github.com/google/jsonschema-go) would have it, in one
// pass and without a validator. It is compiled once, is immutable, and may be
// used by any number of goroutines.
//
//   - Member names are those of the json tags and are compared byte for byte
//     after unescaping. An unknown member is refused, and so is one that occurs
//     twice, also in maps and in values of type any.
//   - A field is required unless its tag has omitempty or omitzero, a pointer
//     too. Only pointers, slices, any, json.RawMessage and types with an
//     UnmarshalJSON of their own take null.
//   - An integer type takes any number whose value is integral (1, 1.0, 1e2) and
//     fits; a float type any number that fits.
//   - []byte is an array of numbers, as in the schema, not text in base64.
//   - Values of type any become nil, bool, string, json.Number, []any or
//     map[string]any. Numbers keep their exact text.
//   - time.Time, slog.Level, big.Int, big.Rat, big.Float and every type with an
//     UnmarshalText are strings. A type with an UnmarshalJSON gets the raw value,
//     whatever it is, and json.RawMessage a copy of it.
//
// Where the inferred schema is looser than the type, the type decides: numbers
// must fit, and text must be what its type can read.
type Decoder struct {
	typ     reflect.Type
	root    *node
	lenient bool // a schema of somebody else's says which members may be there
}

// NewDecoder compiles a Decoder. The error names the part of t that JSON has no
// strict form for: functions, channels, complex numbers, interfaces other than
// any, maps whose keys are no strings, the tag option "string", embedded fields
// with a name of their own, and two fields of one name.
func NewDecoder(t reflect.Type) (*Decoder, error) {
	if t == nil {
		return nil, fmt.Errorf("codec: no type to decode into")
	}
	c := compiler{}
	root, err := c.compile(t)
	if err != nil {
		return nil, fmt.Errorf("codec: cannot decode into %v: %w", t, err)
	}
	return &Decoder{typ: t, root: root}, nil
}

// Decode reads exactly one JSON value into a settable value of the Decoder's
// type, which should be zero: members that are missing leave their fields as
// they are. A fault of the JSON is a *PathError; into is then filled in part.
// Nothing of data is kept.
func (d *Decoder) Decode(data []byte, into reflect.Value) error {
	if !into.CanSet() || into.Type() != d.typ {
		return fmt.Errorf("codec: the decoder needs a settable value of type %v", d.typ)
	}
	r := reader{b: data, lenient: d.lenient}
	end, fault := r.value(d.root, skipSpace(data, 0), MaxDepth, into)
	if fault == nil {
		if end = skipSpace(data, end); end != len(data) {
			fault = notJSON(data, end)
		}
	}
	if fault != nil {
		return fault
	}
	return nil
}

// TypedDecoder is a Decoder whose type is known when the program is compiled.
type TypedDecoder[T any] struct{ d *Decoder }

// DecoderFor compiles a TypedDecoder; the errors are those of NewDecoder.
func DecoderFor[T any]() (*TypedDecoder[T], error) {
	d, err := NewDecoder(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	return &TypedDecoder[T]{d}, nil
}

// Lenient gives a decoder that skips members which are no fields, and misses
// none. It is for data that has been validated against a schema, which then has
// the say over the members.
func (d *TypedDecoder[T]) Lenient() *TypedDecoder[T] {
	loose := *d.d
	loose.lenient = true
	return &TypedDecoder[T]{&loose}
}

// Decode reads exactly one JSON value into v, as Decoder.Decode does.
func (d *TypedDecoder[T]) Decode(data []byte, v *T) error {
	return d.d.Decode(data, reflect.ValueOf(v).Elem())
}

// operation is what a node does with a value.
type operation uint8

const (
	readBool operation = iota
	readInt
	readUint
	readFloat
	readString
	readNumber // json.Number
	readText   // encoding.TextUnmarshaler
	readJSON   // json.Unmarshaler
	readRaw    // json.RawMessage
	readAny
	readPointer
	readSlice
	readArray
	readMap
	readStruct
)

// node is the compiled form of one type.
type node struct {
	op       operation
	typ      reflect.Type
	elem     *node // of a pointer, slice, array or map
	textKeys bool  // the keys of a map have an UnmarshalText
	fields   []field
	byName   map[string]int // index in fields, where these are many
	required fieldSet
}

// field is one member of a struct.
type field struct {
	name  string
	index []int // as reflect.StructField has it
	node  *node
}

// maxFields is how many members a struct may have.
const maxFields = 256

// fieldSet holds one bit for each field of a struct.
type fieldSet [maxFields / 64]uint64

func (s *fieldSet) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }
func (s *fieldSet) add(i int)      { s[i/64] |= 1 << (i % 64) }

var (
	rawType         = reflect.TypeFor[json.RawMessage]()
	numberType      = reflect.TypeFor[json.Number]()
	timeType        = reflect.TypeFor[time.Time]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
	textType        = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// stringTypes are those of the standard library that the schema has as strings.
var stringTypes = map[reflect.Type]bool{
	timeType:                      true,
	reflect.TypeFor[slog.Level](): true,
	reflect.TypeFor[big.Int]():    true,
	reflect.TypeFor[big.Rat]():    true,
	reflect.TypeFor[big.Float]():  true,
}

// compiler holds the nodes made so far, so that a type may hold itself.
type compiler map[reflect.Type]*node

func (c compiler) compile(t reflect.Type) (*node, error) {
	if n := c[t]; n != nil {
		return n, nil
	}
	n := &node{typ: t}
	c[t] = n
	switch pointer := reflect.PointerTo(t); {
	case t == rawType:
		n.op = readRaw
	case t == numberType:
		n.op = readNumber
	case stringTypes[t]:
		n.op = readText
	case t.Kind() == reflect.Pointer:
		if err := checkPointers(t); err != nil {
			return nil, err
		}
		return n, c.compileElem(n, readPointer)
	case pointer.Implements(unmarshalerType):
		n.op = readJSON
	case pointer.Implements(textType):
		n.op = readText
	default:
		return n, c.compileKind(n)
	}
	return n, nil
}

// checkPointers refuses a pointer type that holds nothing but itself.
func checkPointers(t reflect.Type) error {
	for range 8 {
		if t = t.Elem(); t.Kind() != reflect.Pointer {
			return nil
		}
	}
	return fmt.Errorf("%v is a pointer to a pointer, too many times", t)
}

func (c compiler) compileElem(n *node, op operation) (err error) {
	n.op = op
	n.elem, err = c.compile(n.typ.Elem())
	return err
}

func (c compiler) compileKind(n *node) error {
	switch t := n.typ; t.Kind() {
	case reflect.Bool:
		n.op = readBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n.op = readInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		n.op = readUint
	case reflect.Float32, reflect.Float64:
		n.op = readFloat
	case reflect.String:
		n.op = readString
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("the interface %v says nothing about its values", t)
		}
		n.op = readAny
	case reflect.Slice:
		return c.compileElem(n, readSlice)
	case reflect.Array:
		return c.compileElem(n, readArray)
	case reflect.Map:
		n.textKeys = reflect.PointerTo(t.Key()).Implements(textType)
		if t.Key().Kind() != reflect.String && !n.textKeys {
			return fmt.Errorf("the keys of %v are no strings", t)
		}
		return c.compileElem(n, readMap)
	case reflect.Struct:
		return c.compileStruct(n)
	default:
		return fmt.Errorf("JSON has no form for %v", t)
	}
	return nil
}

// compileStruct takes the fields that the schema has: all that are visible under
// Go's rules for embedded structs and exported.
func (c compiler) compileStruct(n *node) error {
	n.op = readStruct
	n.byName = map[string]int{}
	for _, f := range reflect.VisibleFields(n.typ) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			if err := checkEmbedded(f, name); err != nil {
				return err
			}
			continue
		case !f.IsExported() || f.Tag.Get("json") == "-":
			continue
		case name == "":
			name = f.Name
		}
		if err := checkPromoted(n.typ, f); err != nil {
			return err
		}
		if _, twice := n.byName[name]; twice {
			return fmt.Errorf("two fields of %v have the name %q", n.typ, name)
		}
		optional := false
		for option := range strings.SplitSeq(options, ",") {
			optional = optional || option == "omitempty" || option == "omitzero"
			if option == "string" {
				return fmt.Errorf("the field %s has the tag option \"string\"", f.Name)
			}
		}
		elem, err := c.compile(f.Type)
		if err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
		k := len(n.fields)
		if k == maxFields {
			return fmt.Errorf("%v has more than %d fields", n.typ, maxFields)
		}
		n.byName[name] = k
		n.fields = append(n.fields, field{name, f.Index, elem})
		if !optional {
			n.required.add(k)
		}
	}
	return nil
}

// checkEmbedded refuses an embedded field that encoding/json would take for a
// member and the schema does not have.
func checkEmbedded(f reflect.StructField, name string) error {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct && f.IsExported() && name != "-" {
		return fmt.Errorf("the embedded field %s is no struct", f.Name)
	}
	return nil
}

// checkPromoted refuses a field that is promoted through an embedded field with
// a name of its own, which the schema would not know, or through a pointer that
// reflection cannot set.
func checkPromoted(t reflect.Type, f reflect.StructField) error {
	for depth := 1; depth < len(f.Index); depth++ {
		through := t.FieldByIndex(f.Index[:depth])
		if name, _, _ := strings.Cut(through.Tag.Get("json"), ","); name != "" {
			return fmt.Errorf("the embedded field %s has the name %q in its tag", through.Name, name)
		}
		if through.Type.Kind() == reflect.Pointer && !through.IsExported() {
			return fmt.Errorf("the embedded pointer %s is not exported", through.Name)
		}
	}
	return nil
}
