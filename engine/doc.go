// Package engine knows the Model Context Protocol: what is registered, what
// each method means in which revision, who may ask what when. It is the API for
// embedders.
//
// An Engine holds a catalog of tools, resources and prompts and serves any
// number of sessions from it. Transports (package transport) hand it decoded
// messages and a Stream for what goes back; the engine dispatches each request
// to its handler, which runs as an actor of its own on the goroutine that
// brought the request. A slow handler delays nothing but its own answer.
//
// The engine does the protocol: handshake, negotiation, capabilities, paging,
// progress, cancellation, standard errors. Who may see or call a tool, approval
// and sandboxing belong to the host; for them there are hooks, and no policy.
package engine
