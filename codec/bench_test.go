package codec_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
)

var (
	callFrame     = []byte(`{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello, world"},"_meta":{"progressToken":"p-1"}}}`)
	argumentsText = []byte(`{"message":"hello, world","n":12,"list":[1,2.5,"three"],"ok":true,"none":null}`)
	addText       = []byte(`{"x":1,"y":2}`)
	sayText       = []byte(`{"message":"hello, world","to":"somebody"}`)
)

type addIn struct {
	X int `json:"x"`
	Y int `json:"y"`
}

type sayIn struct {
	Message string `json:"message"`
	To      string `json:"to"`
}

func BenchmarkDecodeToolsCall(b *testing.B) {
	var m codec.Message
	b.ReportAllocs()
	b.SetBytes(int64(len(callFrame)))
	for b.Loop() {
		if err := codec.Decode(callFrame, &m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, c := range []struct{ name, frame string }{
		{"ping", `{"jsonrpc":"2.0","id":17,"method":"ping"}`},
		{"progress", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p-1","progress":1,"total":10}}`},
		{"response", `{"jsonrpc":"2.0","id":17,"result":{"content":[{"type":"text","text":"hello, world"}]}}`},
		{"modern", `{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello, world"},"_meta":` +
			`{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},` +
			`"io.modelcontextprotocol/clientCapabilities":{}}}}`},
		{"escaped", `{"jsonrpc":"2.0","id":17,"method":"tools\/call","params":{"n\u0061me":"\u0065cho","arguments":{"message":"a\n\t\"b\""}}}`},
		{"64k", `{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"echo","arguments":{"message":"` + strings.Repeat("x", 64<<10) + `"}}}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			var m codec.Message
			frame := []byte(c.frame)
			b.ReportAllocs()
			b.SetBytes(int64(len(frame)))
			for b.Loop() {
				if err := codec.Decode(frame, &m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncodeToolsCall(b *testing.B) {
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = codec.AppendResultHead(dst[:0], []byte("17"))
		dst = append(dst, `{"content":[{"type":"text","text":`...)
		dst = codec.AppendString(dst, "hello, world")
		dst = append(dst, `}]}}`...)
	}
}

func BenchmarkAppendString(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"short", "hello, world"}, {"plain 4k", strings.Repeat("x", 4<<10)}, {"lines 4k", strings.Repeat("a line of text\n", 273)},
		{"beyond ASCII 4k", strings.Repeat("é", 2<<10)},
	} {
		b.Run(c.name, func(b *testing.B) {
			var dst []byte
			b.ReportAllocs()
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				dst = codec.AppendString(dst[:0], c.text)
			}
		})
	}
}

func BenchmarkAppendProgress(b *testing.B) {
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = codec.AppendProgress(dst[:0], []byte(`"p-1"`), 3, 10, "working")
	}
}

func BenchmarkMember(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if codec.Member(argumentsText, "ok") == nil {
			b.Fatal("no such member")
		}
	}
}

func BenchmarkTree(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		tree, err := codec.ParseTree(argumentsText)
		if err != nil {
			b.Fatal(err)
		}
		if _, ok := tree.Get("message").Text(); !ok {
			b.Fatal("no text")
		}
		tree.Release()
	}
}

func benchmarkTyped[T any](b *testing.B, text []byte) {
	d, err := codec.DecoderFor[T]()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("codec", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var v T
			if err := d.Decode(text, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var v T
			if err := json.Unmarshal(text, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkTypedAdd(b *testing.B) { benchmarkTyped[addIn](b, addText) }
func BenchmarkTypedSay(b *testing.B) { benchmarkTyped[sayIn](b, sayText) }

func BenchmarkTypedNested(b *testing.B) {
	benchmarkTyped[sample](b, []byte(`{"x":1,"in":{"s":"a","n":3},"parts":[{"s":"a","n":1},{"s":"b","n":null,"l":[1,2]}],"m":{"a":true,"b":false},`+
		`"a":["p","q"],"any":{"a":[1,2.5]}}`))
}
