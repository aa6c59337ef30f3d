package codec

import (
	"math"
	"strconv"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Quotes, backslashes and control
// characters are escaped; invalid UTF-8 becomes U+FFFD; U+2028 and U+2029 are
// escaped too, for readers that take them for line ends. The result holds no
// raw line break, so a frame made of such strings is one line.
func AppendString[S ~string | ~[]byte](dst []byte, s S) []byte {
	dst = append(dst, '"')
	return append(AppendEscaped(dst, s), '"')
}

// AppendEscaped appends the inside of the string that AppendString makes. The
// text is copied first and looked at in dst: most of it needs no escape.
func AppendEscaped[S ~string | ~[]byte](dst []byte, s S) []byte {
	start := len(dst)
	dst = append(dst, s...)
	clean := skipClean(dst, start) - start
	if clean == len(s) {
		return dst
	}
	return appendHard(dst[:start+clean], s[clean:])
}

// skipClean gives the index of the first byte at or after i that cannot stand in
// a string of ours as it is.
func skipClean(b []byte, i int) int {
	for i = skipPlain(b, i); i < len(b) && b[i] >= utf8.RuneSelf; i = skipPlain(b, i) {
		r, n := utf8.DecodeRune(b[i:])
		if !isClean(r, n) {
			return i
		}
		i += n
	}
	return i
}

// isClean reports whether a rune of n bytes needs no escape.
func isClean(r rune, n int) bool {
	return !(r == utf8.RuneError && n <= 1) && r != '\u2028' && r != '\u2029'
}

// appendHard appends text that begins with a byte to escape.
func appendHard[S ~string | ~[]byte](dst []byte, s S) []byte {
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if !special[c] {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(dst, s[start:i]...)
			dst = appendEscape(dst, c)
			i++
			start = i
			continue
		}
		r, n := decodeRune(s[i:])
		if !isClean(r, n) {
			dst = append(dst, s[start:i]...)
			dst = append(dst, '\\', 'u', hexDigits[r>>12&0xF], hexDigits[r>>8&0xF], hexDigits[r>>4&0xF], hexDigits[r&0xF])
			start = i + n
		}
		i += n
	}
	return append(dst, s[start:]...)
}

func decodeRune[S ~string | ~[]byte](s S) (rune, int) {
	var buf [utf8.UTFMax]byte
	n := min(len(s), len(buf))
	for i := range n {
		buf[i] = s[i]
	}
	return utf8.DecodeRune(buf[:n])
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xF])
}

// AppendFloat appends f as a JSON number, an integral one without a fraction.
// NaN and the infinities, which JSON lacks, become 0.
func AppendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, '0')
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.AppendInt(dst, int64(f), 10)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

// AppendResultHead appends the beginning of a response, up to and with
// `"result":`. The caller appends the result and a closing brace. An id of nil
// becomes null.
func AppendResultHead(dst, id []byte) []byte {
	return append(appendHead(dst, id), `,"result":`...)
}

// AppendResult appends a whole response with a raw result.
func AppendResult(dst, id, result []byte) []byte {
	dst = AppendResultHead(dst, id)
	dst = append(dst, result...)
	return append(dst, '}')
}

func appendHead(dst, id []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	if id == nil {
		return append(dst, "null"...)
	}
	return append(dst, id...)
}

// AppendError appends an error response. Where id is nil the member is left
// out, which every client takes (one widely used client drops the connection on
// a null id, and the schemas from 2025-11-25 on make the id optional and never
// null).
func AppendError(dst, id []byte, e *Error) []byte {
	if id == nil {
		dst = append(dst, `{"jsonrpc":"2.0"`...)
	} else {
		dst = appendHead(dst, id)
	}
	dst = append(dst, `,"error":`...)
	return append(e.AppendObject(dst), '}')
}

// AppendObject appends the error as the object that a response holds.
func (e *Error) AppendObject(dst []byte) []byte {
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = AppendString(dst, e.Message)
	if e.Data != nil {
		dst = append(dst, `,"data":`...)
		dst = append(dst, e.Data...)
	}
	return append(dst, '}')
}

// AppendRequest appends a request. params is a raw object, or nil for none.
func AppendRequest(dst, id []byte, method string, params []byte) []byte {
	dst = append(appendHead(dst, id), `,"method":`...)
	dst = AppendString(dst, method)
	return appendParams(dst, params)
}

// AppendNotification appends a notification. params is a raw object, or nil.
func AppendNotification(dst []byte, method string, params []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":`...)
	dst = AppendString(dst, method)
	return appendParams(dst, params)
}

func appendParams(dst, params []byte) []byte {
	if len(params) > 0 {
		dst = append(dst, `,"params":`...)
		dst = append(dst, params...)
	}
	return append(dst, '}')
}

// AppendProgress appends a progress notification for a token, which is raw. A
// total of NaN and an empty message are left out.
func AppendProgress(dst, token []byte, progress, total float64, message string) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`...)
	dst = append(dst, token...)
	dst = append(dst, `,"progress":`...)
	dst = AppendFloat(dst, progress)
	if !math.IsNaN(total) {
		dst = append(dst, `,"total":`...)
		dst = AppendFloat(dst, total)
	}
	if message != "" {
		dst = append(dst, `,"message":`...)
		dst = AppendString(dst, message)
	}
	return append(dst, '}', '}')
}

// AppendCancelled appends the notification that cancels the request of an id,
// which is raw. An empty reason is left out.
func AppendCancelled(dst, id []byte, reason string) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`...)
	dst = append(dst, id...)
	if reason != "" {
		dst = append(dst, `,"reason":`...)
		dst = AppendString(dst, reason)
	}
	return append(dst, '}', '}')
}
