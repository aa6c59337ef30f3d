//go:build !unix

package mock

// allocate gives n bytes of the Go heap, each page written to. Where there is no mmap the collector counts them, and the
// process gives them back only when the runtime does.
func allocate(n int64) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	memory := make([]byte, n)
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	return memory, nil
}

// deallocate leaves memory to the collector.
func deallocate([]byte) {}
