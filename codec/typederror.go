package codec

import (
	"math/bits"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// PathError says where in a value of JSON the fault is and what would be right,
// in words that a model can act on.
type PathError struct {
	// Path is a JSON Pointer (RFC 6901) such as "/items/0/count", or "" for
	// the whole value. A long name in it is cut short.
	Path string
	// Reason goes after the path, for example "must be an integer, not a string".
	Reason string
}

// Error gives the path and the reason as one sentence.
func (e *PathError) Error() string {
	if e.Path == "" {
		return "the value " + e.Reason
	}
	return e.Path + " " + e.Reason
}

// maxQuoted is how many bytes of a peer's text an error repeats, and maxListed
// how many known names it lists.
const (
	maxQuoted = 64
	maxListed = 16
)

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// under puts the name of a member before the path of a fault inside it.
func (e *PathError) under(name string) *PathError {
	e.Path = "/" + escapePointer.Replace(shorten(name)) + e.Path
	return e
}

func (e *PathError) underIndex(i int) *PathError {
	e.Path = "/" + strconv.Itoa(i) + e.Path
	return e
}

func shorten(s string) string {
	if len(s) > maxQuoted {
		s = s[:maxQuoted] + "..."
	}
	return strings.ToValidUTF8(s, "")
}

// notJSON is the fault of bytes that are no JSON.
func notJSON(b []byte, i int) *PathError {
	if i < 0 || i >= len(b) {
		return &PathError{Reason: "is not valid JSON: it ends too early"}
	}
	r, _ := utf8.DecodeRune(b[i:])
	return &PathError{Reason: "is not valid JSON near " + strconv.QuoteRune(r)}
}

func tooDeep() *PathError {
	return &PathError{Reason: "is nested deeper than " + strconv.Itoa(MaxDepth) + " levels"}
}

// scanFault turns a result of scanValue below zero into a fault.
func scanFault(b []byte, i, end int) *PathError {
	if end == scanDeep {
		return tooDeep()
	}
	return notJSON(b, i)
}

// mismatch is the fault of a value of another kind than wanted.
func mismatch(b []byte, i int, want string) *PathError {
	if i >= len(b) {
		return notJSON(b, i)
	}
	var got string
	switch c := b[i]; {
	case c == '{':
		got = "an object"
	case c == '[':
		got = "an array"
	case c == '"':
		got = "a string"
	case c == 't' || c == 'f':
		got = "a boolean"
	case c == 'n':
		got = "null"
	case c == '-' || '0' <= c && c <= '9':
		got = "a number"
	default:
		return notJSON(b, i)
	}
	return &PathError{Reason: "must be " + want + ", not " + got}
}

// outOfRange is the fault of a number that the type cannot hold.
func outOfRange(t reflect.Type) *PathError {
	size := t.Bits()
	switch t.Kind() {
	case reflect.Float32, reflect.Float64:
		return &PathError{Reason: "is too large a number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		most := uint64(1) << (size - 1)
		return &PathError{Reason: "must be from -" + strconv.FormatUint(most, 10) + " to " + strconv.FormatUint(most-1, 10)}
	}
	return &PathError{Reason: "must be from 0 to " + strconv.FormatUint(^uint64(0)>>(64-size), 10)}
}

// unknown is the fault of a member that the struct does not have.
func (n *node) unknown(name []byte) *PathError {
	var known []string
	for _, f := range n.fields {
		if strings.EqualFold(f.name, string(name)) {
			known = []string{strconv.Quote(f.name)}
			break
		}
		if len(known) < maxListed {
			known = append(known, strconv.Quote(f.name))
		}
	}
	reason := "is not a known member; there are none"
	if len(known) > 0 {
		reason = "is not a known member; known: " + strings.Join(known, ", ")
	}
	if len(known) < len(n.fields) && len(known) == maxListed {
		reason += ", ..."
	}
	return (&PathError{Reason: reason}).under(string(name))
}

// missing is the fault of an object that lacks a required member, or nil.
func (n *node) missing(seen *fieldSet) *PathError {
	for w, required := range n.required {
		if lacking := required &^ seen[w]; lacking != 0 {
			k := w*64 + bits.TrailingZeros64(lacking)
			return (&PathError{Reason: "is required but missing"}).under(n.fields[k].name)
		}
	}
	return nil
}

func twice(name []byte) *PathError {
	return (&PathError{Reason: "occurs twice"}).under(string(name))
}
