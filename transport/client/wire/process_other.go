//go:build !unix

package wire

import "os/exec"

// ownGroup does nothing where there are no process groups.
func ownGroup(*exec.Cmd) {}

// terminate ends the process; there is no gentler signal here.
func terminate(cmd *exec.Cmd) { kill(cmd) }

// kill ends the process.
func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill() // fails only where it has ended
}
