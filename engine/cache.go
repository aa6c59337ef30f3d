package engine

import (
	"strconv"
	"time"
)

// Cache tells clients of 2026-07-28 how long, and for whom, they may keep an
// answer. The zero value: it is stale at once, and nobody else's.
type Cache struct {
	TTL    time.Duration
	Public bool // the answer is the same for everybody
}

// appendTo appends the members ttlMs and cacheScope.
func (c Cache) appendTo(dst []byte) []byte {
	dst = append(dst, `,"ttlMs":`...)
	dst = strconv.AppendInt(dst, max(c.TTL.Milliseconds(), 0), 10)
	if c.Public {
		return append(dst, `,"cacheScope":"public"`...)
	}
	return append(dst, `,"cacheScope":"private"`...)
}
