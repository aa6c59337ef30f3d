// Command gosdk-server offers the demo fixture with the official Go SDK.
//
//	gosdk-server -stdio | -http ADDR [-counting] [-stateless]
//
// With -stateless it keeps no sessions, which is the one way in which this SDK serves revision 2026-07-28 over HTTP.
//
// With -counting it counts the initialize and tools/call requests that its handlers saw and the DELETE requests that
// it accepted, and publishes them with the number of open sessions on GET /counts, as a JSON object.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/mcpengine/mcpengine/internal/interop/fixture"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	flags := fixture.ParseFlags()
	if err := run(flags); err != nil {
		fmt.Fprintln(os.Stderr, "gosdk-server:", err)
		os.Exit(1)
	}
}

func run(flags fixture.Flags) error {
	server := newServer()
	if flags.Stdio {
		return server.Run(context.Background(), &mcp.StdioTransport{})
	}
	var endpoint http.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: flags.Stateless})
	mux := http.NewServeMux()
	if flags.Counting {
		c := &counter{server: server}
		server.AddReceivingMiddleware(c.middleware)
		endpoint = c.countDeletes(endpoint)
		mux.HandleFunc("GET /counts", c.publish)
	}
	mux.Handle("/mcp", endpoint)
	return fixture.ListenAndServe(flags.HTTP, mux)
}

// newServer returns a server with the whole fixture. The SDK lets a panicking tool end the process, so the tool panic
// is caught in a middleware.
func newServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "gosdk-server", Version: "1"}, nil)
	server.AddReceivingMiddleware(recoverPanics)
	addTools(server)
	server.AddResource(&mcp.Resource{URI: fixture.StaticURI, Name: "static", MIMEType: "text/plain"},
		func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return contents(r.Params.URI, fixture.StaticText), nil
		})
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: fixture.ItemTemplate, Name: "item", MIMEType: "text/plain"},
		func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return contents(r.Params.URI, fixture.ItemText(r.Params.URI)), nil
		})
	server.AddPrompt(
		&mcp.Prompt{Name: fixture.PromptName, Arguments: []*mcp.PromptArgument{{Name: "name", Required: true}}},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			greeting := &mcp.TextContent{Text: fixture.Greeting(r.Params.Arguments["name"])}
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: greeting}}}, nil
		})
	return server
}

func recoverPanics(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				fmt.Fprintln(os.Stderr, "panic:", p)
				err = fmt.Errorf("the handler of %s panicked", method)
			}
		}()
		return next(ctx, method, r)
	}
}

func contents(uri, text string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: text}}}
}
