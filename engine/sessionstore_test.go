package engine_test

import (
	"testing"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/engine/store/storetest"
)

// TestMemorySessions holds the store in memory to what every store promises.
func TestMemorySessions(t *testing.T) {
	storetest.Run(t, func(*testing.T) engine.SessionStore { return engine.NewMemorySessions(storetest.Max) }, nil)
}
