//go:build unix

package mock

import (
	"os"

	"golang.org/x/sys/unix"
)

// allocate gives at least n bytes of memory of the system, in whole pages that are all resident because each was
// written to. It lies outside the Go heap: the collector neither counts nor moves it, and what is given back is gone
// from the process at once.
func allocate(n int64) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	page := int64(os.Getpagesize())
	memory, err := unix.Mmap(-1, 0, int((n+page-1)/page*page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	ownPages(memory)
	for i := int64(0); i < int64(len(memory)); i += page {
		memory[i] = 1
	}
	return memory, nil
}

// deallocate gives memory back to the system.
func deallocate(memory []byte) {
	if memory != nil {
		_ = unix.Munmap(memory) // fails for what allocate has not made
	}
}
