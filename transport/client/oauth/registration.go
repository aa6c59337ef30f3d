package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"golang.org/x/oauth2"
)

// registeredWith gives the client that was registered beforehand, or nil.
func (t *Transport) registeredWith(issuer string) *Registration {
	i := slices.IndexFunc(t.o.Clients, func(r Registration) bool { return r.Issuer == issuer })
	if i < 0 {
		return nil
	}
	return &t.o.Clients[i]
}

// clientFor gives the client to use with an authorization server, in the order
// of MCP 2026-07-28, Client Registration. It is called within a flow.
func (t *Transport) clientFor(ctx context.Context, s *server) (*Registration, error) {
	if r := t.registeredWith(s.issuer); r != nil {
		return r, nil
	}
	switch {
	case t.o.ClientCredentials:
	case t.o.MetadataURL != "" && s.takesMetadata:
		return &Registration{Issuer: s.issuer, ID: t.o.MetadataURL}, nil
	case t.o.Register && s.registrationURL != "":
		if t.dynamic != nil && t.dynamic.Issuer == s.issuer {
			return t.dynamic, nil
		}
		r, err := t.register(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRegistration, err)
		}
		t.dynamic = r
		return r, nil
	}
	if len(t.o.Clients) > 0 {
		return nil, fmt.Errorf("%w %s: the given one is of %s", ErrNoClient, s.issuer, t.o.Clients[0].Issuer)
	}
	return nil, fmt.Errorf("%w %s", ErrNoClient, s.issuer)
}

// clientMetadata describes a client (RFC 7591 section 2).
type clientMetadata struct {
	ID              string   `json:"client_id,omitempty"`
	Name            string   `json:"client_name"`
	RedirectURIs    []string `json:"redirect_uris"`
	GrantTypes      []string `json:"grant_types"`
	ResponseTypes   []string `json:"response_types"`
	AuthMethod      string   `json:"token_endpoint_auth_method"`
	ApplicationType string   `json:"application_type"`
}

func describe(id, name string, redirects ...string) clientMetadata {
	m := clientMetadata{
		ID: id, Name: name, RedirectURIs: redirects, AuthMethod: "none", ApplicationType: "web",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
	}
	if u, err := url.Parse(redirects[0]); err == nil && isLoopback(u.Hostname()) {
		m.ApplicationType = "native" // by default it would be one on the web
	}
	return m
}

// MetadataDocument makes the Client ID Metadata Document of a public client,
// which has to be served as JSON at metadataURL. It needs a redirect URL.
func MetadataDocument(metadataURL, name string, redirectURLs ...string) ([]byte, error) {
	if len(redirectURLs) == 0 {
		return nil, errors.New("oauth: a metadata document needs a redirect URL")
	}
	return json.Marshal(describe(metadataURL, name, redirectURLs...))
}

// register registers the client (RFC 7591 section 3).
func (t *Transport) register(ctx context.Context, s *server) (*Registration, error) {
	body, err := json.Marshal(describe("", t.o.ClientName, t.o.RedirectURL))
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.registrationURL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	res, err := t.side.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	d, err := readDocument(s.registrationURL, res.Body)
	switch {
	case res.StatusCode/100 != 2:
		return nil, fmt.Errorf("status %d, error %q", res.StatusCode, errorCode(d.text("error")))
	case err != nil:
		return nil, err
	case d.text("client_id") == "":
		return nil, errors.New("the answer has no client_id")
	}
	return &Registration{
		Issuer: s.issuer, ID: d.text("client_id"), Secret: d.text("client_secret"), AuthMethod: d.text("token_endpoint_auth_method"),
	}, nil
}

// errorCode lets an error code through that has the form of one (RFC 6749
// section 5.2), since texts of a server may hold anything.
func errorCode(code string) string {
	if len(code) > 64 || code == "" {
		return "unknown"
	}
	for _, c := range []byte(code) {
		if (c < 'a' || c > 'z') && c != '_' {
			return "unknown"
		}
	}
	return code
}

// style tells how the client identifies itself at the token endpoint.
func (r *Registration) style(s *server) oauth2.AuthStyle {
	basic := len(s.methods) == 0 || slices.Contains(s.methods, "client_secret_basic")
	switch {
	case r.Secret == "", r.AuthMethod == "client_secret_post":
		return oauth2.AuthStyleInParams
	case r.AuthMethod == "client_secret_basic", basic:
		return oauth2.AuthStyleInHeader
	}
	return oauth2.AuthStyleInParams
}
