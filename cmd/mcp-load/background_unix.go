//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// inBackground reports whether the shell has put the program into the background: to change the terminal's mode would stop
// it there.
func inBackground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group != unix.Getpgrp()
}
