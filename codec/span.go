package codec

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// The functions of this file read spans of JSON that Decode or Valid has
// checked. On other bytes they give nothing, and never panic.

// EachMember calls f with each member of an object, the name unescaped, until f
// returns false. It reports whether obj is an object and was walked to its end.
func EachMember(obj []byte, f func(name, value []byte) bool) bool {
	i := skipSpace(obj, 0)
	if i >= len(obj) || obj[i] != '{' {
		return false
	}
	i = skipSpace(obj, i+1)
	if i < len(obj) && obj[i] == '}' {
		return true
	}
	for i < len(obj) && obj[i] == '"' {
		end, escaped := scanString(obj, i)
		if end < 0 {
			return false
		}
		name := obj[i+1 : end-1]
		if escaped {
			name = AppendUnescaped(nil, name)
		}
		if i = skipSpace(obj, end); i >= len(obj) || obj[i] != ':' {
			return false
		}
		v := skipSpace(obj, i+1)
		if i = scanValue(obj, v, MaxDepth); i < 0 {
			return false
		}
		if !f(name, obj[v:i:i]) {
			return false
		}
		if i = skipSpace(obj, i); i >= len(obj) {
			return false
		}
		if obj[i] != ',' {
			return obj[i] == '}'
		}
		i = skipSpace(obj, i+1)
	}
	return false
}

// EachElement calls f with each element of an array until f returns false. It
// reports whether arr is an array and was walked to its end.
func EachElement(arr []byte, f func(value []byte) bool) bool {
	i := skipSpace(arr, 0)
	if i >= len(arr) || arr[i] != '[' {
		return false
	}
	i = skipSpace(arr, i+1)
	if i < len(arr) && arr[i] == ']' {
		return true
	}
	for i < len(arr) {
		v := i
		if i = scanValue(arr, v, MaxDepth); i < 0 || !f(arr[v:i:i]) {
			return false
		}
		if i = skipSpace(arr, i); i >= len(arr) {
			return false
		}
		if arr[i] != ',' {
			return arr[i] == ']'
		}
		i = skipSpace(arr, i+1)
	}
	return false
}

// Member gives the value of an object's first member of that name, walking
// down where several names are given, or nil.
func Member(obj []byte, path ...string) []byte {
	for _, name := range path {
		var found []byte
		EachMember(obj, func(n, v []byte) bool {
			if string(n) == name {
				found = v
				return false
			}
			return true
		})
		if obj = found; obj == nil {
			return nil
		}
	}
	return obj
}

// String gives the text of a JSON string. ok is false where value is none.
func String(value []byte) (s string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	end, escaped := scanString(value, 0)
	switch {
	case end != len(value):
		return "", false
	case !escaped:
		return string(value[1 : end-1]), true
	}
	var short [128]byte
	return string(AppendUnescaped(short[:0], value[1:end-1])), true
}

// Text gives the text of the member at path, or "" where it is no string.
func Text(obj []byte, path ...string) string {
	s, _ := String(Member(obj, path...))
	return s
}

// Int gives the member at path as an integer. ok is false where it is none or
// does not fit; a number written with a fraction or an exponent is none.
func Int(obj []byte, path ...string) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(Member(obj, path...)), 10, 64)
	return n, err == nil
}

// Number gives the member at path as a float.
func Number(obj []byte, path ...string) (f float64, ok bool) {
	v := Member(obj, path...)
	if len(v) == 0 || v[0] != '-' && (v[0] < '0' || v[0] > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	return f, err == nil
}

// Bool gives the member at path; false where it is not true.
func Bool(obj []byte, path ...string) bool {
	return string(Member(obj, path...)) == "true"
}

// IsObject reports whether a span is an object.
func IsObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

// AppendUnescaped appends the text of the inside of a JSON string. A surrogate
// without its other half becomes U+FFFD, as RFC 8259 leaves it open and UTF-8
// has no form for it.
func AppendUnescaped(dst, s []byte) []byte {
	for i := 0; i < len(s); {
		n := bytes.IndexByte(s[i:], '\\')
		if n < 0 || i+n+1 >= len(s) {
			return append(dst, s[i:]...)
		}
		dst = append(dst, s[i:i+n]...)
		i += n + 1
		c := s[i]
		switch c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, n := unescapeRune(s[i-1:])
			dst = utf8.AppendRune(dst, r)
			i += n - 1
			continue
		default:
			dst = append(dst, c)
		}
		i++
	}
	return dst
}

// unescapeRune reads the \u escape, or the pair of them, that s begins with. It
// gives the rune and how many bytes it took.
func unescapeRune(s []byte) (rune, int) {
	hi := hex4(s)
	if hi < 0 {
		return utf8.RuneError, min(len(s), 2)
	}
	if !utf16.IsSurrogate(hi) {
		return hi, 6
	}
	if lo := hex4(s[6:]); lo >= 0 {
		if r := utf16.DecodeRune(hi, lo); r != utf8.RuneError {
			return r, 12
		}
	}
	return utf8.RuneError, 6
}

// hex4 reads the \uXXXX at the beginning of s, or gives -1.
func hex4(s []byte) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range s[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// IsBatch reports whether a frame begins as an array does.
func IsBatch(frame []byte) bool {
	i := skipHead(frame)
	return i < len(frame) && frame[i] == '['
}

// SplitBatch checks a batch (revision 2025-03-26) and calls f with the frame of
// each of its messages. The error is an *Error: -32700 where the batch is not
// JSON, -32600 where it is no array, empty, longer than limit or nested too
// deep. f is called for all messages or for none.
func SplitBatch(frame []byte, limit int, f func(frame []byte)) error {
	start := skipHead(frame)
	switch end := scanValue(frame, start, MaxDepth); {
	case end == scanDeep:
		return errTooDeep
	case end < 0 || skipSpace(frame, end) != len(frame):
		return errSyntax
	case frame[start] != '[':
		return errNotArray
	}
	n := 0
	EachElement(frame[start:], func([]byte) bool { n++; return n <= limit })
	switch {
	case n == 0:
		return errEmptyBatch
	case n > limit:
		return NewError(CodeInvalidRequest, "Invalid Request: more than "+strconv.Itoa(limit)+" messages in a batch")
	}
	EachElement(frame[start:], func(v []byte) bool { f(v); return true })
	return nil
}

// CompactTail gives frame with the line breaks taken out that stand between
// tokens after start. The tail is valid JSON, so a raw line break in it is white
// space; as part of a frame it would split a line of stdio or an event of SSE.
func CompactTail(frame []byte, start int) []byte {
	tail := frame[start:]
	if bytes.IndexByte(tail, '\n') < 0 && bytes.IndexByte(tail, '\r') < 0 {
		return frame
	}
	kept := tail[:0]
	for _, c := range tail {
		if c != '\n' && c != '\r' {
			kept = append(kept, c)
		}
	}
	return frame[:start+len(kept)]
}
