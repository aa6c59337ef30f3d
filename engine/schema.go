package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/mcpengine/mcpengine/codec"
)

// validator checks raw arguments, an object, against a schema that was compiled
// at registration. The error is a sentence that names the path.
type validator interface{ validate(args []byte) error }

// inferSchema makes the JSON Schema of a Go type.
func inferSchema(t reflect.Type) (json.RawMessage, error) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{})
	if err != nil {
		return nil, fmt.Errorf("no schema for %v: %w", t, err)
	}
	return json.Marshal(schema)
}

// inputOf gives the function that reads an In from a call's arguments. Where
// the schema is inferred, a strict decoder compiled from the same type checks
// what the schema says in the same pass; a hand-written schema is validated.
func inputOf[In any](t *Tool) (func(c *Call, in *In) error, error) {
	decoder, err := codec.DecoderFor[In]()
	if err != nil {
		return nil, err
	}
	var v validator
	if t.InputSchema == nil {
		if t.InputSchema, err = inferSchema(reflect.TypeFor[In]()); err != nil {
			return nil, err
		}
		if codec.Text(t.InputSchema, "type") != "object" {
			return nil, errors.New("the arguments of a tool are an object: In must be a struct or a map")
		}
	} else {
		if v, err = compileSchema(t.InputSchema); err != nil {
			return nil, err
		}
		decoder = decoder.Lenient()
	}
	return func(c *Call, in *In) error {
		args := c.message.Arguments
		if args == nil {
			args = emptyObject
		}
		if v != nil {
			if err := v.validate(args); err != nil {
				return argumentError{err}
			}
		}
		if err := decoder.Decode(args, in); err != nil {
			return argumentError{err}
		}
		return nil
	}, nil
}

// argumentError marks arguments that the schema does not allow.
type argumentError struct{ error }

func (e argumentError) Unwrap() error { return e.error }

// compileSchema makes a validator: a plain one that allocates nothing where the
// schema is simple, else the library's.
func compileSchema(raw json.RawMessage) (validator, error) {
	if v, ok := plainSchema(raw); ok {
		return v, nil
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	resolved, err := schema.Resolve(&jsonschema.ResolveOptions{})
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return fullValidator{resolved}, nil
}

// fullValidator validates with the JSON Schema library.
type fullValidator struct{ schema *jsonschema.Resolved }

func (v fullValidator) validate(args []byte) error {
	var instance any
	if err := json.Unmarshal(args, &instance); err != nil {
		return err
	}
	return v.schema.Validate(instance)
}
