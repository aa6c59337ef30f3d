package engine

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"unicode/utf8"

	"github.com/mcpengine/mcpengine/codec"
)

// Header names of the stateless era, in the canonical form of package http.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerParam   = "Mcp-Param-"
)

func mismatch(format string, args ...any) *codec.Error {
	return codec.NewError(codec.CodeHeaderMismatch, "Header mismatch: "+fmt.Sprintf(format, args...))
}

// oneHeader gives the one value of a header that may be there once.
func oneHeader(headers Headers, name string) (value string, present bool, fault *codec.Error) {
	values := headers.Values(name)
	switch len(values) {
	case 0:
		return "", false, nil
	case 1:
		return strings.Trim(values[0], " \t"), true, nil
	}
	return "", true, mismatch("the %s header occurs %d times", name, len(values))
}

// checkVersionHeader holds the version header to the body.
func checkVersionHeader(m *codec.Message, headers Headers) *codec.Error {
	value, present, fault := oneHeader(headers, headerVersion)
	switch {
	case fault != nil:
		return fault
	case !present:
		return mismatch("the %s header is missing", headerVersion)
	case value != string(m.MetaVersion):
		return mismatch("%s header value %q does not match body value %q", headerVersion, clip([]byte(value)), clip(m.MetaVersion))
	}
	return nil
}

// checkMethodHeaders holds Mcp-Method and Mcp-Name to the body.
func checkMethodHeaders(m *codec.Message, headers Headers) *codec.Error {
	value, present, fault := oneHeader(headers, headerMethod)
	switch {
	case fault != nil:
		return fault
	case !present:
		return mismatch("the %s header is missing", headerMethod)
	case value != string(m.Method):
		return mismatch("%s header value %q does not match body value %q", headerMethod, clip([]byte(value)), clip(m.Method))
	}
	want := namedBy(m)
	if want == nil {
		return nil
	}
	value, present, fault = oneHeader(headers, headerName)
	switch {
	case fault != nil:
		return fault
	case !present:
		return mismatch("the %s header is missing", headerName)
	}
	name, ok := decodeSentinel(value)
	if !ok {
		return mismatch("the %s header is not valid base64", headerName)
	}
	if name != string(want) {
		return mismatch("%s header value %q does not match body value %q", headerName, clip([]byte(name)), clip(want))
	}
	return nil
}

// namedBy gives what the Mcp-Name header has to say, or nil where the method
// needs none (or the body lacks it, which the method complains of).
func namedBy(m *codec.Message) []byte {
	switch string(m.Method) {
	case codec.MethodToolsCall, codec.MethodPromptsGet:
		return m.Name
	case codec.MethodResourcesRead:
		return m.URI
	case codec.MethodTasksGet, codec.MethodTasksUpdate, codec.MethodTasksCancel:
		return m.TaskID
	}
	return nil
}

// The sentinel carries values that a header cannot.
const (
	sentinelHead = "=?base64?"
	sentinelTail = "?="
)

// decodeSentinel gives what a header value stands for: itself, or the text
// whose base64 stands between the sentinel's parts.
func decodeSentinel(value string) (string, bool) {
	if len(value) < len(sentinelHead)+len(sentinelTail) ||
		!strings.HasPrefix(value, sentinelHead) || !strings.HasSuffix(value, sentinelTail) {
		return value, true
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(value[len(sentinelHead) : len(value)-len(sentinelTail)])
	return string(raw), err == nil && utf8.Valid(raw)
}

// paramHeader is an argument of a tool that a header repeats.
type paramHeader struct {
	name string // the header's, canonical
	path []string
	kind string // "string", "integer" or "boolean"
}

// paramHeaders finds the x-mcp-header members of an input schema and checks
// them: a token, on a property of type string, integer or boolean that is
// reached through properties alone, each name once.
func paramHeaders(schema json.RawMessage) ([]paramHeader, error) {
	found, err := collectHeaders(nil, schema, nil)
	if err != nil {
		return nil, err
	}
	if n := countHeaders(schema); n != len(found) {
		return nil, errors.New("x-mcp-header stands where no argument can be told: only properties within properties may have it")
	}
	names := make(map[string]bool)
	for _, h := range found {
		if key := strings.ToLower(h.name); names[key] {
			return nil, fmt.Errorf("x-mcp-header %q is used twice", strings.TrimPrefix(h.name, headerParam))
		} else {
			names[key] = true
		}
	}
	return found, nil
}

// collectHeaders walks down through properties.
func collectHeaders(found []paramHeader, schema []byte, path []string) ([]paramHeader, error) {
	var fault error
	codec.EachMember(codec.Member(schema, "properties"), func(name, property []byte) bool {
		at := append(append([]string(nil), path...), string(name))
		if raw := codec.Member(property, "x-mcp-header"); raw != nil {
			h := paramHeader{path: at, kind: codec.Text(property, "type")}
			text, ok := codec.String(raw)
			switch {
			case !ok || !isToken(text):
				fault = fmt.Errorf("x-mcp-header of %s is no token", strings.Join(at, "."))
			case h.kind != "string" && h.kind != "integer" && h.kind != "boolean":
				fault = fmt.Errorf("x-mcp-header of %s: only a string, an integer or a boolean can be told in a header", strings.Join(at, "."))
			}
			h.name = headerParam + text
			found = append(found, h)
		}
		if fault == nil {
			found, fault = collectHeaders(found, property, at)
		}
		return fault == nil
	})
	return found, fault
}

// countHeaders counts the x-mcp-header members of a schema, wherever they stand.
func countHeaders(schema []byte) (n int) {
	codec.EachMember(schema, func(name, value []byte) bool {
		switch string(name) {
		case "x-mcp-header":
			n++
		case "const", "enum", "default", "examples":
		case "properties", "$defs", "definitions", "patternProperties", "dependentSchemas":
			codec.EachMember(value, func(_, sub []byte) bool { n += countHeaders(sub); return true })
		default:
			n += countHeaders(value)
			codec.EachElement(value, func(sub []byte) bool { n += countHeaders(sub); return true })
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

// checkParamHeaders holds the Mcp-Param headers to the arguments.
func (e *entry) checkParamHeaders(arguments []byte, headers Headers) *codec.Error {
	for i := range e.headers {
		if fault := e.headers[i].check(arguments, headers); fault != nil {
			return fault
		}
	}
	return nil
}

func (p *paramHeader) check(arguments []byte, headers Headers) *codec.Error {
	value, present, fault := oneHeader(headers, p.name)
	if fault != nil {
		return fault
	}
	body := codec.Member(arguments, p.path...)
	wanted := body != nil && string(body) != "null"
	switch {
	case !wanted && !present:
		return nil
	case !wanted:
		return mismatch("the %s header has no counterpart in the arguments", p.name)
	case !present:
		return mismatch("the %s header is missing", p.name)
	}
	text, ok := decodeSentinel(value)
	if !ok {
		return mismatch("the %s header is not valid base64", p.name)
	}
	if !p.equal(text, body) {
		return mismatch("the %s header does not match the argument %s", p.name, strings.Join(p.path, "."))
	}
	return nil
}

// equal compares a header's text with a raw argument: integers by value, others
// to the letter. An argument of another type is left to the check of arguments.
func (p *paramHeader) equal(text string, body []byte) bool {
	if !isKind(body, p.kind) {
		return true
	}
	switch p.kind {
	case "string":
		want, _ := codec.String(body)
		return text == want
	case "integer":
		if len(text) > 64 || len(body) > 64 || strings.ContainsAny(text, "/_xXpPoObB") {
			return false
		}
		a, okA := new(big.Rat).SetString(text)
		b, okB := new(big.Rat).SetString(string(body))
		return okA && okB && a.Cmp(b) == 0
	}
	return text == string(body)
}
