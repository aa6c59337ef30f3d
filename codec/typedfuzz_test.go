package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcpengine/mcpengine/codec"
)

type part struct {
	S string   `json:"s"`
	N *int8    `json:"n"`
	L []uint16 `json:"l,omitempty"`
}

type common struct {
	ID string `json:"id,omitempty"`
}

// sample has one field of each kind that encoding/json, the inferred schema and
// this package read alike.
type sample struct {
	common
	X     int             `json:"x"`
	Y     float64         `json:"y,omitempty"`
	B     bool            `json:"b,omitempty"`
	In    part            `json:"in,omitzero"`
	P     *part           `json:"p,omitempty"`
	Parts []part          `json:"parts,omitempty"`
	M     map[string]bool `json:"m,omitempty"`
	A     [2]string       `json:"a,omitempty"`
	Any   any             `json:"any,omitempty"`
	T     time.Time       `json:"t,omitzero"`
	U     uint8           `json:"u,omitempty"`
	F     float32         `json:"f,omitempty"`
}

var sampleSeeds = []string{
	`{"x":1}`, `{}`, `{"x":1.0}`, `{"x":1e2,"y":-1.5e-3,"b":true}`, `{"X":1}`, `{"x":1,"x":2}`, `{"x":null}`, `{"x":1,"id":"a\u0062"}`,
	`{"x":1,"in":{"s":"","n":null},"p":{"s":"x","n":-5,"l":[1,2,65535]}}`, `{"x":1,"p":null,"parts":null}`, `{"x":1,"in":{"s":"a"}}`,
	`{"x":1,"parts":[{"s":"a","n":1},{"s":"b","n":null,"l":null}],"m":{"a":true,"b":false},"a":["p","q"]}`,
	`{"x":1,"a":["p"]}`, `{"x":1,"a":["p","q","r"]}`, `{"x":1,"any":{"a":[1,2.50,"s",null,{"b":true}]}}`, `{"x":1,"t":"2026-01-31T12:00:00Z"}`,
	`{"x":1,"t":"2026-01-31"}`, `{"x":1,"u":255,"f":1.5}`, `{"x":1,"u":256}`, `{"x":1,"f":1e39}`, `{"x":1,"extra":1}`, `{"x":9223372036854775808}`,
	`{"x":"1"}`, `[]`, `null`, `{"x":1.5}`, `{"x":1} {}`, `{"x":1,"in":{}}`, `{"x":1,"m":{"a":1}}`, `{"x":1,"m":null}`, `{"x":1,"y":1e999}`,
	`{"x":1e-400}`, `{"x":10000000000000000.1}`, `{"x":1,"t":null}`, `{"x":1,"any":null}`, `{"x":1,"u":-0}`, `{"x":1,"In":{}}`,
}

// reasonIn reports whether the fault is one of those.
func reasonIn(fault *codec.PathError, reasons ...string) bool {
	for _, reason := range reasons {
		if strings.Contains(fault.Reason, reason) {
			return true
		}
	}
	return false
}

// stdStrict is how encoding/json decodes with unknown members refused.
func stdStrict(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.More() {
		return errors.New("more than one value")
	}
	return nil
}

// checkTyped compares a Decode with encoding/json and with the validation of the
// schema that is inferred from the type. Where they may differ is listed here
// and in the documentation of Decoder:
//
//   - encoding/json folds case, takes the last of two members of one name, any
//     length of array, null anywhere, missing members, and text that is no UTF-8;
//     it refuses 1.0 for an integer.
//   - The schema has no bounds for int, int64 and floats, no format for time, and
//     sees numbers as float64, so that a tiny fraction is lost to it.
func checkTyped(t *testing.T, d *codec.TypedDecoder[sample], schema *jsonschema.Resolved, text []byte) {
	t.Helper()
	var got, std sample
	err := d.Decode(text, &got)
	stdErr := stdStrict(text, &std)
	var instance any
	instanceErr := json.Unmarshal(text, &instance)
	schemaErr := schema.Validate(instance)
	if err == nil {
		var wrongType *json.UnmarshalTypeError
		switch integral := errors.As(stdErr, &wrongType) && strings.HasPrefix(wrongType.Value, "number"); {
		case stdErr != nil && !integral:
			t.Fatalf("Decode(%q): got %+v, encoding/json refuses it: %v", text, got, stdErr)
		case stdErr == nil && !reflect.DeepEqual(got, std):
			t.Fatalf("Decode(%q): got %+v, encoding/json %+v", text, got, std)
		}
		if instanceErr == nil && schemaErr != nil {
			t.Fatalf("Decode(%q): got %+v, the schema refuses it: %v", text, got, schemaErr)
		}
		return
	}
	var fault *codec.PathError
	if !errors.As(err, &fault) {
		t.Fatalf("Decode(%q): got %v, a %T, want a *PathError", text, err, err)
	}
	notText := !stdValid(text) && reasonIn(fault, "not valid JSON", "deeper")
	if stdErr == nil && !notText &&
		!reasonIn(fault, "known member", "occurs twice", "required", "not null", "exactly 2 elements") {
		t.Fatalf("Decode(%q): got %v, encoding/json %+v", text, err, std)
	}
	if instanceErr == nil && schemaErr == nil && !notText &&
		!reasonIn(fault, "occurs twice", "must be from", "too large", "RFC 3339", "must be an integer, not a number") {
		t.Fatalf("Decode(%q): got %v, the schema takes it", text, err)
	}
}

func sampleSchema(tb testing.TB) *jsonschema.Resolved {
	tb.Helper()
	schema, err := jsonschema.For[sample](nil)
	if err != nil {
		tb.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return resolved
}

func FuzzTyped(f *testing.F) {
	for _, seed := range sampleSeeds {
		f.Add([]byte(seed))
	}
	d, err := codec.DecoderFor[sample]()
	if err != nil {
		f.Fatal(err)
	}
	schema := sampleSchema(f)
	f.Fuzz(func(t *testing.T, text []byte) { checkTyped(t, d, schema, text) })
}

// TestTypedMembers holds the decoder to the schema for every value of a list in
// every member of a struct, where no exception is needed.
func TestTypedMembers(t *testing.T) {
	values := []string{
		`null`, `true`, `0`, `1`, `-1`, `1.0`, `1.5`, `255`, `256`, `"x"`, `""`, `"2026-01-31T12:00:00Z"`, `[]`, `[null]`, `["a","b"]`, `["a"]`, `[1,2]`,
		`{}`, `{"s":"x"}`, `{"s":"x","n":1}`, `{"s":"x","n":null}`, `{"s":"x","n":200}`, `{"s":null,"n":1}`, `{"s":"x","n":1,"l":[1]}`,
		`{"s":"x","n":1,"l":null}`, `{"s":"x","n":1,"l":[-1]}`, `{"s":"x","n":1,"more":1}`, `{"a":true}`, `{"a":null}`, `[{"s":"x","n":1}]`, `[{"s":"x"}]`,
	}
	schema := sampleSchema(t)
	d := decoder[sample](t)
	for _, name := range []string{"id", "x", "y", "b", "in", "p", "parts", "m", "a", "any", "t", "u", "f", "X", "other"} {
		for _, value := range values {
			text := []byte(`{"x":1,"` + name + `":` + value + `}`)
			if name == "x" {
				text = []byte(`{"x":` + value + `}`)
			}
			if name == "t" && value != `"2026-01-31T12:00:00Z"` && strings.HasPrefix(value, `"`) {
				continue // the schema says no more than string
			}
			var instance any
			if err := json.Unmarshal(text, &instance); err != nil {
				t.Fatal(err)
			}
			var v sample
			err, want := d.Decode(text, &v), schema.Validate(instance)
			if (err == nil) != (want == nil) {
				t.Errorf("Decode(%s): got %v, the schema %v", text, err, want)
			}
		}
	}
}
