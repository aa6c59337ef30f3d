package replica

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// maxRoutes bounds the sessions that a router remembers. Requests of those beyond it are spread like stateless ones.
const maxRoutes = 1_000_000

const sessionHeader = "Mcp-Session-Id"

// Router is an http.Handler that passes requests on to replicas: those of a session to the replica that opened it, all
// others in turn. A replica that cannot be reached is answered for with status 502.
type Router struct {
	proxies []*httputil.ReverseProxy
	next    atomic.Uint64
	served  []atomic.Int64 // requests passed on to each replica

	mu     sync.Mutex
	routes map[string]int // guarded by mu: session id to replica
}

// NewRouter routes to the replicas at the addresses, such as 127.0.0.1:8081. The path of a request stays what it is.
func NewRouter(addresses []string) *Router {
	r := &Router{routes: map[string]int{}, served: make([]atomic.Int64, len(addresses))}
	transport := &http.Transport{MaxIdleConnsPerHost: 1000, IdleConnTimeout: time.Minute}
	for i, address := range addresses {
		target := &url.URL{Scheme: "http", Host: address}
		r.proxies = append(r.proxies, &httputil.ReverseProxy{
			Rewrite:        func(p *httputil.ProxyRequest) { p.SetURL(target) },
			Transport:      transport,
			FlushInterval:  -1, // an event of a stream is not held back
			ModifyResponse: func(res *http.Response) error { r.learn(res, i); return nil },
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
				http.Error(w, fmt.Sprintf("replica %d: %v", i+1, err), http.StatusBadGateway)
			},
			ErrorLog: log.New(discard{}, "", 0), // what goes wrong is in the answers
		})
	}
	return r
}

// ServeHTTP passes a request on.
func (r *Router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	at := r.route(req.Header.Get(sessionHeader))
	r.served[at].Add(1)
	r.proxies[at].ServeHTTP(w, req)
}

// Served tells how many requests each replica was given.
func (r *Router) Served() []int64 {
	out := make([]int64, len(r.served))
	for i := range r.served {
		out[i] = r.served[i].Load()
	}
	return out
}

// route chooses the replica of a session, or the next one.
func (r *Router) route(session string) int {
	if session != "" {
		r.mu.Lock()
		at, ok := r.routes[session]
		r.mu.Unlock()
		if ok {
			return at
		}
	}
	return int((r.next.Add(1) - 1) % uint64(len(r.proxies)))
}

// learn remembers the replica that opened a session, and forgets a session that was deleted or is gone.
func (r *Router) learn(res *http.Response, at int) {
	opened, asked := res.Header.Get(sessionHeader), res.Request.Header.Get(sessionHeader)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case asked != "" && (res.Request.Method == http.MethodDelete || res.StatusCode == http.StatusNotFound):
		delete(r.routes, asked)
	case opened != "" && opened != asked && len(r.routes) < maxRoutes:
		r.routes[opened] = at
	}
}

// discard is a writer to nowhere.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
