// Package transport moves frames between a peer and an engine: stdio,
// Streamable HTTP with resumable streams, the deprecated HTTP+SSE, and an
// in-memory pair for tests and embedders.
//
// A transport knows framing, headers, deadlines and streams. It decodes a frame
// to find out whose it is, and leaves what it means to the engine. Every
// outgoing stream has one ordered writer: frames are queued in memory under a
// lock, and written by whoever finds nobody writing, without any lock. A peer
// that does not read is bounded by the size of its queue and a write deadline,
// and holds up nobody else.
package transport
