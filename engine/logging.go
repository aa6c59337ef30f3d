package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mcpengine/mcpengine/codec"
)

// Level is the severity of a log message to the client (RFC 5424).
type Level uint8

// The levels, from the least severe on.
const (
	LevelDebug Level = iota
	LevelInfo
	LevelNotice
	LevelWarning
	LevelError
	LevelCritical
	LevelAlert
	LevelEmergency
)

var levelNames = [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// String gives the level's name on the wire.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return ""
}

// parseLevel finds the level of a name.
func parseLevel[S ~string | ~[]byte](name S) (Level, bool) {
	for l, n := range levelNames {
		if n == string(name) {
			return Level(l), true
		}
	}
	return 0, false
}

// appendLog renders a log message. data is raw JSON.
func appendLog(dst []byte, level Level, logger string, data []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"`...)
	dst = append(append(dst, level.String()...), '"')
	dst = appendMember(dst, "logger", logger)
	dst = append(dst, `,"data":`...)
	dst = append(dst, data...)
	return append(dst, '}', '}')
}

// logData encodes what a log message says.
func logData(data any) ([]byte, error) {
	switch d := data.(type) {
	case string:
		return codec.AppendString(nil, d), nil
	case json.RawMessage:
		if !codec.Valid(d) {
			return nil, fmt.Errorf("engine: log data is not valid JSON")
		}
		return codec.CompactTail(clone(d), 0), nil
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("engine: log data: %w", err)
	}
	return raw, nil
}

// Log tells the client something that belongs to this call, on the stream of
// its reply. data is a string, a json.RawMessage or anything that encodes to
// JSON; it must hold no secrets. Nothing is sent below the level that the client
// set, which is info until it sets one, nor after the answer.
func (c *Call) Log(_ context.Context, level Level, logger string, data any) error {
	if !c.logs(level) {
		return nil
	}
	raw, err := logData(data)
	if err != nil {
		return err
	}
	buf := takeBuffer()
	defer giveBuffer(buf)
	buf.b = appendLog(buf.b, level, logger, raw)
	return c.emit(buf.b)
}

// logs reports whether the call's peer wants messages of a level.
func (c *Call) logs(level Level) bool {
	if c.session != nil {
		return level >= c.session.Level()
	}
	// In the stateless era nothing is said unless the request asks for it.
	wanted, ok := parseLevel(c.message.MetaLogLevel)
	return ok && level >= wanted
}

// Level gives the least severe level that the client wants.
func (s *Session) Level() Level { return Level(s.level.Load()) }

// Log tells the client something that belongs to no call.
func (s *Session) Log(level Level, logger string, data any) error {
	if s.negotiated.Load() == nil || level < s.Level() {
		return nil
	}
	raw, err := logData(data)
	if err != nil {
		return err
	}
	s.notify(appendLog(nil, level, logger, raw))
	return nil
}

// Log tells every client in a session something.
func (e *Engine) Log(level Level, logger string, data any) error {
	raw, err := logData(data)
	if err != nil {
		return err
	}
	frame := appendLog(nil, level, logger, raw)
	e.EachSession(func(s *Session) {
		if s.negotiated.Load() != nil && level >= s.Level() {
			s.notify(frame)
		}
	})
	return nil
}

func handleSetLevel(ctx context.Context, c *Call) error {
	name, _ := codec.String(codec.Member(c.message.Params, "level"))
	level, ok := parseLevel(name)
	if !ok {
		return codec.NewError(codec.CodeInvalidParams, "Invalid params: level is one of debug, info, notice, "+
			"warning, error, critical, alert, emergency")
	}
	c.session.level.Store(uint32(level))
	c.session.persist(ctx)
	c.SetResult(emptyObject)
	return nil
}
