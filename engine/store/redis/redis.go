// Package redis keeps what sealed session ids cannot hold in a Redis server, so
// that replicas which share it know which sessions were deleted anywhere, what
// was settled in the others, and what their streams said last.
//
// The server has to keep what it is given: one that evicts keys when it is full
// (a maxmemory-policy other than noeviction), or that loses what it has when it
// starts again, may bring a deleted session back.
package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mcpengine/mcpengine/engine"
)

// Options configures Open. Nil is fine.
type Options struct {
	// Prefix begins the names of all keys. Its braces keep them in one slot of
	// a cluster. Default "{mcpengine}:".
	Prefix string
	// Max is how many revoked names are kept. States end with their sessions
	// and are bounded by the server's memory. Default:
	// engine.DefaultSessionsKept.
	Max int
	// SessionEventBytes and EventBytes bound the events that are kept, of one
	// session and in all. Where it is too much in all, the sessions go whose
	// last event is the oldest. Default: engine.DefaultSessionEventBytes and
	// engine.DefaultEventBytes.
	SessionEventBytes, EventBytes int
	// EventLife is how long events are kept after the last one of their
	// session. Default 12 h.
	EventLife time.Duration
}

// Store is an engine.SessionStore and an engine.EventLog in a Redis server.
type Store struct {
	client                   *redis.Client
	prefix                   string
	max                      int
	sessionEvents, allEvents int // bytes
	eventLife                time.Duration
}

var _ engine.SessionStore = (*Store)(nil)

// Open makes a store of a URL, such as redis://user:secret@host:6379/0 or
// rediss:// for TLS, and asks whether the server is there.
func Open(ctx context.Context, url string, o *Options) (*Store, error) {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Prefix == "" {
		c.Prefix = "{mcpengine}:"
	}
	if c.Max <= 0 {
		c.Max = engine.DefaultSessionsKept
	}
	if c.SessionEventBytes <= 0 {
		c.SessionEventBytes = engine.DefaultSessionEventBytes
	}
	if c.EventBytes <= 0 {
		c.EventBytes = engine.DefaultEventBytes
	}
	if c.EventLife <= 0 {
		c.EventLife = 12 * time.Hour
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, errors.New("redis: the URL cannot be read") // it may hold a password
	}
	s := &Store{
		client: redis.NewClient(options), prefix: c.Prefix, max: c.Max,
		sessionEvents: min(c.SessionEventBytes, c.EventBytes), allEvents: c.EventBytes, eventLife: c.EventLife,
	}
	if err := s.client.Ping(ctx).Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("redis: %w", err), s.client.Close())
	}
	return s, nil
}

// Close closes the connections.
func (s *Store) Close() error { return s.client.Close() }

// revoke notes a name in two sorted sets, by creation and by expiry, drops what
// is over and what is too much, and moves a mark for each, the time of expiry and
// the floor of creation.
// KEYS: by creation, by expiry, floor, state, over. ARGV: name, created, expires,
// now, most.
var revoke = redis.NewScript(`
redis.call('DEL', KEYS[4])
local floor = tonumber(redis.call('GET', KEYS[3]) or '-1')
local ended = tonumber(redis.call('GET', KEYS[5]) or '-1')
if tonumber(ARGV[2]) <= floor or tonumber(ARGV[3]) <= ended then return 0 end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
while true do
  local over = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[4], 'LIMIT', 0, 100)
  if #over == 0 then break end
  redis.call('SET', KEYS[5], redis.call('ZSCORE', KEYS[2], over[#over]))
  redis.call('ZREM', KEYS[1], unpack(over))
  redis.call('ZREM', KEYS[2], unpack(over))
end
while redis.call('ZCARD', KEYS[1]) > tonumber(ARGV[5]) do
  local first = redis.call('ZPOPMIN', KEYS[1])
  redis.call('ZREM', KEYS[2], first[1])
  redis.call('SET', KEYS[3], first[2])
end
return 1
`)

// Revoke implements engine.SessionStore.
func (s *Store) Revoke(ctx context.Context, ref engine.SessionRef) error {
	keys := []string{
		s.prefix + "revoked", s.prefix + "revoked-expiry", s.prefix + "floor", s.stateKey(ref), s.prefix + "over",
	}
	err := revoke.Run(ctx, s.client, keys, ref.Name, ref.Created.UnixMilli(), ref.Expires.UnixMilli(),
		time.Now().UnixMilli(), s.max).Err()
	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	return nil
}

// Revoked implements engine.SessionStore.
func (s *Store) Revoked(ctx context.Context, ref engine.SessionRef) (bool, error) {
	var score *redis.FloatCmd
	var floor, over *redis.StringCmd
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		score = p.ZScore(ctx, s.prefix+"revoked", ref.Name)
		floor, over = p.Get(ctx, s.prefix+"floor"), p.Get(ctx, s.prefix+"over")
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, fmt.Errorf("redis: %w", err)
	}
	switch err := score.Err(); {
	case err == nil:
		return true, nil
	case !errors.Is(err, redis.Nil):
		return false, fmt.Errorf("redis: %w", err)
	}
	old, err := reached(floor, ref.Created)
	if old || err != nil {
		return old, err
	}
	return reached(over, ref.Expires)
}

// reached reports whether a mark is at a time or beyond it.
func reached(mark *redis.StringCmd, t time.Time) (bool, error) {
	text, err := mark.Result()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	ms, parseErr := strconv.ParseFloat(text, 64)
	if err = errors.Join(err, parseErr); err != nil {
		return false, fmt.Errorf("redis: a mark of revoked sessions: %w", err)
	}
	return float64(t.UnixMilli()) <= ms, nil
}

// Save implements engine.SessionStore.
func (s *Store) Save(ctx context.Context, ref engine.SessionRef, state []byte) error {
	left := time.Until(ref.Expires)
	if left <= 0 {
		return nil
	}
	if err := s.client.Set(ctx, s.stateKey(ref), state, left).Err(); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	return nil
}

// Load implements engine.SessionStore.
func (s *Store) Load(ctx context.Context, ref engine.SessionRef) ([]byte, error) {
	state, err := s.client.Get(ctx, s.stateKey(ref)).Bytes()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("redis: %w", err)
	}
	return state, nil
}

func (s *Store) stateKey(ref engine.SessionRef) string { return s.prefix + "state:" + ref.Name }
