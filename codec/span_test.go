package codec_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
)

func TestEachMember(t *testing.T) {
	for _, c := range []struct {
		obj  string
		want string // members as name=value, then whether the end was reached
	}{
		{`{}`, `true`},
		{` { } `, `true`},
		{`{"a":1}`, `a=1 true`},
		{"\n{ \"a\" :\t[1, 2] , \"b\" : {\"c\":null} }", `a=[1, 2] b={"c":null} true`},
		{`{"a":1,"a":2}`, `a=1 a=2 true`},
		{`{"\u0061\n":"x\ny"}`, "a\n=\"x\\ny\" true"},
		{`{"":"","\\":"\\"}`, `="" \="\\" true`},
		{`{"a":1,"stop":2,"b":3}`, `a=1 stop=2 false`},
		{`[1]`, `false`}, {`null`, `false`}, {``, `false`}, {`{`, `false`}, {`{"a"`, `false`}, {`{"a":`, `false`}, {`{"a":}`, `false`},
		{`{"a":1`, `a=1 false`}, {`{"a":1,`, `a=1 false`}, {`{"a":1,}`, `a=1 false`}, {`{"a":1;"b":2}`, `a=1 false`}, {`{"a":1]`, `a=1 false`},
		{`{"a" 1}`, `false`}, {`{"a:1}`, `false`}, {`{1:2}`, `false`},
	} {
		var got []string
		done := codec.EachMember([]byte(c.obj), func(name, value []byte) bool {
			got = append(got, string(name)+"="+string(value))
			return string(name) != "stop"
		})
		if s := strings.Join(append(got, fmt.Sprint(done)), " "); s != c.want {
			t.Errorf("EachMember(%s): got %q, want %q", c.obj, s, c.want)
		}
	}
}

func TestEachElement(t *testing.T) {
	for _, c := range []struct{ arr, want string }{
		{`[]`, `true`}, {` [ ] `, `true`}, {`[1]`, `1 true`}, {`[ 1 , "a,b" ,[2],{"c":3}, null ]`, `1 "a,b" [2] {"c":3} null true`},
		{`["stop",1]`, `"stop" false`}, {`{}`, `false`}, {`1`, `false`}, {``, `false`}, {`[`, `false`}, {`[1`, `1 false`}, {`[1,`, `1 false`},
		{`[1,]`, `1 false`}, {`[1 2]`, `1 false`}, {`[1}`, `1 false`}, {`[,]`, `false`}, {`[x]`, `false`},
	} {
		var got []string
		done := codec.EachElement([]byte(c.arr), func(value []byte) bool {
			got = append(got, string(value))
			return string(value) != `"stop"`
		})
		if s := strings.Join(append(got, fmt.Sprint(done)), " "); s != c.want {
			t.Errorf("EachElement(%s): got %q, want %q", c.arr, s, c.want)
		}
	}
}

func TestMember(t *testing.T) {
	obj := `{"a":{"b":{"c":[1]}},"s":"x\u0079","n":-12,"f":1.5,"big":9223372036854775807,"over":9223372036854775808,"t":true,` +
		`"no":false,"nul":null,"a":"again","A":"case","e":1e2,"huge":1e999,"\u0064":4}`
	for _, c := range []struct{ path, want string }{
		{"", obj}, {"a", `{"b":{"c":[1]}}`}, {"a.b", `{"c":[1]}`}, {"a.b.c", `[1]`}, {"A", `"case"`}, {"d", `4`}, {"nul", `null`},
		{"x", ``}, {"a.x", ``}, {"s.x", ``}, {"a.b.c.d", ``}, {"nul.x", ``},
	} {
		var path []string
		if c.path != "" {
			path = strings.Split(c.path, ".")
		}
		got := codec.Member([]byte(obj), path...)
		if string(got) != c.want || (got == nil) != (c.want == "") {
			t.Errorf("Member(%q): got %q, want %q", c.path, got, c.want)
		}
	}
	for _, c := range []struct {
		name   string
		text   string
		n      int64
		intOK  bool
		f      float64
		fOK    bool
		isTrue bool
	}{
		{name: "s", text: "xy"},
		{name: "n", n: -12, intOK: true, f: -12, fOK: true},
		{name: "f", f: 1.5, fOK: true},
		{name: "big", n: 9223372036854775807, intOK: true, f: 9223372036854775807, fOK: true},
		{name: "over", n: 9223372036854775807, f: 9223372036854775808, fOK: true},
		{name: "e", f: 100, fOK: true},
		{name: "huge"},
		{name: "t", isTrue: true},
		{name: "no"}, {name: "nul"}, {name: "a"}, {name: "missing"},
	} {
		if got := codec.Text([]byte(obj), c.name); got != c.text {
			t.Errorf("Text(%q): got %q, want %q", c.name, got, c.text)
		}
		if n, ok := codec.Int([]byte(obj), c.name); ok != c.intOK || ok && n != c.n {
			t.Errorf("Int(%q): got %d, %v, want %d, %v", c.name, n, ok, c.n, c.intOK)
		}
		if f, ok := codec.Number([]byte(obj), c.name); ok != c.fOK || ok && f != c.f {
			t.Errorf("Number(%q): got %g, %v, want %g, %v", c.name, f, ok, c.f, c.fOK)
		}
		if got := codec.Bool([]byte(obj), c.name); got != c.isTrue {
			t.Errorf("Bool(%q): got %v, want %v", c.name, got, c.isTrue)
		}
	}
}

func TestString(t *testing.T) {
	long := strings.Repeat("long ", 100)
	for _, c := range []struct {
		value, want string
		ok          bool
	}{
		{`""`, "", true}, {`"a"`, "a", true}, {`"\n"`, "\n", true}, {`"` + long + `\t"`, long + "\t", true},
		{``, "", false}, {`"`, "", false}, {`"a`, "", false}, {`a"`, "", false}, {`"a"b"`, "", false}, {`"a" `, "", false}, {`1`, "", false},
		{`null`, "", false}, {`"\"`, "", false},
	} {
		if got, ok := codec.String([]byte(c.value)); got != c.want || ok != c.ok {
			t.Errorf("String(%s): got %q, %v, want %q, %v", c.value, got, ok, c.want, c.ok)
		}
	}
}

func TestAppendUnescaped(t *testing.T) {
	for _, c := range []struct{ inside, want string }{
		{``, ""}, {`abc`, "abc"}, {`\"\\\/\b\f\n\r\t`, "\"\\/\b\f\n\r\t"}, {`\u0041\u00e9\u20AC`, "Aé€"}, {`\u0000`, "\x00"},
		{`\ud83d\ude00`, "😀"}, {`\uD83D\uDE00`, "😀"}, {`x\ud800y`, "x\ufffdy"}, {`\udc00`, "\ufffd"}, {`\ud800\ud800`, "\ufffd\ufffd"},
		{`\ud800\u0041`, "\ufffdA"}, {`\ud800\ud83d\ude00`, "\ufffd😀"}, {`\udc00\ud800`, "\ufffd\ufffd"}, {`\ud800\n`, "\ufffd\n"}, {`\ufffd`, "\ufffd"},
		{`a\\u0041`, `a\u0041`}, {`é\té`, "é\té"},
		// What scanString refuses comes out somehow, without a panic.
		{`\`, `\`}, {`\u`, "\ufffd"}, {`\u12`, "\ufffd12"}, {`\uzzzz`, "\ufffdzzzz"}, {`\ud800\u12`, "\ufffd\ufffd12"},
	} {
		if got := codec.AppendUnescaped([]byte("-"), []byte(c.inside)); string(got) != "-"+c.want {
			t.Errorf("AppendUnescaped(%s): got %q, want %q", c.inside, got[1:], c.want)
		}
	}
}

func TestSplitBatch(t *testing.T) {
	for _, c := range []struct {
		frame string
		want  []string
		code  int
	}{
		{`[{"a":1},{"b":[2]}]`, []string{`{"a":1}`, `{"b":[2]}`}, 0},
		{" \n[ 1 , null ] ", []string{"1", "null"}, 0},
		{"\ufeff[1]", []string{"1"}, 0},
		{`[1,2,3]`, []string{"1", "2", "3"}, 0},
		{`[1,2,3,4]`, nil, codec.CodeInvalidRequest},
		{`[]`, nil, codec.CodeInvalidRequest},
		{`{}`, nil, codec.CodeInvalidRequest},
		{`1`, nil, codec.CodeInvalidRequest},
		{``, nil, codec.CodeParseError},
		{`[1,]`, nil, codec.CodeParseError},
		{`[1][2]`, nil, codec.CodeParseError},
		{`[{"a":1},{"b"]`, nil, codec.CodeParseError},
		{"[\"\xff\"]", nil, codec.CodeParseError},
		{strings.Repeat("[", 200), nil, codec.CodeInvalidRequest},
	} {
		var got []string
		err := codec.SplitBatch([]byte(c.frame), 3, func(frame []byte) { got = append(got, string(frame)) })
		if n := code(t, err); n != c.code || !slices.Equal(got, c.want) {
			t.Errorf("SplitBatch(%.60q): got %q, code %d (%v), want %q, code %d", c.frame, got, n, err, c.want, c.code)
		}
	}
}

func TestIsBatch(t *testing.T) {
	for frame, want := range map[string]bool{
		`[`: true, " \r\n\t[]": true, "\ufeff [1]": true, `{}`: false, ``: false, `1`: false, "\ufeff": false, "\xef\xbb[": false, `"["`: false,
	} {
		if got := codec.IsBatch([]byte(frame)); got != want {
			t.Errorf("IsBatch(%q): got %v, want %v", frame, got, want)
		}
	}
}

func TestIsObject(t *testing.T) {
	for value, want := range map[string]bool{`{}`: true, `[]`: false, ``: false, `null`: false} {
		if got := codec.IsObject([]byte(value)); got != want {
			t.Errorf("IsObject(%s): got %v, want %v", value, got, want)
		}
	}
}

func TestIsIntegral(t *testing.T) {
	for number, want := range map[string]bool{
		"0": true, "-0": true, "1": true, "1.0": true, "10e-1": true, "1e300": true, "1E+400": true, "-1.50e1": true, "0.0e-9": true,
		strings.Repeat("9", 100): true, "1.5": false, "1e-1": false, "9007199254740992.5": false, "1e-400": false, "": false, "-": false, "x": false,
		"01": false, "1 ": false, `"1"`: false, "1e": false,
	} {
		if got := codec.IsIntegral([]byte(number)); got != want {
			t.Errorf("IsIntegral(%s): got %v, want %v", number, got, want)
		}
	}
}

func TestCompactTail(t *testing.T) {
	for _, c := range []struct {
		frame string
		start int
		want  string
	}{
		{"a\n{\"b\": 1}", 2, "a\n{\"b\": 1}"}, {"a\n{\n \"b\":\r\n1}\n", 2, "a\n{ \"b\":1}"}, {"", 0, ""}, {"\n\r", 0, ""}, {"x\n", 2, "x\n"},
		{"{\"a\":\"\\n\"}", 0, "{\"a\":\"\\n\"}"},
	} {
		if got := codec.CompactTail([]byte(c.frame), c.start); string(got) != c.want {
			t.Errorf("CompactTail(%q, %d): got %q, want %q", c.frame, c.start, got, c.want)
		}
	}
}
