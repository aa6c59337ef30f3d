package client_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

var schemas sync.Map // of *jsonschema.Resolved, by revision and definition

// validate holds what the client has sent to a definition of the official
// schema, where the folder with the schemas is there.
func validate(t *testing.T, revision, definition, value string) {
	t.Helper()
	file := filepath.Join("..", "..", "..", "shared", "schema", revision, "schema.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Logf("not validated: %v", err)
		return
	}
	key := revision + " " + definition
	resolved, ok := schemas.Load(key)
	if !ok {
		var s jsonschema.Schema
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		s.Ref = "#/$defs/" + definition
		if strings.Contains(string(text), `"definitions"`) {
			s.Ref = "#/definitions/" + definition
		}
		r, err := s.Resolve(nil)
		if err != nil {
			t.Fatalf("schema of %s: %v", key, err)
		}
		resolved, _ = schemas.LoadOrStore(key, r)
	}
	var v any
	if err := json.Unmarshal([]byte(value), &v); err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	if err := resolved.(*jsonschema.Resolved).Validate(v); err != nil {
		t.Errorf("%s does not match %s of %s: %v", value, definition, revision, err)
	}
}
