package oauth

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// FromEnv makes a client for client.Options.HTTPClient that sends the bearer
// token which an environment variable holds now, to the endpoint and what is
// below it and nowhere else. A token that is refused stays refused. base sends the
// requests; nil means a clone of http.DefaultTransport.
func FromEnv(endpoint, variable string, base http.RoundTripper) (*http.Client, error) {
	u, err := url.Parse(endpoint)
	if err == nil {
		err = checkURL(u, true)
	}
	if err != nil {
		return nil, fmt.Errorf("oauth: endpoint: %w", err)
	}
	token := strings.TrimSpace(os.Getenv(variable))
	switch {
	case token == "":
		return nil, fmt.Errorf("oauth: the environment variable %s is empty", variable)
	case strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }):
		return nil, errors.New("oauth: the environment variable " + variable + " holds no bearer token")
	}
	if base == nil {
		base = http.DefaultTransport.(*http.Transport).Clone()
	}
	resource := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return &http.Client{CheckRedirect: withinOrigin, Transport: &envTransport{
		resource: resource, base: base, authorization: func() string { return "Bearer " + token },
	}}, nil
}

// envTransport adds a token that does not change.
type envTransport struct {
	resource      *url.URL
	base          http.RoundTripper
	authorization func() string // not a string, which %+v would print
}

// RoundTrip makes a request, with the token where it belongs.
func (t *envTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if covers(t.resource, req.URL) {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", t.authorization())
	}
	return t.base.RoundTrip(req)
}

// CloseIdleConnections closes those of the transport behind.
func (t *envTransport) CloseIdleConnections() {
	if base, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}
