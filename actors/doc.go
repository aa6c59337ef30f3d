// Package actors runs sessions, in-flight requests and subscriptions as actors
// on protoactor-go, and refuses work beyond its limits.
//
// A session actor only routes: it registers ids, finds the request that a
// cancellation names, hands answers to whoever asked. Nothing slow runs in it.
// A request is an actor of its own, leased from a pool: its PID is in the
// registry, and a Stop sent to it cancels the call and ends in exactly one
// answer. Its handler runs on the goroutine that brought the request, and while
// it runs the request's mailbox is not read, so cancellation is a call to its
// Owner and not a message. A subscription actor coalesces updates.
//
// Sessions have a mailbox of their own, small and bounded, which runs on the
// sender's goroutine up to a budget of messages and leaves the rest to another
// goroutine, so that no sender is held captive.
//
// Nothing is ever restarted with half its state: the supervision strategy is
// stop, and every failure is published on the actor system's event stream.
//
// The package knows nothing of HTTP, of JSON text or of methods.
package actors
