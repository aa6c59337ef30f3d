package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
)

// Session is one peer's connection in the legacy era: a stdio connection or a
// Streamable HTTP session. Transports open it and feed it messages.
type Session struct {
	engine  *Engine
	actor   *actors.Session
	onClose func(cause error)
	audited string // what records call the session; "" where there are none

	principal string      // who made it, where bound
	bound     bool        // it serves no other principal: a session over HTTP
	sealing   *sealing    // nil where the id is not sealed
	planned   *negotiated // what the handshake will settle, or nil

	negotiated atomic.Pointer[negotiated] // nil until initialize is answered
	operating  atomic.Bool                // notifications/initialized has come
	level      atomic.Uint32              // of the log messages that the client wants

	mu           sync.Mutex // guards what follows; never held across I/O
	over         error      // why the session has ended, or nil
	onOver       []func(cause error)
	stream       Stream   // for what belongs to no request; nil while none is open
	pending      [][]byte // frames that wait for a stream
	pendingBytes int
}

// negotiated is what the handshake settled. It never changes.
type negotiated struct {
	rev          Revision
	principal    string // who made the session, at most maxPrincipal bytes
	declared     capability
	clientInfo   []byte // raw object
	capabilities []byte // raw object, the client's
	seen         [listKinds]uint32
}

// OpenSession begins a session under a key that no other session has. onClose
// is called once when it has ended, and must not block. The error is
// ErrShuttingDown, or one that WireError turns into an answer.
func (e *Engine) OpenSession(key string, onClose func(cause error)) (*Session, error) {
	s := &Session{engine: e, onClose: onClose}
	s.level.Store(uint32(LevelInfo))
	if e.options.Audit != nil {
		s.audited = auditName(key)
	}
	a, err := e.system.OpenSession(key, s, s.closed)
	if errors.Is(err, actors.ErrShutdown) {
		return nil, ErrShuttingDown
	}
	if err != nil {
		return nil, err
	}
	s.actor = a
	return s, nil
}

// Session finds an open session by its key, or gives nil.
func (e *Engine) Session(key string) *Session {
	a := e.system.Session(key)
	if a == nil {
		return nil
	}
	s, _ := a.Value.(*Session)
	return s
}

// WireError gives what a peer is told of an error.
func (e *Engine) WireError(err error) *codec.Error { return e.wireError(err) }

// Key gives the session's key: its id over HTTP.
func (s *Session) Key() string { return s.actor.Key() }

// Revision gives the negotiated revision, or 0 before the handshake.
func (s *Session) Revision() Revision {
	if n := s.negotiated.Load(); n != nil {
		return n.rev
	}
	return 0
}

// ClientInfo gives the client's name and version, empty before the handshake.
func (s *Session) ClientInfo() (name, version string) {
	n := s.negotiated.Load()
	if n == nil {
		return "", ""
	}
	return codec.Text(n.clientInfo, "name"), codec.Text(n.clientInfo, "version")
}

// Close ends the session, for good: that of a sealed one is noted in the store,
// for which Close waits, and where that fails the session ends only here. Its
// requests in flight are cancelled without an answer.
func (s *Session) Close() {
	_ = s.end(context.Background()) // the failure is logged
	s.actor.Close(actors.ErrCancelled)
}

// OnClose has f called once, with the cause, when the session has ended, or at
// once where it has. f must not block. A cause that is ErrPassivated means that
// the session can come back.
func (s *Session) OnClose(f func(cause error)) {
	s.mu.Lock()
	over := s.over
	if over == nil {
		s.onOver = append(s.onOver, f)
	}
	s.mu.Unlock()
	if over != nil {
		f(over)
	}
}

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.actor.Done() }

// Hold keeps the session from expiring until release is called.
func (s *Session) Hold() (release func()) { return s.actor.Hold() }

// Touch counts as activity.
func (s *Session) Touch() { s.actor.Touch() }

// closed is called when the actor has stopped.
func (s *Session) closed(cause error) {
	cause = s.cause(cause)
	s.mu.Lock()
	stream, told := s.stream, s.onOver
	s.stream, s.pending, s.onOver, s.over = nil, nil, nil, cause
	s.mu.Unlock()
	if stream != nil {
		stream.Finish(nil, 0)
		stream.Flush()
	}
	if n := s.negotiated.Load(); n != nil && n.declared&capTasks != 0 {
		go s.engine.tasks.endOf(s)
	}
	if s.onClose != nil {
		s.onClose(cause)
	}
	for _, f := range told {
		f(cause)
	}
}

// Attach makes a stream the one for messages that belong to no request. It
// takes over from the one before, which is ended. What waited is sent. The
// stream's Flush must not wait for the peer, since it is called by whoever has
// something to tell.
func (s *Session) Attach(stream Stream) {
	s.mu.Lock()
	old := s.stream
	s.stream = stream
	for _, frame := range s.pending {
		_ = stream.Send(frame)
	}
	s.pending, s.pendingBytes = nil, 0
	s.mu.Unlock()
	if old != nil {
		old.Finish(nil, 0)
		old.Flush()
	}
	stream.Flush()
}

// Detach ends what Attach began, unless another stream has taken over.
func (s *Session) Detach(stream Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream == stream {
		s.stream = nil
	}
}

// notify sends a frame that belongs to no request. Without a stream it waits
// for one, up to a limit; the oldest are dropped.
func (s *Session) notify(frame []byte) {
	s.mu.Lock()
	stream := s.stream
	if stream == nil {
		s.keep(frame)
	} else {
		_ = stream.Send(frame)
	}
	s.mu.Unlock()
	if stream != nil {
		stream.Flush()
	}
}

// keep puts a frame where it waits for a stream. s.mu is held.
func (s *Session) keep(frame []byte) {
	limit := s.engine.options.MaxPending
	if len(frame) > limit {
		s.engine.sessions.dropped.Add(1)
		return
	}
	s.pending = append(s.pending, frame)
	s.pendingBytes += len(frame)
	for s.pendingBytes > limit {
		s.pendingBytes -= len(s.pending[0])
		s.pending[0] = nil
		s.pending = s.pending[1:]
		s.engine.sessions.dropped.Add(1)
	}
}

// Receive handles one decoded message; fault is Decode's error. For a request
// it returns when the handler has returned: a transport that must read on
// meanwhile calls it on a goroutine of its own. ctx gives the handler its
// values, and its end means nothing here. m, and the frame that it borrows
// from, are in use until the return.
func (s *Session) Receive(ctx context.Context, m *codec.Message, fault error, stream Stream) {
	if fault != nil {
		s.engine.answerFault(m, fault, stream)
		return
	}
	switch m.Kind {
	case codec.KindRequest:
		s.request(ctx, m, stream)
	case codec.KindNotification:
		s.notification(m)
	case codec.KindResponse, codec.KindError:
		s.response(m)
	}
}

// answerFault answers a frame that is no message. A notification is not answered.
func (e *Engine) answerFault(m *codec.Message, fault error, stream Stream) {
	if m.Kind == codec.KindNotification {
		return
	}
	answer(m.ID, e.wireError(fault), stream)
}

// answer sends an error response.
func answer(id []byte, wire *codec.Error, stream Stream) {
	buf := takeBuffer()
	buf.b = codec.AppendError(buf.b, id, wire)
	stream.Finish(buf.b, wire.Code)
	giveBuffer(buf)
	stream.Flush()
}

// answerEmpty sends a result without members.
func answerEmpty(id []byte, stream Stream) {
	buf := takeBuffer()
	buf.b = codec.AppendResult(buf.b, id, emptyObject)
	stream.Finish(buf.b, 0)
	giveBuffer(buf)
	stream.Flush()
}

var (
	errNotInitialized = codec.NewError(codec.CodeInvalidRequest, "Invalid Request: initialize comes first")
	errInitialized    = codec.NewError(codec.CodeInvalidRequest, "Invalid Request: the session is initialized already")
	errProgressToken  = codec.NewError(codec.CodeInvalidParams, "Invalid params: progressToken must be a string or an integer")
)

// request handles a request of the legacy era.
func (s *Session) request(ctx context.Context, m *codec.Message, stream Stream) {
	if s.engine.options.ModernOnly {
		s.engine.reject(ctx, s, m, s.engine.unsupported(m.Version), stream)
		return
	}
	switch string(m.Method) {
	case codec.MethodInitialize:
		s.initialize(ctx, m, stream)
		return
	case codec.MethodPing:
		answerEmpty(m.ID, stream)
		return
	}
	n := s.negotiated.Load()
	if n == nil {
		s.engine.reject(ctx, s, m, errNotInitialized, stream)
		return
	}
	s.engine.dispatch(ctx, s, n, m, stream)
}

// notification handles a notification. What is unknown or malformed is ignored.
func (s *Session) notification(m *codec.Message) {
	switch string(m.Method) {
	case codec.NotifyInitialized:
		if s.negotiated.Load() != nil {
			s.operating.Store(true)
		}
	case codec.NotifyCancelled:
		if m.RequestID != nil {
			s.actor.Cancel(m.RequestID)
		}
	case codec.NotifyProgress:
		s.peerProgress(m)
	case codec.NotifyRootsChanged:
		if f := s.engine.options.OnRootsChanged; f != nil {
			f(s)
		}
	}
}
