//go:build unix

package wire

import (
	"os/exec"
	"syscall"
)

// ownGroup gives the process a group of its own.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate asks the group of the process to end; launchers such as npx do not pass the signal on.
func terminate(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // fails only where nobody is left
}

// kill ends the group of the process.
func kill(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails only where nobody is left
}
