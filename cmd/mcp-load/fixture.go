package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/mcpengine/mcpengine/engine"
)

// fixtures are what serve can offer, by the name that --fixture takes. A
// fixture registers those of its tools, resources and prompts that are asked
// for.
var fixtures = map[string]func(e *engine.Engine, features map[string]bool) error{
	"demo":        registerDemo,
	"conformance": registerConformance,
}

// fixtureNames lists the fixtures for people.
func fixtureNames() string {
	return strings.Join(slices.Sorted(maps.Keys(fixtures)), " or ")
}
