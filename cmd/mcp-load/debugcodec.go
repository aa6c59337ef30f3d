package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
	"github.com/mcpengine/mcpengine/transport/client"
)

type decodeCallStep struct {
	Input string `json:"input"`
}

// decodeCall decodes a tools/call and gives the arguments as a handler gets
// them.
func (h *debugHooks) decodeCall(_ context.Context, step decodeCallStep) (any, error) {
	var m codec.Message
	if err := codec.Decode([]byte(step.Input), &m); err != nil {
		return nil, err
	}
	if string(m.Method) != codec.MethodToolsCall {
		return nil, errors.New("input is no tools/call")
	}
	return map[string]any{"raw_arguments": string(m.Arguments)}, nil
}

type encodeResultStep struct {
	Structured string `json:"structured_content_raw"`
}

// encodeResult encodes a tool result with a structured content, by a call of a
// tool that gives it.
func (h *debugHooks) encodeResult(ctx context.Context, step encodeResultStep) (any, error) {
	e := engine.New(engine.Info{}, &engine.Options{Logger: h.server.log})
	defer func() { _ = e.Shutdown(ctx) }()
	err := plainTool(e, "result", "Gives the result.", nil, func(context.Context, *engine.Call) (*engine.Result, error) {
		return &engine.Result{Structured: json.RawMessage(step.Structured)}, nil
	})
	if err != nil {
		return nil, err
	}
	pipe, served := transport.Pipe(ctx, e)
	c, err := client.ConnectPipe(ctx, pipe, nil)
	if err != nil {
		return nil, err
	}
	result, err := c.Request(ctx, codec.MethodToolsCall, []byte(`{"name":"result"}`), nil)
	if closing := c.Close(ctx); err == nil {
		err = closing
	}
	<-served
	if err != nil {
		return nil, err
	}
	return map[string]any{"wire": string(result)}, nil
}
