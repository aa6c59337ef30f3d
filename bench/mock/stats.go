package mock

import (
	"encoding/json"
	"net/http"
	"sync/atomic"

	"github.com/mcpengine/mcpengine/codec"
)

// StatsPath is where every peer tells what it has counted, as a Stats object.
const StatsPath = "/stats"

// StatsSchema is the value of Stats.Schema.
const StatsSchema = "mcp-load-mock/v1"

// Stats is what a peer has counted since it began. Reading it costs the peer a few loads of counters.
type Stats struct {
	Schema   string           `json:"schema"`
	Requests map[string]int64 `json:"requests"` // messages received, by method of JSON-RPC; unknown methods as "other"
	HTTP     map[string]int64 `json:"http"`     // requests received on the endpoint: POST, GET, DELETE, other
	Sessions SessionStats     `json:"sessions"`
	Streams  Level            `json:"streams"` // GET streams
	Calls    Level            `json:"calls"`   // tool calls that have not been answered
	Events   EventStats       `json:"events"`
}

// Level is a number that goes up and down.
type Level struct {
	Open int64 `json:"open"`
	Peak int64 `json:"peak"`
}

// SessionStats counts sessions. Opened = Open + Deleted + Expired, where no stdio session has ended.
type SessionStats struct {
	Level
	Opened  int64 `json:"opened"`
	Deleted int64 `json:"deleted"` // by DELETE
	Expired int64 `json:"expired"` // by the idle limit
	Refused int64 `json:"refused"` // initialize beyond the limit
	Unknown int64 `json:"unknown"` // requests with the id of no session
}

// EventStats counts what the GET streams carried.
type EventStats struct {
	Sent    int64 `json:"sent"`    // events with a number
	Dropped int64 `json:"dropped"` // events with a number that were left out
	Updates int64 `json:"updates"` // notifications/resources/updated
	Missed  int64 `json:"missed"`  // updates whose subscriber had no stream open, or read too slowly
}

// level is the counter behind a Level.
type level struct{ open, peak atomic.Int64 }

func (l *level) up() {
	n := l.open.Add(1)
	for old := l.peak.Load(); n > old && !l.peak.CompareAndSwap(old, n); old = l.peak.Load() {
	}
}

func (l *level) down() { l.open.Add(-1) }

func (l *level) read() Level { return Level{Open: l.open.Load(), Peak: l.peak.Load()} }

// counted are the methods that Stats.Requests has by name.
var counted = []string{
	codec.MethodInitialize, codec.NotifyInitialized, codec.MethodPing, codec.MethodDiscover, codec.MethodToolsList,
	codec.MethodToolsCall, codec.MethodResourcesList, codec.MethodResourcesRead, codec.MethodResourcesSubscribe,
	codec.MethodResourcesUnsubscribe, codec.MethodSetLevel, codec.NotifyCancelled,
}

// counters is what a peer counts.
type counters struct {
	requests        map[string]*atomic.Int64 // the keys are fixed
	otherRequests   atomic.Int64
	http            map[string]*atomic.Int64 // the keys are fixed
	otherHTTP       atomic.Int64
	sessions        level
	streams, calls  level
	opened, deleted atomic.Int64
	expired         atomic.Int64
	refused         atomic.Int64
	unknown         atomic.Int64
	sent, dropped   atomic.Int64
	updates, missed atomic.Int64
}

func newCounters() *counters {
	c := &counters{requests: map[string]*atomic.Int64{}, http: map[string]*atomic.Int64{}}
	for _, name := range counted {
		c.requests[name] = new(atomic.Int64)
	}
	for _, name := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		c.http[name] = new(atomic.Int64)
	}
	return c
}

// request counts a message by its method.
func (c *counters) request(method []byte) {
	if n := c.requests[string(method)]; n != nil {
		n.Add(1)
	} else {
		c.otherRequests.Add(1)
	}
}

// httpRequest counts a request by its HTTP method.
func (c *counters) httpRequest(method string) {
	if n := c.http[method]; n != nil {
		n.Add(1)
	} else {
		c.otherHTTP.Add(1)
	}
}

// read gives what was counted up to now.
func (c *counters) read() Stats {
	s := Stats{
		Schema:   StatsSchema,
		Requests: map[string]int64{"other": c.otherRequests.Load()},
		HTTP:     map[string]int64{"other": c.otherHTTP.Load()},
		Sessions: SessionStats{
			Level: c.sessions.read(), Opened: c.opened.Load(), Deleted: c.deleted.Load(), Expired: c.expired.Load(),
			Refused: c.refused.Load(), Unknown: c.unknown.Load(),
		},
		Streams: c.streams.read(),
		Calls:   c.calls.read(),
		Events: EventStats{
			Sent: c.sent.Load(), Dropped: c.dropped.Load(), Updates: c.updates.Load(), Missed: c.missed.Load(),
		},
	}
	for name, n := range c.requests {
		s.Requests[name] = n.Load()
	}
	for name, n := range c.http {
		s.HTTP[name] = n.Load()
	}
	return s
}

// serveStats answers a request for StatsPath.
func (c *counters) serveStats(w http.ResponseWriter, _ *http.Request) {
	body, err := json.Marshal(c.read())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n'))
}
