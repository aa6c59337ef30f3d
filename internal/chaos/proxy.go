package chaos

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy passes TCP connections on to a server, with faults. Listen makes one.
type Proxy struct {
	target   string
	plan     Plan
	listener *net.TCPListener
	peaceful chan struct{} // closed by Calm
	calm     sync.Once
	closing  atomic.Bool
	running  sync.WaitGroup

	counts   [kinds]atomic.Int64 // faults that have happened; of None, connections in all
	upstream atomic.Int64        // connections that the server did not take

	mu    sync.Mutex // guards what follows
	links map[*link]struct{}
	hits  map[string]time.Time // by the address of the client's end: see Hit
}

// Listen starts a proxy on a loopback address. target is the server's address,
// where nobody need listen yet. Close ends it.
func Listen(target string, plan Plan) (*Proxy, error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		target: target, plan: plan, listener: l, peaceful: make(chan struct{}),
		links: make(map[*link]struct{}), hits: make(map[string]time.Time),
	}
	p.running.Go(p.accept)
	return p, nil
}

// Addr gives the address that clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Calm ends all faults: those that have begun end now, the connections that have
// lost something are closed, and nothing happens to new ones.
func (p *Proxy) Calm() {
	p.calm.Do(func() { close(p.peaceful) })
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if l.lossy.Load() {
			l.reset()
		}
	}
}

func (p *Proxy) isCalm() bool {
	select {
	case <-p.peaceful:
		return true
	default:
		return false
	}
}

// Close ends the proxy and its connections, and returns when nothing of it is
// left. Hit knows nothing any more then.
func (p *Proxy) Close() {
	p.closing.Store(true)
	_ = p.listener.Close()
	p.Calm()
	p.mu.Lock()
	for l := range p.links {
		l.reset()
	}
	p.mu.Unlock()
	p.running.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hits = make(map[string]time.Time) // a long run leaves many
}

// Counts tells how many faults of each kind have happened so far; of None it
// gives the connections in all. unreached counts those that the server did not
// take.
func (p *Proxy) Counts() (faults map[Kind]int64, unreached int64) {
	faults = make(map[Kind]int64, kinds)
	for k := range p.counts {
		faults[Kind(k)] = p.counts[k].Load()
	}
	return faults, p.upstream.Load()
}

// Hit tells whether, and since when, the connection has met its fault whose
// client's end has an address. It knows that before the client can notice, until
// another connection comes from that address.
func (p *Proxy) Hit(client string) (since time.Time, hit bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	since, hit = p.hits[client]
	return since, hit
}

func (p *Proxy) accept() {
	for n := 0; ; n++ {
		conn, err := p.listener.AcceptTCP()
		if err != nil {
			if p.closing.Load() {
				return
			}
			time.Sleep(time.Millisecond) // too many open files, say
			continue
		}
		p.counts[None].Add(1)
		l := &link{proxy: p, client: conn, fault: p.plan.Of(n), gone: make(chan struct{})}
		if p.isCalm() {
			l.fault = Fault{}
		}
		p.mu.Lock()
		p.links[l] = struct{}{}
		delete(p.hits, conn.RemoteAddr().String())
		p.mu.Unlock()
		p.running.Go(func() {
			l.run()
			p.mu.Lock()
			delete(p.links, l)
			p.mu.Unlock()
		})
	}
}

// note writes down that a connection meets its fault.
func (p *Proxy) note(l *link) {
	p.counts[l.fault.Kind].Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hits[l.client.RemoteAddr().String()] = time.Now()
}
