package bench

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client/wire"
)

// peer is what a run opens sessions on.
type peer interface {
	transport() string
	// open makes a session: transport and handshake. The caller is used for its duration only.
	open(c *caller, deadline time.Time) (session, error)
	// caller makes the state that one worker needs.
	caller(ids *atomic.Uint64) *caller
	// maxInFlight bounds the calls in flight at once where this machine does; 0 means that it does not.
	maxInFlight(sessions int, streams bool) int
}

// session is one MCP session after its handshake. Several workers may use it at the same time, each with its own caller.
type session interface {
	// query prepares a request that may be sent many times, on any session of the run. name is what the request names
	// (a tool), and mirrors are the headers that its arguments ask for.
	query(method, name string, params []byte, mirrors wire.Header) (*query, error)
	// request sends a request and waits for its response, which is then in c.reply.
	request(c *caller, q *query, deadline time.Time) error
	// notify sends a notification.
	notify(c *caller, method string, params []byte, deadline time.Time) error
	// lost reports whether err means that the session exists no more.
	lost(err error) bool
	// close ends the session as its transport says.
	close(c *caller, deadline time.Time) error
	// abort ends what is in flight at once, where that is a matter of the session and not of a caller.
	abort()
	// reap gives back what this side holds of a session that is lost.
	reap()
	info() *handshake
	// notices is where the notifications of the session go; nil in the stateless era.
	notices() *notices
}

// query is a request as it goes out, but for its id.
type query struct {
	method string
	params []byte
	head   []byte // of the HTTP request; nil where the session has the same for all
}

// handshake is what initialize, or server/discover, has brought.
type handshake struct {
	protocol string
	server   string // name and version
	pid      int    // of a spawned server, else 0
}

// caller is what one worker owns: its connection and its buffers.
type caller struct {
	ids   *atomic.Uint64 // of the whole run, so that no id is used twice
	conn  *wire.Conn     // nil over stdio
	side  *wire.Conn     // answers requests of the server that arrive during a call
	reply wire.Reply
	id    []byte
	frame []byte
	req   wire.Request
	via   *httpSession // whose call is under way
	track track        // of the reply under way
}

// build makes the frame of a request under a new id.
func (c *caller) build(method string, params []byte) {
	c.id = strconv.AppendUint(c.id[:0], c.ids.Add(1), 10)
	c.frame = codec.AppendRequest(c.frame[:0], c.id, method, params)
}

// close gives back the connections.
func (c *caller) close() {
	for _, conn := range []*wire.Conn{c.conn, c.side} {
		if conn != nil {
			conn.Close()
		}
	}
}

// initializeParams are the params of initialize.
func initializeParams(protocol, version string, capabilities []byte) []byte {
	b := append([]byte(nil), `{"protocolVersion":`...)
	b = codec.AppendString(b, protocol)
	b = append(append(b, `,"capabilities":`...), capabilities...)
	b = append(b, `,"clientInfo":{"name":"mcp-load","version":`...)
	if version == "" {
		version = "dev"
	}
	b = codec.AppendString(b, version)
	return append(b, `}}`...)
}

// readHandshake checks the response to initialize.
func readHandshake(rep *wire.Reply) (*handshake, error) {
	if rep.Message.Kind == codec.KindError {
		return nil, &handshakeError{"the server refused initialize: " + describe(nil, rep)}
	}
	h := &handshake{protocol: codec.Text(rep.Message.Result, "protocolVersion")}
	for _, known := range Revisions {
		if h.protocol == known {
			h.server = nameAndVersion(codec.Member(rep.Message.Result, "serverInfo"))
			return h, nil
		}
	}
	return nil, &handshakeError{"the server chose protocol " + strconv.Quote(h.protocol) + ", which is not a revision that this client speaks"}
}

// nameAndVersion reads what a server calls itself.
func nameAndVersion(info []byte) string {
	name := codec.Text(info, "name")
	if v := codec.Text(info, "version"); v != "" {
		name += " " + v
	}
	return name
}

// handshakeError is an answer to initialize or server/discover that no session can come from.
type handshakeError struct{ text string }

func (e *handshakeError) Error() string { return e.text }
