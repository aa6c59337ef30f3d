// Command mcpgo-server offers the demo fixture with mcp-go.
//
//	mcpgo-server -stdio | -http ADDR
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcpengine/mcpengine/internal/interop/fixture"
)

func main() {
	if err := run(fixture.ParseFlags()); err != nil {
		fmt.Fprintln(os.Stderr, "mcpgo-server:", err)
		os.Exit(1)
	}
}

func run(flags fixture.Flags) error {
	if flags.Counting {
		return errors.New("only gosdk-server counts")
	}
	s := newServer()
	if flags.Stdio {
		return server.ServeStdio(s)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", server.NewStreamableHTTPServer(s, server.WithStateful(true),
		server.WithStreamableHTTPLogger(slog.New(slog.DiscardHandler))))
	return fixture.ListenAndServe(flags.HTTP, mux)
}

func newServer() *server.MCPServer {
	s := server.NewMCPServer("mcpgo-server", "1",
		server.WithToolCapabilities(true),
		server.WithResourceCapabilities(false, true),
		server.WithPromptCapabilities(true),
		server.WithRecovery())
	addTools(s)
	s.AddResource(mcp.NewResource(fixture.StaticURI, "static", mcp.WithMIMEType("text/plain")),
		func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return contents(r.Params.URI, fixture.StaticText), nil
		})
	s.AddResourceTemplate(mcp.NewResourceTemplate(fixture.ItemTemplate, "item", mcp.WithTemplateMIMEType("text/plain")),
		func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return contents(r.Params.URI, fixture.ItemText(r.Params.URI)), nil
		})
	s.AddPrompt(mcp.NewPrompt(fixture.PromptName, mcp.WithArgument("name", mcp.RequiredArgument())),
		func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			greeting := mcp.NewTextContent(fixture.Greeting(r.Params.Arguments["name"]))
			return &mcp.GetPromptResult{Messages: []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, greeting)}}, nil
		})
	return s
}

func contents(uri, text string) []mcp.ResourceContents {
	return []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: "text/plain", Text: text}}
}
