// Package wire is the lean end of the pipe that a measurement needs: a hand-written HTTP/1.1 keep-alive connection for
// Streamable HTTP, and a spawned process for stdio.
//
// It differs from package client in what it is for. Package client is a comfortable MCP client; this one adds as
// little as possible to the time it measures: request heads are built once, a request is one write, a reply is parsed
// where it was read, and a call that succeeds allocates nothing. It reports three instants of every call: when it was
// sent, when the first byte of the reply was there, and when the response message was complete, which for an SSE reply
// is the event that carries the response and not the end of the headers.
//
// TLS is the standard library's. HTTP/2 is an option of a Target and takes net/http's client, which is slower and whose
// cost is in what it measures; the instants and errors of a call are the same.
//
// A Conn serves one call at a time and belongs to one goroutine; a Process carries any number of calls at once.
// Nothing here knows what a method means, and nothing grows without a bound.
package wire
