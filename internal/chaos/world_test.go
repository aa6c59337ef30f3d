package chaos_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/internal/chaos"
)

// world is one server and what happens to it, as its clients see it.
type world struct {
	name  string
	proxy *chaos.Proxy // nil over stdio
	bound time.Duration
	set   settings
	tally *tally

	stop chan struct{} // closed when the faults are over
	calm chan struct{} // closed when the server is as it should be

	down  atomic.Bool  // the process is being killed or started
	kills atomic.Int64 // of the process
	jumps atomic.Int64 // of the clock
	ahead atomic.Int64 // of the clock

	mu      sync.Mutex // guards what follows
	deleted []string   // ids of sessions whose DELETE was answered
	others  []string   // ids of sessions that belong to somebody
}

// moment is what a client knows when it begins something.
type moment struct {
	at           time.Time
	kills, jumps int64
	down         bool
}

func (w *world) now() moment {
	return moment{at: time.Now(), kills: w.kills.Load(), jumps: w.jumps.Load(), down: w.down.Load()}
}

// disturbed reports whether something has happened since to the server itself
// that may cut off a request.
func (w *world) disturbed(since moment) bool {
	return since.down || w.down.Load() || w.kills.Load() != since.kills || w.jumps.Load() != since.jumps
}

// recent is how long after it has begun a fault may still be felt.
func (w *world) recent() time.Duration { return 2 * w.bound }

// hit reports whether a connection has met its fault, not long before.
func (w *world) hit(client string, since moment) bool {
	at, hit := w.proxy.Hit(client)
	return hit && since.at.Sub(at) < w.recent()
}

func (w *world) stopped() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// birth is what a client remembers of the making of its session.
type birth struct {
	jumps int64
	ahead time.Duration
}

func (w *world) birth() birth {
	return birth{jumps: w.jumps.Load(), ahead: time.Duration(w.ahead.Load())}
}

// mayBeGone reports whether a session may be unknown though nobody has deleted
// it: the clock has jumped since, so that its time may be over, or it was made by
// a clock so far behind that the store takes its time to be over.
func (w *world) mayBeGone(b birth) bool {
	return w.jumps.Load() != b.jumps || b.ahead <= -sessionLife+time.Minute
}

// share puts the id of a session where others find it who want to steal it.
func (w *world) share(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.others = append(w.others, id)
	if len(w.others) > 200 {
		w.others = slices.Delete(w.others, 0, 100)
	}
}

// bury notes that a session was deleted, for good.
func (w *world) bury(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deleted = append(w.deleted, id)
	if len(w.deleted) > 400 {
		w.deleted = slices.Delete(w.deleted, 0, 200)
	}
}

// pick gives one of some ids, or "".
func (w *world) pick(ids *[]string, r *rand.Rand) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(*ids) == 0 {
		return ""
	}
	return (*ids)[r.IntN(len(*ids))]
}

// tally counts what has come of requests, and keeps what must not be.
type tally struct {
	mu         sync.Mutex
	counts     map[string]map[string]int // by kind of client, then by outcome
	violations []string
	more       int // violations that were not kept
}

func newTally() *tally { return &tally{counts: make(map[string]map[string]int)} }

// add counts an outcome.
func (t *tally) add(client, outcome string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts[client] == nil {
		t.counts[client] = make(map[string]int)
	}
	t.counts[client][outcome]++
}

// violate notes a broken rule.
func (t *tally) violate(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.violations) >= 40 {
		t.more++
		return
	}
	t.violations = append(t.violations, fmt.Sprintf(format, args...))
}

// String gives a line for each kind of client.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines strings.Builder
	for _, client := range slices.Sorted(maps.Keys(t.counts)) {
		total := 0
		var parts []string
		for _, outcome := range slices.Sorted(maps.Keys(t.counts[client])) {
			n := t.counts[client][outcome]
			total += n
			parts = append(parts, fmt.Sprintf("%s %d", outcome, n))
		}
		fmt.Fprintf(&lines, "  %-22s %6d: %s\n", client, total, strings.Join(parts, ", "))
	}
	return lines.String()
}

// party is what all clients have in common.
type party struct {
	world *world
	kind  string // as it is counted
	n     int    // of all clients
	seq   int
	rand  *rand.Rand
}

// next gives the payload of another request.
func (p *party) next() string {
	p.seq++
	return payloadOf(p.n, p.seq)
}

func (p *party) count(outcome string) { p.world.tally.add(p.world.name+" "+p.kind, outcome) }

func (p *party) violate(format string, args ...any) {
	p.world.tally.violate("%s %s %d: "+format, append([]any{p.world.name, p.kind, p.n}, args...)...)
}

// work is one call, as a client is to make it.
type work struct {
	tool    string
	ms      int           // how long the handler takes
	cancel  time.Duration // when the client gives up, or 0
	more    int           // how many bytes follow the payload in the answer
	payload string
}

// tool picks what to call.
func (p *party) work() work {
	w := work{tool: "echo", payload: p.next()}
	r := p.rand.IntN(100)
	switch {
	case r < 45:
	case r < 60:
		w.tool, w.ms = "sleep", p.rand.IntN(200)
	case r < 78:
		w.tool, w.ms = "progress", p.rand.IntN(200)
	case r < 84:
		w.tool, w.more = "big", p.world.set.Big
	case r < 90:
		w.tool = "panic"
	case r < 95:
		w.tool = "hang"
	default:
		w.tool, w.ms = "stubborn", p.rand.IntN(250)
	}
	if w.tool == "hang" && p.rand.IntN(3) > 0 || w.ms > 50 && p.rand.IntN(6) == 0 {
		w.cancel = time.Duration(5+p.rand.IntN(150)) * time.Millisecond
	}
	return w
}

// args are the arguments of a call.
func (w work) args() string {
	return fmt.Sprintf(`{"payload":%q,"ms":%d,"more":%d}`, w.payload, w.ms, w.more)
}

// isAnswer reports whether a text is the right answer.
func (w work) isAnswer(text string) bool {
	first, rest, more := strings.Cut(text, " ")
	return first == w.payload && more == (w.more > 0) && len(rest) == w.more
}

// Codes of errors that a call may get.
const (
	codeInternal   = -32603
	codeOverloaded = -31900
	codeTimeout    = -31901
	codeStopped    = -31902
)

// judgeError names the outcome of an error response, or gives "" where it is not
// one that such a call may get. ended tells that its session may have come to its
// end meanwhile.
func (w work) judgeError(code int, ended bool) string {
	switch {
	case code == codeInternal && w.tool == "panic":
		return "panicked"
	case code == codeTimeout && w.tool != "echo": // a busy machine may take that long over the others
		return "timed out in the handler"
	case code == codeOverloaded:
		return "refused"
	case code == codeStopped && w.cancel > 0:
		return "cancelled"
	case code == codeStopped && ended:
		return "session ended"
	}
	return ""
}

// inhabitant is one of the clients of a world.
type inhabitant interface {
	// act makes one call, or does something else that clients do.
	act()
	// clean makes a call on which nothing may go wrong, and tells what has.
	clean() error
	// leave ends what the client holds.
	leave()
}

// cleanCalls is how many calls every client must complete after the faults.
const cleanCalls = 10

// live is the life of a client.
func (w *world) live(p *party, c inhabitant, think time.Duration) {
	for !w.stopped() {
		c.act()
		pause := time.NewTimer(time.Duration(p.rand.Int64N(int64(2*think) + 1)))
		select {
		case <-pause.C:
		case <-w.stop:
		}
		pause.Stop()
	}
	<-w.calm
	begun := time.Now()
	for i := range cleanCalls {
		if err := c.clean(); err != nil {
			p.violate("clean call %d of %d, %v after the faults: %v", i+1, cleanCalls, time.Since(begun).Round(time.Millisecond), err)
			break
		}
		p.count("clean")
	}
	c.leave()
}
