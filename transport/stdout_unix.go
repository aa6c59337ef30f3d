//go:build unix

package transport

import (
	"os"

	"golang.org/x/sys/unix"
)

// guardStdout keeps the real standard output for the protocol and points file
// descriptor 1 at standard error, so that nothing else reaches the wire, code
// in other languages included.
func guardStdout() (wire *os.File, restore func(), err error) {
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, nil, os.NewSyscallError("dup", err)
	}
	if err := unix.Dup2(2, 1); err != nil {
		_ = unix.Close(fd)
		return nil, nil, os.NewSyscallError("dup2", err)
	}
	wire = os.NewFile(uintptr(fd), "stdout")
	return wire, func() {
		_ = unix.Dup2(fd, 1)
		_ = wire.Close()
	}, nil
}
