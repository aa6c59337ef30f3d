// Package mcpengine is the root of an engine for the Model Context Protocol that runs every session, every in-flight
// request and every subscription as an actor, and of a load generator for servers of that protocol.
//
// The root holds no code, only the test that guards the structure of the module. Embed a server with package engine
// and serve it with package transport; talk to a server with package transport/client; measure one with the command
// mcp-load.
package mcpengine
