package codec_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
)

// validTexts are JSON: the corners that public test suites visit, written by
// hand. Each must be taken, by the standard library too.
var validTexts = []string{
	// Structure and white space.
	`[]`, `{}`, ` [] `, "\t{}\r\n", "[\n1\r,\t2 ]", `[[]   ]`, `[""]`, `{"":0}`, `{"a":{}}`, `[[],[[]],{}]`, `{"a":"b","a":"c"}`,
	`{"a":"b","a":"b"}`, `[null, 1, "1", {}]`, `[1,null,null,null,2]`, `{ "min": -1.0e+28, "max": 1.0e+28 }`,
	// Scalars on their own.
	`null`, `true`, `false`, `0`, `""`, ` "x" `, "42\n",
	// Numbers.
	`-0`, `-0.0`, `0e1`, `0e+1`, `0.0`, `1E22`, `1E-2`, `1E+2`, `123.456e78`, `123e-10000000`, `1e999`, `-1`, `20e1`, `1.5e+9999`,
	`100000000000000000000`, `-237462374673276894279832749832423479823246327846`, `0.4e00669999999999999999999999999999999999999`,
	`-0.000000000000000000000000000000000000000000000000000000000000000000000000000001`, `0.` + strings.Repeat("0", 500) + `1`,
	// Strings: escapes.
	`"\u0060\u012a\u12AB"`, `"\"\\\/\b\f\n\r\t"`, `"\\u0000"`, `"\""`, `"\\"`, `"\\a"`, `"\u0000"`, `"\u0012"`, `"\uFFFF"`, `"\u0022"`,
	`"\u005C"`, `"\uabcd\uABCD\uaBcD"`, `"\uD801\udc37"`, `"\ud83d\ude39\ud83d\udc8d"`, `"\uDBFF\uDFFE"`, `"\u2028\u2029"`, `"\u200B"`,
	// Strings: surrogates without their other half are for the reader to judge.
	`"\uDADA"`, `"\uD888\u1234"`, `"\uD800\uD800\n"`, `"\uDd1ea"`, `"\uDFAA"`, `"\ud800abc"`, `"\uDd1e\uD834"`,
	// Strings: raw characters.
	`"a/*b*/c/*d//e"`, "\"\x7f\"", "\"\u2028\"", "\"\u2029\"", "\"\U0010ffff\"", "\"\u0080\"", "\"€𝄞\"", "\"\uffff\"", "\"\ufeff\"", "\"\U0001ffff\"",
	"\"\ufffd\"", `"asd "`, `" "`, `"new` + "\u00a0" + `line"`, `"` + strings.Repeat("x", 1000) + `"`, `"1234567"`, `"12345678"`, `"123456789"`,
}

// invalidTexts are no JSON, and the standard library agrees.
var invalidTexts = []string{
	// Nothing, or not enough.
	``, ` `, `[`, `{`, `[1`, `[1,`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `"`, `"x`, `["a`, `["a",4`, `{"a":"a`, `t`, `tru`, `nul`, `fals`, `-`, `1.`, `1e`,
	`1e+`, `[[`, `[{}`, `[""`, `{"":`, `["\`, `["\u`, `["\u1`, `["\u12`, `["\u123`, `["\uD800\`, `["\uD800\u`, `"\`, `[true`, `[-`,
	// Too much.
	`1 2`, `[]]`, `{}}`, `[][]`, `{}{}`, `[1]x`, `{"a":"b"}#`, `{"a":"b"}/**/`, `""x`, `truefalse`, `nulll`, `[1]]`, `2@`, `{}//`, "[]\x00", "[]\x0c",
	// Separators.
	`[,]`, `[,1]`, `[1,]`, `[1,,2]`, `[1 2]`, `["a" "b"]`, `["",]`, `[3[4]]`, `[1:2]`, `["a":1]`, `{,}`, `{"a":1,}`, `{"a":1,,"b":2}`, `{"a" "b"}`, `{"a"::1}`,
	`{"a","b"}`, `{"a":1 "b":2}`, `{"a":1:2}`, `{:"b"}`, `{"a":"b",,"c":"d"}`, `[}`, `{]`, `["x"}`, `{"a":1]`, `,`, `:`, `]`, `}`,
	// Names.
	`{a:1}`, `{'a':1}`, `{1:1}`, `{null:1}`, `{[]:1}`, `{{}:1}`, `{9999E9999:1}`, `{"a":1,b:2}`, `{a: "b"}`, `{"x"`, "{\"a\nb\":1}",
	// Literals.
	`True`, `TRUE`, `False`, `Null`, `nan`, `NaN`, `-NaN`, `Infinity`, `-Infinity`, `+Infinity`, `Inf`, `inf`, `undefined`, `None`, `[nul]`, `[tru]`, `[fals]`,
	// Numbers.
	`01`, `-01`, `00`, `-`, `+1`, `++1`, `--1`, `.5`, `-.5`, `1.`, `-1.`, `0.`, `1.e1`, `0.e1`, `.1e1`, `1e`, `1E`, `1e+`, `1E-`, `1e1.5`, `1.2.3`, `1 000.0`, `0x1`, `0X1F`,
	`1_000`, `1a`, `-a`, `1e1e1`, `0e`, `0e+`, `0.3e`, `0.3e+`, `9.e+`, `2.e3`, `-1x`, `1+2`, `- 1`, `-2.`, `[1.]`, `[-012]`, `[012]`, `[1eE2]`, `[1.0e-]`, `[0.1.2]`, `１`,
	// Strings.
	`'a'`, "\"\n\"", "\"\t\"", "\"\r\"", "\"\x00\"", "\"\x1f\"", "\"a\x01b\"", "\"\\n\n\"", `"\x00"`, `"\a"`, `"\v"`, `"\'"`, `"\0"`, `"\ "`, `"\U0041"`, `"\u"`, `"\u00"`, `"\u00A"`,
	`"\uqqqq"`, `"\u{41}"`, `"\u-123"`, `"\u+123"`, `"\` + "\n" + `"`, `"\` + "\u00e9" + `"`, `"\\\"`, "\"\\\x00\"", `\u0022a\u0022`, `"a"b"`, `abc`, "`a`",
	// White space and other bytes that are none.
	"\x0b[]", "\x0c[]", "\u00a0[]", "\u2003[]", "\u2060[]", "[\x0c]", "[\x0b1]", "\x00", "\x00[]", "[1\x00]", "\ufeff[]", "\ufeff", "\xef\xbb[]", "\xff\xfe[\x00]\x00",
	// Comments and other languages.
	`[1/*a*/]`, `//a` + "\n[]", `/**/[]`, `#a` + "\n[]", `<.>`, `<null>`, `{"a":new Date()}`, `[1;2]`, `(1)`, `{"a":"b"}}`, `*`, `&`, `["a` + "\x00" + `a"]`, `{"a":/*b*/1}`,
}

// stricterTexts are taken by the standard library and refused here: text that is
// no UTF-8 (RFC 8259, section 8.1), and nesting beyond MaxDepth.
var stricterTexts = []string{
	"\"\xff\"", "\"\x80\"", "\"\xc3\"", "\"\xc3(\"", "\"\xc0\x80\"", "\"\xc0\xaf\"", "\"\xe0\x80\xaf\"", "\"\xf0\x80\x80\xaf\"", "\"\xed\xa0\x80\"", "\"\xed\xbf\xbf\"",
	"\"\xf4\x90\x80\x80\"", "\"\xf8\x88\x80\x80\x80\"", "\"\xfc\x84\x80\x80\x80\x80\"", "\"\xe2\x82\"", "\"a\xe2\x82\"", "\"\xfe\"", "{\"\xff\":1}", "[\"\xe9\"]",
	"\"12345678\xff\"", "\"\\n\xff\"", "\"\xf0\x9f\x98\"",
	strings.Repeat("[", codec.MaxDepth+1) + strings.Repeat("]", codec.MaxDepth+1),
	strings.Repeat(`{"a":`, codec.MaxDepth+1) + "1" + strings.Repeat("}", codec.MaxDepth+1),
}

func TestValid(t *testing.T) {
	deepest := strings.Repeat("[", codec.MaxDepth) + strings.Repeat("]", codec.MaxDepth)
	for _, text := range append(validTexts, deepest) {
		if got, std := codec.Valid([]byte(text)), json.Valid([]byte(text)); !got || !std {
			t.Errorf("Valid(%.80q): got %v, the standard library %v, want true", text, got, std)
		}
		if got := codec.Valid([]byte(" \n" + text + "\t\r\n")); !got {
			t.Errorf("Valid(%.80q) in white space: got false, want true", text)
		}
		inside := []byte(`{"a":[` + text + `,` + text + `]}`)
		if got, want := codec.Valid(inside), text != deepest; got != want {
			t.Errorf("Valid(%.80q): got %v, want %v", inside, got, want)
		}
	}
	for _, text := range invalidTexts {
		if got, std := codec.Valid([]byte(text)), json.Valid([]byte(text)); got || std {
			t.Errorf("Valid(%.80q): got %v, the standard library %v, want false", text, got, std)
		}
		inside := []byte(`{"a":[` + text + `]}`)
		if got, want := codec.Valid(inside), json.Valid(inside); got != want {
			t.Errorf("Valid(%.80q): got %v, want %v", inside, got, want)
		}
	}
	for _, text := range stricterTexts {
		if got, std := codec.Valid([]byte(text)), json.Valid([]byte(text)); got || !std {
			t.Errorf("Valid(%.80q): got %v, the standard library %v, want false and true", text, got, std)
		}
	}
}

// TestValidEveryByte puts each byte at each place of a string, so that no place
// of the eight that are looked at together differs from the others.
func TestValidEveryByte(t *testing.T) {
	for at := range 20 {
		for c := range 256 {
			text := []byte(`"abcdefghijklmnopqrstuvwxyz"`)
			text[at+1] = byte(c)
			want := c >= 0x20 && c < 0x80 && c != '"'
			if c == '\\' {
				want = strings.IndexByte(`"\/bfnrt`, text[at+2]) >= 0
			}
			if got := codec.Valid(text); got != want {
				t.Fatalf("Valid(%q): got %v, want %v", text, got, want)
			}
		}
	}
}
