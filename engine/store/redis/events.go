package redis

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mcpengine/mcpengine/engine"
)

// eventHead is how many bytes precede a frame: stream, seq, last.
const eventHead = 8 + 8 + 1

var _ engine.EventLog = (*Store)(nil)

// appendEvents keeps events in the list of their session, and makes room: in the
// session its first ones go, in all the sessions whose last event is the oldest,
// as do those whose events are older than a time.
// KEYS: list, sessions by time, bytes by session, bytes in all. ARGV: session,
// what lists begin with, most of one session, most in all, now, too old, what an
// event counts besides its frame, events.
var appendEvents = redis.NewScript(`
local function room(name, list, most)
  local bytes = tonumber(redis.call('HGET', KEYS[3], name) or '0')
  while bytes > most do
    local first = redis.call('LPOP', list)
    if not first then break end
    bytes = redis.call('HINCRBY', KEYS[3], name, -(#first + ARGV[7]))
    redis.call('DECRBY', KEYS[4], #first + ARGV[7])
  end
end
for i = 8, #ARGV do
  redis.call('RPUSH', KEYS[1], ARGV[i])
  redis.call('HINCRBY', KEYS[3], ARGV[1], #ARGV[i] + ARGV[7])
  redis.call('INCRBY', KEYS[4], #ARGV[i] + ARGV[7])
  room(ARGV[1], KEYS[1], tonumber(ARGV[3]))
end
redis.call('ZADD', KEYS[2], ARGV[5], ARGV[1])
while true do
  local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  if #first == 0 or first[1] == ARGV[1] then break end
  local bytes = tonumber(redis.call('GET', KEYS[4]) or '0')
  if bytes <= tonumber(ARGV[4]) and tonumber(first[2]) > tonumber(ARGV[6]) then break end
  room(first[1], ARGV[2] .. first[1], -1)
  redis.call('ZREM', KEYS[2], first[1])
  redis.call('HDEL', KEYS[3], first[1])
end
return 1
`)

// dropEvents forgets a session. KEYS and ARGV: see appendEvents.
var dropEvents = redis.NewScript(`
redis.call('DECRBY', KEYS[4], redis.call('HGET', KEYS[3], ARGV[1]) or '0')
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
return 1
`)

// eventKeys gives the keys of the scripts.
func (s *Store) eventKeys(session string) []string {
	return []string{s.eventList() + session, s.prefix + "events-time", s.prefix + "events-bytes", s.prefix + "events-all"}
}

// eventList begins the names of lists of events.
func (s *Store) eventList() string { return s.prefix + "events:" }

// AppendEvents implements engine.EventLog.
func (s *Store) AppendEvents(ctx context.Context, events []engine.LoggedEvent) error {
	var order []string // of sessions
	packed := make(map[string][]any)
	for i := range events {
		e := &events[i]
		if _, ok := packed[e.Session]; !ok {
			order = append(order, e.Session)
		}
		packed[e.Session] = append(packed[e.Session], packEvent(e))
	}
	now := time.Now()
	for _, session := range order {
		args := []any{
			session, s.eventList(), s.sessionEvents, s.allEvents, now.UnixMilli(), now.Add(-s.eventLife).UnixMilli(),
			engine.EventOverhead - eventHead,
		}
		if err := appendEvents.Run(ctx, s.client, s.eventKeys(session), append(args, packed[session]...)...).Err(); err != nil {
			return fmt.Errorf("redis: %w", err)
		}
	}
	return nil
}

// packEvent gives the form of an event in its list.
func packEvent(e *engine.LoggedEvent) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, eventHead+len(e.Frame)), e.Stream)
	b = append(binary.BigEndian.AppendUint64(b, e.Seq), 0)
	if e.Last {
		b[eventHead-1] = 1
	}
	return append(b, e.Frame...)
}

// EventsAfter implements engine.EventLog.
func (s *Store) EventsAfter(ctx context.Context, session string, stream, seq uint64) (found []engine.LoggedEvent, err error) {
	list, err := s.client.LRange(ctx, s.eventList()+session, 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	for _, text := range list {
		b := []byte(text)
		if len(b) < eventHead {
			continue
		}
		e := engine.LoggedEvent{
			Session: session, Stream: binary.BigEndian.Uint64(b), Seq: binary.BigEndian.Uint64(b[8:]), Last: b[eventHead-1] == 1,
		}
		if len(b) > eventHead {
			e.Frame = b[eventHead:]
		}
		if e.Stream == stream && e.Seq > seq {
			found = append(found, e)
		}
	}
	return found, nil
}

// DropEvents implements engine.EventLog.
func (s *Store) DropEvents(ctx context.Context, session string) error {
	if err := dropEvents.Run(ctx, s.client, s.eventKeys(session), session).Err(); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	return nil
}
