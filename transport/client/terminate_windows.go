package client

import "os"

// terminate ends a process. Windows has no signal that asks for it.
func terminate(p *os.Process) error { return p.Kill() }
