package engine

import (
	"unsafe"

	"github.com/mcpengine/mcpengine/actors"
)

// System gives the actors underneath, for tests that reach them by PID.
func (e *Engine) System() *actors.System { return e.system }

// AuditName gives what records call the session of a key.
func AuditName(key string) string { return auditName(key) }

// CallSize is how many bytes a Call takes.
const CallSize = unsafe.Sizeof(Call{})
