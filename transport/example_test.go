package transport_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
	"github.com/mcpengine/mcpengine/transport/client"
)

// exampleEngine has one tool, which answers with the message that it is given.
func exampleEngine() *engine.Engine {
	type in struct {
		Message string `json:"message"`
	}
	e := engine.New(engine.Info{Name: "example", Version: "1.0.0"}, nil)
	_ = engine.AddTool(e, engine.Tool{Name: "echo"},
		func(_ context.Context, _ *engine.Call, in in) (string, error) { return in.Message, nil })
	return e
}

// The endpoint is an http.Handler: it goes into any mux, and any middleware may
// stand around it.
func ExampleNewHTTPHandler() {
	ctx := context.Background()
	e := exampleEngine()
	mux := http.NewServeMux()
	mux.Handle("/mcp", transport.NewHTTPHandler(e, nil))
	server := httptest.NewServer(mux)
	defer server.Close()
	defer func() { _ = e.Shutdown(ctx) }()

	c, err := client.ConnectHTTP(ctx, server.URL+"/mcp", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := c.CallTool(ctx, "echo", json.RawMessage(`{"message":"hello"}`), nil)
	fmt.Println(c.Server().Protocol, result.Text(), err)
	fmt.Println(c.Close(ctx)) // which ends the session with DELETE
	// Output:
	// 2025-11-25 hello <nil>
	// <nil>
}

// Lines come in and lines go out. This one is a request of 2026-07-28, which
// needs no handshake.
func ExampleServeStdio() {
	ctx := context.Background()
	e := exampleEngine()
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo",` +
		`"arguments":{"message":"hello"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n")
	var out bytes.Buffer // os.Stdin and os.Stdout in a program
	err := transport.ServeStdio(ctx, e, in, &out)
	fmt.Print(out.String())
	fmt.Println(err, e.Shutdown(ctx))
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"hello"}],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"example","version":"1.0.0"}}}}
	// <nil> <nil>
}

// An engine and a client in one process, without a socket.
func ExamplePipe() {
	ctx := context.Background()
	e := exampleEngine()
	pipe, served := transport.Pipe(ctx, e)
	c, err := client.ConnectPipe(ctx, pipe, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	tools, err := c.ListTools(ctx)
	fmt.Println(len(tools), tools[0].Name, err)
	_ = c.Close(ctx)
	<-served
	fmt.Println(e.Shutdown(ctx))
	// Output:
	// 1 echo <nil>
	// <nil>
}
