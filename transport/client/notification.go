package client

import (
	"slices"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// LogMessage is what a server logs with notifications/message (section Logging
// of the server utilities).
type LogMessage struct {
	Level  LogLevel
	Logger string
	// Data is raw JSON of any type. It is borrowed: copy what is to be kept.
	Data []byte
}

// LogLevel is a severity of RFC 5424.
type LogLevel string

// The levels, the lowest first.
const (
	LevelDebug     LogLevel = "debug"
	LevelInfo      LogLevel = "info"
	LevelNotice    LogLevel = "notice"
	LevelWarning   LogLevel = "warning"
	LevelError     LogLevel = "error"
	LevelCritical  LogLevel = "critical"
	LevelAlert     LogLevel = "alert"
	LevelEmergency LogLevel = "emergency"
)

// ListKind tells which list of a server has changed.
type ListKind string

// The lists of a server.
const (
	ListTools     ListKind = "tools"
	ListResources ListKind = "resources" // the templates as well
	ListPrompts   ListKind = "prompts"
)

func (c *Client) receiveNotification(m *codec.Message) {
	if e := c.era.Load(); e != nil && c.receiveSubscribed(e, m) {
		return
	}
	if c.consume(m) || c.o.OnNotification == nil {
		return
	}
	c.guard("OnNotification", func() { c.o.OnNotification(string(m.Method), m.Params) })
}

// consume gives a notification to the call or the callback that it is for, and
// reports whether there is one.
func (c *Client) consume(m *codec.Message) bool {
	switch string(m.Method) {
	case codec.NotifyProgress:
		return c.receiveProgress(m)
	case codec.NotifyCancelled:
		return c.receiveCancelled(m)
	case codec.NotifyMessage:
		return c.receiveLog(m)
	case codec.NotifyToolsChanged:
		return c.receiveChange(ListTools)
	case codec.NotifyResourcesChanged:
		return c.receiveChange(ListResources)
	case codec.NotifyPromptsChanged:
		return c.receiveChange(ListPrompts)
	case codec.NotifyResourceUpdated:
		if c.o.OnResourceUpdated == nil || m.URI == nil {
			return false
		}
		c.guard("OnResourceUpdated", func() { c.o.OnResourceUpdated(string(m.URI)) })
		return true
	case codec.NotifyElicitationComplete:
		return c.receiveElicitationComplete(m)
	case codec.NotifyTaskStatus, codec.NotifyTasks:
		return c.receiveTaskStatus(m)
	}
	return false
}

// receiveProgress gives a progress notification to the call, or the task, of
// its token.
func (c *Client) receiveProgress(m *codec.Message) bool {
	id, ok := codec.ParseUint(m.ParamToken)
	if !ok {
		return false
	}
	var report func(Progress)
	var l *limit
	c.mu.Lock()
	if k := c.pending[id]; k != nil {
		report, l = k.onProgress, k.limit
	} else if w := c.progress[id]; w != nil {
		report = w.report
	}
	c.mu.Unlock()
	if report == nil {
		return false
	}
	l.extend()
	var p Progress
	p.Progress, _ = codec.Number(m.Params, "progress")
	p.Total, p.HasTotal = codec.Number(m.Params, "total")
	p.Message = codec.Text(m.Params, "message")
	c.guard("OnProgress", func() { report(p) })
	return true
}

// receiveCancelled ends the context of a request of the server.
func (c *Client) receiveCancelled(m *codec.Message) bool {
	c.mu.Lock()
	cancel := c.inbound[string(m.RequestID)]
	c.mu.Unlock()
	if cancel != nil {
		cancel(errPeerCancelled)
	}
	return cancel != nil
}

func (c *Client) receiveLog(m *codec.Message) bool {
	if c.o.OnLog == nil {
		return false
	}
	c.guard("OnLog", func() {
		c.o.OnLog(LogMessage{
			Level:  LogLevel(codec.Text(m.Params, "level")),
			Logger: codec.Text(m.Params, "logger"),
			Data:   codec.Member(m.Params, "data"),
		})
	})
	return true
}

func (c *Client) receiveChange(kind ListKind) bool {
	if c.o.OnListChanged == nil {
		return false
	}
	c.guard("OnListChanged", func() { c.o.OnListChanged(kind) })
	return true
}

func (c *Client) receiveElicitationComplete(m *codec.Message) bool {
	if c.o.OnElicitationComplete == nil {
		return false
	}
	id, ok := codec.String(codec.Member(m.Params, "elicitationId"))
	if ok && c.asked.remove(id) {
		c.guard("OnElicitationComplete", func() { c.o.OnElicitationComplete(id) })
	}
	return true
}

func (c *Client) receiveTaskStatus(m *codec.Message) bool {
	info, err := parseTask(m.Params)
	if err != nil {
		return false
	}
	c.unwatch(&info)
	if c.o.OnTaskStatus == nil {
		return false
	}
	info.Raw = append([]byte(nil), info.Raw...)
	c.guard("OnTaskStatus", func() { c.o.OnTaskStatus(info) })
	return true
}

// maxAskedURLs limits the elicitations that wait for their completion. Servers
// need not report it, so the oldest are forgotten.
const maxAskedURLs = 1024

// askedURLs holds the ids of elicitations in URL mode that were not reported
// complete yet, the oldest first.
type askedURLs struct {
	mu  sync.Mutex // guards ids
	ids []string
}

func (a *askedURLs) add(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.Contains(a.ids, id) {
		return
	}
	if len(a.ids) == maxAskedURLs {
		a.ids = slices.Delete(a.ids, 0, 1)
	}
	a.ids = append(a.ids, id)
}

// remove takes an id out, and reports whether it was there.
func (a *askedURLs) remove(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.Index(a.ids, id)
	if i >= 0 {
		a.ids = slices.Delete(a.ids, i, i+1)
	}
	return i >= 0
}

// milliseconds reads a duration that the protocol gives as an integer.
func milliseconds(obj []byte, name string) (time.Duration, bool) {
	ms, ok := codec.Int(obj, name)
	if !ok || ms < 0 {
		return 0, false
	}
	return time.Duration(min(ms, int64(maxDuration/time.Millisecond))) * time.Millisecond, true
}

// maxDuration bounds what a peer may write, so that it cannot overflow.
const maxDuration = 100 * 365 * 24 * time.Hour
