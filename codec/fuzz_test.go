package codec_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcpengine/mcpengine/codec"
)

// seeds are what every fuzz test of JSON text starts from; what the fuzzer found
// beyond them is kept in testdata.
var seeds = append(append(append([]string{
	`{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"},"_meta":{"progressToken":"p"}}}`,
	`{"jsonrpc":"2.0","\u0069d":"\ud800","method":"\ud83d\ude00","params":{"name":"a\tb","arguments":[1,{"x":null}]}}`,
	`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1e0,"reason":"r"}}`,
	`{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, `{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}`, `[{"a":1},{"b":2}]`, "\ufeff{}",
}, validTexts...), invalidTexts...), stricterTexts...)

func addSeeds(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
}

// depthOf tells how deep a text that is JSON is nested.
func depthOf(text []byte) int {
	depth, deepest := 0, 0
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.Token()
		if err != nil {
			return deepest
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
			deepest = max(deepest, depth)
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
}

// stdValid is json.Valid and what this package asks for beyond it.
func stdValid(text []byte) bool {
	return json.Valid(text) && utf8.Valid(text) && depthOf(text) <= codec.MaxDepth
}

// member is one member of an object as the standard library reads it.
type member struct {
	name  string
	value string // the text, without the white space around it
}

// stdMembers reads the members of an object in order, duplicates included.
func stdMembers(obj []byte) (members []member, ok bool) {
	d := json.NewDecoder(bytes.NewReader(obj))
	d.UseNumber()
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, false
		}
		members = append(members, member{name.(string), string(value)})
	}
	return members, true
}

// stdMember gives the only member of exactly that name; none where it is
// missing.
func stdMember(members []member, name string) (value string, n int) {
	for _, m := range members {
		if m.name == name {
			value = m.value
			n++
		}
	}
	return value, n
}

// stdText gives what the standard library reads from a string, else "".
func stdText(value string) string {
	var s string
	if !strings.HasPrefix(value, `"`) || json.Unmarshal([]byte(value), &s) != nil {
		return ""
	}
	return s
}

// stdToken gives an id or a token as this package should give it.
func stdToken(value string) string {
	if strings.HasPrefix(value, `"`) || value != "" && strings.Trim(value, "-0123456789") == "" {
		return value
	}
	return ""
}

func FuzzDecode(f *testing.F) {
	addSeeds(f)
	var m codec.Message
	f.Fuzz(func(t *testing.T, frame []byte) {
		valid := codec.Valid(frame)
		if want := stdValid(frame); valid != want {
			t.Fatalf("Valid(%q): got %v, want %v", frame, valid, want)
		}
		original := bytes.Clone(frame)
		err := codec.Decode(frame, &m)
		if !bytes.Equal(frame, original) {
			t.Fatalf("Decode(%q) changed the frame to %q", original, frame)
		}
		n := code(t, err)
		text := bytes.TrimPrefix(frame, []byte("\ufeff"))
		members, isObject := stdMembers(text)
		deep := depthOf(text) > codec.MaxDepth
		switch syntax := json.Valid(text) && utf8.Valid(text); {
		case !syntax && n != codec.CodeParseError && !(deep && n == codec.CodeInvalidRequest),
			syntax && n == codec.CodeParseError,
			syntax && (deep || !isObject) && n != codec.CodeInvalidRequest:
			t.Fatalf("Decode(%q): got %v; JSON: %v, too deep: %v, object: %v", frame, err, syntax, deep, isObject)
		case !syntax || deep || !isObject:
			if m.Kind != codec.KindInvalid {
				t.Fatalf("Decode(%q): got %s, want an invalid message", frame, shape(&m))
			}
			return
		}
		checkAgainst(t, frame, members, &m, err)
	})
}

// checkAgainst compares what Decode found with what the standard library finds
// under the same names.
func checkAgainst(t *testing.T, frame []byte, members []member, m *codec.Message, err error) {
	t.Helper()
	twice := false
	get := func(members []member, name string) string {
		value, n := stdMember(members, name)
		twice = twice || n > 1
		return value
	}
	id, method, params := get(members, "id"), get(members, "method"), get(members, "params")
	version, result, failure := get(members, "jsonrpc"), get(members, "result"), get(members, "error")
	inner, isObject := stdMembers([]byte(params))
	name, arguments := get(inner, "name"), get(inner, "arguments")
	if twice && err == nil {
		t.Fatalf("Decode(%q): a member occurs twice, got no error", frame)
	}
	if err != nil {
		return
	}
	for _, c := range []struct{ what, got, want string }{
		{"jsonrpc", "2.0", stdText(version)}, {"id", string(m.ID), stdToken(id)}, {"method", string(m.Method), stdText(method)},
		{"name", string(m.Name), stdText(name)}, {"arguments", string(m.Arguments), arguments},
		{"result", string(m.Result), result}, {"error", string(m.Error), failure},
	} {
		if c.got != c.want {
			t.Fatalf("Decode(%q): %s: got %q, want %q", frame, c.what, c.got, c.want)
		}
	}
	if isObject && string(m.Params) != params || !isObject && m.Params != nil {
		t.Fatalf("Decode(%q): params: got %q, want %q", frame, m.Params, params)
	}
	want := codec.KindNotification
	switch {
	case method != "" && id != "":
		want = codec.KindRequest
	case result != "":
		want = codec.KindResponse
	case failure != "":
		want = codec.KindError
	}
	if m.Kind != want {
		t.Fatalf("Decode(%q): kind: got %d, want %d", frame, m.Kind, want)
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "a", "\"\\\n\x00", "é\u2028😀", "\xff\xc3", "\xed\xa0\x80", "</script>", "123456789\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := codec.AppendString(nil, s)
		var back string
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatalf("AppendString(%q): got %s, which is no JSON: %v", s, got, err)
		}
		// Converting to runes replaces each byte that is no UTF-8 by U+FFFD.
		if want := string([]rune(s)); back != want {
			t.Fatalf("AppendString(%q): got %s, which is %q, want %q", s, got, back, want)
		}
		if bytes.ContainsAny(got, "\r\n\u2028\u2029") || !codec.Valid(got) {
			t.Fatalf("AppendString(%q): %q is not one valid line", s, got)
		}
		if own, ok := codec.String(got); !ok || own != back {
			t.Fatalf("String(%s): got %q, %v, want %q", got, own, ok, back)
		}
		if again := codec.AppendString(nil, []byte(s)); !bytes.Equal(again, got) {
			t.Fatalf("AppendString of the bytes of %q: got %s, want %s", s, again, got)
		}
	})
}

func FuzzUnescape(f *testing.F) {
	for _, s := range []string{``, `\n`, `\u0041`, `\ud83d\ude00`, `\ud800`, `\ud800\u0041`, `\udc00\ud800`, `\\\"`, `\`, `\u12`, `é\/`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, inside []byte) {
		got := codec.AppendUnescaped(nil, inside) // must not panic, whatever it is given
		text := append(append([]byte{'"'}, inside...), '"')
		value, ok := codec.String(text)
		if ok != stdValid(text) {
			t.Fatalf("String(%q): got ok %v, want %v", text, ok, !ok)
		}
		if !ok {
			return
		}
		var want string
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if string(got) != want || value != want {
			t.Fatalf("AppendUnescaped(%q): got %q, String %q, want %q", inside, got, value, want)
		}
	})
}

func FuzzSpan(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		var got []member
		whole := codec.EachMember(text, func(name, value []byte) bool {
			got = append(got, member{string(name), string(value)})
			return true
		})
		var elements []string
		all := codec.EachElement(text, func(value []byte) bool {
			elements = append(elements, string(value))
			return true
		})
		if !stdValid(text) {
			return // the walks above must not have panicked
		}
		want, isObject := stdMembers(text)
		if whole != isObject || !reflect.DeepEqual(got, want) {
			t.Fatalf("EachMember(%q): got %q, %v, want %q, %v", text, got, whole, want, isObject)
		}
		for _, m := range want {
			first := want[0].value
			for k := len(want) - 1; k >= 0; k-- {
				if want[k].name == m.name {
					first = want[k].value
				}
			}
			if v := codec.Member(text, m.name); string(v) != first {
				t.Fatalf("Member(%q, %q): got %q, want %q", text, m.name, v, first)
			}
		}
		var std []json.RawMessage
		isArray := bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")) && json.Unmarshal(text, &std) == nil
		if all != isArray || len(elements) != len(std) {
			t.Fatalf("EachElement(%q): got %q, %v, want %q, %v", text, elements, all, std, isArray)
		}
		for k := range std {
			if elements[k] != string(std[k]) {
				t.Fatalf("EachElement(%q): element %d: got %q, want %q", text, k, elements[k], std[k])
			}
		}
	})
}

func FuzzSplitBatch(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, frame []byte) {
		const limit = 4
		var got []string
		err := codec.SplitBatch(frame, limit, func(frame []byte) { got = append(got, string(frame)) })
		n := code(t, err)
		text := bytes.TrimPrefix(frame, []byte("\ufeff"))
		var std []json.RawMessage
		isArray := codec.IsBatch(frame) && stdValid(text) && json.Unmarshal(text, &std) == nil
		if want := isArray && len(std) > 0 && len(std) <= limit; (err == nil) != want {
			t.Fatalf("SplitBatch(%q): got %v, want success: %v", frame, err, want)
		}
		if n == codec.CodeParseError && stdValid(text) {
			t.Fatalf("SplitBatch(%q): got %v, but it is JSON", frame, err)
		}
		if err != nil {
			if got != nil {
				t.Fatalf("SplitBatch(%q): got %v and the frames %q", frame, err, got)
			}
			return
		}
		for k := range std {
			if len(got) != len(std) || got[k] != string(std[k]) {
				t.Fatalf("SplitBatch(%q): got %q, want %q", frame, got, std)
			}
		}
	})
}
