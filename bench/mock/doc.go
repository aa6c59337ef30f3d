// Package mock holds peers for a load generator whose behaviour is known exactly: a server whose service times, limits,
// sessions and event streams follow formulas, a proxy whose overhead and amplification are given, and a router over
// replicas. What a generator reports about one of them can be held against the formula.
//
// Nothing here is built on the engine or on its transport, so that the product does not judge itself with itself; only
// the codec of messages is shared. Queue, the model of time, is pure: it maps arrivals to departures and never looks at
// a clock. Everything else waits until what it says.
//
// The formulas stand with the types that hold them (Service, USL, Model, Sessions, Stream, ProxyConfig) and together in
// docs/mock.md.
package mock
