package chaos_test

import (
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/internal/chaos"
	"github.com/mcpengine/mcpengine/transport/client"
)

var (
	chaosTime    = flag.Duration("chaos", 2*time.Second, "how `long` TestChaos breaks things")
	chaosClients = flag.Int("chaos.clients", 36, "how many clients TestChaos has")
	chaosSeed    = flag.Uint64("chaos.seed", 0, "`seed` of the plan of faults; 0 makes one")
)

// longForm is from when on a run is long enough for long stalls, and sizes of
// the heap mean something.
const longForm = 20 * time.Second

// TestChaos runs three worlds at once: a server process that is killed and
// started again, with a store on disk; a server in this process, which must have
// forgotten everything at the end; and servers on pipes, one for each client.
// What must hold is written at each place that calls violate.
func TestChaos(t *testing.T) {
	seed := *chaosSeed
	if seed == 0 {
		seed = mathrand.Uint64()
	}
	t.Logf("seed %d, %v, %d clients: go test ./internal/chaos -run TestChaos -chaos %v -chaos.clients %d -chaos.seed %d",
		seed, *chaosTime, *chaosClients, *chaosTime, *chaosClients, seed)
	r := newRun(t, seed)
	n := *chaosClients
	killed, inside := r.killedWorld(), r.insideWorld()
	pipes := r.newWorld("pipe", r.set, nil)
	r.populate(killed, n*45/100)
	r.populate(inside, n*45/100)
	r.populatePipes(pipes, max(2, n*6/100))

	r.upheaval(killed, inside)
	close(r.stop)
	r.calmDown()
	r.clients.Wait()
	r.checkChild()
	r.checkInside()
	r.tell()
}

// run is one run of TestChaos.
type run struct {
	t     *testing.T
	seed  uint64
	set   settings
	bound time.Duration
	think time.Duration
	beat  time.Duration // between two things that happen to servers
	tally *tally

	stop, calm chan struct{}
	clients    sync.WaitGroup
	number     int // of the last client

	child  *child
	worlds []*world
	site   *site
	before report // of the site, and so of this process
	idle   report // of the first child, before anybody has come
}

func newRun(t *testing.T, seed uint64) *run {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	r := &run{
		t: t, seed: seed, tally: newTally(), stop: make(chan struct{}), calm: make(chan struct{}),
		bound: 8 * time.Second * slack, think: 30 * time.Millisecond, beat: *chaosTime / 12,
		set: settings{
			Keys: [][]byte{key}, Idle: 400 * time.Millisecond, Handler: 1500 * time.Millisecond * slack,
			Write: 700 * time.Millisecond * slack, Body: 5 * time.Second * slack,
			MaxSessions: max(4, *chaosClients*3/10), Big: 100 << 10,
		},
	}
	if *chaosTime >= longForm {
		r.bound, r.think, r.beat = 20*time.Second*slack, 400*time.Millisecond, 4*time.Second
		r.set.Idle, r.set.Handler, r.set.Write = 2*time.Second, 4*time.Second*slack, 2*time.Second*slack
		r.set.Body, r.set.Big = 10*time.Second*slack, 600<<10
	}
	return r
}

// newWorld makes a world. Over HTTP it stands behind a proxy.
func (r *run) newWorld(name string, set settings, proxy *chaos.Proxy) *world {
	w := &world{name: name, proxy: proxy, bound: r.bound, set: set, tally: r.tally, stop: r.stop, calm: r.calm}
	r.worlds = append(r.worlds, w)
	return w
}

// proxy starts the proxy of a server.
func (r *run) proxy(target string) *chaos.Proxy {
	p, err := chaos.Listen(target, chaos.Plan{Seed: r.seed + uint64(len(r.worlds)), Longest: r.set.Write * 3})
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// insideWorld starts the server in this process and takes stock.
func (r *run) insideWorld() *world {
	s, err := newSite(r.set, engine.NewMemorySessions(0))
	if err != nil {
		r.t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	s.serve(l)
	r.site = s
	fill := 1000
	if *chaosTime >= longForm {
		fill = 100_000
		crowd(20_000)
	}
	if err := s.fill(fill); err != nil {
		r.t.Fatal(err)
	}
	r.before = s.report()
	return r.newWorld("inside", r.set, r.proxy(l.Addr().String()))
}

// killedWorld starts the server process.
func (r *run) killedWorld() *world {
	set := r.set
	set.Store = filepath.Join(r.t.TempDir(), "sessions")
	for _, addr := range []*string{&set.Addr, &set.Control} {
		var err error
		if *addr, err = freeAddress(); err != nil {
			r.t.Fatal(err)
		}
	}
	r.child = &child{settings: set, control: &http.Client{
		Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true},
	}}
	var err error
	if r.idle, err = r.child.start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(r.child.kill)
	return r.newWorld("killed", set, r.proxy(set.Addr))
}

// party makes what the next client has in common with all.
func (r *run) party(w *world, kind string) party {
	r.number++
	return party{world: w, kind: kind, n: r.number, rand: mathrand.New(mathrand.NewPCG(r.seed, uint64(r.number)))}
}

// populate starts clients over HTTP.
func (r *run) populate(w *world, n int) {
	for i := range n {
		switch i % 4 {
		case 0, 2:
			c := &rawHTTP{party: r.party(w, "raw, session")}
			r.clients.Go(func() { w.live(&c.party, c, r.think) })
		case 1:
			c := &product{party: r.party(w, "own, session"), protocol: "2025-11-25"}
			r.clients.Go(func() { w.live(&c.party, c, r.think) })
		case 3:
			if i%8 == 3 {
				c := &product{party: r.party(w, "own, stateless"), protocol: client.ProtocolStateless}
				r.clients.Go(func() { w.live(&c.party, c, r.think) })
				continue
			}
			c := &rawHTTP{party: r.party(w, "raw, stateless"), modern: true}
			r.clients.Go(func() { w.live(&c.party, c, r.think) })
		}
	}
}

// populatePipes starts clients that have processes of their own.
func (r *run) populatePipes(w *world, n int) {
	for i := range n {
		if i%2 == 0 {
			c := &rawStdio{party: r.party(w, "raw")}
			r.clients.Go(func() { w.live(&c.party, c, r.think) })
			continue
		}
		c := &spawned{party: r.party(w, "own")}
		r.clients.Go(func() { w.live(&c.party, c, r.think) })
	}
}

// upheaval kills the process and has the clocks jump until the time is over.
func (r *run) upheaval(killed, inside *world) {
	random := mathrand.New(mathrand.NewPCG(r.seed, 1<<40))
	over := time.After(*chaosTime)
	beat := time.NewTicker(r.beat)
	defer beat.Stop()
	for n := 1; ; n++ {
		select {
		case <-over:
			return
		case <-beat.C:
		}
		switch n % 3 {
		case 0:
			r.kill(killed)
		case 1:
			r.jump(inside, random, func(to time.Duration) error { r.site.ahead.Store(int64(to)); return nil })
		case 2:
			r.jump(killed, random, r.child.jump)
		}
	}
}

// kill kills the process and starts another one in its place.
func (r *run) kill(w *world) {
	broken, _ := r.child.report()
	for _, violation := range broken.Violations {
		r.tally.violate("%s", violation)
	}
	w.down.Store(true)
	w.kills.Add(1)
	r.child.kill()
	if _, err := r.child.start(); err != nil {
		r.t.Error(err)
	}
	w.down.Store(false)
	w.kills.Add(1)
}

// jump moves a clock: a little, or so far that all sessions end, or back.
func (r *run) jump(w *world, random *mathrand.Rand, move func(time.Duration) error) {
	steps := []time.Duration{-13 * time.Hour, -time.Hour, -time.Minute, 0, time.Minute, time.Hour, 13 * time.Hour}
	to := steps[random.IntN(len(steps))]
	w.jumps.Add(1)
	w.ahead.Store(int64(to))
	if err := move(to); err != nil {
		r.t.Error(err)
	}
	w.jumps.Add(1)
	w.tally.add(w.name+" clock", fmt.Sprintf("to %+v", to))
}

// calmDown ends all faults.
func (r *run) calmDown() {
	for _, w := range r.worlds {
		if w.proxy != nil {
			w.proxy.Calm()
		}
	}
	close(r.calm)
}

// tell tells what has happened, and fails the test where a rule was broken.
func (r *run) tell() {
	var lines strings.Builder
	for _, w := range r.worlds {
		if w.proxy == nil {
			continue
		}
		faults, unreached := w.proxy.Counts()
		fmt.Fprintf(&lines, "  %-8s %d connections:", w.name, faults[chaos.None])
		for k := chaos.Refuse; k <= chaos.Delay; k++ {
			fmt.Fprintf(&lines, " %s %d,", k, faults[k])
		}
		fmt.Fprintf(&lines, " not reached %d; process killed %d times, clock jumped %d times\n",
			unreached, w.kills.Load()/2, w.jumps.Load()/2)
	}
	text, _ := json.Marshal(r.before)
	r.t.Logf("faults\n%soutcomes\n%sinside at the start %s", lines.String(), r.tally, text)
	r.tally.mu.Lock()
	defer r.tally.mu.Unlock()
	for _, violation := range r.tally.violations {
		r.t.Error(violation)
	}
	if r.tally.more > 0 {
		r.t.Errorf("and %d more", r.tally.more)
	}
}
