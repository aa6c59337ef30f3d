package engine

import (
	"encoding/base64"
	"strings"

	"github.com/mcpengine/mcpengine/codec"
)

// appendWithMeta appends a raw object with a raw member added to its _meta,
// where one of that name gives way.
func appendWithMeta(dst, obj, member []byte) []byte {
	name, _, _ := strings.Cut(string(member), ":{")
	dst = append(dst, `{"_meta":{`...)
	dst = append(dst, member...)
	codec.EachMember(codec.Member(obj, "_meta"), func(n, v []byte) bool {
		if quoted := codec.AppendString(nil, n); string(quoted) != name {
			dst = append(append(append(append(dst, ','), quoted...), ':'), v...)
		}
		return true
	})
	dst = append(dst, '}')
	codec.EachMember(obj, func(n, v []byte) bool {
		if string(n) != "_meta" {
			dst = append(codec.AppendString(append(dst, ','), n), ':')
			dst = append(dst, v...)
		}
		return true
	})
	return append(dst, '}')
}

// A text cursor carries a string, for lists that are not of the catalog.

func appendTextCursor(dst []byte, text string) []byte {
	return base64.RawURLEncoding.AppendEncode(dst, []byte("t:"+text))
}

func parseTextCursor(cursor []byte) (string, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(string(cursor))
	if err != nil {
		return "", false
	}
	return strings.CutPrefix(string(raw), "t:")
}
