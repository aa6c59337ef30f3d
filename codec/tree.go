package codec

import (
	"bytes"
	"strconv"
	"sync"

	"github.com/valyala/fastjson"
)

// Tree is a JSON value that has been parsed for random access, without
// allocating where it is used again and again. It is for handlers that read
// arguments member by member; where only a few members are wanted once, Member
// and EachMember do without a tree.
//
// A Tree and everything read from it belong to one goroutine: reading a string
// or a name unescapes it in place. Release gives the Tree back for later use.
type Tree struct {
	parser fastjson.Parser
	root   *fastjson.Value
	size   int
	mended []byte // a copy of the text without its lone surrogates
	number []byte // the text of the number that is being read
}

// Value is one value of a Tree. The zero Value stands for one that is missing:
// every method works on it and finds nothing.
//
// The writer of the library underneath is never used on strings, names or
// whole values, since it writes invalid JSON for some of them.
type Value struct {
	t *Tree
	v *fastjson.Value
}

// maxKeptTree is the length of the text, in bytes, from which on a Tree is left
// to the garbage collector and not used again.
const maxKeptTree = 64 << 10

var trees = sync.Pool{New: func() any { return new(Tree) }}

// ParseTree parses exactly one JSON value, white space around it allowed. The
// library takes much that is no JSON (NaN, 01, raw control characters, invalid
// UTF-8), so data is checked by Valid first, whatever the caller did before.
// The error is an *Error with code -32700, or -32600 where data is nested
// deeper than MaxDepth. The Tree has a copy of data and does not borrow from it.
func ParseTree(data []byte) (*Tree, error) {
	switch end := scanValue(data, skipSpace(data, 0), MaxDepth); {
	case end == scanDeep:
		return nil, errTooDeep
	case end < 0 || skipSpace(data, end) != len(data):
		return nil, errSyntax
	}
	t := trees.Get().(*Tree)
	t.size = len(data)
	root, err := t.parser.ParseBytes(t.mend(data))
	if err != nil {
		return nil, errSyntax
	}
	t.root = root
	return t, nil
}

// mend replaces each escape of a surrogate without its other half by that of
// U+FFFD, which has the same length. The library would keep the escape as text,
// and swallow the character after it.
func (t *Tree) mend(data []byte) []byte {
	if !hasLoneSurrogate(data) {
		return data
	}
	t.mended = append(t.mended[:0], data...)
	eachLoneSurrogate(t.mended, func(escape []byte) bool {
		copy(escape, `\ufffd`)
		return true
	})
	return t.mended
}

func hasLoneSurrogate(data []byte) bool {
	found := false
	eachLoneSurrogate(data, func([]byte) bool { found = true; return false })
	return found
}

// eachLoneSurrogate calls f with the six bytes of each such escape.
func eachLoneSurrogate(data []byte, f func(escape []byte) bool) {
	for i := 0; i < len(data); {
		n := bytes.IndexByte(data[i:], '\\')
		if n < 0 {
			return
		}
		i += n
		if i+1 >= len(data) || data[i+1] != 'u' {
			i += 2
			continue
		}
		r, taken := unescapeRune(data[i:])
		if r == '\ufffd' && taken == 6 && hex4(data[i:]) != r && !f(data[i:i+6]) {
			return
		}
		i += taken
	}
}

// Release gives the Tree back. Neither the Tree nor any Value or text that was
// read from it may be used afterwards, and Release is called once at most.
func (t *Tree) Release() {
	t.root = nil
	if t.size <= maxKeptTree {
		trees.Put(t)
	}
}

// Root gives the value that was parsed.
func (t *Tree) Root() Value { return Value{t, t.root} }

// Get gives the root's member at path, as Value.Get does.
func (t *Tree) Get(path ...string) Value { return t.Root().Get(path...) }

// Exists reports whether the value is there; a null is.
func (v Value) Exists() bool { return v.v != nil }

// IsNull reports whether the value is there and null.
func (v Value) IsNull() bool { return v.is(fastjson.TypeNull) }

// IsObject reports whether the value is an object.
func (v Value) IsObject() bool { return v.is(fastjson.TypeObject) }

// IsArray reports whether the value is an array.
func (v Value) IsArray() bool { return v.is(fastjson.TypeArray) }

func (v Value) is(t fastjson.Type) bool { return v.v != nil && v.v.Type() == t }

// Get gives the member of that name, walking down where several names are
// given. Names are compared after unescaping, byte for byte. Where a name occurs
// twice in an object the first one counts, as with Member.
func (v Value) Get(path ...string) Value {
	for _, name := range path {
		obj := v.v.GetObject()
		if obj == nil {
			return Value{}
		}
		v.v = nil
		// The library's own look-up prefers a name without escapes, even
		// where one with escapes stands before it.
		obj.Visit(func(key []byte, member *fastjson.Value) {
			if v.v == nil && string(key) == name {
				v.v = member
			}
		})
	}
	return v
}

// Text gives the text of a string, unescaped; ok is false where the value is
// none. The bytes belong to the Tree.
func (v Value) Text() (text []byte, ok bool) {
	if !v.is(fastjson.TypeString) {
		return nil, false
	}
	return v.v.GetStringBytes(), true
}

// Int gives a number whose value is integral (1, 1.0 and 1e2 are); ok is false
// where the value is none, or does not fit.
func (v Value) Int() (n int64, ok bool) {
	if !v.is(fastjson.TypeNumber) {
		return 0, false
	}
	n, whole, fits := toInt(v.token())
	return n, whole && fits
}

// Float gives a number, rounded to the nearest float64; ok is false where the
// value is none, or beyond the type.
func (v Value) Float() (f float64, ok bool) {
	if !v.is(fastjson.TypeNumber) {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v.token()), 64)
	return f, err == nil
}

// token gives the exact text of a number. This one use of the library's writer
// copies that text unchanged; the library's own conversions round twice.
func (v Value) token() []byte {
	v.t.number = v.v.MarshalTo(v.t.number[:0])
	return v.t.number
}

// Bool gives a true or a false; ok is false where the value is neither.
func (v Value) Bool() (b, ok bool) {
	b = v.is(fastjson.TypeTrue)
	return b, b || v.is(fastjson.TypeFalse)
}

// Len gives the number of members of an object or of elements of an array, else
// zero.
func (v Value) Len() int {
	switch {
	case v.IsObject():
		return v.v.GetObject().Len()
	case v.IsArray():
		return len(v.v.GetArray())
	}
	return 0
}

// Index gives an element of an array, the first at 0.
func (v Value) Index(i int) Value {
	elements := v.v.GetArray()
	if i < 0 || i >= len(elements) {
		return Value{}
	}
	return Value{v.t, elements[i]}
}

// Each calls f with each member of an object, or with each element of an array
// and a name of nil, in the order of the text, until f returns false. Members
// whose name occurs again are all visited. The name belongs to the Tree.
func (v Value) Each(f func(name []byte, value Value) bool) {
	for _, element := range v.v.GetArray() {
		if !f(nil, Value{v.t, element}) {
			return
		}
	}
	obj := v.v.GetObject()
	if obj == nil {
		return
	}
	more := true
	obj.Visit(func(name []byte, member *fastjson.Value) {
		more = more && f(name, Value{v.t, member})
	})
}
