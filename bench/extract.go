package bench

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mcpengine/mcpengine/codec"
)

// ParsePath reads a JSON Pointer (/content/0/text), or the same as a path (content[0].text, also with $. in front),
// into member names and indexes. The empty pointer names the whole value.
func ParsePath(s string) ([]string, error) {
	switch {
	case s == "" || s == "$":
		return nil, nil
	case s[0] == '/':
		tokens := strings.Split(s[1:], "/")
		for i, t := range tokens {
			tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(t)
		}
		return tokens, nil
	}
	bad := fmt.Errorf("the path %q is not understood: write a JSON Pointer such as /content/0/text, or content[0].text",
		clip([]byte(s)))
	var tokens []string
	rest := strings.TrimPrefix(s, "$")
	if after, ok := strings.CutPrefix(rest, "."); ok && rest != s && !strings.HasPrefix(after, "[") {
		rest = after // the root in front
	}
	for rest != "" {
		if index, ok := strings.CutPrefix(rest, "["); ok {
			number, after, closed := strings.Cut(index, "]")
			if _, err := strconv.ParseUint(number, 10, 31); err != nil || !closed {
				return nil, bad
			}
			tokens, rest = append(tokens, number), after
		} else {
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				return nil, bad
			}
			tokens, rest = append(tokens, rest[:end]), rest[end:]
		}
		if after, ok := strings.CutPrefix(rest, "."); ok {
			if after == "" || after[0] == '[' {
				return nil, bad
			}
			rest = after
		}
	}
	return tokens, nil
}

// at gives the value that a path leads to, or nil.
func at(value []byte, path []string) []byte {
	for _, token := range path {
		switch firstByte(value) {
		case '{':
			value = codec.Member(value, token)
		case '[':
			value = element(value, token)
		default:
			return nil
		}
	}
	return value
}

// element gives the element of an array that an index names, or nil.
func element(array []byte, index string) (found []byte) {
	n, err := strconv.Atoi(index)
	if err != nil || n < 0 {
		return nil
	}
	codec.EachElement(array, func(v []byte) bool {
		if n == 0 {
			found = v
		}
		n--
		return found == nil
	})
	return found
}

// anyString reports whether f holds for one of the strings in a value; names of members are none.
func anyString(value []byte, f func(string) bool) (found bool) {
	switch firstByte(value) {
	case '"':
		s, _ := codec.String(value)
		return f(s)
	case '{':
		codec.EachMember(value, func(_, v []byte) bool {
			found = anyString(v, f)
			return !found
		})
	case '[':
		codec.EachElement(value, func(v []byte) bool {
			found = anyString(v, f)
			return !found
		})
	}
	return found
}
