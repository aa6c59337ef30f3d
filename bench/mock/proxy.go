package mock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// Route is how a router chooses among its replicas.
type Route string

const (
	// Random sends each request to a replica drawn from the seed, with equal chances. A session lives on one of k
	// replicas, so each request after initialize finds it with probability 1/k.
	Random Route = "random"
	// Sticky sends what names a session to the replica that opened it, and everything else to the replicas in turn.
	Sticky Route = "sticky"
)

// ProxyConfig says how a Proxy behaves. Exactly one of Upstream and Replicas is set.
//
//	delay      a request that arrives at A is sent on at A + Delay, once, whatever its method; answers, and the events
//	           of a stream, pass as they come
//	fan-out    each tools/call of a client becomes FanOut calls upstream, sent at the same time; the client gets the
//	           answer to the first when all are answered
//	reinit     each tools/call of a session goes upstream as initialize, notifications/initialized, the call (or the
//	           FanOut calls), DELETE, one after the other; the client gets the answer after that
//
// Everything else passes as it is, the client's own initialize too. So c calls in s sessions cost s + c initialize
// upstream with reinit, and c·FanOut tools/call with fan-out.
type ProxyConfig struct {
	Upstream string   // URL of the endpoint behind a proxy
	Replicas []string // URLs of the endpoints behind a router
	Route    Route    // with Replicas

	Delay  time.Duration
	Reinit bool
	FanOut int // 0 means 1

	Seed    uint64 // of Random
	Version string // of the program, for clientInfo; default "dev"
}

// maxFanOut bounds what one request of a client can cause.
const maxFanOut = 1000

// Check refuses what cannot be meant. The error is one line that names the flags of mcp-load mock.
func (c *ProxyConfig) Check() error {
	switch {
	case c.Upstream != "" && (c.Route != "" || len(c.Replicas) > 0):
		return errors.New("--proxy has one upstream, --route chooses among --replica: give one of the two")
	case c.Route != "" && c.Route != Random && c.Route != Sticky:
		return fmt.Errorf("--route %q: use random or sticky", string(c.Route))
	case c.Route != "" && len(c.Replicas) == 0:
		return errors.New("--route needs at least one --replica URL")
	case c.Route == "" && len(c.Replicas) > 0:
		return errors.New("--replica needs --route random or --route sticky")
	case c.Upstream == "" && len(c.Replicas) == 0:
		return errors.New("--delay, --reinit-per-call and --fan-out are of a proxy: give --proxy URL")
	case c.Delay < 0:
		return errors.New("--delay cannot be negative")
	case c.FanOut < 0 || c.FanOut > maxFanOut:
		return fmt.Errorf("--fan-out must lie between 1 and %d", maxFanOut)
	}
	for _, raw := range c.targets() {
		if u, err := url.Parse(raw); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("%q is no http:// or https:// URL: give the endpoint, such as http://127.0.0.1:8080/mcp", raw)
		}
	}
	return nil
}

// targets are the URLs of all endpoints behind.
func (c *ProxyConfig) targets() []string {
	if c.Upstream != "" {
		return []string{c.Upstream}
	}
	return c.Replicas
}

// Proxy passes requests on as its ProxyConfig says: a gateway whose overhead and amplification are known, or a router
// over replicas.
type Proxy struct {
	config    ProxyConfig
	targets   []string
	count     *counters
	clock     *clock
	transport *http.Transport
	copies    atomic.Int64 // calls of fan-outs beyond the first
	sticky    stickiness

	mu     sync.Mutex
	random *rand.Rand // guarded by mu
	turn   int        // guarded by mu
}

// NewProxy makes a proxy, which the caller closes. The error is that of ProxyConfig.Check.
func NewProxy(c ProxyConfig) (*Proxy, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	return &Proxy{
		config:  c,
		targets: c.targets(),
		count:   newCounters(),
		clock:   newClock(newAlarm()),
		transport: &http.Transport{
			MaxIdleConnsPerHost: 1 << 14, // the connections of as many clients are kept
			IdleConnTimeout:     time.Minute,
			DisableCompression:  true, // what passes is not changed
		},
		sticky: stickiness{replica: map[string]int{}},
		random: rand.New(rand.NewPCG(c.Seed, 0x726f757465)),
	}, nil
}

// Close gives back what the proxy holds. Requests that are held back end with their clients.
func (p *Proxy) Close() {
	p.transport.CloseIdleConnections()
	p.clock.close()
}

// Stats gives what was counted of the clients' requests. What came of them is counted upstream.
func (p *Proxy) Stats() Stats { return p.count.read() }

// Handler serves the endpoint at Path and the counters at StatsPath.
func (p *Proxy) Handler() http.Handler { return handler(p, p.count) }

// ServeHTTP passes one request on.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrival := time.Now()
	p.count.httpRequest(r.Method)
	x := exchanges.Get().(*exchange)
	defer x.release()
	m := &x.message
	var err error
	if x.body, err = readBody(x.body[:0], r); err != nil {
		fail(w, nil, http.StatusBadRequest, codec.CodeParseError, "the body could not be read: "+err.Error())
		return
	}
	m.Reset()
	if r.Method == http.MethodPost && codec.Decode(x.body, m) == nil {
		p.count.request(m.Method)
	}
	if p.config.Delay > 0 && p.clock.wait(r.Context(), arrival.Add(p.config.Delay)) != nil {
		return // the client has gone away
	}
	if r.Method == http.MethodGet {
		p.count.streams.up()
		defer p.count.streams.down()
	}
	p.forward(w, r, x)
}

// forward sends a request upstream and its answer back.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, x *exchange) {
	m := &x.message
	isCall := m.Kind == codec.KindRequest && string(m.Method) == codec.MethodToolsCall
	id := r.Header.Get(headerSession)
	u := &upstream{proxy: p, ctx: r.Context(), replica: p.choose(id), header: endToEnd(r.Header)}
	u.url = p.targets[u.replica]
	var resp *http.Response
	var err error
	if isCall {
		p.count.calls.up()
		defer p.count.calls.down()
		resp, err = u.call(x)
	} else {
		resp, err = u.send(r.Method, x.body)
	}
	if err != nil {
		if r.Context().Err() == nil {
			fail(w, m.ID, http.StatusBadGateway, codec.CodeInternalError, "the upstream server could not be reached: "+err.Error())
		}
		return
	}
	defer resp.Body.Close()
	if p.config.Route == Sticky {
		p.sticky.note(r.Method, id, resp, u.replica)
	}
	passBack(w, resp)
}

// choose gives the replica for a request that names a session, or none.
func (p *Proxy) choose(id string) int {
	if len(p.targets) == 1 {
		return 0
	}
	if p.config.Route == Sticky && id != "" {
		if k, ok := p.sticky.find(id); ok {
			return k
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.config.Route == Random {
		return p.random.IntN(len(p.targets))
	}
	k := p.turn
	p.turn = (p.turn + 1) % len(p.targets)
	return k
}

// passBack copies an answer to the client, piece by piece as it comes.
func passBack(w http.ResponseWriter, resp *http.Response) {
	h := w.Header()
	for name, values := range endToEnd(resp.Header) {
		h[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	control := http.NewResponseController(w)
	if resp.ContentLength < 0 && control.Flush() != nil {
		return
	}
	buf := make([]byte, 16<<10)
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return
			}
			if resp.ContentLength < 0 && control.Flush() != nil {
				return
			}
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the client must not take a broken answer for a whole one
		}
	}
}

// stickiness remembers which replica opened a session.
type stickiness struct {
	mu      sync.Mutex
	replica map[string]int // guarded by mu
}

// maxSticky bounds the sessions that a router remembers; beyond it any one is forgotten for the next.
const maxSticky = 1 << 20

func (s *stickiness) find(id string) (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.replica[id]
	return k, ok
}

// note learns from an answer: a session begins with the answer that names it, and ends with DELETE or status 404.
func (s *stickiness) note(method, id string, resp *http.Response, replica int) {
	opened := resp.Header.Get(headerSession)
	ended := id != "" && (method == http.MethodDelete || resp.StatusCode == http.StatusNotFound)
	if !ended && (opened == "" || opened == id) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ended {
		delete(s.replica, id)
		return
	}
	if len(s.replica) >= maxSticky {
		for other := range s.replica {
			delete(s.replica, other)
			break
		}
	}
	s.replica[opened] = replica
}

// upstream is what one request of a client causes.
type upstream struct {
	proxy   *Proxy
	ctx     context.Context
	replica int
	url     string
	header  http.Header
}
