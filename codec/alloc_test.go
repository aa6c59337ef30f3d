//go:build !race

package codec_test

import (
	"math"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
)

// checkAllocs holds f to a budget of allocations, in the steady state.
func checkAllocs(t *testing.T, name string, budget float64, f func()) {
	t.Helper()
	f()
	if got := testing.AllocsPerRun(200, f); got > budget {
		t.Errorf("%s: got %g allocations, want at most %g", name, got, budget)
	}
}

func TestDecodeAllocs(t *testing.T) {
	var m codec.Message
	for name, frame := range map[string]string{
		"request":      string(callFrame),
		"escapes":      `{"jsonrpc":"2.0","id":"\u0061","me\u0074hod":"\u0070ing","params":{"n\u0061me":"\n","cursor":"\t"}}`,
		"notification": `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}`,
		"cancellation": `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"r"}}`,
		"response":     `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a"}]}}`,
		"error":        `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"m"}}`,
		"modern": `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"n","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
		"batch":       `[{"jsonrpc":"2.0"}]`,
		"syntax":      `{"jsonrpc":"2.0",`,
		"not valid":   `{"jsonrpc":"2.0","id":1.5,"method":"m"}`,
		"bad params":  `{"jsonrpc":"2.0","id":1,"method":"m","params":[]}`,
		"deep":        strings.Repeat(`{"params":`, 200),
		"just a null": `null`,
	} {
		data := []byte(frame)
		checkAllocs(t, "Decode of "+name, 0, func() {
			if err := codec.Decode(data, &m); err == nil && m.Kind == codec.KindInvalid {
				t.Error("an invalid message without an error")
			}
		})
	}
}

func TestAppendAllocs(t *testing.T) {
	dst := make([]byte, 0, 4096)
	id, params, failure := []byte("17"), []byte(`{"x":1}`), codec.NewError(codec.CodeInvalidParams, "a\nb")
	for name, f := range map[string]func(){
		"AppendResult":        func() { dst = codec.AppendResult(dst[:0], id, params) },
		"AppendError":         func() { dst = codec.AppendError(dst[:0], id, failure) },
		"AppendRequest":       func() { dst = codec.AppendRequest(dst[:0], id, codec.MethodToolsCall, params) },
		"AppendNotification":  func() { dst = codec.AppendNotification(dst[:0], codec.NotifyMessage, params) },
		"AppendProgress":      func() { dst = codec.AppendProgress(dst[:0], id, 0.5, 10, "half\u2028\xff") },
		"AppendProgress bare": func() { dst = codec.AppendProgress(dst[:0], id, 1, math.NaN(), "") },
		"AppendCancelled":     func() { dst = codec.AppendCancelled(dst[:0], id, "reason") },
		"AppendString":        func() { dst = codec.AppendString(dst[:0], params) },
	} {
		checkAllocs(t, name, 0, f)
	}
}

func TestSpanAllocs(t *testing.T) {
	obj := []byte(`{"a":{"b":12},"s":"text","f":1.5,"list":[1,2,3],"t":true}`)
	batch, sum := []byte(`[{},{}]`), 0
	for name, f := range map[string]func(){
		"EachMember": func() {
			codec.EachMember(obj, func(name, value []byte) bool { sum += len(name) + len(value); return true })
		},
		"EachElement": func() {
			codec.EachElement(codec.Member(obj, "list"), func(value []byte) bool { sum += len(value); return true })
		},
		"Member":     func() { sum += len(codec.Member(obj, "a", "b")) },
		"Int":        func() { n, _ := codec.Int(obj, "a", "b"); sum += int(n) },
		"Number":     func() { f, _ := codec.Number(obj, "f"); sum += int(f) },
		"Bool":       func() { _ = codec.Bool(obj, "t") },
		"Valid":      func() { _ = codec.Valid(obj) },
		"SplitBatch": func() { _ = codec.SplitBatch(batch, 5, func(frame []byte) { sum += len(frame) }) },
	} {
		checkAllocs(t, name, 0, f)
	}
	checkAllocs(t, "Text", 1, func() { sum += len(codec.Text(obj, "s")) })
}

func TestTreeAllocs(t *testing.T) {
	for name, text := range map[string]string{
		"plain":   string(argumentsText),
		"escapes": `{"messag\u0065":"\ud800\n","list":[1,2.5,{"x":null}],"ok":true,"n":1e2}`,
	} {
		data, sum := []byte(text), 0
		checkAllocs(t, "ParseTree of "+name, 0, func() {
			tree, err := codec.ParseTree(data)
			if err != nil {
				t.Fatal(err)
			}
			s, _ := tree.Get("message").Text()
			n, _ := tree.Get("n").Int()
			f, _ := tree.Get("list").Index(1).Float()
			tree.Root().Each(func(name []byte, v codec.Value) bool { sum += len(name) + v.Len(); return true })
			sum += len(s) + int(n) + int(f)
			tree.Release()
		})
	}
}

func TestTypedAllocs(t *testing.T) {
	add, say := decoder[addIn](t), decoder[sayIn](t)
	checkAllocs(t, "typed Decode of two integers", 1, func() {
		var v addIn
		if err := add.Decode(addText, &v); err != nil || v.X+v.Y != 3 {
			t.Errorf("got %+v, %v", v, err)
		}
	})
	checkAllocs(t, "typed Decode of two strings", 3, func() {
		var v sayIn
		if err := say.Decode(sayText, &v); err != nil || v.Message == "" {
			t.Errorf("got %+v, %v", v, err)
		}
	})
}
