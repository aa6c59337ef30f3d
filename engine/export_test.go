package engine

import "github.com/mcpengine/mcpengine/actors"

// System gives the actors underneath, for tests that reach them by PID.
func (e *Engine) System() *actors.System { return e.system }
