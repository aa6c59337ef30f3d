package bench

import (
	"fmt"
	"strings"
)

// SessionCapacity is what sessions cost a server, how many it holds, and what becomes of those that are left. Sections
// that were not measured are null.
type SessionCapacity struct {
	// BytesPerSession is the slope of the server's memory over its open sessions, 0 where the memory is not known.
	BytesPerSession     float64       `json:"bytes_per_session"`
	BytesPerSessionCI95 *[2]float64   `json:"bytes_per_session_ci95"` // null with fewer than 6 steps
	BaseBytes           float64       `json:"base_bytes"`             // where the line begins
	MemoryOf            string        `json:"memory_of"`              // "process 123", "cgroup /path", or empty
	Points              []MemoryPoint `json:"points"`

	// MaxSessions is the number beyond which the server refuses, 0 where it refused none up to Tried.
	MaxSessions int    `json:"max_sessions"`
	Confirmed   bool   `json:"confirmed"` // one was ended, and exactly one more fitted
	Refusal     string `json:"refusal"`   // what the server said
	Tried       int    `json:"tried"`     // the highest number that was open at once

	Idle     *IdleExpiry     `json:"idle"`
	Released *Released       `json:"released"`
	Storm    *ReconnectStorm `json:"storm"`
	Answer   string          `json:"answer"`
}

// MemoryPoint is one step: sessions open, and the server's memory when it had settled.
type MemoryPoint struct {
	Sessions int    `json:"sessions"`
	Bytes    uint64 `json:"bytes"`
}

// IdleExpiry is when sessions end that nobody uses. Every session is asked once, so that the question does not keep alive
// what it asks about.
type IdleExpiry struct {
	Found   bool    `json:"found"`
	ExpiryS float64 `json:"expiry_s"` // the middle of the bracket; 0 where none was found
	AliveS  float64 `json:"alive_s"`  // the longest rest after which a session was still known
	DeadS   float64 `json:"dead_s"`   // the shortest after which it was not; 0 where none was found
	Probes  int     `json:"probes"`
}

// Released is the memory that comes back when sessions end, as a share of what they cost. It is 0 where the server keeps
// it for the next ones, as many runtimes do.
type Released struct {
	Deleted        int      `json:"deleted"`
	DeletedShare   *float64 `json:"deleted_share"` // null where the memory is not known
	Abandoned      int      `json:"abandoned"`
	AbandonedShare *float64 `json:"abandoned_share"`
	WaitedS        float64  `json:"waited_s"` // after the abandoned were last used
}

// ReconnectStorm is what happens when all clients lose their connections and come back with a new session at once.
type ReconnectStorm struct {
	Clients    int         `json:"clients"`
	Waves      int         `json:"waves"`
	AllBackS   float64     `json:"all_back_s"` // of the slowest wave
	Attempts   int64       `json:"attempts"`   // to open a session
	Failures   int64       `json:"failures"`   // of these
	NeverBack  int         `json:"never_back"` // clients that had no session when the time for a wave was over
	Setup      *Dist       `json:"setup"`      // of a client, from the begin of its wave to its session
	SteadyRPS  float64     `json:"steady_rps"` // calls of others, before, during and after
	Before     SteadyCalls `json:"before"`
	During     SteadyCalls `json:"during"`
	After      SteadyCalls `json:"after"`
	FirstError string      `json:"first_error"`
}

// SteadyCalls are the calls of sessions that are not part of a storm: response times from the intended start. P99US is
// null with fewer than 100.
type SteadyCalls struct {
	Calls  int64  `json:"calls"`
	Failed int64  `json:"failed"`
	P50US  int64  `json:"p50_us"`
	P99US  *int64 `json:"p99_us"`
	MaxUS  int64  `json:"max_us"`
}

// sentence puts the answer into words.
func (c *SessionCapacity) sentence() string {
	text := ""
	if c.MemoryOf != "" && len(c.Points) > 1 {
		text = fmt.Sprintf("A session costs %s", exactBytes(c.BytesPerSession))
		if ci := c.BytesPerSessionCI95; ci != nil {
			text += fmt.Sprintf(" (95 %%: %s to %s)", exactBytes(ci[0]),
				exactBytes(ci[1]))
		}
		text += "; "
	}
	switch {
	case c.MaxSessions > 0:
		text += fmt.Sprintf("the server holds %s and refuses the next", plural(int64(c.MaxSessions), "session"))
	case c.Tried > 0:
		text += fmt.Sprintf("the server holds at least %s", plural(int64(c.Tried), "session"))
	default:
		text += "no number of sessions was tried"
	}
	if i := c.Idle; i != nil {
		if i.Found {
			text += fmt.Sprintf("; one that nobody uses ends after %.4g s", i.ExpiryS)
		} else {
			text += fmt.Sprintf("; one that nobody uses is still known after %.4g s", i.AliveS)
		}
	}
	if s := c.Storm; s != nil && s.Clients > 0 {
		if s.NeverBack > 0 {
			text += fmt.Sprintf("; when %d clients reconnect at once, %d do not come back", s.Clients, s.NeverBack)
		} else {
			text += fmt.Sprintf("; %d clients that reconnect at once are back within %.3g s", s.Clients, s.AllBackS)
		}
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// exactBytes writes a size with four digits.
func exactBytes(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	for len(units) > 1 && n >= 1024 {
		n /= 1024
		units = units[1:]
	}
	return fmt.Sprintf("%.4g %s", max(n, 0), units[0])
}
