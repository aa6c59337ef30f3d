package bench

import (
	"bytes"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client/wire"
)

// outcome is how a call ended.
type outcome uint8

const (
	outcomeOK outcome = iota
	outcomeToolError
	outcomeRPCError
	outcomeHTTPError
	outcomeTransportError
	outcomeTimeout
	outcomeCancelled
	outcomes // how many there are
)

var outcomeNames = [outcomes]string{"ok", "tool_error", "rpc_error", "http_error", "transport_error", "timeout", "cancelled"}

func (o outcome) String() string { return outcomeNames[o] }

// answered reports whether the outcome is an answer of the server.
func (o outcome) answered() bool { return o <= outcomeHTTPError }

// verdictOf sorts the end of a call into an outcome. code is the JSON-RPC code or the HTTP status, where there is one.
func verdictOf(err error, rep *wire.Reply, id []byte) (o outcome, code int) {
	if err == nil {
		return verdictOfMessage(&rep.Message)
	}
	var status *wire.StatusError
	if errors.As(err, &status) {
		if code, ok := rpcErrorIn(status, id); ok {
			return outcomeRPCError, code
		}
		return outcomeHTTPError, status.Status
	}
	var we *wire.Error
	if errors.As(err, &we) {
		switch we.Kind {
		case wire.KindTimeout:
			return outcomeTimeout, 0
		case wire.KindAborted:
			return outcomeCancelled, 0
		}
	}
	return outcomeTransportError, 0
}

func verdictOfMessage(m *codec.Message) (o outcome, code int) {
	if m.Kind == codec.KindError {
		n, _ := codec.Int(m.Error, "code")
		return outcomeRPCError, int(n)
	}
	outcome := outcomeOK
	codec.EachMember(m.Result, func(name, value []byte) bool {
		switch string(name) {
		case "isError":
			if string(value) == "true" {
				outcome = outcomeToolError
			}
		case "resultType":
			if string(value) != `"complete"` { // the tool has not done what was asked of it
				outcome = outcomeToolError
			}
		}
		return outcome == outcomeOK
	})
	return outcome, 0
}

// rpcErrorIn finds the JSON-RPC error that an HTTP error status carries for this very request. The revisions leave the
// status of a JSON-RPC error open, and servers use 400, or 404 for a method they do not know; with any other status it is
// the HTTP layer that refused.
func rpcErrorIn(e *wire.StatusError, id []byte) (code int, ok bool) {
	if e.Status != 400 && e.Status != 404 {
		return 0, false
	}
	var m codec.Message
	if codec.Decode(e.Body, &m) != nil || m.Kind != codec.KindError || !bytes.Equal(m.ID, id) {
		return 0, false
	}
	n, _ := codec.Int(m.Error, "code")
	if e.Status == 404 && n != codec.CodeMethodNotFound {
		return 0, false
	}
	return int(n), true
}

// describe puts the end of a call that failed into words, for the example of its outcome.
func describe(err error, rep *wire.Reply) string {
	switch {
	case err != nil:
		var status *wire.StatusError
		if errors.As(err, &status) && len(status.Body) > 0 {
			return err.Error() + ": " + clip(status.Body)
		}
		return clip([]byte(err.Error()))
	case rep.Message.Kind == codec.KindError:
		return "error " + string(codec.Member(rep.Message.Error, "code")) + ": " + clip([]byte(codec.Text(rep.Message.Error, "message")))
	case !codec.Bool(rep.Message.Result, "isError"):
		return "a result of type " + clip(codec.Member(rep.Message.Result, "resultType")) + ", which is not the end of the call"
	default:
		return "isError: " + clip(toolText(rep.Message.Result))
	}
}

// toolText gives the first text of a tool's result, or all of it where there is none.
func toolText(result []byte) []byte {
	if s := codec.Text(firstElement(codec.Member(result, "content")), "text"); s != "" {
		return []byte(s)
	}
	return result
}

// clip shortens b to a piece of one line that is safe to print: what a peer sent must not move the cursor.
func clip(b []byte) string {
	const most = 160
	s := strings.Join(strings.Fields(string(b)), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}
