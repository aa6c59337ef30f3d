package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	// maxDocument is how long a document may be.
	maxDocument = 256 << 10
	// requestTimeout limits each request of discovery and each to a token
	// endpoint.
	requestTimeout = 10 * time.Second
	maxRedirects   = 3
)

// Errors to compare with errors.Is.
var (
	// ErrDiscovery tells that the metadata of the resource or of its
	// authorization server is missing or wrong.
	ErrDiscovery = errors.New("oauth: discovery failed")
	// ErrNoClient tells that there is no client for the authorization server: none
	// of Clients is of it, and no other way of registration is possible.
	ErrNoClient = errors.New("oauth: no client for the authorization server")
	// ErrRegistration tells that the authorization server refused to register the
	// client.
	ErrRegistration = errors.New("oauth: registration failed")
	// ErrResponse tells that an authorization response is not the one that was
	// asked for: state or iss is wrong or missing.
	ErrResponse = errors.New("oauth: authorization response refused")
	// ErrDenied tells that the authorization server, or the user, said no.
	ErrDenied = errors.New("oauth: authorization denied")
	// ErrToken tells that the token endpoint gave no usable token.
	ErrToken = errors.New("oauth: no token")
)

// document is a JSON object. Its names are compared exactly.
type document map[string]json.RawMessage

func (d document) text(name string) string {
	var s string
	if json.Unmarshal(d[name], &s) != nil {
		return ""
	}
	return s
}

func (d document) list(name string) []string {
	var l []string
	if json.Unmarshal(d[name], &l) != nil {
		return nil
	}
	return l
}

func (d document) flag(name string) bool { return string(d[name]) == "true" }

// errAbsent means that a document is not at a place, so that the next one may be
// tried.
var errAbsent = errors.New("no metadata there")

// newHTTPClient makes the client for everything but the MCP server.
func newHTTPClient(base http.RoundTripper) *http.Client {
	return &http.Client{Transport: base, Timeout: requestTimeout, CheckRedirect: redirects}
}

// redirects allows few redirects, of a GET, within an origin. So a secret never
// goes elsewhere.
func redirects(req *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > maxRedirects || first.Method != http.MethodGet || !sameOrigin(req.URL, first.URL) {
		return http.ErrUseLastResponse
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && strings.EqualFold(hostPort(a), hostPort(b))
}

func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	if strings.EqualFold(u.Scheme, "http") {
		return u.Host + ":80"
	}
	return u.Host + ":443"
}

// allowed parses and checks a URL that a server has named.
func (t *Transport) allowed(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("not a URL")
	}
	return u, checkURL(u, isLoopback(t.endpoint.Hostname()))
}

// get fetches a document.
func (t *Transport) get(ctx context.Context, address string) (document, error) {
	if _, err := t.allowed(address); err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	res, err := t.side.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %w: status %d", address, errAbsent, res.StatusCode)
	}
	return readDocument(address, res.Body)
}

func readDocument(address string, r io.Reader) (document, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", address, err)
	case len(body) > maxDocument:
		return nil, fmt.Errorf("%s: more than %d bytes", address, maxDocument)
	}
	var d document
	if json.Unmarshal(body, &d) != nil || d == nil {
		return nil, fmt.Errorf("%s: %w: it is no JSON object", address, errAbsent)
	}
	return d, nil
}

// resource is what is known of the protected resource.
type resource struct {
	uri    string // for the parameter resource
	url    *url.URL
	issuer string // of the authorization server that is to be used
	scopes []string
}

// findResource fetches the metadata of the resource, from where the challenge
// says or from the well-known URIs.
func (t *Transport) findResource(ctx context.Context, c challenge) (*resource, error) {
	places := []string{c.metadata}
	if c.metadata == "" {
		root := t.endpoint.Scheme + "://" + t.endpoint.Host + "/.well-known/oauth-protected-resource"
		places = []string{root}
		if path := strings.TrimSuffix(t.endpoint.EscapedPath(), "/"); path != "" {
			places = []string{root + path, root}
		}
	}
	for _, place := range places {
		d, err := t.get(ctx, place)
		if errors.Is(err, errAbsent) && c.metadata == "" {
			continue
		}
		if err == nil {
			var r *resource
			if r, err = t.checkResource(d); err == nil {
				return r, nil
			}
		}
		return nil, fmt.Errorf("%w: resource metadata: %w", ErrDiscovery, err)
	}
	if t.o.AuthorizationServer == "" {
		return nil, fmt.Errorf("%w: %s has no resource metadata", ErrDiscovery, t.o.Endpoint)
	}
	return &resource{uri: t.canonical, url: t.endpoint, issuer: t.o.AuthorizationServer}, nil
}

// checkResource holds the metadata of a resource to the endpoint (RFC 9728
// section 3.3): it is about the endpoint, or about all below a path where the
// endpoint is.
func (t *Transport) checkResource(d document) (*resource, error) {
	r := &resource{uri: d.text("resource"), scopes: d.list("scopes_supported")}
	var err error
	if r.url, err = url.Parse(r.uri); err != nil || !covers(r.url, t.endpoint) {
		return nil, fmt.Errorf("it is about the resource %q and not about %s", r.uri, t.o.Endpoint)
	}
	servers := d.list("authorization_servers")
	if len(servers) == 0 {
		return nil, errors.New("it names no authorization server")
	}
	r.issuer = servers[0]
	if wanted := t.o.AuthorizationServer; wanted != "" {
		if !slices.Contains(servers, wanted) {
			return nil, fmt.Errorf("it does not name the authorization server %s", wanted)
		}
		r.issuer = wanted
	} else if i := slices.IndexFunc(servers, func(s string) bool { return t.registeredWith(s) != nil }); i >= 0 {
		r.issuer = servers[i]
	}
	return r, nil
}

// covers tells whether u belongs to a resource: the same origin, and the same
// path or one below.
func covers(resource, u *url.URL) bool {
	if resource.RawQuery != "" && resource.RawQuery != u.RawQuery || resource.Fragment != "" || !sameOrigin(resource, u) {
		return false
	}
	path := strings.TrimSuffix(resource.EscapedPath(), "/")
	rest, ok := strings.CutPrefix(u.EscapedPath(), path)
	return ok && (rest == "" || rest[0] == '/') && !slices.Contains(strings.Split(rest, "/"), "..")
}

// server is what is known of an authorization server.
type server struct {
	issuer                                      string
	authorizationURL, tokenURL, registrationURL string
	methods, scopes                             []string
	s256, givesIssuer, takesMetadata            bool
}

// serverPlaces lists where the metadata of an issuer may be, in order (MCP
// 2026-07-28, Authorization Server Metadata Discovery).
func serverPlaces(issuer *url.URL) []string {
	const oauth, oidc = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	root := issuer.Scheme + "://" + issuer.Host
	path := strings.TrimSuffix(issuer.EscapedPath(), "/")
	if path == "" {
		return []string{root + oauth, root + oidc}
	}
	return []string{root + oauth + path, root + oidc + path, root + path + oidc}
}

// findServer fetches the metadata of an authorization server.
func (t *Transport) findServer(ctx context.Context, issuer string) (*server, error) {
	u, err := t.allowed(issuer)
	if err == nil && u.RawQuery != "" {
		err = errors.New("it has a query")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the issuer %q: %w", ErrDiscovery, issuer, err)
	}
	var failed error
	for _, place := range serverPlaces(u) {
		d, err := t.get(ctx, place)
		if err == nil {
			var s *server
			if s, err = t.checkServer(d, issuer); err == nil {
				return s, nil
			}
		}
		if failed == nil || !errors.Is(err, errAbsent) {
			failed = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("%w: authorization server metadata: %w", ErrDiscovery, failed)
}

// checkServer holds the metadata of an authorization server to what was asked
// for (RFC 8414 section 3.3) and to what is needed.
func (t *Transport) checkServer(d document, issuer string) (*server, error) {
	s := &server{
		issuer: d.text("issuer"), authorizationURL: d.text("authorization_endpoint"),
		tokenURL: d.text("token_endpoint"), registrationURL: d.text("registration_endpoint"),
		methods: d.list("token_endpoint_auth_methods_supported"), scopes: d.list("scopes_supported"),
		s256:          slices.Contains(d.list("code_challenge_methods_supported"), "S256"),
		givesIssuer:   d.flag("authorization_response_iss_parameter_supported"),
		takesMetadata: d.flag("client_id_metadata_document_supported"),
	}
	if s.issuer != issuer {
		return nil, fmt.Errorf("it is of the issuer %q and not of %q", s.issuer, issuer)
	}
	endpoints := []string{s.tokenURL}
	if !t.o.ClientCredentials {
		if !s.s256 {
			return nil, errors.New("the authorization server does not support PKCE with S256")
		}
		endpoints = append(endpoints, s.authorizationURL)
	}
	if s.registrationURL != "" {
		endpoints = append(endpoints, s.registrationURL)
	}
	for _, address := range endpoints {
		if _, err := t.allowed(address); err != nil {
			return nil, fmt.Errorf("the endpoint %q: %w", address, err)
		}
	}
	return s, nil
}
