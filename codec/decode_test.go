package codec_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
)

// shape is what a test compares of a Message: every member that is there, in a
// fixed order.
func shape(m *codec.Message) string {
	kinds := map[codec.Kind]string{
		codec.KindInvalid: "invalid", codec.KindRequest: "request", codec.KindNotification: "notification",
		codec.KindResponse: "response", codec.KindError: "error",
	}
	parts := []string{kinds[m.Kind]}
	for _, part := range []struct {
		name  string
		value []byte
	}{
		{"id", m.ID}, {"method", m.Method}, {"params", m.Params}, {"result", m.Result}, {"error", m.Error},
		{"name", m.Name}, {"uri", m.URI}, {"cursor", m.Cursor}, {"version", m.Version}, {"taskId", m.TaskID},
		{"state", m.State}, {"arguments", m.Arguments}, {"responses", m.Responses}, {"task", m.Task},
		{"requestId", m.RequestID}, {"paramToken", m.ParamToken}, {"meta", m.Meta},
		{"progressToken", m.ProgressToken}, {"metaVersion", m.MetaVersion}, {"logLevel", m.MetaLogLevel},
		{"clientInfo", m.ClientInfo}, {"clientCapabilities", m.ClientCapabilities},
	} {
		if part.value != nil {
			parts = append(parts, part.name+"="+string(part.value))
		}
	}
	for _, flag := range []struct {
		name string
		set  bool
	}{
		{"cursorPresent", m.CursorPresent}, {"metaVersionPresent", m.MetaVersionPresent},
		{"badProgressToken", m.BadProgressToken}, {"badMeta", m.BadMeta},
	} {
		if flag.set {
			parts = append(parts, flag.name)
		}
	}
	return strings.Join(parts, " ")
}

// code gives the code of an error that must be an *Error, or 0.
func code(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	var e *codec.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v is a %T, want *codec.Error", err, err)
	}
	return e.Code
}

type decodeCase struct {
	frame string
	shape string // "" where only the code matters
	code  int
}

func checkDecode(t *testing.T, cases []decodeCase) {
	t.Helper()
	var m codec.Message
	for _, c := range cases {
		err := codec.Decode([]byte(c.frame), &m)
		if got := code(t, err); got != c.code {
			t.Errorf("Decode(%.200q): got code %d (%v), want %d", c.frame, got, err, c.code)
		}
		if got := shape(&m); c.shape != "" && got != c.shape {
			t.Errorf("Decode(%.200q):\n got %s\nwant %s", c.frame, got, c.shape)
		}
	}
}

func TestDecodeKinds(t *testing.T) {
	checkDecode(t, []decodeCase{
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `request id=1 method=ping`, 0},
		{" \t\r\n{ \"jsonrpc\" : \"2.0\" , \"id\" : 1 , \"method\" : \"ping\" } \r\n", `request id=1 method=ping`, 0},
		{"\ufeff{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", `request id=1 method=ping`, 0},
		{`{"method":"ping","id":1,"jsonrpc":"2.0"}`, `request id=1 method=ping`, 0},
		{`{"jsonrpc":"2.0","method":"notifications/no_such"}`, `notification method=notifications/no_such`, 0},
		{`{"jsonrpc":"2.0","id":"never-asked","result":{}}`, `response id="never-asked" result={}`, 0},
		{`{"jsonrpc":"2.0","id":1,"result":null}`, `response id=1 result=null`, 0},
		{`{"jsonrpc":"2.0","id":1,"result":[1, 2]}`, `response id=1 result=[1, 2]`, 0},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x"}}`, `error id=1 error={"code":-1,"message":"x"}`, 0},
		{`{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}`, `error error={"code":-32700}`, 0},
		{`{"jsonrpc":"2.0","error":{"code":-32700}}`, `error error={"code":-32700}`, 0},
		{`{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, `invalid id=1 result={} error={}`, codec.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"error":"x"}`, `error id=1 error="x"`, codec.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1.5,"error":{}}`, `invalid error={}`, codec.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":null,"result":{}}`, `invalid result={}`, codec.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","result":{}}`, `invalid result={}`, codec.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, `request id=1 method=ping result={}`, codec.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1}`, `invalid id=1`, codec.CodeInvalidRequest},
		{`{}`, `invalid`, codec.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":7}`, `invalid id=1`, codec.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":null}`, `invalid id=1`, codec.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":""}`, `request id=1 method=`, 0},
		{`{"jsonrpc":"1.0","id":1,"method":"ping"}`, `request id=1 method=ping`, codec.CodeInvalidRequest},
		{`{"jsonrpc":2.0,"id":1,"method":"ping"}`, `request id=1 method=ping`, codec.CodeInvalidRequest},
		{`{"id":1,"method":"ping"}`, `request id=1 method=ping`, codec.CodeInvalidRequest},
		{`{"jsonrpc":"\u0032.0","id":1,"method":"ping"}`, `request id=1 method=ping`, 0},
		{`null`, `invalid`, codec.CodeInvalidRequest},
		{`123`, `invalid`, codec.CodeInvalidRequest},
		{`"x"`, `invalid`, codec.CodeInvalidRequest},
		{`true`, `invalid`, codec.CodeInvalidRequest},
		{`[{"jsonrpc":"2.0","id":2,"method":"ping"}]`, `invalid`, codec.CodeInvalidRequest},
		{`[]`, `invalid`, codec.CodeInvalidRequest},
	})
}

func TestDecodeIDs(t *testing.T) {
	request := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` }
	huge := strings.Repeat("9", 400)
	for _, id := range []string{
		`0`, `-0`, `1`, `-1`, `"1"`, `""`, `"a b"`, `"\u0041"`, `"\ud800"`, `"é"`, `9007199254740993`,
		`9223372036854775807`, `18446744073709551616`, huge, `"` + huge + `"`, `"123-abc"`,
	} {
		checkDecode(t, []decodeCase{{request(id), `request id=` + id + ` method=ping`, 0}})
	}
	for _, id := range []string{`1.5`, `1.0`, `1e0`, `1E5`, `-0.0`, `null`, `true`, `false`, `{}`, `[]`, `[1]`, `{"a":1}`} {
		checkDecode(t, []decodeCase{{request(id), `request method=ping`, codec.CodeInvalidRequest}})
	}
}

func TestDecodeDuplicates(t *testing.T) {
	refused := func(frame string) decodeCase { return decodeCase{frame, "", codec.CodeInvalidRequest} }
	checkDecode(t, []decodeCase{
		{`{"jsonrpc":"2.0","id":5,"method":"ping","method":"tools/list"}`, `request id=5 method=ping`, codec.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":5,"method":"ping","me\u0074hod":"tools/list"}`, `request id=5 method=ping`, codec.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":5,"id":6,"method":"ping"}`, `request id=5 method=ping`, codec.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":null,"id":6,"method":"ping"}`, `request method=ping`, codec.CodeInvalidRequest},
		refused(`{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"ping"}`),
		refused(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}}`),
		refused(`{"jsonrpc":"2.0","id":1,"method":"ping","params":null,"params":{}}`),
		refused(`{"jsonrpc":"2.0","id":1,"result":{},"result":{}}`),
		refused(`{"jsonrpc":"2.0","id":1,"error":{},"error":{}}`),
		{`{"jsonrpc":"2.0","id":1,"method":"m","x":1,"x":2,"params":{"y":1,"y":2,"_meta":{"z":1,"z":2}}}`,
			`request id=1 method=m params={"y":1,"y":2,"_meta":{"z":1,"z":2}} meta={"z":1,"z":2}`, 0},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":{"a":1,"a":2}}}`,
			`request id=1 method=m params={"arguments":{"a":1,"a":2}} arguments={"a":1,"a":2}`, 0},
	})
	for _, name := range []string{
		"name", "uri", "cursor", "protocolVersion", "taskId", "requestState", "arguments", "inputResponses", "task",
		"requestId", "progressToken", "_meta",
	} {
		checkDecode(t, []decodeCase{refused(fmt.Sprintf(
			`{"jsonrpc":"2.0","id":1,"method":"m","params":{%q:null,%q:{}}}`, name, name))})
	}
	for _, name := range []string{
		codec.MetaProgressToken, codec.MetaProtocolVersion, codec.MetaLogLevel, codec.MetaClientInfo, codec.MetaClientCapabilities,
	} {
		checkDecode(t, []decodeCase{refused(fmt.Sprintf(
			`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{%q:"a",%q:"b"}}}`, name, name))})
	}
}

func TestDecodeNames(t *testing.T) {
	checkDecode(t, []decodeCase{
		{`{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/list"}`, `request id=1 method=ping`, 0},
		{`{"JSONRPC":"2.0","id":1,"method":"ping"}`, `request id=1 method=ping`, codec.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","ID":1,"method":"ping"}`, `notification method=ping`, 0},
		{`{"jsonrpc":"2.0","id":1,"METHOD":"ping"}`, `invalid id=1`, codec.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"Name":"x","name":"y","ARGUMENTS":{}}}`,
			`request id=1 method=m params={"Name":"x","name":"y","ARGUMENTS":{}} name=y`, 0},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_META":{"progressToken":1}}}`,
			`request id=1 method=m params={"_META":{"progressToken":1}}`, 0},
		{`{"jsonrpc":"2.0","id":1,"method":"m","paramſ":{"name":"x"}}`, `request id=1 method=m`, 0},
		{`{"jsonrpc":"2.0","id":1,"me\u0074hod":"ping"}`, `request id=1 method=ping`, 0},
		{`{"jsonrpc":"2.0","\u0069\u0064":1,"method":"\u0070ing"}`, `request id=1 method=ping`, 0},
		{`{"jsonrpc":"2.0","id":4,"method\u0000":"ping"}`, `invalid id=4`, codec.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":4,"method\u0000":"a","method":"b"}`, `request id=4 method=b`, 0},
		{`{"jsonrpc":"2.0","id":4,"method":"ping\u0000"}`, "request id=4 method=ping\x00", 0},
		{`{"jsonrpc":"2.0","id":4,"method":"\ud800"}`, "request id=4 method=\ufffd", 0},
		{`{"jsonrpc":"2.0","id":4,"method":"\ud83d\ude00"}`, "request id=4 method=😀", 0},
		{`{"jsonrpc":"2.0","id":4,"method":"\udc00\ud800x"}`, "request id=4 method=\ufffd\ufffdx", 0},
		{`{"jsonrpc":"2.0","id":4,"method":"\/\b\f\n\r\t\"\\"}`, "request id=4 method=/\b\f\n\r\t\"\\", 0},
		{`{"jsonrpc":"2.0","id":4,"method":"a","":1}`, "request id=4 method=a", 0},
	})
}

func TestDecodeParams(t *testing.T) {
	checkDecode(t, []decodeCase{
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":null}`, `request id=1 method=m`, 0},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{}}`, `request id=1 method=m params={}`, 0},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":["echo"]}`, `request id=1 method=m`, codec.CodeInvalidParams},
		{`{"jsonrpc":"2.0","method":"m","params":["echo"]}`, `notification method=m`, codec.CodeInvalidParams},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":"x"}`, `request id=1 method=m`, codec.CodeInvalidParams},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":0}`, `request id=1 method=m`, codec.CodeInvalidParams},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":false}`, `request id=1 method=m`, codec.CodeInvalidParams},
		{`{"params":[],"jsonrpc":"2.0","id":1}`, `invalid id=1`, codec.CodeInvalidRequest},
		{`{"params":[],"id":1,"method":"m"}`, `request id=1 method=m`, codec.CodeInvalidRequest},
		{`{"params":{"_meta":1},"jsonrpc":"2.0","method":"m","id":null}`,
			`request method=m params={"_meta":1} badMeta`, codec.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}`,
			`request id=1 method=tools/call params={"name":"echo","arguments":{"message":"hi"}} name=echo arguments={"message":"hi"}`, 0},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":1,"uri":{},"cursor":2,"protocolVersion":[],"taskId":null,"requestState":true}}`,
			`request id=1 method=m params={"name":1,"uri":{},"cursor":2,"protocolVersion":[],"taskId":null,"requestState":true} cursorPresent`, 0},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"n","uri":"u","cursor":"c","protocolVersion":"v","taskId":"t","requestState":"s"}}`,
			`request id=1 method=m params={"name":"n","uri":"u","cursor":"c","protocolVersion":"v","taskId":"t","requestState":"s"}` +
				` name=n uri=u cursor=c version=v taskId=t state=s cursorPresent`, 0},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":[],"inputResponses":{"a": 1},"task":null}}`,
			`request id=1 method=m params={"arguments":[],"inputResponses":{"a": 1},"task":null} arguments=[] responses={"a": 1} task=null`, 0},
		{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9007199254740993}}`,
			`notification method=notifications/cancelled params={"requestId":9007199254740993} requestId=9007199254740993`, 0},
		{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1.0}}`,
			`notification method=notifications/cancelled params={"requestId":1.0}`, 0},
		{`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"7","progress":1}}`,
			`notification method=notifications/progress params={"progressToken":"7","progress":1} paramToken="7"`, 0},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":{"name":"inner","_meta":{"progressToken":1}}}}`,
			`request id=1 method=m params={"x":{"name":"inner","_meta":{"progressToken":1}}}`, 0},
	})
}

func TestDecodeMeta(t *testing.T) {
	for _, c := range []struct {
		meta, want string
		code       int
	}{
		{`{}`, `meta={}`, 0},
		{`null`, ``, 0},
		{`[]`, `badMeta`, codec.CodeInvalidParams},
		{`"x"`, `badMeta`, codec.CodeInvalidParams},
		{`1`, `badMeta`, codec.CodeInvalidParams},
		{`{"progressToken":0}`, `meta={"progressToken":0} progressToken=0`, 0},
		{`{"progressToken":"7"}`, `meta={"progressToken":"7"} progressToken="7"`, 0},
		{`{"progressToken":""}`, `meta={"progressToken":""} progressToken=""`, 0},
		{`{"progressToken":18446744073709551617}`, `meta={"progressToken":18446744073709551617} progressToken=18446744073709551617`, 0},
		{`{"progressToken":1.5}`, `meta={"progressToken":1.5} badProgressToken`, 0},
		{`{"progressToken":null}`, `meta={"progressToken":null} badProgressToken`, 0},
		{`{"progressToken":{"a":1}}`, `meta={"progressToken":{"a":1}} badProgressToken`, 0},
		{`{"progressToken":true}`, `meta={"progressToken":true} badProgressToken`, 0},
		{`{"ProgressToken":1}`, `meta={"ProgressToken":1}`, 0},
		{`{"x.example/y":1}`, `meta={"x.example/y":1}`, 0},
		{`{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`,
			`meta={"io.modelcontextprotocol/protocolVersion":"2026-07-28"} metaVersion=2026-07-28 metaVersionPresent`, 0},
		{`{"io.modelcontextprotocol/protocolVersion":1}`,
			`meta={"io.modelcontextprotocol/protocolVersion":1} metaVersionPresent`, 0},
		{`{"io.modelcontextprotocol/logLevel":"debug"}`,
			`meta={"io.modelcontextprotocol/logLevel":"debug"} logLevel=debug`, 0},
		{`{"io.modelcontextprotocol/clientInfo":{"name":"n"},"io.modelcontextprotocol/clientCapabilities":{}}`,
			`meta={"io.modelcontextprotocol/clientInfo":{"name":"n"},"io.modelcontextprotocol/clientCapabilities":{}}` +
				` clientInfo={"name":"n"} clientCapabilities={}`, 0},
		{`{"io.modelcontextprotocol/clientInfo":[],"io.modelcontextprotocol/clientCapabilities":"x"}`,
			`meta={"io.modelcontextprotocol/clientInfo":[],"io.modelcontextprotocol/clientCapabilities":"x"}`, 0},
	} {
		frame := `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":` + c.meta + `}}`
		want := strings.TrimSpace(`request id=1 method=m params={"_meta":` + c.meta + `} ` + c.want)
		checkDecode(t, []decodeCase{{frame, want, c.code}})
	}
}

func TestDecodeSyntax(t *testing.T) {
	frames := []string{
		``, ` `, "\n", `{`, `{"jsonrpc":"2.0","id":1,"method":"ping"`, `{"jsonrpc":"2.0",`, `{"jsonrpc"`, `{"jsonrpc":`,
		`{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{"jsonrpc":"2.0","id":1,"method":"ping",}`,
		`{"jsonrpc":"2.0","id":01,"method":"ping"}`, `{"jsonrpc":"2.0","id":-,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":"\x","method":"ping"}`, `{"jsonrpc":"2.0","id":"`, `{"id":`, `{"method":`, `{"jsonrpc":"2.0","id":1.,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":+1,"method":"ping"}`, `{"jsonrpc":"2.0","id":NaN,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":nan,"method":"ping"}`, `{"jsonrpc":"2.0","id":Infinity,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":"a` + "\n" + `","method":"ping"}`, `{"jsonrpc":"2.0","id":"\n` + "\n" + `","method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"` + "\x00" + `"}`, `{"jsonrpc":"2.0","id":1,"method":"` + "\xff" + `"}`,
		`{"jsonrpc":"2.0","id":1,"method":"` + "\xed\xa0\x80" + `"}`, `{"jsonrpc":"2.0","id":1,"method":"` + "\xc0\xaf" + `"}`,
		`{"jsonrpc":"2.0","id":1,"method":"\x"}`, `{"jsonrpc":"2.0","id":1,"method":"\u12"}`, `{"jsonrpc":"2.0","id":1,"method":"\u12G4"}`,
		`{'jsonrpc':'2.0'}`, `{jsonrpc:"2.0"}`, `{"a" 1}`, `{"a":1 "b":2}`, `{,}`, `{"a":}`, `{1:2}`, `{"a":1}}`,
		`{"params":[1,]}`, `{"params":{"x":tru}}`, `{"params":{"_meta":{"progressToken":01}}}`, `{"result":.5}`, `{"error":{"a":1.}}`,
		`/* c */{"jsonrpc":"2.0","id":1,"method":"ping"}`, "\ufeff", "\ufeff\ufeff{}", "\xef\xbb{}",
		"{\"a\":\u00a01}", "\x0b{}",
	}
	for _, frame := range frames {
		checkDecode(t, []decodeCase{{frame, "invalid", codec.CodeParseError}})
	}
}

func TestDecodeDepth(t *testing.T) {
	nest := func(n int) string {
		return `{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}}`
	}
	checkDecode(t, []decodeCase{
		{nest(codec.MaxDepth - 2), "", 0},
		{nest(codec.MaxDepth - 1), "invalid", codec.CodeInvalidRequest},
		{nest(100000), "invalid", codec.CodeInvalidRequest},
		{strings.Repeat("[", 100000), "invalid", codec.CodeInvalidRequest},
		{strings.Repeat("[", codec.MaxDepth) + strings.Repeat("]", codec.MaxDepth), "invalid", codec.CodeInvalidRequest},
		{strings.Repeat(`{"params":`, 100000), "invalid", codec.CodeInvalidRequest},
		{`{"params":{"_meta":` + strings.Repeat(`{"a":`, 200), "invalid", codec.CodeInvalidRequest},
	})
}

// TestDecodeAgain makes sure that nothing of one frame is left for the next.
func TestDecodeAgain(t *testing.T) {
	var m, fresh codec.Message
	full := `{"jsonrpc":"2.0","id":1,"me\u0074hod":"\u006d","params":{"n\u0061me":"\u0061","arguments":{},"cursor":1,` +
		`"_meta":{"progressToken":[],"io.modelcontextprotocol/protocolVersion":1}}}`
	for _, next := range []string{`{"jsonrpc":"2.0","method":"n"}`, `{`, `[]`, `{"jsonrpc":"2.0","id":2,"method":"m","params":{"_meta":3}}`} {
		if err := codec.Decode([]byte(full), &m); err != nil || string(m.Method) != "m" || string(m.Name) != "a" {
			t.Fatalf("Decode(%s): got %s, %v", full, shape(&m), err)
		}
		gotErr, wantErr := codec.Decode([]byte(next), &m), codec.Decode([]byte(next), &fresh)
		if got, want := shape(&m), shape(&fresh); got != want || !errors.Is(gotErr, wantErr) {
			t.Errorf("Decode(%s) after a full frame: got %s, %v, want %s, %v", next, got, gotErr, want, wantErr)
		}
	}
}

func TestMessageUintID(t *testing.T) {
	for _, c := range []struct {
		id   string
		want uint64
		ok   bool
	}{
		{"0", 0, true}, {"17", 17, true}, {"9999999999999999999", 9999999999999999999, true},
		{"10000000000000000000", 0, false}, {"-1", 0, false}, {`"1"`, 0, false},
	} {
		var m codec.Message
		if err := codec.Decode([]byte(`{"jsonrpc":"2.0","id":`+c.id+`,"result":{}}`), &m); err != nil {
			t.Fatal(err)
		}
		if got, ok := m.UintID(); got != c.want || ok != c.ok {
			t.Errorf("UintID of %s: got %d, %v, want %d, %v", c.id, got, ok, c.want, c.ok)
		}
	}
	if n, ok := codec.ParseUint(nil); n != 0 || ok {
		t.Errorf("ParseUint(nil): got %d, %v, want 0, false", n, ok)
	}
}

func TestMessageIsModern(t *testing.T) {
	var m codec.Message
	for meta, want := range map[string]bool{
		`{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`: true,
		`{"io.modelcontextprotocol/protocolVersion":null}`:         true,
		`{"io.modelcontextprotocol/clientInfo":{}}`:                false,
		`{}`: false,
	} {
		if err := codec.Decode([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":`+meta+`}}`), &m); err != nil {
			t.Fatal(err)
		}
		if got := m.IsModern(); got != want {
			t.Errorf("IsModern with _meta %s: got %v, want %v", meta, got, want)
		}
	}
}
