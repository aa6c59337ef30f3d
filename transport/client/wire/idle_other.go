//go:build !unix

package wire

import "net"

// peerClosed cannot look into a socket here; a write will tell.
func peerClosed(net.Conn) bool { return false }
