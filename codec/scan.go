package codec

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// MaxDepth is how deep arrays and objects may be nested in a frame.
const MaxDepth = 128

// special marks the bytes that end the plain part of a string: control
// characters, the quote, the backslash, and everything beyond ASCII.
var special = func() (t [256]bool) {
	for c := range t {
		t[c] = c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf
	}
	return t
}()

// skipSpace gives the index of the first byte at or after i that is no JSON
// white space.
func skipSpace(b []byte, i int) int {
	if i < len(b) && b[i] <= ' ' {
		return skipSpaces(b, i)
	}
	return i
}

func skipSpaces(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipHead gives the index of the first byte of a frame that is neither a byte
// order mark, which RFC 8259 lets a reader ignore, nor white space.
func skipHead(b []byte) int {
	if len(b) >= 3 && b[0] == 0xEF && b[1] == 0xBB && b[2] == 0xBF {
		return skipSpace(b, 3)
	}
	return skipSpace(b, 0)
}

// One byte repeated over a word, for skipPlain.
const (
	everyByte      = 0x0101010101010101
	everyHighBit   = 0x80 * everyByte
	everySpace     = ' ' * everyByte
	everyQuote     = '"' * everyByte
	everyBackslash = '\\' * everyByte
)

// skipPlain gives the index of the first special byte at or after i. It looks
// at eight bytes at once: of the four terms, each sets the high bit of a byte
// that is special. A subtraction that borrows may also mark the byte above such
// a one, but never a byte below the first, and the first is what counts.
func skipPlain(b []byte, i int) int {
	for ; len(b)-i >= 8; i += 8 {
		w := binary.LittleEndian.Uint64(b[i : i+8 : len(b)])
		marks := w | (w - everySpace) | ((w ^ everyQuote) - everyByte) | ((w ^ everyBackslash) - everyByte)
		if marks &= everyHighBit; marks != 0 {
			return i + bits.TrailingZeros64(marks)>>3
		}
	}
	for i < len(b) && !special[b[i]] {
		i++
	}
	return i
}

// scanString scans the string that begins with the quote at i. It gives the
// index after the closing quote, or scanBad, and whether there are escapes.
func scanString(b []byte, i int) (end int, escaped bool) {
	i = skipPlain(b, i+1)
	if i < len(b) && b[i] == '"' {
		return i + 1, false
	}
	return scanHard(b, i)
}

// scanHard goes on with a string at its first special byte, at i.
func scanHard(b []byte, i int) (end int, escaped bool) {
	for ; i < len(b); i = skipPlain(b, i) {
		switch c := b[i]; {
		case c == '"':
			return i + 1, escaped
		case c == '\\':
			escaped = true
			if i = scanEscape(b, i+1); i < 0 {
				return scanBad, escaped
			}
		case c < 0x20:
			return scanBad, escaped
		default:
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n <= 1 {
				return scanBad, escaped
			}
			i += n
		}
	}
	return scanBad, escaped
}

// scanEscape scans what follows a backslash at i-1.
func scanEscape(b []byte, i int) int {
	if i >= len(b) {
		return scanBad
	}
	switch b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		if i+5 > len(b) {
			return scanBad
		}
		for _, c := range b[i+1 : i+5] {
			if !isHex(c) {
				return scanBad
			}
		}
		return i + 5
	}
	return scanBad
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// scanNumber scans a number and tells whether it is written as an integer.
func scanNumber(b []byte, i int) (end int, integer bool) {
	if b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b) || b[i] < '0' || b[i] > '9':
		return scanBad, false
	case b[i] == '0':
		i++
	default:
		i = skipDigits(b, i)
	}
	integer = true
	if i < len(b) && b[i] == '.' {
		integer = false
		start := i + 1
		if i = skipDigits(b, start); i == start {
			return scanBad, false
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		integer = false
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		start := i
		if i = skipDigits(b, start); i == start {
			return scanBad, false
		}
	}
	return i, integer
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

// Results of scanValue below zero.
const (
	scanBad  = -1 // not JSON
	scanDeep = -2 // nested deeper than MaxDepth
)

// scanValue scans any value that begins at i. It gives the index after it, or
// scanBad or scanDeep. depth is how many more levels may be opened.
func scanValue(b []byte, i, depth int) int {
	if i >= len(b) {
		return scanBad
	}
	switch c := b[i]; c {
	case '"':
		end, _ := scanString(b, i)
		return end
	case '{':
		return scanObject(b, i, depth)
	case '[':
		return scanArray(b, i, depth)
	case 't':
		return scanLiteral(b, i, "true")
	case 'f':
		return scanLiteral(b, i, "false")
	case 'n':
		return scanLiteral(b, i, "null")
	default:
		if c == '-' || '0' <= c && c <= '9' {
			end, _ := scanNumber(b, i)
			return end
		}
	}
	return scanBad
}

func scanLiteral(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return scanBad
	}
	return i + len(word)
}

func scanObject(b []byte, i, depth int) int {
	if depth <= 0 {
		return scanDeep
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return scanBad
		}
		end, _ := scanString(b, i)
		if end < 0 {
			return scanBad
		}
		if i = skipSpace(b, end); i >= len(b) || b[i] != ':' {
			return scanBad
		}
		if i = scanValue(b, skipSpace(b, i+1), depth-1); i < 0 {
			return i
		}
		if i = skipSpace(b, i); i >= len(b) {
			return scanBad
		}
		switch b[i] {
		case '}':
			return i + 1
		case ',':
			i = skipSpace(b, i+1)
		default:
			return scanBad
		}
	}
}

func scanArray(b []byte, i, depth int) int {
	if depth <= 0 {
		return scanDeep
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = scanValue(b, i, depth-1); i < 0 {
			return i
		}
		if i = skipSpace(b, i); i >= len(b) {
			return scanBad
		}
		switch b[i] {
		case ']':
			return i + 1
		case ',':
			i = skipSpace(b, i+1)
		default:
			return scanBad
		}
	}
}

// Valid reports whether b is exactly one JSON value within MaxDepth, white
// space around it allowed.
func Valid(b []byte) bool {
	end := scanValue(b, skipSpace(b, 0), MaxDepth)
	return end >= 0 && skipSpace(b, end) == len(b)
}
