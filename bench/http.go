package bench

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client/wire"
)

// sideTimeout bounds what is sent beside the calls: answers to the server's requests, and cancellations.
const sideTimeout = time.Second

// httpPeer opens sessions over Streamable HTTP. Connections belong to workers and not to sessions: the session id is a
// header, so that thousands of sessions need no more connections than calls are in flight.
type httpPeer struct {
	target  *wire.Target
	own     wire.Header // the headers that the user asked for
	params  []byte      // of initialize
	opening []byte      // head of the initialize request
	meta    []byte      // of every request of the stateless era
	era     eraChoice
	tally   *streamTally
	answers *answerer
	watch   []string // resources that every session subscribes to
}

var (
	postHeader = wire.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	getHeader  = wire.Header{"Accept": {"text/event-stream"}}
)

func newHTTPPeer(c *Config) (*httpPeer, error) {
	target, err := c.endpoint()
	if err != nil {
		return nil, usage("%v", err)
	}
	p := &httpPeer{
		target: target, own: c.Header.Clone(), params: initializeParams(c.session(), c.Version, c.capabilities()),
		meta:  statelessMeta(c.Version, c.capabilities()),
		tally: newStreamTally(), answers: newAnswerer(c), watch: c.Subscribe,
	}
	p.era.ask(c.Protocol)
	if p.own == nil {
		p.own = wire.Header{}
	}
	if p.own.Get("User-Agent") == "" {
		p.own.Set("User-Agent", "mcp-load")
	}
	if p.opening, err = target.Head("POST", postHeader, p.own); err != nil {
		return nil, usage("%v", err)
	}
	return p, nil
}

// endpoint is the target of the URL with the choices of its connections.
func (c *Config) endpoint() (*wire.Target, error) {
	target, err := wire.ParseTarget(c.URL)
	if err != nil {
		return nil, err
	}
	return target.With(wire.TargetOptions{TLS: c.TLS, HTTP2: c.HTTP2})
}

func (p *httpPeer) transport() string { return "http" }

func (p *httpPeer) streams() *streamTally { return p.tally }

func (p *httpPeer) asked() *answerer { return p.answers }

func (p *httpPeer) caller(ids *atomic.Uint64) *caller {
	c := &caller{ids: ids, conn: wire.NewConn(p.target), track: track{tally: p.tally}}
	c.conn.OnMessage = c.serverMessage
	return c
}

// maxInFlight leaves descriptors for the streams, the result files and the runtime.
func (p *httpPeer) maxInFlight(sessions int, streams bool) int {
	room := openFiles() - 128
	if streams {
		room -= sessions
	}
	return min(max(room, 1), 25_000) // beyond that the ephemeral ports to one address run out
}

func (p *httpPeer) open(c *caller, deadline time.Time) (session, error) {
	return p.era.open(
		func() (session, error) { return p.discover(c, deadline) },
		func() (session, error) { return p.initialize(c, deadline) })
}

// initialize opens a session of the older era.
func (p *httpPeer) initialize(c *caller, deadline time.Time) (session, error) {
	s, err := p.begin(c, deadline)
	if err != nil {
		return nil, err
	}
	if err := s.notify(c, "notifications/initialized", nil, deadline); err != nil {
		return nil, err
	}
	return s, subscribe(s, c, p.watch, deadline)
}

// begin has the server make a session of the older era.
func (p *httpPeer) begin(c *caller, deadline time.Time) (*httpSession, error) {
	c.build("initialize", p.params)
	c.via = nil
	c.req = wire.Request{Head: p.opening, Body: c.frame, ID: c.id}
	if err := c.conn.Call(&c.req, deadline, &c.reply); err != nil {
		return nil, err
	}
	h, err := readHandshake(&c.reply)
	if err != nil {
		return nil, err
	}
	s := &httpSession{peer: p, agreed: *h, id: string(c.reply.SessionID)}
	own := wire.Header{"MCP-Protocol-Version": {h.protocol}}
	if s.id != "" {
		own["Mcp-Session-Id"] = []string{s.id}
	}
	if s.post, err = p.target.Head("POST", postHeader, own, p.own); err != nil {
		return nil, err
	}
	s.rest = own
	return s, nil
}

// httpSession is a session over Streamable HTTP. It is immutable but for what it has heard.
type httpSession struct {
	peer   *httpPeer
	agreed handshake
	id     string // empty where the server keeps no session
	post   []byte // head of its POST requests
	rest   wire.Header
	heard  notices
}

func (s *httpSession) notices() *notices { return &s.heard }

func (s *httpSession) info() *handshake { return &s.agreed }

func (s *httpSession) query(method, _ string, params []byte, _ wire.Header) (*query, error) {
	return &query{method: method, params: params}, nil
}

func (s *httpSession) request(c *caller, q *query, deadline time.Time) error {
	c.build(q.method, q.params)
	c.via, c.track = s, track{tally: c.track.tally, ids: c.track.ids[:0]}
	c.req = wire.Request{Head: s.post, Body: c.frame, ID: c.id}
	err := c.conn.Call(&c.req, deadline, &c.reply)
	var we *wire.Error
	if err != nil && errors.As(err, &we) && we.Kind == wire.KindTimeout && !c.reply.Sent.IsZero() {
		c.reply.Done = time.Now() // before the cancellation, which takes time of its own
		c.giveUp(s)
	}
	return err
}

func (s *httpSession) notify(c *caller, method string, params []byte, deadline time.Time) error {
	c.frame = codec.AppendNotification(c.frame[:0], method, params)
	c.req = wire.Request{Head: s.post, Body: c.frame}
	return c.conn.Call(&c.req, deadline, &c.reply)
}

// lost: a 404 for a request with a session id means that the session has ended.
func (s *httpSession) lost(err error) bool {
	var status *wire.StatusError
	return s.id != "" && errors.As(err, &status) && status.Status == wire.StatusNotFound
}

// close sends DELETE. A server may answer 405, which says that clients cannot end sessions here.
func (s *httpSession) close(c *caller, deadline time.Time) error {
	if s.id == "" {
		return nil
	}
	head, err := s.peer.target.Head("DELETE", s.rest, s.peer.own)
	if err != nil {
		return err
	}
	c.req = wire.Request{Head: head}
	err = c.conn.Call(&c.req, deadline, &c.reply)
	var status *wire.StatusError
	if errors.As(err, &status) && status.Status == wire.StatusMethodNotAllowed {
		return nil
	}
	return err
}

func (s *httpSession) abort() {}

func (s *httpSession) reap() {}

// giveUp tells the server that nobody waits for the answer any more: over HTTP the end of a connection does not say so.
func (c *caller) giveUp(s *httpSession) {
	c.sideCall(s, codec.AppendCancelled(nil, c.id, "timeout"))
}

// serverMessage counts what comes on the reply stream of a call before its response, answers what is a request, and
// passes notifications on.
func (c *caller) serverMessage(m *codec.Message) {
	c.track.note(nil, m, time.Now())
	switch {
	case c.via == nil:
	case m.Kind == codec.KindRequest:
		c.via.peer.answers.post(c.via, m)
	default:
		c.via.heard.deliver(m)
	}
}

// sideCall posts a frame on the caller's second connection. Nothing depends on the answer.
func (c *caller) sideCall(s *httpSession, frame []byte) {
	if c.side == nil {
		c.side = wire.NewConn(s.peer.target)
	}
	var rep wire.Reply
	_ = c.side.Call(&wire.Request{Head: s.post, Body: frame}, time.Now().Add(sideTimeout), &rep) // best effort
}
