package layers

import (
	"testing"

	"github.com/mcpengine/mcpengine/codec"
)

// The messages that the benchmarks of several layers handle.
const (
	initializeFrame = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"bench","version":"1"}}}`
	callFrame      = `{"jsonrpc":"2.0","id":1000000000,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello, world"}}}`
	typedCallFrame = `{"jsonrpc":"2.0","id":1000000000,"method":"tools/call","params":{"name":"typed","arguments":{"message":"hello, world"}}}`
	modernFrame    = `{"jsonrpc":"2.0","id":1000000000,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello, world"},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}}}`
	progressFrame  = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1,"total":10}}`
	cancelledFrame = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1000000000,"reason":"enough"}}`
	resultFrame    = `{"jsonrpc":"2.0","id":1000000000,"result":{"content":[{"type":"text","text":"hello, world"}]}}`
	errorFrame     = `{"jsonrpc":"2.0","id":1000000000,"error":{"code":-32602,"message":"Unknown tool: none"}}`
)

func BenchmarkCodecDecode(b *testing.B) {
	for _, c := range []struct{ name, frame string }{
		{"call", callFrame}, {"modern-call", modernFrame}, {"progress", progressFrame}, {"cancelled", cancelledFrame},
		{"result", resultFrame}, {"error", errorFrame},
	} {
		b.Run(c.name, func(b *testing.B) {
			var m codec.Message
			frame := []byte(c.frame)
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				if err := codec.Decode(frame, &m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCodecEncode(b *testing.B) {
	dst, id := make([]byte, 0, 1<<10), []byte("1000000000")
	result, failure := []byte(`{"content":[]}`), codec.NewError(codec.CodeInvalidParams, "Unknown tool: none")
	for _, c := range []struct {
		name   string
		append func() []byte
	}{
		{"result", func() []byte { return codec.AppendResult(dst[:0], id, result) }},
		{"error", func() []byte { return codec.AppendError(dst[:0], id, failure) }},
		{"progress", func() []byte { return codec.AppendProgress(dst[:0], id, 1, 10, "on the way") }},
		{"string", func() []byte { return codec.AppendString(dst[:0], "hello, \"world\"\n") }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if len(c.append()) == 0 {
					b.Fatal("nothing was appended")
				}
			}
		})
	}
}
