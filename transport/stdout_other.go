//go:build !unix

package transport

import "os"

// guardStdout keeps the real standard output for the protocol and points
// os.Stdout at standard error.
func guardStdout() (wire *os.File, restore func(), err error) {
	wire = os.Stdout
	os.Stdout = os.Stderr
	return wire, func() { os.Stdout = wire }, nil
}
