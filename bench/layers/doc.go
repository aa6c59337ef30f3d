// Package layers holds Go benchmarks of each layer of the server, from the bytes
// of a message to a socket of loopback. Their allocations are held to a baseline
// by CI; times are recorded in the folder results with the machine beside them.
package layers
