package main

import (
	"context"
	"errors"

	"github.com/mcpengine/mcpengine/internal/interop/fixture"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// none is the argument object of a tool without arguments.
type none struct{}

func addTools(server *mcp.Server) {
	addTool(server, "echo", "Answers with the message.",
		func(_ context.Context, _ *mcp.CallToolRequest, in fixture.Message) (string, error) {
			return in.Message, nil
		})
	addTool(server, "sleep", "Sleeps and answers.",
		func(ctx context.Context, _ *mcp.CallToolRequest, in fixture.Sleep) (string, error) {
			return "slept", fixture.Wait(ctx, in.MS)
		})
	addTool(server, "progress", "Reports progress and answers.", reportProgress)
	addTool(server, "fail", "Fails.",
		func(context.Context, *mcp.CallToolRequest, none) (string, error) {
			return "", errors.New("this tool always fails")
		})
	addTool(server, "panic", "Panics.",
		func(context.Context, *mcp.CallToolRequest, none) (string, error) {
			panic("this tool always panics")
		})
	addTool(server, "big", "Answers with a long text.",
		func(_ context.Context, _ *mcp.CallToolRequest, in fixture.Big) (string, error) {
			return in.Text(), nil
		})
}

// addTool registers a tool that answers with one text, and declares it harmless.
func addTool[In any](server *mcp.Server, name, description string, f func(context.Context, *mcp.CallToolRequest, In) (string, error)) {
	tool := &mcp.Tool{Name: name, Description: description, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
	mcp.AddTool(server, tool, func(ctx context.Context, r *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		text, err := f(ctx, r, in)
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
}

func reportProgress(ctx context.Context, r *mcp.CallToolRequest, in fixture.Progress) (string, error) {
	token := r.Params.GetProgressToken()
	for i := 1; i <= in.Steps; i++ {
		if err := fixture.Wait(ctx, in.DelayMS); err != nil {
			return "", err
		}
		if token == nil {
			continue
		}
		params := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(i), Total: float64(in.Steps)}
		if err := r.Session.NotifyProgress(ctx, params); err != nil {
			return "", err
		}
	}
	return "done", nil
}
