package mock

import "golang.org/x/sys/unix"

// ownPages keeps the kernel from backing memory with huge pages, of which a small session would pay for more than it
// has. A kernel without huge pages refuses the wish, which is then true already.
func ownPages(memory []byte) { _ = unix.Madvise(memory, unix.MADV_NOHUGEPAGE) }
