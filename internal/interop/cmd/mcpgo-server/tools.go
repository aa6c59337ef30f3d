package main

import (
	"context"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/mcpengine/mcpengine/internal/interop/fixture"
)

// none is the argument object of a tool without arguments.
type none struct{}

func addTools(s *server.MCPServer) {
	addTool(s, "echo", "Answers with the message.",
		func(_ context.Context, _ mcp.CallToolRequest, in fixture.Message) (string, error) {
			return in.Message, nil
		}, mcp.WithString("message", mcp.Required()))
	addTool(s, "sleep", "Sleeps and answers.",
		func(ctx context.Context, _ mcp.CallToolRequest, in fixture.Sleep) (string, error) {
			return "slept", fixture.Wait(ctx, in.MS)
		}, mcp.WithInteger("ms", mcp.Required()))
	addTool(s, "progress", "Reports progress and answers.", reportProgress,
		mcp.WithInteger("steps", mcp.Required()), mcp.WithInteger("delayMs", mcp.Required()))
	addTool(s, "fail", "Fails.",
		func(context.Context, mcp.CallToolRequest, none) (string, error) {
			return "", errors.New("this tool always fails")
		})
	addTool(s, "panic", "Panics.",
		func(context.Context, mcp.CallToolRequest, none) (string, error) {
			panic("this tool always panics")
		})
	addTool(s, "big", "Answers with a long text.",
		func(_ context.Context, _ mcp.CallToolRequest, in fixture.Big) (string, error) {
			return in.Text(), nil
		}, mcp.WithInteger("bytes", mcp.Required()))
}

// addTool registers a tool that answers with one text, and declares it harmless.
func addTool[In any](s *server.MCPServer, name, description string, f func(context.Context, mcp.CallToolRequest, In) (string, error), schema ...mcp.ToolOption) {
	options := append([]mcp.ToolOption{mcp.WithDescription(description), mcp.WithReadOnlyHintAnnotation(true)}, schema...)
	s.AddTool(mcp.NewTool(name, options...), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in In
		if err := r.BindArguments(&in); err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		text, err := f(ctx, r, in)
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return mcp.NewToolResultText(text), nil
	})
}

func reportProgress(ctx context.Context, r mcp.CallToolRequest, in fixture.Progress) (string, error) {
	for i := 1; i <= in.Steps; i++ {
		if err := fixture.Wait(ctx, in.DelayMS); err != nil {
			return "", err
		}
		if r.Params.Meta == nil || r.Params.Meta.ProgressToken == nil {
			continue
		}
		err := server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress", map[string]any{
			"progressToken": r.Params.Meta.ProgressToken,
			"progress":      i,
			"total":         in.Steps,
		})
		if err != nil {
			return "", err
		}
	}
	return "done", nil
}
