package codec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
)

func TestAppendString(t *testing.T) {
	for _, c := range []struct{ s, want string }{
		{"", `""`}, {"abc", `"abc"`}, {`"\`, `"\"\\"`}, {"\n\r\t", `"\n\r\t"`}, {"\b\f\x00\x1f\x7f", "\"\\u0008\\u000c\\u0000\\u001f\x7f\""},
		{"é€😀", `"é€😀"`}, {"\u2028\u2029", `"\u2028\u2029"`}, {"a\xffb", `"a\ufffdb"`}, {"\xed\xa0\x80", `"\ufffd\ufffd\ufffd"`},
		{"\xe2\x82", `"\ufffd\ufffd"`}, {"\ufffd", "\"\ufffd\""}, {"</script>", `"</script>"`}, {"é\n", `"é\n"`},
		{strings.Repeat("x", 100) + "\n", `"` + strings.Repeat("x", 100) + `\n"`},
	} {
		if got := string(codec.AppendString([]byte("-"), c.s)); got != "-"+c.want {
			t.Errorf("AppendString(%q): got %s, want %s", c.s, got[1:], c.want)
		}
		if got := string(codec.AppendString(nil, []byte(c.s))); got != c.want {
			t.Errorf("AppendString([]byte(%q)): got %s, want %s", c.s, got, c.want)
		}
	}
}

func TestAppendFloat(t *testing.T) {
	for _, c := range []struct {
		f    float64
		want string
	}{
		{0, "0"}, {math.Copysign(0, -1), "0"}, {1, "1"}, {-3, "-3"}, {0.5, "0.5"}, {1e6, "1000000"}, {1 << 52, "4503599627370496"},
		{1e21, "1e+21"}, {1e-7, "1e-07"}, {0.1, "0.1"}, {math.NaN(), "0"}, {math.Inf(1), "0"}, {math.Inf(-1), "0"},
		{math.MaxFloat64, "1.7976931348623157e+308"}, {5e-324, "5e-324"},
	} {
		got := string(codec.AppendFloat(nil, c.f))
		if got != c.want || !json.Valid([]byte(got)) {
			t.Errorf("AppendFloat(%g): got %s, want %s", c.f, got, c.want)
		}
	}
}

// TestAppendMessages drives the encoders and the decoder with one table: each
// frame is compared, must be one line of JSON, and must be read as it was meant.
func TestAppendMessages(t *testing.T) {
	id, params := []byte(`"a\u0041"`), []byte(`{"x":1}`)
	for _, c := range []struct{ name, got, want, shape string }{
		{"AppendResult", string(codec.AppendResult(nil, id, []byte(`{"y":2}`))),
			`{"jsonrpc":"2.0","id":"a\u0041","result":{"y":2}}`, `response id="a\u0041" result={"y":2}`},
		{"AppendResultHead", string(codec.AppendResultHead([]byte("x"), []byte("0"))) + "{}}",
			`x{"jsonrpc":"2.0","id":0,"result":{}}`, ``},
		{"AppendResultHead, no id", string(codec.AppendResultHead(nil, nil)) + "{}}",
			`{"jsonrpc":"2.0","id":null,"result":{}}`, ``},
		{"AppendError", string(codec.AppendError(nil, id, &codec.Error{Code: -32602, Message: "a\n\"b\""})),
			`{"jsonrpc":"2.0","id":"a\u0041","error":{"code":-32602,"message":"a\n\"b\""}}`,
			`error id="a\u0041" error={"code":-32602,"message":"a\n\"b\""}`},
		{"AppendError, no id, data", string(codec.AppendError(nil, nil, &codec.Error{Code: 1, Data: []byte(`[1]`)})),
			`{"jsonrpc":"2.0","error":{"code":1,"message":"","data":[1]}}`, `error error={"code":1,"message":"","data":[1]}`},
		{"AppendRequest", string(codec.AppendRequest(nil, []byte("7"), "tools/call", params)),
			`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":1}}`, `request id=7 method=tools/call params={"x":1}`},
		{"AppendRequest, no params", string(codec.AppendRequest(nil, []byte("7"), "ping", nil)),
			`{"jsonrpc":"2.0","id":7,"method":"ping"}`, `request id=7 method=ping`},
		{"AppendNotification", string(codec.AppendNotification(nil, "n\u2028", params)),
			`{"jsonrpc":"2.0","method":"n\u2028","params":{"x":1}}`, "notification method=n\u2028 params={\"x\":1}"},
		{"AppendProgress", string(codec.AppendProgress(nil, []byte(`"p"`), 1, 2.5, "m\n")),
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1,"total":2.5,"message":"m\n"}}`,
			`notification method=notifications/progress params={"progressToken":"p","progress":1,"total":2.5,"message":"m\n"} paramToken="p"`},
		{"AppendProgress, little", string(codec.AppendProgress(nil, []byte(`0`), 0.25, math.NaN(), "")),
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0,"progress":0.25}}`,
			`notification method=notifications/progress params={"progressToken":0,"progress":0.25} paramToken=0`},
		{"AppendCancelled", string(codec.AppendCancelled(nil, id, "why")),
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a\u0041","reason":"why"}}`,
			`notification method=notifications/cancelled params={"requestId":"a\u0041","reason":"why"} requestId="a\u0041"`},
		{"AppendCancelled, no reason", string(codec.AppendCancelled(nil, []byte("1"), "")),
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
			`notification method=notifications/cancelled params={"requestId":1} requestId=1`},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, c.got, c.want)
		}
		if strings.ContainsAny(c.got, "\r\n\u2028\u2029") {
			t.Errorf("%s: %q is not one line", c.name, c.got)
		}
		if c.shape != "" {
			checkDecode(t, []decodeCase{{c.got, c.shape, 0}})
		}
	}
}

func TestError(t *testing.T) {
	e := codec.NewError(codec.CodeInvalidParams, "no such tool")
	wrapped := fmt.Errorf("call: %w", e)
	if got, want := e.Error(), "no such tool (-32602)"; got != want {
		t.Errorf("Error: got %q, want %q", got, want)
	}
	for _, c := range []struct {
		err, target error
		want        bool
	}{
		{e, codec.ErrInvalidParams, true}, {wrapped, codec.ErrInvalidParams, true}, {wrapped, codec.ErrInternal, false},
		{e, errors.New("x"), false}, {errors.New("x"), codec.ErrParse, false},
	} {
		if got := errors.Is(c.err, c.target); got != c.want {
			t.Errorf("errors.Is(%v, %v): got %v, want %v", c.err, c.target, got, c.want)
		}
	}
}
