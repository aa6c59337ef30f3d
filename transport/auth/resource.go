package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
)

// WellKnown is where the metadata of a resource is found (RFC 9728 section 3);
// the path of the resource follows.
const WellKnown = "/.well-known/oauth-protected-resource"

// ResourceOptions configures NewResource. They are copied once.
type ResourceOptions struct {
	// Resource is the canonical URI of the MCP server, as in
	// "https://mcp.example.com/mcp": https (http on the loopback interface only),
	// without query and fragment. Required.
	Resource string
	// AuthorizationServers are the issuers whose tokens the Verifier accepts.
	// At least one is required.
	AuthorizationServers []string
	// Verifier verifies tokens. Required.
	Verifier Verifier
	// Scopes is the scopes_supported of the metadata: what basic use needs. A
	// challenge names the scopes of the operation instead, or these where the
	// operation needs none. offline_access does not belong here.
	Scopes []string
	// Name and Documentation are for people: resource_name and
	// resource_documentation (a URL) of the metadata.
	Name, Documentation string
	// Needed gives scopes that a request needs besides those of Require, as by
	// ByTool. It must not read the body.
	Needed func(*http.Request) []string
	// Covers tells whether a scope that the token holds implies another one.
	// Equal scopes need no asking. Default: none implies another.
	Covers func(held, needed string) bool
	// MaxTokenBytes is how long a token may be. Default 16 KiB.
	MaxTokenBytes int
	// Logger receives why requests were refused, at level Debug, and at level
	// Warn that tokens cannot be verified. Default: slog.Default().
	Logger *slog.Logger
}

// Resource is a protected resource in the sense of OAuth: an MCP endpoint that
// wants tokens.
type Resource struct {
	options  ResourceOptions
	path     string // of the metadata
	metadata []byte
	pointer  string // resource_metadata="...", for challenges

	unauthorized, forbidden, malformed, unavailable atomic.Int64
}

// Stats counts what Require has refused.
type Stats struct {
	Unauthorized int64 // 401: no token or an invalid one
	Forbidden    int64 // 403: scopes are missing
	Malformed    int64 // 400: a token in the query, several Authorization headers
	Unavailable  int64 // 503: tokens could not be verified
}

// Stats gives a snapshot.
func (s *Resource) Stats() Stats {
	return Stats{s.unauthorized.Load(), s.forbidden.Load(), s.malformed.Load(), s.unavailable.Load()}
}

// NewResource checks the options. Errors tell which one is wrong.
func NewResource(o ResourceOptions) (*Resource, error) {
	u, err := secureURL(o.Resource)
	if err != nil {
		return nil, fmt.Errorf("auth: Resource: %w", err)
	}
	if u.RawQuery != "" || u.ForceQuery {
		return nil, fmt.Errorf("auth: Resource: %q has a query", o.Resource)
	}
	switch {
	case o.Verifier == nil:
		return nil, errors.New("auth: Verifier is missing")
	case len(o.AuthorizationServers) == 0:
		return nil, errors.New("auth: AuthorizationServers is empty")
	case slices.Contains(o.Scopes, "offline_access"):
		return nil, errors.New("auth: Scopes: offline_access is not a need of a resource")
	}
	for _, issuer := range o.AuthorizationServers {
		if _, err := secureURL(issuer); err != nil {
			return nil, fmt.Errorf("auth: AuthorizationServers: %w", err)
		}
	}
	for _, scope := range o.Scopes {
		if !isScope(scope) {
			return nil, fmt.Errorf("auth: Scopes: %q is not a scope", scope)
		}
	}
	if o.MaxTokenBytes <= 0 {
		o.MaxTokenBytes = 16 << 10
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Scopes, o.AuthorizationServers = slices.Clone(o.Scopes), slices.Clone(o.AuthorizationServers)
	s := &Resource{options: o, path: WellKnown + strings.TrimSuffix(u.EscapedPath(), "/")}
	s.pointer = "resource_metadata=" + quote(u.Scheme+"://"+u.Host+s.path)
	s.metadata, err = json.Marshal(metadata{
		Resource: o.Resource, AuthorizationServers: o.AuthorizationServers, Scopes: o.Scopes,
		Methods: []string{"header"}, Name: o.Name, Documentation: o.Documentation,
	})
	return s, err
}

// secureURL parses a URL that must be https, or http on the loopback interface.
func secureURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is not a URL", text)
	case u.Host == "" || u.User != nil || strings.Contains(text, "#"):
		return nil, fmt.Errorf("%q must have a host, and no user and no fragment", text)
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		return nil, fmt.Errorf("%q must be https", text)
	}
	return u, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// metadata is the document of RFC 9728 section 2.
type metadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	Scopes               []string `json:"scopes_supported,omitempty"`
	Methods              []string `json:"bearer_methods_supported"`
	Name                 string   `json:"resource_name,omitempty"`
	Documentation        string   `json:"resource_documentation,omitempty"`
}

// MetadataPath is where Metadata belongs: WellKnown with the path of the
// resource (RFC 9728 section 3.1). Where a host has one resource only, the same
// handler may stand at WellKnown too, which is the second place where clients
// look (MCP 2025-11-25 and 2026-07-28, Protected Resource Metadata Discovery).
func (s *Resource) MetadataPath() string { return s.path }

// Metadata serves the resource's metadata (RFC 9728 section 3.2) to anybody,
// pages of other origins included.
func (s *Resource) Metadata() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Access-Control-Allow-Origin", "*")
		if isPreflight(r) {
			header.Set("Access-Control-Allow-Headers", "Mcp-Protocol-Version")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			header.Set("Allow", "GET, HEAD")
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		header.Set("Content-Type", "application/json")
		header.Set("Cache-Control", "max-age=300")
		_, _ = w.Write(s.metadata)
	})
}
