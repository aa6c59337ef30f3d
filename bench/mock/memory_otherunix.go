//go:build unix && !linux

package mock

// ownPages has nothing to do where the kernel does not make huge pages of its own accord.
func ownPages([]byte) {}
