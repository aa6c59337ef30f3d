package wire

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

// TestErrorText: an error says what was being done and why it failed, once, and without the addresses of a connection.
func TestErrorText(t *testing.T) {
	address := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 55878}
	for _, tt := range []struct {
		err  *Error
		want string
	}{
		{&Error{KindTransport, "read", io.ErrUnexpectedEOF}, "read: unexpected EOF"},
		{&Error{KindTransport, "read", &net.OpError{Op: "read", Net: "tcp", Source: address, Addr: address,
			Err: os.NewSyscallError("read", syscall.ECONNRESET)}}, "read: connection reset by peer"},
		{&Error{KindDial, "dial", &net.OpError{Op: "dial", Net: "tcp", Addr: address,
			Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}}, "dial: connect: connection refused"},
		{&Error{KindTransport, "read", processEnded("the process ended (exit status 3)")}, "read: the process ended (exit status 3)"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("Error of %#v: got %q, want %q", tt.err.Err, got, tt.want)
		}
	}
	if !errors.Is(&Error{KindTransport, "read", processEnded("x")}, io.EOF) {
		t.Error("the end of a process is no io.EOF")
	}
}
