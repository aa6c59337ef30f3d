package mock

import (
	"slices"
	"strconv"

	"github.com/mcpengine/mcpengine/codec"
)

// stateless is the revision without sessions.
const stateless = "2026-07-28"

// revisions are those with sessions, the newest first.
var revisions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

const (
	allRevisions = `["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`

	echoTool  = "echo"
	touchTool = "touch"

	// ResourceURI is the one resource. The tool touch changes it, and its subscribers hear of it.
	ResourceURI = "mock://changing"

	// toolList is what the server offers. The harmless tool is the first, which a load tool calls by default.
	toolList = `"tools":[{"name":"echo","description":"Gives back the message.",` +
		`"inputSchema":{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]},` +
		`"annotations":{"readOnlyHint":true}},` +
		`{"name":"touch","description":"Changes the resource ` + ResourceURI + `, of which all subscribers are told.",` +
		`"inputSchema":{"type":"object","properties":{}},` +
		`"annotations":{"readOnlyHint":false,"destructiveHint":false}}]`

	resourceList = `"resources":[{"uri":"` + ResourceURI + `","name":"changing","mimeType":"text/plain"}]`

	capabilities = `"capabilities":{"tools":{},"resources":{"subscribe":true},"logging":{}}`

	// modernHead begins every result of the stateless era, and cacheable ends one that could be kept, but shall not.
	modernHead = `"resultType":"complete",`
	cacheable  = `,"ttlMs":0,"cacheScope":"private"`
)

// isTool reports whether there is a tool of that name.
func isTool(name []byte) bool { return string(name) == echoTool || string(name) == touchTool }

// answer appends the answer to a request other than initialize. sess is nil in the stateless era.
func (s *Server) answer(dst []byte, sess *session, m *codec.Message) []byte {
	head, tail := "", ""
	if sess == nil {
		head, tail = modernHead, cacheable
	}
	begin := func(d []byte) []byte { return append(append(codec.AppendResultHead(d, m.ID), '{'), head...) }
	switch string(m.Method) {
	case codec.MethodToolsList:
		return append(append(append(begin(dst), toolList...), tail...), "}}"...)
	case codec.MethodToolsCall:
		return s.answerCall(dst, begin, m)
	case codec.MethodResourcesList:
		return append(append(append(begin(dst), resourceList...), tail...), "}}"...)
	case codec.MethodResourcesRead:
		if string(m.URI) != ResourceURI {
			return appendFault(dst, m.ID, codec.CodeInvalidParams, "there is no such resource, only "+ResourceURI)
		}
		dst = append(begin(dst), `"contents":[{"uri":"`+ResourceURI+`","mimeType":"text/plain","text":"`...)
		dst = strconv.AppendInt(dst, s.changes.Load(), 10)
		return append(append(append(dst, `"}]`...), tail...), "}}"...)
	}
	if sess == nil {
		return s.answerModern(dst, begin, m)
	}
	return s.answerLegacy(dst, sess, m)
}

// answerModern appends the answer to what only the stateless era has.
func (s *Server) answerModern(dst []byte, begin func([]byte) []byte, m *codec.Message) []byte {
	if string(m.Method) != codec.MethodDiscover {
		return appendFault(dst, m.ID, codec.CodeMethodNotFound, "Method not found")
	}
	dst = append(begin(dst), `"supportedVersions":`+allRevisions+`,`+capabilities+cacheable+`,"_meta":{"`+
		codec.MetaServerInfo+`":{"name":"mcp-load mock","version":`...)
	return append(codec.AppendString(dst, s.config.Version), "}}}}"...)
}

// answerLegacy appends the answer to what only a session has.
func (s *Server) answerLegacy(dst []byte, sess *session, m *codec.Message) []byte {
	switch string(m.Method) {
	case codec.MethodResourcesSubscribe, codec.MethodResourcesUnsubscribe:
		if string(m.URI) != ResourceURI {
			return appendFault(dst, m.ID, codec.CodeResourceNotFound, "there is no such resource, only "+ResourceURI)
		}
		s.table.subscribe(sess, string(m.Method) == codec.MethodResourcesSubscribe)
	case codec.MethodPing, codec.MethodSetLevel: // the level has no effect, so that the number of events is known
	default:
		return appendFault(dst, m.ID, codec.CodeMethodNotFound, "Method not found")
	}
	return codec.AppendResult(dst, m.ID, []byte("{}"))
}

// answerCall appends the answer to a call of a tool.
func (s *Server) answerCall(dst []byte, begin func([]byte) []byte, m *codec.Message) []byte {
	switch string(m.Name) {
	case echoTool:
		value := codec.Member(m.Arguments, "message")
		dst = append(begin(dst), `"content":[{"type":"text","text":`...)
		if len(value) == 0 || value[0] != '"' {
			return append(dst, `"message must be a string"}],"isError":true}}`...)
		}
		return append(append(dst, value...), "}]}}"...)
	case touchTool:
		change := s.changes.Add(1)
		subscribers, sent := s.table.publish(updated(change))
		counts := `{"change":` + strconv.FormatInt(change, 10) + `,"subscribers":` + strconv.Itoa(subscribers) +
			`,"sent":` + strconv.Itoa(sent) + `}`
		dst = append(begin(dst), `"content":[{"type":"text","text":`...)
		dst = codec.AppendString(dst, counts)
		return append(append(append(dst, `}],"structuredContent":`...), counts...), "}}"...)
	}
	return appendFault(dst, m.ID, codec.CodeInvalidParams, "there is no such tool, only echo and touch")
}

// updated is the notification of a change, with its number.
func updated(change int64) []byte {
	params := append([]byte(nil), `{"uri":"`+ResourceURI+`","_meta":{"change":`...)
	params = append(strconv.AppendInt(params, change, 10), "}}"...)
	return codec.AppendNotification(nil, codec.NotifyResourceUpdated, params)
}

// answerInitialize appends the answer to initialize: the revision that the client asks for where it is served, else the
// newest.
func (s *Server) answerInitialize(dst []byte, m *codec.Message) []byte {
	version := revisions[0]
	if slices.Contains(revisions, string(m.Version)) {
		version = string(m.Version)
	}
	dst = append(codec.AppendResultHead(dst, m.ID), `{"protocolVersion":"`+version+`",`+capabilities+
		`,"serverInfo":{"name":"mcp-load mock","version":`...)
	return append(codec.AppendString(dst, s.config.Version), "}}}"...)
}

// appendFault appends an error as the answer to id.
func appendFault(dst, id []byte, code int, text string) []byte {
	return codec.AppendError(dst, id, codec.NewError(code, text))
}

// unsupported is the error for a revision that the stateless era does not have.
func unsupported(requested []byte) *codec.Error {
	data := append(codec.AppendString([]byte(`{"supported":`+allRevisions+`,"requested":`), requested), '}')
	return &codec.Error{Code: codec.CodeUnsupportedProtocol, Message: "Unsupported protocol version", Data: data}
}
