package bench

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client/wire"
)

const (
	// Stateless is the protocol revision without sessions and handshake.
	Stateless = "2026-07-28"
	// Auto finds out whether the server serves Stateless, and asks for the newest of Revisions where it does not.
	Auto = "auto"

	// probeWait bounds how long a process may take to answer the first request; one of the older era may say nothing.
	probeWait = 3 * time.Second
)

// In the stateless era a "session" of a run is a client of which the server knows nothing: opening one is one
// server/discover, which stands where the handshake would be and which the set-up time measures; closing one sends
// nothing. Every request carries who asks and, over HTTP, headers that repeat parts of it.

// eraChoice is which era a run speaks.
type eraChoice struct {
	tries     bool        // the stateless era first
	only      bool        // and nothing else
	stateless atomic.Bool // it was found to be served
	legacy    atomic.Bool // it was found not to be
}

func (e *eraChoice) ask(protocol string) {
	e.only = protocol == Stateless
	e.tries = e.only || protocol == Auto
}

// open opens a session of the era that the run speaks. What the first one has found out holds for the others.
func (e *eraChoice) open(discover, initialize func() (session, error)) (session, error) {
	if !e.tries || e.legacy.Load() {
		return initialize()
	}
	s, err := discover()
	if err == nil {
		e.stateless.Store(true)
		return s, nil
	}
	var old *legacyError
	if e.only || e.stateless.Load() || !errors.As(err, &old) {
		return nil, err
	}
	if s, err = initialize(); err == nil {
		e.legacy.Store(true)
	}
	return s, err
}

// statelessMeta is the _meta that every request of the stateless era has, as a member with its name.
func statelessMeta(version string, capabilities []byte) []byte {
	if version == "" {
		version = "dev"
	}
	b := append([]byte(nil), `"_meta":{"`+codec.MetaProtocolVersion+`":"`+Stateless+`","`+codec.MetaClientCapabilities+`":`+string(capabilities)+`,"`+
		codec.MetaClientInfo+`":{"name":"mcp-load","version":`...)
	return append(codec.AppendString(b, version), '}', '}')
}

// withMeta puts _meta in front of the members of params.
func withMeta(meta, params []byte) []byte {
	out := append(append(make([]byte, 0, len(meta)+len(params)+2), '{'), meta...)
	codec.EachMember(params, func(name, value []byte) bool {
		out = append(codec.AppendString(append(out, ','), name), ':')
		out = append(out, value...)
		return true
	})
	return append(out, '}')
}

// legacyError tells that a server is of the era with sessions.
type legacyError struct{ err error }

func (e *legacyError) Error() string {
	return "the server does not serve protocol " + Stateless + ": " + e.err.Error()
}

func (e *legacyError) Unwrap() error { return e.err }

// readDiscover judges what came of server/discover. The error is a *legacyError where the server is of the older era.
func readDiscover(err error, rep *wire.Reply) (*handshake, error) {
	fault := &rep.Message
	var status *wire.StatusError
	var inBody codec.Message
	if errors.As(err, &status) {
		if codec.Decode(status.Body, &inBody) != nil || inBody.Kind != codec.KindError {
			if mayHaveSessions(status.Status) {
				return nil, &legacyError{err}
			}
			return nil, err
		}
		fault = &inBody
	} else if err != nil {
		var we *wire.Error
		if errors.As(err, &we) && we.Kind == wire.KindProtocol {
			return nil, &legacyError{err}
		}
		return nil, err
	}
	if fault.Kind == codec.KindError {
		return judgeRefusal(fault.Error, status)
	}
	result := rep.Message.Result
	versions := stringsOf(codec.Member(result, "supportedVersions"))
	if err := statelessAmong(versions); err != nil {
		return nil, err
	}
	info := codec.Member(result, "_meta", codec.MetaServerInfo)
	return &handshake{protocol: Stateless, server: nameAndVersion(info)}, nil
}

// judgeRefusal says what an error in reply to server/discover means.
func judgeRefusal(object []byte, status *wire.StatusError) (*handshake, error) {
	code, _ := codec.Int(object, "code")
	err := &handshakeError{"the server refused server/discover: error " + string(codec.Member(object, "code")) + ": " +
		clip([]byte(codec.Text(object, "message")))}
	switch {
	case code == codec.CodeUnsupportedProtocol:
		supported := stringsOf(codec.Member(object, "data", "supported"))
		if !slices.Contains(supported, Stateless) {
			return nil, statelessAmong(supported)
		}
		return nil, &retryError{err}
	case code == codec.CodeHeaderMismatch, code == codec.CodeMissingClientCapability:
		return nil, err
	case code == codec.CodeMethodNotFound && status != nil && status.Status == wire.StatusNotFound:
		return &handshake{protocol: Stateless}, nil // of the era, though it does not say what it can do
	}
	return nil, &legacyError{err}
}

// retryError is a refusal after which the same request is worth a second try: the server names the very version.
type retryError struct{ err error }

func (e *retryError) Error() string { return e.err.Error() }

// statelessAmong gives an error where the versions that a server serves do not include Stateless.
func statelessAmong(versions []string) error {
	if slices.Contains(versions, Stateless) {
		return nil
	}
	err := &handshakeError{"it names no version that it serves"}
	if len(versions) > 0 {
		err.text = "it serves " + clip([]byte(strings.Join(versions, ", ")))
	}
	if len(versions) > 0 && !slices.ContainsFunc(versions, func(v string) bool { return slices.Contains(Revisions, v) }) {
		return err
	}
	return &legacyError{err}
}

// stringsOf gives the strings of an array.
func stringsOf(array []byte) (list []string) {
	codec.EachElement(array, func(v []byte) bool {
		if s, ok := codec.String(v); ok {
			list = append(list, s)
		}
		return true
	})
	return list
}

// mayHaveSessions reports whether an endpoint of the older era may refuse a request that it does not know with a
// status. Others concern rights or health, and initialize would meet them too.
func mayHaveSessions(status int) bool {
	switch status {
	case wire.StatusUnauthorized, wire.StatusForbidden, 407, 429:
		return false
	case 500, 501:
		return true
	}
	return status/100 == 4
}

// statelessSession is a client of the stateless era over HTTP. It is immutable.
type statelessSession struct {
	peer   *httpPeer
	agreed handshake
}

// discover opens a session of the stateless era.
func (p *httpPeer) discover(c *caller, deadline time.Time) (session, error) {
	s := &statelessSession{peer: p}
	q, err := s.query(codec.MethodDiscover, "", []byte("{}"), nil)
	if err != nil {
		return nil, err
	}
	for again := false; ; again = true {
		h, err := readDiscover(s.request(c, q, deadline), &c.reply)
		var retry *retryError
		if errors.As(err, &retry) && !again {
			continue
		}
		if err != nil {
			return nil, err
		}
		s.agreed = *h
		return s, nil
	}
}

func (s *statelessSession) notices() *notices { return nil }

func (s *statelessSession) info() *handshake { return &s.agreed }

func (s *statelessSession) query(method, name string, params []byte, mirrors wire.Header) (*query, error) {
	head, err := s.peer.target.Head("POST", postHeader, wire.MethodHeaders(Stateless, method, name), mirrors, s.peer.own)
	if err != nil {
		return nil, err
	}
	return &query{method: method, params: withMeta(s.peer.meta, params), head: head}, nil
}

// request needs no cancellation: the end of a connection is one.
func (s *statelessSession) request(c *caller, q *query, deadline time.Time) error {
	c.via, c.track = nil, track{tally: c.track.tally, ids: c.track.ids[:0]}
	return s.peer.answers.rounds(c, q.params, func(params []byte) error {
		c.build(q.method, params)
		c.req = wire.Request{Head: q.head, Body: c.frame, ID: c.id}
		return c.conn.Call(&c.req, deadline, &c.reply)
	})
}

func (s *statelessSession) notify(*caller, string, []byte, time.Time) error { return nil }

func (s *statelessSession) lost(error) bool { return false }

func (s *statelessSession) close(*caller, time.Time) error { return nil }

func (s *statelessSession) abort() {}

func (s *statelessSession) reap() {}
