// Package client is the other end of the pipes that package transport serves:
// a client of the Model Context Protocol over Streamable HTTP, over the HTTP+SSE
// transport that came before it, over the standard streams of a process that it
// spawns, and over any pipe that carries one frame a line. It covers the
// session-based revisions, 2024-11-05 to 2025-11-25, and the stateless one,
// 2026-07-28, and finds out which of the two eras a server is of.
//
// A reader may rely on this:
//
//   - A Client that a Connect function returns has finished the handshake, or
//     knows that the server serves the stateless revision.
//   - Any number of goroutines may use a Client at once. Responses may arrive
//     in any order and on any stream; each finds its request by id.
//   - A call returns as soon as its context ends, and the server is told so
//     with notifications/cancelled (never for initialize, which the protocol
//     forbids), or by the end of the stream where there is no session over HTTP.
//     Where no context ends it, a time limit does.
//   - Requests of the server are answered exactly once, unless the server
//     cancels them: ping by the client itself, sampling, elicitation and roots
//     by the callbacks of Options, others by Options.OnRequest. The callbacks
//     decide what is declared, and what was not declared is refused.
//   - The same callbacks serve both eras: on the stateless revision they give the
//     answers with which a request is made again.
//   - Nothing that a server sends makes the client open a URL.
//   - After Close there is no goroutine, descriptor or child process left.
//   - Message sizes, calls in flight, requests of the server that run at once,
//     its tasks, pages of a list and the kept end of a process's stderr all have
//     limits.
//
// The layers: one file correlates (call.go), one dispatches what arrives
// (inbound.go, with notification.go, serverrequest.go and batch.go), one
// negotiates (handshake.go, with capabilities.go); a link moves frames (pipe.go,
// process.go, http.go with httpstream.go, oldsse.go, sse.go); typed helpers stand
// on Request (calls.go, complete.go, task.go), and typed callbacks on
// serverrequest.go (sampling.go, elicit.go with form.go, roots.go, taskserve.go).
// A link does not know what a method means.
//
// The stateless revision has files of its own: detect.go finds it, era.go makes
// what each request carries, rounds.go makes a request until it has its result,
// stateless.go is the link over HTTP, cache.go keeps results, listen.go has the
// subscriptions and extask.go the tasks extension.
package client
