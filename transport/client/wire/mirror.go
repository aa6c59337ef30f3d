package wire

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcpengine/mcpengine/codec"
)

// Headers that repeat parts of a request's body in the stateless era (2026-07-28, section Streamable HTTP), so that
// whatever stands between client and server can route without reading bodies.
const (
	HeaderVersion = "Mcp-Protocol-Version"
	HeaderMethod  = "Mcp-Method"
	HeaderName    = "Mcp-Name"

	headerParam = "Mcp-Param-"
)

// MethodHeaders gives the headers that a request of the stateless era needs whatever its arguments are. name is what
// its Mcp-Name header repeats, and is left out where the method has none.
func MethodHeaders(version, method, name string) Header {
	h := Header{HeaderVersion: {version}, HeaderMethod: {method}}
	switch method {
	case codec.MethodToolsCall, codec.MethodPromptsGet, codec.MethodResourcesRead,
		codec.MethodTasksGet, codec.MethodTasksUpdate, codec.MethodTasksCancel:
		h[HeaderName] = []string{EncodeValue(name)}
	}
	return h
}

// NamedBy gives the member of params that the Mcp-Name header of a method repeats, or "" where it has none.
func NamedBy(method string) string {
	switch method {
	case codec.MethodToolsCall, codec.MethodPromptsGet:
		return "name"
	case codec.MethodResourcesRead:
		return "uri"
	case codec.MethodTasksGet, codec.MethodTasksUpdate, codec.MethodTasksCancel:
		return "taskId"
	}
	return ""
}

// The sentinel marks a header value that is the base64 of the real one.
const (
	sentinelHead = "=?base64?"
	sentinelTail = "?="
)

// EncodeValue gives a header value for a text: itself where a header carries it unchanged, else its base64 between the
// marks of the sentinel. A text that looks like one is encoded too, so that it comes out as it was.
func EncodeValue(text string) string {
	plain := !strings.HasPrefix(text, sentinelHead) || !strings.HasSuffix(text, sentinelTail)
	for i := 0; i < len(text) && plain; i++ {
		plain = text[i] >= ' ' && text[i] <= '~'
	}
	if plain && strings.Trim(text, " ") == text {
		return text
	}
	return sentinelHead + base64.StdEncoding.EncodeToString([]byte(text)) + sentinelTail
}

// Mirror is an argument of a tool that a header repeats because its schema says so with x-mcp-header.
type Mirror struct {
	Header string   // name of the header, such as "Mcp-Param-Region"
	path   []string // of the argument
}

// Mirrors finds the x-mcp-header members of an input schema. The error says why the tool that has the schema must not
// be offered over HTTP: a name that is no token or used twice, a type other than string, integer and boolean, or a
// place that is not reached through properties alone.
func Mirrors(schema []byte) ([]Mirror, error) {
	found, err := collectMirrors(nil, schema, nil)
	if err != nil {
		return nil, err
	}
	if countMirrors(schema) != len(found) {
		return nil, errors.New("x-mcp-header stands on something other than a property within properties")
	}
	seen := make(map[string]bool, len(found))
	for _, m := range found {
		key := strings.ToLower(m.Header)
		if seen[key] {
			return nil, fmt.Errorf("x-mcp-header %q is used twice", strings.TrimPrefix(m.Header, headerParam))
		}
		seen[key] = true
	}
	return found, nil
}

// collectMirrors walks down through properties.
func collectMirrors(found []Mirror, schema []byte, path []string) ([]Mirror, error) {
	var fault error
	codec.EachMember(codec.Member(schema, "properties"), func(name, property []byte) bool {
		at := append(path[:len(path):len(path)], string(name))
		if raw := codec.Member(property, "x-mcp-header"); raw != nil {
			text, ok := codec.String(raw)
			switch {
			case !ok || !isToken(text):
				fault = fmt.Errorf("x-mcp-header of %s is no token", printable(strings.Join(at, ".")))
				return false
			case !mirrored(codec.Text(property, "type")):
				fault = fmt.Errorf("x-mcp-header of %s: its type is not string, integer or boolean", printable(strings.Join(at, ".")))
				return false
			}
			found = append(found, Mirror{Header: headerParam + text, path: at})
		}
		found, fault = collectMirrors(found, property, at)
		return fault == nil
	})
	return found, fault
}

func mirrored(kind string) bool { return kind == "string" || kind == "integer" || kind == "boolean" }

// printable keeps what a server wrote to one line of a log.
func printable(s string) string {
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

// countMirrors counts the x-mcp-header members of a schema, wherever they stand but for plain data.
func countMirrors(schema []byte) (n int) {
	codec.EachMember(schema, func(name, value []byte) bool {
		switch string(name) {
		case "x-mcp-header":
			n++
		case "const", "enum", "default", "examples":
		case "properties", "$defs", "definitions", "patternProperties", "dependentSchemas":
			codec.EachMember(value, func(_, sub []byte) bool { n += countMirrors(sub); return true })
		default:
			n += countMirrors(value)
			codec.EachElement(value, func(sub []byte) bool { n += countMirrors(sub); return true })
		}
		return true
	})
	return n
}

// isToken reports whether s is a token of RFC 9110.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		alnum := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alnum && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// Value gives the header value for raw arguments. ok is false where the argument is absent or null, and the header
// must be left out.
func (m *Mirror) Value(arguments []byte) (value string, ok bool) {
	raw := codec.Member(arguments, m.path...)
	switch {
	case raw == nil || string(raw) == "null":
		return "", false
	case raw[0] == '"':
		s, _ := codec.String(raw)
		return EncodeValue(strings.ToValidUTF8(s, string(utf8.RuneError))), true
	}
	return EncodeValue(decimal(string(raw))), true
}

// decimal writes a JSON number that is an integer, such as 4.2e1, in decimal digits. Anything else stays as it is; the
// server finds fault with it.
func decimal(number string) string {
	if !strings.ContainsAny(number, ".eE") {
		return number
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return number
	}
	return strconv.FormatInt(int64(f), 10)
}
