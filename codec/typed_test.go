package codec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// upper is a string that reads itself, in capitals, from text.
type upper string

func (u *upper) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errors.New("empty")
	}
	*u = upper(strings.ToUpper(string(text)))
	return nil
}

func (u upper) MarshalText() ([]byte, error) { return []byte(u), nil }

// pair reads itself from an array of two.
type pair struct{ A, B int }

func (p *pair) UnmarshalJSON(data []byte) error {
	var list []int
	if err := json.Unmarshal(data, &list); err != nil || len(list) != 2 {
		return errors.New("want two integers")
	}
	p.A, p.B = list[0], list[1]
	return nil
}

type base struct {
	ID   string `json:"id"`
	Note string `json:"note,omitempty"`
}

type Deep struct {
	Z int `json:"z"`
}

type tree struct {
	Value    int              `json:"value"`
	Children []*tree          `json:"children,omitempty"`
	Named    map[string]*tree `json:"named,omitempty"`
}

type item struct {
	Count int8     `json:"count"`
	Tags  []string `json:"tags,omitempty"`
}

type holder struct {
	base
	*Deep
	Items  []item           `json:"items,omitempty"`
	ByName map[string]item  `json:"byName,omitempty"`
	Fixed  [2]bool          `json:"fixed,omitempty"`
	Opt    *float32         `json:"opt,omitempty"`
	Any    any              `json:"any,omitempty"`
	Raw    json.RawMessage  `json:"raw,omitempty"`
	Num    json.Number      `json:"num,omitempty"`
	When   time.Time        `json:"when,omitzero"`
	Level  slog.Level       `json:"level,omitempty"`
	Big    big.Int          `json:"big,omitzero"`
	Up     upper            `json:"up,omitempty"`
	Pair   *pair            `json:"pair,omitempty"`
	Keys   map[upper]uint8  `json:"keys,omitempty"`
	Bytes  []byte           `json:"bytes,omitempty"`
	Hidden string           `json:"-"`
	Plain  bool             `json:",omitempty"`
	Slash  map[string][]int `json:"a/b~c,omitempty"`
	secret string
}

func decoder[T any](t *testing.T) *codec.TypedDecoder[T] {
	t.Helper()
	d, err := codec.DecoderFor[T]()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// printed gives a value as text, with what pointers point to.
func printed(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func TestTypedHolder(t *testing.T) {
	d := decoder[holder](t)
	for _, c := range []struct{ text, want string }{
		{`{"id":"a","z":1}`, `{"id":"a","z":1}`},
		{" { \"z\" : 1 ,\n\"id\" : \"\\u0061\\ud800\" } ", `{"id":"a` + "\ufffd" + `","z":1}`},
		{`{"i\u0064":"a","z":1.0,"note":"n"}`, `{"id":"a","note":"n","z":1}`},
		{`{"id":"","z":-0,"items":[{"count":-128},{"tags":["x","y"],"count":127}]}`, `{"id":"","z":0,"items":[{"count":-128},{"count":127,"tags":["x","y"]}]}`},
		{`{"id":"","z":1e2,"items":null,"opt":null,"bytes":null}`, `{"id":"","z":100}`},
		{`{"id":"","z":0,"items":[],"bytes":[1,2.0,255]}`, `{"id":"","z":0,"bytes":"AQL/"}`},
		{`{"id":"","z":0,"byName":{"p":{"count":1},"q":{"count":2,"tags":null}},"fixed":[true,false]}`,
			`{"id":"","z":0,"byName":{"p":{"count":1},"q":{"count":2}},"fixed":[true,false]}`},
		{`{"id":"","z":0,"opt":1.5,"any":{"a":[1.50,null,true,"x",{}]},"raw":{"a": 1 },"num":12345678901234567890}`,
			`{"id":"","z":0,"opt":1.5,"any":{"a":[1.50,null,true,"x",{}]},"raw":{"a":1},"num":12345678901234567890}`},
		{`{"id":"","z":0,"any":null,"raw":null,"num":"-1.5e3","pair":[1,2]}`, `{"id":"","z":0,"raw":null,"num":-1.5e3,"pair":{"A":1,"B":2}}`},
		{`{"id":"","z":0,"when":"2026-01-31T12:00:00Z","level":"WARN","big":"123456789012345678901234567890","up":"loud","keys":{"k":1}}`,
			`{"id":"","z":0,"when":"2026-01-31T12:00:00Z","level":"WARN","big":123456789012345678901234567890,"up":"LOUD","keys":{"K":1}}`},
		{`{"id":"","z":0,"Plain":true,"a/b~c":{"x":[1]}}`, `{"id":"","z":0,"Plain":true,"a/b~c":{"x":[1]}}`},
	} {
		var v holder
		if err := d.Decode([]byte(c.text), &v); err != nil {
			t.Errorf("Decode(%s): %v", c.text, err)
			continue
		}
		got := strings.Replace(printed(&v), `"fixed":[false,false],`, ``, 1)
		got = strings.Replace(got, `,"fixed":[false,false]`, ``, 1)
		if got != c.want {
			t.Errorf("Decode(%s):\n got %s\nwant %s", c.text, got, c.want)
		}
		if v.Hidden != "" || v.secret != "" {
			t.Errorf("Decode(%s): filled a field that is hidden", c.text)
		}
	}
}

func TestTypedFaults(t *testing.T) {
	d := decoder[holder](t)
	with := func(member string) string { return `{"id":"","z":0,` + member + `}` }
	long := strings.Repeat("x", 100)
	for _, c := range []struct{ text, path, reason string }{
		{`[]`, "", "must be an object, not an array"},
		{`null`, "", "must be an object, not null"},
		{`"x"`, "", "must be an object, not a string"},
		{`{"z":1}`, "/id", "is required but missing"},
		{`{"id":"a"}`, "/z", "is required but missing"},
		{`{"id":"a","Z":1}`, "/Z", `is not a known member; known: "z"`},
		{`{"id":"a","z":1,"ID":"b"}`, "/ID", `is not a known member; known: "id"`},
		{`{"id":"a","z":1,"id\u0000":"b"}`, "/id\x00", `is not a known member; known: "id", "note", "z", "items", "byName", "fixed", "opt", "any", "raw", ` +
			`"num", "when", "level", "big", "up", "pair", "keys", ...`},
		{`{"id":"a","z":1,"Hidden":"b"}`, "/Hidden", ""},
		{`{"id":"a","z":1,"secret":"b"}`, "/secret", ""},
		{`{"id":"a","z":1,"` + long + `":1}`, "/" + long[:64] + "...", ""},
		{`{"id":"a","id":"b","z":1}`, "/id", "occurs twice"},
		{`{"id":"a","i\u0064":"b","z":1}`, "/id", "occurs twice"},
		{`{"id":null,"z":1}`, "/id", "must be a string, not null"},
		{`{"id":1,"z":1}`, "/id", "must be a string, not a number"},
		{`{"id":"","z":"1"}`, "/z", "must be an integer, not a string"},
		{`{"id":"","z":1.5}`, "/z", "must be an integer, not a number"},
		{`{"id":"","z":1e-1}`, "/z", "must be an integer, not a number"},
		{`{"id":"","z":1e99}`, "/z", "must be from -9223372036854775808 to 9223372036854775807"},
		{`{"id":"","z":9223372036854775808}`, "/z", "must be from -9223372036854775808 to 9223372036854775807"},
		{`{"id":"","z":null}`, "/z", "must be an integer, not null"},
		{with(`"items":{}`), "/items", "must be an array, not an object"},
		{with(`"items":[{"count":1},{"count":128}]`), "/items/1/count", "must be from -128 to 127"},
		{with(`"items":[{}]`), "/items/0/count", "is required but missing"},
		{with(`"items":[null]`), "/items/0", "must be an object, not null"},
		{with(`"items":[{"count":1,"tags":["a",2]}]`), "/items/0/tags/1", "must be a string, not a number"},
		{with(`"byName":{"a/b":{"count":true}}`), "/byName/a~1b/count", "must be an integer, not a boolean"},
		{with(`"byName":{"a":{"count":1},"a":{"count":1}}`), "/byName/a", "occurs twice"},
		{with(`"byName":null`), "/byName", "must be an object, not null"},
		{with(`"fixed":[true]`), "/fixed", "must have exactly 2 elements"},
		{with(`"fixed":[true,true,true]`), "/fixed", "must have exactly 2 elements"},
		{with(`"fixed":[true,1]`), "/fixed/1", "must be true or false, not a number"},
		{with(`"fixed":null`), "/fixed", "must be an array, not null"},
		{with(`"opt":1e39`), "/opt", "is too large a number"},
		{with(`"opt":"1"`), "/opt", "must be a number, not a string"},
		{with(`"any":{"a":[{"b":1,"b":2}]}`), "/any/a/0/b", "occurs twice"},
		{with(`"num":"1 "`), "/num", "must be a number"},
		{with(`"num":"x"`), "/num", "must be a number"},
		{with(`"num":""`), "/num", "must be a number"},
		{with(`"num":true`), "/num", "must be a number, not a boolean"},
		{with(`"when":"yesterday"`), "/when", "must be a date and time of RFC 3339, such as 2026-01-31T12:00:00Z"},
		{with(`"when":null`), "/when", "must be a string, not null"},
		{with(`"big":12`), "/big", "must be a string, not a number"},
		{with(`"up":""`), "/up", "is not valid: empty"},
		{with(`"up":[]`), "/up", "must be a string, not an array"},
		{with(`"pair":[1]`), "/pair", "is not valid: want two integers"},
		{with(`"keys":{"":1}`), "/keys/", "has a name that is not valid: empty"},
		{with(`"keys":{"k":256}`), "/keys/k", "must be from 0 to 255"},
		{with(`"keys":{"k":-1}`), "/keys/k", "must be from 0 to 255"},
		{with(`"keys":{"k":0.5}`), "/keys/k", "must be an integer, not a number"},
		{with(`"keys":{"k":"1"}`), "/keys/k", "must be an integer, not a string"},
		{with(`"bytes":"AQI="`), "/bytes", "must be an array, not a string"},
		{with(`"Plain":1`), "/Plain", "must be true or false, not a number"},
		{with(`"a/b~c":{"x":[1,"y"]}`), "/a~1b~0c/x/1", "must be an integer, not a string"},
		{with(`"any":` + strings.Repeat("[", 200)), "", "is nested deeper than 128 levels"},
		{with(`"any":` + strings.Repeat(`{"":`, 200)), "", "is nested deeper than 128 levels"},
		{`{"id":"a" "z":1}`, "", "is not valid JSON near '\"'"},
		{`{"id":"a","z":1`, "", "is not valid JSON: it ends too early"},
		{`{"id":"a","items":[{"count":1]}`, "/items/0", "is not valid JSON near ']'"},
		{with(`"raw":` + strings.Repeat("[", 200)), "/raw", "is nested deeper than 128 levels"},
	} {
		var v holder
		err := d.Decode([]byte(c.text), &v)
		var fault *codec.PathError
		if !errors.As(err, &fault) {
			t.Errorf("Decode(%.80s): got %v, want a *PathError", c.text, err)
			continue
		}
		if deep := strings.Contains(c.reason, "deeper") && c.path == ""; fault.Path != c.path && !deep || c.reason != "" && fault.Reason != c.reason {
			t.Errorf("Decode(%.80s):\n got %q %q\nwant %q %q", c.text, fault.Path, fault.Reason, c.path, c.reason)
		}
	}
}

// TestTypedSyntax feeds everything that is no JSON to decoders of each kind.
func TestTypedSyntax(t *testing.T) {
	decoders := map[string]func([]byte) error{
		"any":     func(b []byte) error { return decoder[any](t).Decode(b, new(any)) },
		"raw":     func(b []byte) error { return decoder[json.RawMessage](t).Decode(b, new(json.RawMessage)) },
		"strings": func(b []byte) error { return decoder[[]string](t).Decode(b, new([]string)) },
		"floats":  func(b []byte) error { return decoder[map[string]float64](t).Decode(b, new(map[string]float64)) },
		"bool":    func(b []byte) error { return decoder[*bool](t).Decode(b, new(*bool)) },
		"holder":  func(b []byte) error { return decoder[holder](t).Decode(b, new(holder)) },
		"array":   func(b []byte) error { return decoder[[1]any](t).Decode(b, new([1]any)) },
		"uint":    func(b []byte) error { return decoder[uint](t).Decode(b, new(uint)) },
		"number":  func(b []byte) error { return decoder[json.Number](t).Decode(b, new(json.Number)) },
		"pair":    func(b []byte) error { return decoder[pair](t).Decode(b, new(pair)) },
	}
	for name, decode := range decoders {
		for _, text := range append(invalidTexts, stricterTexts...) {
			var fault *codec.PathError
			if err := decode([]byte(text)); !errors.As(err, &fault) || fault.Reason == "" {
				t.Errorf("decoder of %s: Decode(%.60q): got %v, want a *PathError", name, text, err)
			}
		}
	}
	for _, text := range validTexts {
		var v any
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil {
			t.Fatal(err)
		}
		err := decoder[any](t).Decode([]byte(text), &v)
		if twice := strings.Contains(fmt.Sprint(err), "occurs twice"); !twice && (err != nil || !reflect.DeepEqual(v, want)) {
			t.Errorf("Decode(%.60q) into any: got %#v, %v, want %#v", text, v, err, want)
		}
	}
	var v any
	err := decoder[any](t).Decode([]byte(`[1] x`), &v)
	if got, want := fmt.Sprint(err), `the value is not valid JSON near 'x'`; got != want {
		t.Errorf("Decode([1] x): got %q, want %q", got, want)
	}
	err = decoder[[]int](t).Decode([]byte(`[1,02]`), new([]int))
	if got, want := fmt.Sprint(err), `the value is not valid JSON near '2'`; got != want {
		t.Errorf("Decode([1,02]): got %q, want %q", got, want)
	}
}

func TestTypedNumbers(t *testing.T) {
	type numbers struct {
		I   int     `json:"i,omitempty"`
		I8  int8    `json:"i8,omitempty"`
		I16 int16   `json:"i16,omitempty"`
		I32 int32   `json:"i32,omitempty"`
		I64 int64   `json:"i64,omitempty"`
		U   uint    `json:"u,omitempty"`
		U8  uint8   `json:"u8,omitempty"`
		U16 uint16  `json:"u16,omitempty"`
		U32 uint32  `json:"u32,omitempty"`
		U64 uint64  `json:"u64,omitempty"`
		P   uintptr `json:"p,omitempty"`
		F32 float32 `json:"f32,omitempty"`
		F64 float64 `json:"f64,omitempty"`
	}
	d := decoder[numbers](t)
	for _, c := range []struct{ name, most, tooMuch, least, tooLittle string }{
		{"i8", "127", "128", "-128", "-129"}, {"i16", "32767", "32768", "-32768", "-32769"},
		{"i32", "2147483647", "2147483648", "-2147483648", "-2147483649"},
		{"i64", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809"},
		{"i", "9223372036854775807", "99999999999999999999", "-9223372036854775808", "-100000000000000000000"},
		{"u8", "255", "256", "0", "-1"}, {"u16", "65535", "65536", "0", "-1"}, {"u32", "4294967295", "4294967296", "0", "-1"},
		{"u64", "18446744073709551615", "18446744073709551616", "0", "-1"}, {"u", "18446744073709551615", "1e20", "-0", "-1.0"},
		{"p", "18446744073709551615", "184467440737095516150", "-0.0", "-9223372036854775808"},
		{"f32", "3.4028234663852886e38", "3.5e38", "-3.4028234663852886e38", "-3.5e38"},
		{"f64", "1.7976931348623157e308", "1.8e308", "-1.7976931348623157e308", "-1e999"},
	} {
		for _, token := range []string{c.most, c.least} {
			var v numbers
			if err := d.Decode([]byte(`{"`+c.name+`":`+token+`}`), &v); err != nil {
				t.Errorf("Decode(%s = %s): %v", c.name, token, err)
			}
		}
		for _, token := range []string{c.tooMuch, c.tooLittle} {
			var v numbers
			if err := d.Decode([]byte(`{"`+c.name+`":`+token+`}`), &v); err == nil {
				t.Errorf("Decode(%s = %s): got %+v, want an error", c.name, token, v)
			}
		}
	}
	for token, want := range map[string]int64{
		"1.0": 1, "10e-1": 1, "1e3": 1000, "1.5e1": 15, "-1.50e+1": -15, "0e5": 0, "0.000e-7": 0, "9007199254740993": 9007199254740993,
		"92233720368547758.07e2": 9223372036854775807, "-9223372036854775808.0": -9223372036854775808, "1E0": 1, "100e-2": 1,
		"123" + strings.Repeat("0", 300) + "e-300": 123, "0." + strings.Repeat("0", 100) + "7e101": 7,
	} {
		var v numbers
		if err := d.Decode([]byte(`{"i64":`+token+`}`), &v); err != nil || v.I64 != want {
			t.Errorf("Decode(%.40s): got %d, %v, want %d", token, v.I64, err, want)
		}
	}
	for _, token := range []string{"1.5", "15e-1", "1e-1", "0.1", "1e-99999999999999999999", "100.01e1", "1e99999999999999999999", "1e400", "1e20"} {
		var v numbers
		if err := d.Decode([]byte(`{"i64":`+token+`}`), &v); err == nil {
			t.Errorf("Decode(%s): got %d, want an error", token, v.I64)
		}
	}
}

func TestTypedRecursive(t *testing.T) {
	d := decoder[tree](t)
	text := `{"value":1,"children":[{"value":2},null,{"value":3,"named":{"x":{"value":4}}}]}`
	var v tree
	if err := d.Decode([]byte(text), &v); err != nil || printed(v) != text {
		t.Errorf("Decode(%s): got %s, %v", text, printed(v), err)
	}
	err := d.Decode([]byte(`{"value":1,"children":[{"value":2,"children":[{"value":"x"}]}]}`), &v)
	if got, want := fmt.Sprint(err), "/children/0/children/0/value must be an integer, not a string"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	deep := strings.Repeat(`{"value":1,"children":[`, 100)
	if err := d.Decode([]byte(deep), &v); err == nil || !strings.Contains(err.Error(), "deeper") {
		t.Errorf("200 levels: got %v, want a fault of depth", err)
	}
}

func TestLenientDecoderLeavesMembersToTheSchema(t *testing.T) {
	type inner struct {
		A int `json:"a"`
	}
	type outer struct {
		In inner  `json:"in"`
		S  string `json:"s"`
	}
	strict, err := codec.DecoderFor[outer]()
	if err != nil {
		t.Fatal(err)
	}
	const in = `{"in":{"extra":[1,{"x":2}],"a":7},"more":null}`
	var got outer
	if err := strict.Decode([]byte(in), &got); err == nil {
		t.Errorf("strict.Decode(%s) = nil, want an error", in)
	}
	got = outer{}
	if err := strict.Lenient().Decode([]byte(in), &got); err != nil || got.In.A != 7 {
		t.Errorf("Lenient().Decode(%s) = %v, %+v; want in.a 7", in, err, got)
	}
	if err := strict.Lenient().Decode([]byte(`{"in":{"a":"x"}}`), &got); err == nil {
		t.Error("Lenient().Decode of a string into an int = nil, want an error")
	}
}
