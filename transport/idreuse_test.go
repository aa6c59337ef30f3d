package transport_test

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// TestIDIsFreeOnceAnswered uses one id again and again, each time at once when
// its answer is there.
func TestIDIsFreeOnceAnswered(t *testing.T) {
	e := engine.New(engine.Info{Name: "ids", Version: "1"}, nil)
	defer func() { _ = e.Shutdown(context.Background()) }()
	err := e.AddRawTool(engine.Tool{Name: "echo"}, func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
		return engine.AppendTextResult(out, "x"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for name, params := range map[string]string{
		"2025-11-25": `{"name":"echo"}`,
		"2026-07-28": `{"name":"echo",` + meta + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			pipe, served := transport.Pipe(context.Background(), e)
			defer func() { _ = pipe.Close(); <-served }()
			answers := bufio.NewReader(pipe)
			ask := func(line string) string {
				if _, err := fmt.Fprintln(pipe, line); err != nil {
					t.Fatal(err)
				}
				answer, err := answers.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				return answer
			}
			ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
			for i := range 2000 {
				if got := ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`); !strings.Contains(got, `"result"`) {
					t.Fatalf("use %d of the id: got %s, want a result", i, got)
				}
			}
		})
	}
}
