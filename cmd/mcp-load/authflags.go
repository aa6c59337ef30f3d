package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/transport/client/oauth"
)

// authFlags say how a command proves who it is. Secrets come from the environment, where no list of processes and no
// result shows them.
type authFlags struct {
	bearer, id, secret string // environment variables
	issuer             string
}

func (f *authFlags) register(cmd *cobra.Command) {
	p := cmd.Flags()
	p.StringVar(&f.bearer, "bearer-env", "", "environment `variable` that holds a bearer token")
	p.StringVar(&f.id, "oauth-client-id-env", "", "environment `variable` that holds the id of an OAuth client; its token is got before the run")
	p.StringVar(&f.secret, "oauth-client-secret-env", "", "environment `variable` that holds the secret of that client")
	p.StringVar(&f.issuer, "oauth-issuer", "", "`URL` of the authorization server that knows the client: its secret goes nowhere else")
}

// apply adds the Authorization header to c, where one was asked for. With a client of OAuth it gets a token by the client
// credentials grant: once, so a run should end before the token does.
func (f *authFlags) apply(ctx context.Context, c *bench.Config) error {
	oauthWanted := f.id != "" || f.secret != "" || f.issuer != ""
	var value string
	switch {
	case f.bearer == "" && !oauthWanted:
		return nil
	case len(c.Command) > 0:
		return usageError("--bearer-env and --oauth-… are of HTTP: leave them out for a stdio server")
	case f.bearer != "" && oauthWanted:
		return usageError("--bearer-env and --oauth-… exclude each other")
	case c.Header.Get("Authorization") != "":
		return usageError("-H Authorization and --bearer-env or --oauth-… exclude each other")
	case f.bearer != "":
		token, err := fromEnv("--bearer-env", f.bearer)
		if err != nil {
			return err
		}
		value = "Bearer " + token
	default:
		var err error
		if value, err = f.clientToken(ctx, c); err != nil {
			return err
		}
	}
	if c.Header == nil {
		c.Header = http.Header{}
	}
	c.Header.Set("Authorization", value)
	return nil
}

// fromEnv reads a secret from the environment.
func fromEnv(flag, variable string) (string, error) {
	value := strings.TrimSpace(os.Getenv(variable))
	if value == "" {
		return "", usageError("%s: the environment variable %s is not set or empty", flag, variable)
	}
	if strings.ContainsAny(value, "\r\n\x00") {
		return "", usageError("%s: the environment variable %s holds a line break", flag, variable)
	}
	return value, nil
}

// clientToken gets a token for the target, as the value of an Authorization header.
func (f *authFlags) clientToken(ctx context.Context, c *bench.Config) (string, error) {
	if f.id == "" || f.secret == "" || f.issuer == "" {
		return "", usageError("--oauth-client-id-env, --oauth-client-secret-env and --oauth-issuer go together: give all three")
	}
	id, err := fromEnv("--oauth-client-id-env", f.id)
	if err != nil {
		return "", err
	}
	secret, err := fromEnv("--oauth-client-secret-env", f.secret)
	if err != nil {
		return "", err
	}
	outside := http.DefaultTransport.(*http.Transport).Clone()
	outside.TLSClientConfig = cloneTLS(c.TLS)
	defer outside.CloseIdleConnections()
	caught := &headerCatcher{}
	transport, err := oauth.New(oauth.Options{
		Endpoint: c.URL, ClientCredentials: true, AuthorizationServer: f.issuer, Base: caught, MetadataBase: outside,
		Clients: []oauth.Registration{{Issuer: f.issuer, ID: id, Secret: secret}},
	})
	if err != nil {
		return "", usageError("%v", err)
	}
	defer transport.Close()
	if err := transport.Authorize(ctx); err != nil {
		return "", &exitError{exitRuntime, fmt.Sprintf("no token from %s: %v", f.issuer, err)}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, nil)
	if err != nil {
		return "", usageError("%v", err)
	}
	if response, err := transport.RoundTrip(request); err != nil || response.Body.Close() != nil || caught.value == "" {
		return "", &exitError{exitRuntime, fmt.Sprintf("no token from %s for %s: %v", f.issuer, c.URL, err)}
	}
	return caught.value, nil
}

func cloneTLS(c *tls.Config) *tls.Config {
	if c == nil {
		return nil
	}
	return c.Clone()
}

// headerCatcher stands where the server would be, and keeps what would be sent to prove who the client is. The load is
// sent by the measuring client, which wants the header and no http.Client.
type headerCatcher struct{ value string }

// RoundTrip answers a request without sending it.
func (h *headerCatcher) RoundTrip(r *http.Request) (*http.Response, error) {
	h.value = r.Header.Get("Authorization")
	return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}
