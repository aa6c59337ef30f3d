package engine_test

import (
	"encoding/json"

	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// The official schemas, as far as they are there. Every object in them that
// lists its members is closed, so that a member which a revision does not know
// is a fault: the published schemas allow any.

// openDefinitions stay open, for the reason given.
var openDefinitions = map[string]string{
	"Result":                     "what others are made of, by allOf",
	"Error":                      "what others are made of, by allOf",
	"NotificationParams":         "what others are made of, by allOf",
	"ServerCapabilities":         "an open set by its own words; extensions have no place in it before 2026-07-28",
	"ClientCapabilities":         "an open set by its own words",
	"MetaObject":                 "anybody may add members",
	"RequestMetaObject":          "anybody may add members",
	"ResultMetaObject":           "anybody may add members",
	"NotificationMetaObject":     "anybody may add members",
	"SubscriptionFilter":         "extensions add members, as taskIds",
	"Tool.inputSchema":           "a JSON Schema, of which only the head is described",
	"Tool.outputSchema":          "a JSON Schema, of which only the head is described",
	"JSONRPCRequest.params":      "the method's own definition describes it",
	"JSONRPCNotification":        "the method's own definition describes it",
	"JSONRPCNotification.params": "the method's own definition describes it",
}

// exempt tells why a frame is held to no definition, "" where it is.
func exempt(rev engine.Revision, m *codec.Message) string {
	if m.Kind == codec.KindError && m.ID == nil && rev < engine.Rev20251125 {
		return "the definition of errors demands an id, and JSON-RPC's null is none to it either"
	}
	if codec.Member(m.Result, "was") != nil {
		return "the middleware of a test puts results into another object"
	}
	return ""
}

// protocolSchema is the schema of a revision.
type protocolSchema struct {
	keyword     string // "definitions" or "$defs"
	definitions map[string]json.RawMessage
	resolved    sync.Map // of *jsonschema.Resolved, by name
}

var protocolSchemas = sync.OnceValues(func() (map[engine.Revision]*protocolSchema, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err = os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir, err = parent, nil
		}
	}
	if err != nil {
		return nil, err
	}
	all := make(map[engine.Revision]*protocolSchema)
	for rev := engine.Rev20241105; rev <= engine.Rev20260728; rev++ {
		text, err := os.ReadFile(filepath.Join(dir, "..", "shared", "schema", rev.String(), "schema.json"))
		if err != nil {
			return nil, err
		}
		s := &protocolSchema{keyword: "definitions"}
		if codec.Member(text, s.keyword) == nil {
			s.keyword = "$defs"
		}
		var raw map[string]any
		if err := json.Unmarshal(codec.Member(text, s.keyword), &raw); err != nil {
			return nil, err
		}
		s.definitions = make(map[string]json.RawMessage)
		for name, definition := range raw {
			closeObjects(name, definition)
			s.definitions[name], _ = json.Marshal(definition) // it was decoded
		}
		all[rev] = s
	}
	return all, nil
})

// closeObjects forbids further members wherever a schema lists members.
func closeObjects(name string, schema any) {
	switch s := schema.(type) {
	case map[string]any:
		_, described := s["properties"].(map[string]any)
		if _, said := s["additionalProperties"]; described && !said && openDefinitions[name] == "" {
			s["additionalProperties"] = false
		}
		for key, value := range s {
			if members, ok := value.(map[string]any); ok && key == "properties" {
				for member, sub := range members {
					if member != "_meta" {
						closeObjects(name+"."+member, sub)
					}
				}
				continue
			}
			if key != "allOf" {
				closeObjects(name, value)
			}
		}
	case []any:
		for _, element := range s {
			closeObjects(name, element)
		}
	}
}

var reference = regexp.MustCompile(`"\$ref":"#/[^"/]+/([^"]+)"`)

// validate holds a value to a definition.
func (s *protocolSchema) validate(definition string, value []byte) error {
	r, ok := s.resolved.Load(definition)
	if !ok {
		needed := map[string]json.RawMessage{}
		s.collect(definition, needed)
		if needed[definition] == nil {
			return fmt.Errorf("there is no definition %s", definition)
		}
		raw, err := json.Marshal(map[string]any{s.keyword: needed, "$ref": "#/" + s.keyword + "/" + definition})
		if err != nil {
			return err
		}
		var schema jsonschema.Schema
		if err := json.Unmarshal(raw, &schema); err != nil {
			return err
		}
		resolved, err := schema.Resolve(nil)
		if err != nil {
			return err
		}
		r, _ = s.resolved.LoadOrStore(definition, resolved)
	}
	var instance any
	if err := json.Unmarshal(value, &instance); err != nil {
		return err
	}
	if err := r.(*jsonschema.Resolved).Validate(instance); err != nil {
		return fmt.Errorf("no %s: %w", definition, err)
	}
	return nil
}

// collect gathers a definition and those that it refers to.
func (s *protocolSchema) collect(name string, into map[string]json.RawMessage) {
	if into[name] != nil || s.definitions[name] == nil {
		return
	}
	into[name] = s.definitions[name]
	for _, match := range reference.FindAllSubmatch(s.definitions[name], -1) {
		s.collect(string(match[1]), into)
	}
}

// needSchemas skips a test where there are no schemas, or fails it in CI, where
// they must be.
func needSchemas(t *testing.T) {
	t.Helper()
	if _, err := protocolSchemas(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the protocol's schemas: %v", err)
		}
		t.Skipf("nothing is held to the protocol's schemas: %v", err)
	}
}
