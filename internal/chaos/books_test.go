package chaos_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// payloadOf makes the text that a request carries, which no other one has.
func payloadOf(client, seq int) string { return "c" + strconv.Itoa(client) + "-" + strconv.Itoa(seq) }

// parsePayload undoes payloadOf.
func parsePayload(text string) (client, seq int, ok bool) {
	c, s, found := strings.Cut(strings.TrimPrefix(text, "c"), "-")
	client, err := strconv.Atoi(c)
	seq, err2 := strconv.Atoi(s)
	return client, seq, found && err == nil && err2 == nil && client >= 0 && seq >= 0
}

// What the books know of one request.
const (
	bookStarted = 1 << iota // its handler has begun
	bookEnded               // and has returned, or panicked
	bookAudited             // there is a record of its answer
)

// books are what a server's own side knows of its requests: a byte for each.
type books struct {
	mu         sync.Mutex
	pages      map[int][]uint8 // by client, then by sequence number
	violations []string

	started, ended, audited atomic.Int64
}

func newBooks() *books { return &books{pages: make(map[int][]uint8)} }

// enter notes what has become of a request. It may happen once.
func (b *books) enter(payload string, what uint8, count *atomic.Int64) {
	client, seq, ok := parsePayload(payload)
	if !ok {
		return // not one of the chaos
	}
	count.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	page := b.pages[client]
	if seq >= len(page) {
		page = append(page, make([]uint8, seq+64-len(page))...)
		b.pages[client] = page
	}
	before := page[seq]
	if before&what != 0 {
		b.violate("%s: entered %d for the second time", payload, what)
	}
	if what == bookEnded && before&bookStarted == 0 {
		b.violate("%s: ended and never began", payload)
	}
	page[seq] = before | what
}

// violate notes a broken rule. b.mu is held.
func (b *books) violate(format string, args ...any) {
	if len(b.violations) < 20 {
		b.violations = append(b.violations, "server: "+fmt.Sprintf(format, args...))
	}
}

// settled checks that what has begun has ended, and was answered or given up
// once.
func (b *books) settled() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for client, page := range b.pages {
		for seq, is := range page {
			if is&bookStarted != 0 && is != bookStarted|bookEnded|bookAudited {
				b.violate("%s: state %03b after the end", payloadOf(client, seq), is)
			}
		}
	}
	return slices.Clone(b.violations)
}

// broken gives the rules that were broken so far.
func (b *books) broken() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.violations)
}

// forget forgets all requests, so that the size of the books is not taken for
// the server's.
func (b *books) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pages = make(map[int][]uint8)
}

// settledWithin waits for settled to have nothing to say.
func (b *books) settledWithin(limit time.Duration) []string {
	for deadline := time.Now().Add(limit); b.started.Load() != b.ended.Load() && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond) // records are written on the side
	return b.settled()
}
