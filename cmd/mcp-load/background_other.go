//go:build !unix

package main

import "os"

// inBackground reports whether the shell has put the program into the background, which only unix knows of.
func inBackground(*os.File) bool { return false }
