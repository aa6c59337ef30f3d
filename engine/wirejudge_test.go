package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// typeNames are the stems of the definitions, by method.
var typeNames = map[string]string{
	codec.MethodInitialize: "Initialize", codec.MethodToolsList: "ListTools", codec.MethodToolsCall: "CallTool",
	codec.MethodResourcesList: "ListResources", codec.MethodResourceTemplatesList: "ListResourceTemplates",
	codec.MethodResourcesRead: "ReadResource", codec.MethodPromptsList: "ListPrompts", codec.MethodPromptsGet: "GetPrompt",
	codec.MethodComplete: "Complete", codec.MethodDiscover: "Discover", codec.MethodListen: "SubscriptionsListen",
	codec.MethodTasksGet: "GetTask", codec.MethodTasksList: "ListTasks", codec.MethodTasksCancel: "CancelTask",
	codec.MethodTasksResult: "GetTaskPayload", codec.MethodSample: "CreateMessage", codec.MethodElicit: "Elicit",
	codec.MethodRootsList: "ListRoots", codec.MethodPing: "Ping",
	codec.NotifyProgress: "Progress", codec.NotifyMessage: "LoggingMessage", codec.NotifyCancelled: "Cancelled",
	codec.NotifyResourceUpdated: "ResourceUpdated", codec.NotifyResourcesChanged: "ResourceListChanged",
	codec.NotifyToolsChanged: "ToolListChanged", codec.NotifyPromptsChanged: "PromptListChanged",
	codec.NotifyElicitationComplete: "ElicitationComplete", codec.NotifyTaskStatus: "TaskStatus",
	codec.NotifySubscriptionsStarted: "SubscriptionsAcknowledged",
}

// judge tells what is wrong with a frame of the server's. methods gives the
// method of the request with an id; it may be nil.
func judge(rev engine.Revision, methods map[string]string, frame []byte) error {
	schemas, err := protocolSchemas()
	if err != nil {
		return nil // TestSchemas tells
	}
	if bytes.ContainsAny(frame, "\r\n") {
		return errors.New("a line break")
	}
	s := schemas[rev]
	if codec.IsBatch(frame) {
		if rev != engine.Rev20250326 {
			return errors.New("a batch")
		}
		if err := s.validate("JSONRPCBatchResponse", frame); err != nil {
			return err
		}
		var fault error
		return errors.Join(codec.SplitBatch(frame, 1000, func(element []byte) {
			fault = errors.Join(fault, judge(rev, methods, element))
		}), fault)
	}
	var m codec.Message
	if err := codec.Decode(frame, &m); err != nil {
		return err
	}
	if exempt(rev, &m) != "" {
		return nil
	}
	if err := s.validate("JSONRPCMessage", frame); err != nil {
		return err
	}
	switch m.Kind {
	case codec.KindResponse:
		return s.judgeResult(rev, methods[string(m.ID)], m.Result)
	case codec.KindError:
		return s.judgeError(rev, &m, frame)
	case codec.KindNotification:
		return s.judgeMessage(rev, "Notification", &m, frame)
	case codec.KindRequest:
		if rev.IsModern() {
			return errors.New("a request of the server's, of which this revision has none")
		}
		return s.judgeMessage(rev, "Request", &m, frame)
	}
	return errors.New("no message")
}

// judgeMessage holds a request or a notification to its own definition.
func (s *protocolSchema) judgeMessage(rev engine.Revision, kind string, m *codec.Message, frame []byte) error {
	if string(m.Method) == codec.NotifyTasks && rev.IsModern() {
		return judgeTask(m.Params, "_meta")
	}
	name := typeNames[string(m.Method)]
	if name == "" {
		return fmt.Errorf("a %s that no revision has: %s", strings.ToLower(kind), m.Method)
	}
	if rev < engine.Rev20251125 { // these definitions do without the envelope
		bare := codec.AppendString([]byte(`{"method":`), m.Method)
		if m.Params != nil {
			bare = append(append(bare, `,"params":`...), m.Params...)
		}
		frame = append(bare, '}')
	}
	if string(m.Method) == codec.NotifyCancelled && codec.Member(m.Params, "requestId") == nil {
		return errors.New("a cancellation of nothing")
	}
	return s.validate(name+kind, frame)
}

// judgeResult holds a result to the type of its method.
func (s *protocolSchema) judgeResult(rev engine.Revision, method string, result []byte) error {
	if !rev.IsModern() {
		if codec.Member(result, "resultType") != nil || codec.Member(result, "_meta", codec.MetaServerInfo) != nil {
			return errors.New("a result of the stateless era")
		}
	} else if err := judgeModernResult(result); err != nil {
		return err
	}
	switch name := typeNames[method]; method {
	case codec.MethodPing, codec.MethodSetLevel, codec.MethodResourcesSubscribe, codec.MethodResourcesUnsubscribe:
		if string(result) != "{}" {
			return errors.New("more than an empty result")
		}
		return s.validate("EmptyResult", result)
	case codec.MethodTasksResult:
		if codec.Text(result, "_meta", codec.MetaRelatedTask, "taskId") == "" {
			return errors.New("a task's result that does not name the task")
		}
		return s.validate("CallToolResult", result)
	default:
		kind := codec.Text(result, "resultType")
		switch {
		case rev.IsModern() && kind == "task":
			return judgeTask(result, "_meta", "resultType")
		case rev.IsModern() && kind == "input_required":
			if !slices.Contains([]string{codec.MethodToolsCall, codec.MethodPromptsGet, codec.MethodResourcesRead}, method) {
				return fmt.Errorf("input_required for %s", method)
			}
			if codec.Member(result, "inputRequests") == nil && codec.Member(result, "requestState") == nil {
				return errors.New("input_required without anything")
			}
			name = "InputRequired"
		case rev.IsModern() && strings.HasPrefix(method, "tasks/"):
			if method == codec.MethodTasksGet {
				return judgeTask(result, "_meta", "resultType")
			}
			name = ""
		case codec.Member(result, "task") != nil:
			name = "CreateTask"
		}
		return s.validate(name+"Result", result)
	}
}

// judgeModernResult checks what every result of 2026-07-28 has.
func judgeModernResult(result []byte) error {
	switch kind := codec.Text(result, "resultType"); kind {
	case "complete", "input_required", "task":
	default:
		return fmt.Errorf("resultType %q", kind)
	}
	if codec.Text(result, "_meta", codec.MetaServerInfo, "name") == "" {
		return errors.New("no serverInfo")
	}
	return nil
}

// judgeTask checks a task of the extension, whose schema is not among the
// protocol's.
func judgeTask(task []byte, further ...string) error {
	names := append([]string{"taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"}, further...)
	for _, name := range names {
		if codec.Member(task, name) == nil {
			return fmt.Errorf("a task without %s", name)
		}
	}
	outcome := map[string]string{"completed": "result", "failed": "error", "input_required": "inputRequests"}[codec.Text(task, "status")]
	names = append(names, "statusMessage", "pollIntervalMs")
	if codec.Text(task, "resultType") != "task" {
		if outcome != "" && codec.Member(task, outcome) == nil {
			return fmt.Errorf("a task that is %s and has no %s", codec.Text(task, "status"), outcome)
		}
		names = append(names, outcome)
	}
	var fault error
	codec.EachMember(task, func(name, _ []byte) bool {
		if !slices.Contains(names, string(name)) {
			fault = fmt.Errorf("a task with a member %s", name)
		}
		return fault == nil
	})
	return fault
}

// judgeError holds an error to the definition of its code.
func (s *protocolSchema) judgeError(rev engine.Revision, m *codec.Message, frame []byte) error {
	code, _ := codec.Int(m.Error, "code")
	name := map[int64]string{
		codec.CodeURLElicitationRequired: "URLElicitationRequiredError",
		codec.CodeHeaderMismatch:         "HeaderMismatchError", codec.CodeMissingClientCapability: "MissingRequiredClientCapabilityError",
		codec.CodeUnsupportedProtocol: "UnsupportedProtocolVersionError",
	}[code]
	switch {
	case rev.IsModern() && code >= -32099 && code <= -32000 && (code > -32020 || code < -32022):
		return fmt.Errorf("the code %d, which this revision keeps", code)
	case code == codec.CodeURLElicitationRequired && rev != engine.Rev20251125,
		code == codec.CodeResourceNotFound && rev.IsModern():
		return fmt.Errorf("the code %d, which this revision lacks", code)
	case name == "" || s.definitions[name] == nil:
		return nil
	}
	return s.validate(name, frame)
}

// TestJudge checks the judge itself.
func TestJudge(t *testing.T) {
	needSchemas(t)
	const (
		r24, r03, r06, r11, modern = engine.Rev20241105, engine.Rev20250326, engine.Rev20250618, engine.Rev20251125, engine.Rev20260728
		tool                       = `{"name":"a","inputSchema":{"type":"object","x":1}`
		ok                         = `,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":"1"}}}`
	)
	result := func(s string) string { return `{"jsonrpc":"2.0","id":1,"result":` + s + `}` }
	fault := func(code int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":"m"}}`, code)
	}
	for _, c := range []struct {
		rev           engine.Revision
		method, frame string
		want          string // part of the fault, "" for none
	}{
		{r24, "tools/list", result(`{"tools":[` + tool + `}]}`), ""},
		{r24, "tools/list", result(`{"tools":[` + tool + `,"title":"t"}]}`), "title"},
		{r03, "tools/list", result(`{"tools":[` + tool + `,"title":"t"}]}`), "title"},
		{r06, "tools/list", result(`{"tools":[` + tool + `,"title":"t"}]}`), ""},
		{r06, "tools/list", result(`{"tools":[` + tool + `,"icons":[]}]}`), "icons"},
		{r11, "tools/list", result(`{"tools":[` + tool + `,"icons":[]}]}`), ""},
		{r11, "tools/list", result(`{"tools":[` + tool + `,"icons":[]}],"ttlMs":0}`), "ttlMs"},
		{r11, "tools/list", result(`{"tools":[{"name":"a"}]}`), "inputSchema"},
		{r24, "tools/call", result(`{"content":[{"type":"audio","data":"","mimeType":"a/b"}]}`), "anyOf"},
		{r03, "tools/call", result(`{"content":[{"type":"audio","data":"","mimeType":"a/b"}]}`), ""},
		{r03, "tools/call", result(`{"content":[{"type":"text","text":"","_meta":{}}]}`), "anyOf"},
		{r06, "tools/call", result(`{"content":[{"type":"text","text":"","_meta":{}}]}`), ""},
		{r06, "tools/call", result(`{"content":[],"resultType":"complete"}`), "stateless"},
		{r06, "tools/call", result(`{"content":[{"type":"text","text":"","annotations":{"x":1}}]}`), "anyOf"},
		{r11, "ping", result(`{}`), ""},
		{r11, "ping", result(`{"a":1}`), "empty"},
		{r24, "", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"m"}}`, "message"},
		{r03, "", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"m"}}`, ""},
		{r11, "", `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t"}}`, "createdAt"},
		{r11, "", `{"jsonrpc":"2.0","method":"notifications/nothing"}`, "no revision"},
		{r06, "", `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}}}`, "mode"},
		{modern, "", `{"jsonrpc":"2.0","id":1,"method":"roots/list"}`, "request of the server"},
		{modern, "tools/call", result(`{"resultType":"complete","content":[]` + ok), ""},
		{modern, "tools/call", result(`{"content":[]` + ok), "resultType"},
		{modern, "tools/call", result(`{"resultType":"complete","content":[]}`), "serverInfo"},
		{modern, "tools/call", result(`{"resultType":"input_required","requestState":"s"` + ok), ""},
		{modern, "tools/call", result(`{"resultType":"input_required"` + ok), "without"},
		{modern, "tools/list", result(`{"resultType":"input_required","requestState":"s"` + ok), "input_required"},
		{modern, "tools/list", result(`{"resultType":"complete","tools":[]` + ok), "ttlMs"},
		{modern, "tasks/get", result(`{"resultType":"complete","taskId":"t","status":"working","createdAt":"c","lastUpdatedAt":"l","ttl":1` + ok), "ttlMs"},
		{modern, "", fault(-32002), "keeps"},
		{modern, "", fault(-32020), ""},
		{modern, "", fault(-32021), "data"},
		{r06, "", fault(-32042), "lacks"},
		{r11, "", fault(-32042), "data"},
		{r11, "", `{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}`, ""},
		{r24, "", `{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}`, ""},
		{r03, "ping", `[` + result(`{}`) + `]`, ""},
		{r11, "ping", `[` + result(`{}`) + `]`, "batch"},
		{r11, "ping", result("{\n}"), "line break"},
	} {
		got := judge(c.rev, map[string]string{"1": c.method}, []byte(c.frame))
		if c.want == "" && got != nil || c.want != "" && (got == nil || !strings.Contains(got.Error(), c.want)) {
			t.Errorf("judge(%v, %s, %s): got %v, want a fault about %q", c.rev, c.method, c.frame, got, c.want)
		}
	}
}
