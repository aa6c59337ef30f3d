package engine

import (
	"context"
	"hash/maphash"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// Rate is a token bucket: Burst calls at once, and PerSecond on average. A
// PerSecond of zero or less is no limit, a Burst of zero is one second's worth,
// at least 1.
type Rate struct {
	PerSecond float64
	Burst     int
}

// rateShards is how many locks the accounts are spread over.
const rateShards = 16

// rateLimiter keeps an account for each pair of principal and tool. An account
// is one number: the time at which its bucket will be full again.
type rateLimiter struct {
	limit   func(principal, tool string) Rate
	perPart int
	refused atomic.Int64
	seed    maphash.Seed
	part    [rateShards]struct {
		sync.Mutex
		full map[rateKey]time.Time
	}
}

type rateKey struct{ principal, tool string }

func newRateLimiter(limit func(principal, tool string) Rate, keys int) *rateLimiter {
	l := &rateLimiter{limit: limit, perPart: max(1, keys/rateShards), seed: maphash.MakeSeed()}
	for i := range l.part {
		l.part[i].full = make(map[rateKey]time.Time)
	}
	return l
}

// take counts a call, or tells how long to wait before the next try.
func (l *rateLimiter) take(principal, tool string, now time.Time) (wait time.Duration) {
	rate := l.limit(principal, tool)
	if rate.PerSecond <= 0 || math.IsNaN(rate.PerSecond) {
		return 0
	}
	burst := float64(rate.Burst)
	if rate.Burst <= 0 {
		burst = math.Max(1, math.Floor(rate.PerSecond))
	}
	// Beyond these a bucket is never, or always, full as far as anybody can see.
	const most = float64(24 * time.Hour)
	each := time.Duration(min(float64(time.Second)/rate.PerSecond, most))
	depth := time.Duration(min(burst*float64(each), 365*most))

	key := rateKey{principal, tool}
	part := &l.part[maphash.Comparable(l.seed, key)%rateShards]
	part.Lock()
	defer part.Unlock()
	full, known := part.full[key]
	if full.Before(now) {
		full = now
	}
	if wait = full.Add(each).Sub(now) - depth; wait > 0 {
		l.refused.Add(1)
		return wait
	}
	if !known && len(part.full) >= l.perPart {
		makeRoom(part.full, now)
	}
	part.full[key] = full.Add(each)
	return 0
}

// rateSample is how many accounts are looked at to find one to close.
const rateSample = 16

// makeRoom closes accounts whose buckets are full, which says nothing, or the
// fullest that it comes across.
func makeRoom(accounts map[rateKey]time.Time, now time.Time) {
	var fullest rateKey
	var soonest time.Time
	looked, closed := 0, 0
	for key, full := range accounts {
		if !full.After(now) {
			delete(accounts, key)
			closed++
		} else if soonest.IsZero() || full.Before(soonest) {
			fullest, soonest = key, full
		}
		if looked++; looked == rateSample {
			break
		}
	}
	if closed == 0 {
		delete(accounts, fullest)
	}
}

// checkRate refuses a call of a tool that comes too soon after others.
func (e *Engine) checkRate(ctx context.Context, m *codec.Message, tool string) *codec.Error {
	if e.rates == nil || string(m.Method) != codec.MethodToolsCall {
		return nil
	}
	principal, fault := e.principalOf(ctx)
	if fault != nil {
		return fault
	}
	wait := e.rates.take(principal, tool, time.Now())
	if wait == 0 {
		return nil
	}
	ms := (wait + time.Millisecond - 1).Milliseconds()
	data := strconv.AppendInt([]byte(`{"`+dataRetryAfter+`":`), ms, 10)
	return &codec.Error{
		Code: codec.CodeOverloaded, Message: "This tool is called too often, try again later", Data: append(data, '}'),
	}
}

// dataRetryAfter is the member of an error's data that tells for how many
// milliseconds to wait.
const dataRetryAfter = "retryAfterMs"

// RetryAfter gives how long to wait before a call is tried again, where a frame
// is the error that refused it for coming too soon (Options.RateLimit).
func RetryAfter(frame []byte) (time.Duration, bool) {
	ms, ok := codec.Int(frame, "error", "data", dataRetryAfter)
	if !ok || ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}
