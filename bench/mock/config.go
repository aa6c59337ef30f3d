package mock

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Config says how a Server behaves. The zero value answers every call at once, and keeps any number of sessions for
// ever.
type Config struct {
	Model    Model
	Sessions Sessions
	Stream   Stream
	Version  string // of the program, for serverInfo; default "dev"
}

// Sessions says what a session costs and when it ends.
//
//	memory   ceil(Bytes / page) whole pages a session, outside the Go heap, every page written to once;
//	         returned to the system when the session ends
//	limit    with Max sessions open, the next initialize gets status 503 and error −32000
//	expiry   a session ends IdleTTL after the later of: the end of its last request, the end of its last GET stream;
//	         a request in flight and an open stream keep it
type Sessions struct {
	Bytes   int64
	Max     int           // 0 means no limit
	IdleTTL time.Duration // 0 means never
}

// Stream says what the GET stream of a session carries. With t the instant at which its headers are sent, the event of
// number n, 1 ≤ n ≤ Events, is sent at
//
//	t + First + (n − 1)·Gap
//
// unless Drop names n: that one is left out, and the others keep their instants. An event is
//
//	id: n
//	data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"mock","data":{"seq":n}}}
//
// A GET with Last-Event-ID: n begins with the event of number n+1. After the last event the stream stays open.
type Stream struct {
	Events int
	Gap    time.Duration
	First  time.Duration
	Drop   []int
}

// Check refuses what cannot be meant. The error is one line that names the flags of mcp-load mock.
func (c *Config) Check() error {
	if err := c.Model.Check(); err != nil {
		return err
	}
	s, st := &c.Sessions, &c.Stream
	switch {
	case s.Bytes < 0 || s.Max < 0 || s.IdleTTL < 0:
		return fmt.Errorf("--bytes-per-session, --max-sessions and --idle-ttl cannot be negative")
	case s.Bytes > maxSessionBytes:
		return fmt.Errorf("--bytes-per-session can be at most 1GiB")
	case st.Events < 0 || st.Gap < 0 || st.First < 0:
		return fmt.Errorf("--events, --gap and --first cannot be negative")
	case st.Events == 0 && (st.Gap != 0 || st.First != 0 || len(st.Drop) > 0):
		return fmt.Errorf("--gap, --first and --drop need --events, how many there are")
	}
	for _, n := range st.Drop {
		if n < 1 || n > st.Events {
			return fmt.Errorf("--drop %d: the events have the numbers 1 to %d", n, st.Events)
		}
	}
	return nil
}

const maxSessionBytes = 1 << 30

// units of a number of bytes, the longer names first.
var units = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1},
}

// ParseBytes reads a number of bytes such as 65536, 64KiB, 1.5MiB or 1MB.
func ParseBytes(text string) (int64, error) {
	number, unit := text, 1.0
	for _, u := range units {
		if n, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = n, u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(n) || n < 0 || n*unit > 1<<50 {
		return 0, fmt.Errorf("size %q: give bytes such as 65536, 64KiB or 1MiB", text)
	}
	return int64(math.Round(n * unit)), nil
}
