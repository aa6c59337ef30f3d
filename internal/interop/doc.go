// Package interop tests this project against MCP implementations that nobody here wrote.
//
// It is a module of its own, so that the official Go SDK and mcp-go stay out of the main go.mod. The tests build the
// command mcp-load and two stand-in servers (cmd/gosdk-server and cmd/mcpgo-server), run them as processes on loopback
// or through pipes, and talk to each with a client of another make. The folder node holds the same for the TypeScript
// SDK, the MCP Inspector and server-everything.
//
//	go test ./...
//
// MCP_LOAD names an mcp-load binary to test instead of one built from this checkout.
package interop
