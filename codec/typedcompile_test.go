package codec_test

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
)

// TestTypedDash reads a member whose name is a dash, which the tag "-," means.
func TestTypedDash(t *testing.T) {
	d, err := codec.NewDecoder(reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"-,"`}}))
	if err != nil {
		t.Fatal(err)
	}
	v := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"-,"`}})).Elem()
	if err := d.Decode([]byte(`{"-":7}`), v); err != nil || v.Field(0).Int() != 7 {
		t.Errorf("Decode: got %v, %v, want 7", v, err)
	}
}

// TestTypedManyFields uses the look-up table and every word of the set of
// fields.
func TestTypedManyFields(t *testing.T) {
	many := func(n int) reflect.Type {
		var fields []reflect.StructField
		for i := range n {
			fields = append(fields, reflect.StructField{Name: "F" + strconv.Itoa(i), Type: reflect.TypeFor[int]()})
		}
		return reflect.StructOf(fields)
	}
	d, err := codec.NewDecoder(many(256))
	if err != nil {
		t.Fatal(err)
	}
	var members []string
	for i := range 256 {
		members = append(members, fmt.Sprintf(`"F%d":%d`, 255-i, 255-i))
	}
	v := reflect.New(many(256)).Elem()
	if err := d.Decode([]byte("{"+strings.Join(members, ",")+"}"), v); err != nil {
		t.Fatal(err)
	}
	for i := range 256 {
		if got := v.Field(i).Int(); got != int64(i) {
			t.Errorf("field %d: got %d", i, got)
		}
	}
	err = d.Decode([]byte("{"+strings.Join(members[:255], ",")+"}"), v)
	if got, want := fmt.Sprint(err), "/F0 is required but missing"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	err = d.Decode([]byte("{"+strings.Join(members[1:], ",")+"}"), v)
	if got, want := fmt.Sprint(err), "/F255 is required but missing"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	err = d.Decode([]byte(`{"F1":1,"F300":1}`), v)
	if !strings.HasPrefix(fmt.Sprint(err), "/F300 is not a known member") {
		t.Errorf("an unknown member: got %v", err)
	}
	if _, err := codec.NewDecoder(many(257)); err == nil {
		t.Error("NewDecoder of a struct of 257 fields: got no error")
	}
}

type (
	loop     *loop
	embedded string
	Text     string
	Named    struct{ N int }
	secret   struct{ S int }
)

func TestNewDecoderRefuses(t *testing.T) {
	for _, c := range []struct {
		t    reflect.Type
		want string
	}{
		{nil, "no type"},
		{reflect.TypeFor[func()](), "no form"},
		{reflect.TypeFor[chan int](), "no form"},
		{reflect.TypeFor[complex128](), "no form"},
		{reflect.TypeFor[[]func()](), "no form"},
		{reflect.TypeFor[error](), "says nothing"},
		{reflect.TypeFor[map[int]string](), "are no strings"},
		{reflect.TypeFor[map[any]string](), "are no strings"},
		{reflect.TypeFor[map[string]chan int](), "no form"},
		{reflect.TypeFor[struct{ A func() }](), "field A: JSON has no form"},
		{reflect.TypeFor[struct {
			A int `json:",string"`
		}](), `option "string"`},
		{reflect.StructOf([]reflect.StructField{
			{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"x"`},
			{Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"x"`},
		}), `have the name "x"`},
		{reflect.TypeFor[struct {
			Named `json:"named"`
		}](), `the embedded field Named has the name "named"`},
		{reflect.TypeFor[struct {
			Named `json:"-"`
		}](), `the embedded field Named has the name "-"`},
		{reflect.TypeFor[struct{ *secret }](), "embedded pointer secret is not exported"},
		{reflect.TypeFor[struct{ Text }](), "embedded field Text is no struct"},
		{reflect.TypeFor[struct{ *Text }](), "embedded field Text is no struct"},
		{reflect.TypeFor[loop](), "too many times"},
		{reflect.TypeFor[*loop](), "too many times"},
	} {
		if _, err := codec.NewDecoder(c.t); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewDecoder(%v): got %v, want an error with %q", c.t, err, c.want)
		}
	}
	if _, err := codec.DecoderFor[func()](); err == nil {
		t.Error("DecoderFor[func()]: got no error")
	}
	for _, good := range []reflect.Type{
		reflect.TypeFor[struct{ embedded }](), reflect.TypeFor[struct{ secret }](), reflect.TypeFor[struct{}](), reflect.TypeFor[**int](),
		reflect.TypeFor[struct {
			sync.Mutex `json:"-"`
			F          func() `json:"-"`
			A          int    `json:"a"`
		}](),
	} {
		if _, err := codec.NewDecoder(good); err != nil {
			t.Errorf("NewDecoder(%v): %v", good, err)
		}
	}
}

func TestDecoderDecodeInto(t *testing.T) {
	d, err := codec.NewDecoder(reflect.TypeFor[int]())
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := d.Decode([]byte("5"), reflect.ValueOf(&n).Elem()); err != nil || n != 5 {
		t.Errorf("Decode(5): got %d, %v", n, err)
	}
	var s string
	var fault *codec.PathError
	for _, into := range []reflect.Value{reflect.ValueOf(&s).Elem(), reflect.ValueOf(1), {}} {
		if err := d.Decode([]byte("5"), into); err == nil || errors.As(err, &fault) {
			t.Errorf("Decode into %v: got %v, want an error that is no *PathError", into, err)
		}
	}
}
