package wire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Target is the parsed address of a Streamable HTTP endpoint. It is immutable and may be shared by any number of
// connections.
type Target struct {
	// URL is the address as it was given.
	URL string
	// TLS is the configuration of connections to an https endpoint; nil for http.
	TLS *tls.Config

	addr   string        // host:port to dial
	host   string        // value of the Host header
	path   string        // request target, query included
	shared *sharedClient // of HTTP/2, which all connections of the target use; nil for HTTP/1.1
}

// TargetOptions are the choices of Target.With.
type TargetOptions struct {
	// TLS replaces the configuration of connections to an https endpoint, its ServerName and NextProtos excepted where
	// they are empty. It is copied.
	TLS *tls.Config
	// HTTP2 speaks HTTP/2 and nothing else: by ALPN to https, with prior knowledge to http.
	HTTP2 bool
}

// With gives the same endpoint with other choices. The error says that they do not fit the URL.
func (t *Target) With(o TargetOptions) (*Target, error) {
	out := *t
	if o.TLS != nil {
		if t.TLS == nil {
			return nil, fmt.Errorf("%q is not an https:// URL, so there is no certificate to check or to show", t.URL)
		}
		out.TLS = o.TLS.Clone()
		if out.TLS.ServerName == "" {
			out.TLS.ServerName = t.TLS.ServerName
		}
		if out.TLS.NextProtos == nil {
			out.TLS.NextProtos = t.TLS.NextProtos
		}
		out.TLS.MinVersion = max(out.TLS.MinVersion, t.TLS.MinVersion)
	}
	if o.HTTP2 {
		out.shared = newSharedClient(&out)
	}
	return &out, nil
}

// ParseTarget checks an endpoint URL. Only http and https are accepted; a missing path becomes "/". The error says
// what is wrong in words meant for the person who typed the URL.
func ParseTarget(raw string) (*Target, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL: %w", raw, err)
	}
	t := &Target{URL: raw, host: u.Host, path: u.RequestURI()}
	port := u.Port()
	switch u.Scheme {
	case "http":
		if port == "" {
			port = "80"
		}
	case "https":
		if port == "" {
			port = "443"
		}
		t.TLS = &tls.Config{ServerName: u.Hostname(), NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}
	default:
		return nil, fmt.Errorf("%q is not an http:// or https:// URL", raw)
	}
	if u.Hostname() == "" {
		return nil, fmt.Errorf("%q names no host", raw)
	}
	if u.User != nil {
		return nil, errors.New("a URL with a user name or password is not supported; send an Authorization header instead")
	}
	t.addr = net.JoinHostPort(u.Hostname(), port)
	return t, nil
}

// Head builds everything of a request that stays the same from call to call: the request line, Host and the given
// headers, without the Content-Length line and the empty line that end it. The headers of a later argument do not
// replace those of an earlier one. Names and values are checked, because a line break in one would smuggle a second
// request.
func (t *Target) Head(method string, headers ...http.Header) ([]byte, error) {
	b := make([]byte, 0, 512)
	b = append(b, method...)
	b = append(b, ' ')
	b = append(b, t.path...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, t.host...)
	b = append(b, "\r\n"...)
	for _, h := range headers {
		names := make([]string, 0, len(h))
		for name := range h {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			for _, value := range h[name] {
				if !validHeader(name, value) {
					return nil, fmt.Errorf("header %q cannot be sent: its name or value holds characters that HTTP forbids", name)
				}
				b = append(b, name...)
				b = append(b, ": "...)
				b = append(b, value...)
				b = append(b, "\r\n"...)
			}
		}
	}
	return b, nil
}

// validHeader applies the grammar of RFC 9110, section 5, as far as it protects the framing.
func validHeader(name, value string) bool {
	if name == "" {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
