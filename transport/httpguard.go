package transport

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
)

// guard tells who may call: it checks Host and Origin, the two headers that
// stand between a server on loopback and a web page that rebinds a name to it.
type guard struct {
	hosts     map[string]bool // lower case, as listed
	origins   map[string]bool
	anyOrigin bool

	lastLoopback atomic.Pointer[string] // the last Host header that named the loopback interface
}

func newGuard(o *HTTPOptions) *guard {
	g := &guard{hosts: make(map[string]bool), origins: make(map[string]bool)}
	for _, h := range o.AllowedHosts {
		g.hosts[strings.ToLower(h)] = true
	}
	for _, origin := range o.AllowedOrigins {
		if origin == "*" {
			g.anyOrigin = true
		}
		g.origins[strings.ToLower(strings.TrimSuffix(origin, "/"))] = true
	}
	return g
}

// allows reports whether a request may go on, else the reason why not.
func (g *guard) allows(r *http.Request) (reason string, ok bool) {
	if !g.allowsHost(r) {
		return "Forbidden: this Host is not served here", false
	}
	if origin := headerOf(r, "Origin"); origin != "" && !g.allowsOrigin(origin, r.Host) {
		return "Forbidden: this Origin may not call", false
	}
	return "", true
}

func (g *guard) allowsHost(r *http.Request) bool {
	if last := g.lastLoopback.Load(); last != nil && *last == r.Host && len(g.hosts) == 0 {
		return true // wherever it arrived
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	onLoopback := local != nil && isLoopbackAddr(local)
	if !onLoopback && len(g.hosts) == 0 {
		return true
	}
	if onLoopback && g.namesLoopback(r.Host) {
		return true
	}
	if len(g.hosts) == 0 {
		return false
	}
	host := strings.ToLower(r.Host)
	return g.hosts[host] || g.hosts[hostName(host)]
}

func (g *guard) allowsOrigin(origin, host string) bool {
	if g.anyOrigin || g.origins[strings.ToLower(origin)] {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

// namesLoopback is isLoopbackName with a memory: most clients send one and the same Host header.
func (g *guard) namesLoopback(host string) bool {
	if last := g.lastLoopback.Load(); last != nil && *last == host {
		return true
	}
	if !isLoopbackName(host) {
		return false
	}
	kept := host // what is pointed to is allocated, and only here
	g.lastLoopback.Store(&kept)
	return true
}

func isLoopbackAddr(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// isLoopbackName reports whether a Host header names the loopback interface.
func isLoopbackName(host string) bool {
	name := hostName(host)
	if strings.EqualFold(name, "localhost") {
		return true
	}
	return net.ParseIP(strings.Trim(name, "[]")).IsLoopback()
}

// hostName gives a Host header without its port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

// usualAccept is the Accept header of most clients, which need not be taken apart.
const usualAccept = "application/json, text/event-stream"

// accepts tells which of the two media types an Accept header allows. None at
// all allows both. What is named exactly goes before a wildcard, and a weight of
// zero forbids.
func accepts(values []string) (json, events bool) {
	if len(values) == 0 || len(values) == 1 && values[0] == usualAccept {
		return true, true
	}
	var exact, subtype [2]int // of JSON and of events: 1 allowed, -1 forbidden
	var anything int
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			kind, parameters, _ := strings.Cut(part, ";")
			says := weight(parameters)
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "application/json":
				exact[0] = says
			case "text/event-stream":
				exact[1] = says
			case "application/*":
				subtype[0] = says
			case "text/*":
				subtype[1] = says
			case "*/*":
				anything = says
			}
		}
	}
	return cmp.Or(exact[0], subtype[0], anything) > 0, cmp.Or(exact[1], subtype[1], anything) > 0
}

// weight gives -1 where the parameters of a media range hold a weight of zero,
// else 1.
func weight(parameters string) int {
	for parameters != "" {
		var parameter string
		parameter, parameters, _ = strings.Cut(parameters, ";")
		name, value, _ := strings.Cut(parameter, "=")
		value = strings.TrimSpace(value)
		if strings.EqualFold(strings.TrimSpace(name), "q") && value != "" && strings.Trim(value, "0.") == "" {
			return -1
		}
	}
	return 1
}

// isJSON reports whether a Content-Type header names JSON.
func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json")
}
