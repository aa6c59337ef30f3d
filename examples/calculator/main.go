// Command calculator is the smallest MCP server worth the name: one typed tool, over Streamable HTTP or stdio.
//
//	go run ./examples/calculator            # http://127.0.0.1:8080/mcp
//	go run ./examples/calculator -stdio     # standard input and output
package main

import (
	"context"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

type addIn struct {
	X int `json:"x" jsonschema:"left operand"`
	Y int `json:"y" jsonschema:"right operand"`
}

type addOut struct {
	Sum int `json:"sum"`
}

func add(_ context.Context, _ *engine.Call, in addIn) (addOut, error) {
	return addOut{Sum: in.X + in.Y}, nil
}

func main() {
	stdio := flag.Bool("stdio", false, "serve standard input and output instead of HTTP")
	addr := flag.String("http", "127.0.0.1:8080", "serve Streamable HTTP on this `address`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	e := engine.New(engine.Info{Name: "calculator", Version: "1.0.0"}, nil)
	err := engine.AddTool(e, engine.Tool{Name: "add", Description: "adds two integers"}, add)
	switch {
	case err != nil:
	case *stdio:
		err = transport.ServeStdio(ctx, e, os.Stdin, os.Stdout)
	default:
		err = serveHTTP(ctx, e, *addr)
	}
	shutdown(e)
	if err != nil && ctx.Err() == nil {
		log.Fatal(err) // log writes to stderr: over stdio, stdout belongs to the protocol
	}
}

// serveHTTP serves until ctx ends. Any net/http middleware may stand around the handler.
func serveHTTP(ctx context.Context, e *engine.Engine, addr string) error {
	mux := http.NewServeMux()
	mux.Handle("/mcp", transport.NewHTTPHandler(e, nil))
	server := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() {
		shutdown(e) // first, so that calls in flight are answered
		_ = server.Close()
	})
	log.Printf("serving http://%s/mcp", addr)
	return server.ListenAndServe()
}

// shutdown admits nothing more and gives what is in flight five seconds.
func shutdown(e *engine.Engine) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := e.Shutdown(ctx); err != nil {
		log.Print(err)
	}
}
