package oauth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Options configures New. Endpoint is required; then either ClientCredentials,
// or Authorize with RedirectURL. Zero elsewhere means the default. They are
// copied once.
type Options struct {
	// Endpoint is the URL of the MCP server: https, or http on the loopback
	// interface.
	Endpoint string

	// Clients are those that were registered beforehand, at most one for each
	// authorization server.
	Clients []Registration
	// MetadataURL is the URL of the client's metadata document, which is its
	// client_id at any authorization server that supports it (OAuth Client ID
	// Metadata Documents): https, with a path. MetadataDocument makes what has to
	// be there.
	MetadataURL string
	// Register allows dynamic registration (RFC 7591) where nothing else is
	// possible. The specification deprecates it.
	Register bool
	// ClientName is for people, in dynamic registration. Default "mcpengine".
	ClientName string

	// ClientCredentials makes the client act for itself, with one of Clients that
	// has a secret. Otherwise it acts for a user, whom Authorize asks.
	ClientCredentials bool
	// RedirectURL is where the authorization server sends the user back to:
	// https, or http on the loopback interface.
	RedirectURL string
	// Authorize gets the user's consent: it opens the URL in a browser, waits for
	// the request to RedirectURL, and gives its parameters (ParseResponse). It is
	// called by one goroutine at a time and must return when ctx ends. The URL is
	// for nobody else's eyes.
	Authorize func(ctx context.Context, authorizationURL string) (Response, error)

	// AuthorizationServer is the issuer to use: of those that the resource names,
	// or where the resource has no metadata. Default: the first of them for which
	// Clients has a client, else the first.
	AuthorizationServer string
	// Scopes are always asked for, besides what the server says it needs.
	Scopes []string
	// Offline asks for offline_access where the authorization server has it, to
	// get a refresh token.
	Offline bool

	// Base sends the requests to the MCP server. Default: a clone of
	// http.DefaultTransport.
	Base http.RoundTripper
	// MetadataBase sends all others. Default: Base.
	MetadataBase http.RoundTripper
	// FlowTimeout limits how long getting a token may take, the user's part
	// included. Default 5 min.
	FlowTimeout time.Duration
	// Logger receives what is done, at level Debug. By default it is dropped.
	Logger *slog.Logger
}

// Registration is a client that was registered with an authorization server.
type Registration struct {
	// Issuer is the authorization server, exactly as it calls itself.
	Issuer string
	ID     string
	// Secret is empty for a public client.
	Secret string `json:"-"`
	// AuthMethod is client_secret_basic or client_secret_post. Default: what the
	// metadata of the authorization server names, the former first.
	AuthMethod string
}

// String leaves the secret out.
func (r Registration) String() string { return r.ID + " at " + r.Issuer }

// GoString leaves the secret out.
func (r Registration) GoString() string { return fmt.Sprintf("oauth.Registration(%q)", r.String()) }

// Response is what the authorization server answers through the user's browser
// (RFC 6749 section 4.1.2, RFC 9207 section 2).
type Response struct {
	Code, State string
	// Issuer is the parameter iss, and HasIssuer tells whether it was there.
	Issuer    string
	HasIssuer bool
	// Error is the parameter error, or "".
	Error string
}

// ParseResponse takes a Response from the query of a request to the redirect
// URL.
func ParseResponse(query url.Values) Response {
	return Response{
		Code: query.Get("code"), State: query.Get("state"),
		Issuer: query.Get("iss"), HasIssuer: query.Has("iss"), Error: query.Get("error"),
	}
}

// resolved checks the options and puts the defaults in.
func (o Options) resolved() (Options, *url.URL, error) {
	endpoint, err := url.Parse(o.Endpoint)
	if err == nil {
		err = checkURL(endpoint, true)
	}
	if err != nil {
		return o, nil, fmt.Errorf("oauth: Endpoint: %w", err)
	}
	if o.ClientCredentials && !slices.ContainsFunc(o.Clients, func(r Registration) bool { return r.Secret != "" }) {
		return o, nil, errors.New("oauth: ClientCredentials needs one of Clients with a secret")
	}
	if !o.ClientCredentials {
		if o.Authorize == nil {
			return o, nil, errors.New("oauth: Authorize is missing")
		}
		redirect, err := url.Parse(o.RedirectURL)
		if err == nil {
			err = checkURL(redirect, true)
		}
		if err != nil {
			return o, nil, fmt.Errorf("oauth: RedirectURL: %w", err)
		}
	}
	if o.MetadataURL != "" {
		u, err := url.Parse(o.MetadataURL)
		if err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") == "" || u.User != nil || u.Fragment != "" {
			return o, nil, errors.New("oauth: MetadataURL must be an https URL with a path")
		}
	}
	for i, r := range o.Clients {
		if r.Issuer == "" || r.ID == "" {
			return o, nil, errors.New("oauth: Clients: Issuer or ID is missing")
		}
		if slices.ContainsFunc(o.Clients[:i], func(other Registration) bool { return other.Issuer == r.Issuer }) {
			return o, nil, fmt.Errorf("oauth: Clients: two of %s", r.Issuer)
		}
	}
	o.Clients, o.Scopes = slices.Clone(o.Clients), slices.Clone(o.Scopes)
	if o.ClientName == "" {
		o.ClientName = "mcpengine"
	}
	if o.Base == nil {
		o.Base = http.DefaultTransport.(*http.Transport).Clone()
	}
	if o.MetadataBase == nil {
		o.MetadataBase = o.Base
	}
	if o.FlowTimeout <= 0 {
		o.FlowTimeout = 5 * time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, endpoint, nil
}

// checkURL holds a URL to https. Where loopback is true it may be on the
// loopback interface, and is then also good with http.
func checkURL(u *url.URL, loopback bool) error {
	local := isLoopback(u.Hostname())
	switch {
	case u.Host == "" || u.User != nil || u.Fragment != "":
		return errors.New("the URL must have a host, and no user and no fragment")
	case local && !loopback:
		return errors.New("the URL is on the loopback interface, and the server is not")
	case u.Scheme != "https" && (u.Scheme != "http" || !local):
		return errors.New("the URL must be https")
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}
