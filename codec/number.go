package codec

import (
	"bytes"
	"strconv"
)

// integer gives a JSON number as a decimal integer: its sign and its digits
// without leading zeros. A number with a fraction or an exponent counts where
// its value is integral, as JSON Schema has it (1.0 and 1e2 are integers). whole
// is false where the value is none; fits is false where it has more digits than
// any integer type of Go. The digits are those of token wherever they can be,
// else they are appended to scratch.
func integer(scratch, token []byte) (negative bool, digits []byte, whole, fits bool) {
	if negative = token[0] == '-'; negative {
		token = token[1:]
	}
	mark := bytes.IndexAny(token, ".eE")
	if mark < 0 {
		return negative, token, true, len(token) <= maxDigits
	}
	exponent, fits := 0, true
	if e := bytes.IndexAny(token, "eE"); e >= 0 {
		exponent, fits = smallExponent(token[e+1:])
		token = token[:e]
	}
	scratch = append(scratch, token[:min(mark, len(token))]...)
	if mark < len(token) {
		fraction := token[mark+1:]
		scratch = append(scratch, fraction...)
		exponent -= len(fraction)
	}
	digits = bytes.TrimLeft(scratch, "0")
	if len(digits) == 0 {
		return negative, append(digits, '0'), true, true
	}
	for exponent < 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
		exponent++
	}
	switch {
	case exponent < 0:
		return negative, nil, false, false
	case !fits || len(digits)+exponent > maxDigits:
		return negative, nil, true, false
	}
	for range exponent {
		digits = append(digits, '0')
	}
	return negative, digits, true, true
}

// IsIntegral reports whether a JSON number, in whatever spelling, is an integer:
// 1, 1.0, 10e-1 and 1e300 are. It is false for what is no number. No float is
// involved, so no digit is too small to count.
func IsIntegral(number []byte) bool {
	if len(number) == 0 {
		return false
	}
	if end, _ := scanNumber(number, 0); end != len(number) {
		return false
	}
	var scratch [64]byte
	_, _, whole, _ := integer(scratch[:0], number)
	return whole
}

// maxDigits is how many digits the largest uint64 has.
const maxDigits = 20

// smallExponent reads the exponent of a number. One that is beyond any use is
// cut to a bound that keeps its sign and its effect; ok is false where that
// makes the number larger than every integer type.
func smallExponent(text []byte) (n int, ok bool) {
	const bound = 1 << 30
	n, err := strconv.Atoi(string(text))
	switch {
	case text[0] == '-':
		if err != nil || n < -bound {
			n = -bound
		}
		return n, true
	case err != nil || n > bound:
		return bound, false
	}
	return n, true
}

// toInt reads a JSON number as an int64. whole is false where its value is not
// integral, fits where it is beyond the type.
func toInt(token []byte) (n int64, whole, fits bool) {
	if u, ok := ParseUint(token); ok {
		return int64(u), true, u < 1<<63
	}
	var scratch [64]byte
	negative, digits, whole, fits := integer(scratch[:0], token)
	if !whole || !fits {
		return 0, whole, false
	}
	u, err := strconv.ParseUint(string(digits), 10, 64)
	switch {
	case err != nil:
		return 0, true, false
	case negative:
		return -int64(u), true, u <= 1<<63
	}
	return int64(u), true, u < 1<<63
}

// toUint reads a JSON number as a uint64, as toInt does. A negative number is
// whole and does not fit; -0 is 0.
func toUint(token []byte) (n uint64, whole, fits bool) {
	if u, ok := ParseUint(token); ok {
		return u, true, true
	}
	var scratch [64]byte
	negative, digits, whole, fits := integer(scratch[:0], token)
	if !whole || !fits {
		return 0, whole, false
	}
	n, err := strconv.ParseUint(string(digits), 10, 64)
	return n, true, err == nil && (!negative || n == 0)
}
