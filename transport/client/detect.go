package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/mcpengine/mcpengine/codec"
)

// legacyError tells that a server does not serve the stateless revision, and
// why one may think so.
type legacyError struct{ cause error }

func (e *legacyError) Error() string {
	return fmt.Sprintf("client: the server does not serve revision %s: %v", ProtocolStateless, e.cause)
}

func (e *legacyError) Unwrap() error { return e.cause }

// asksStateless reports whether the first thing to try is the stateless revision.
func (o *Options) asksStateless() bool {
	return o.Protocol == ProtocolStateless || o.Protocol == ProtocolAuto
}

// sessionOptions gives the options for a session, once it is known that there is
// nothing else.
func sessionOptions(o *Options) *Options {
	session := *o
	session.Protocol = revision20251125
	return &session
}

// shakeStateless makes sure that the server serves the stateless revision, and
// learns what it can do (server/discover; section Backward Compatibility of both
// transports). The error is a *legacyError where the server is of the
// session-based era.
func (c *Client) shakeStateless(ctx context.Context) error {
	e := newEra(c, c.target)
	c.era.Store(e)
	err := c.discover(ctx, e)
	if err != nil {
		c.era.Store(nil)
		return err
	}
	c.features.Store(c.features.Load().in(ProtocolStateless))
	return nil
}

func (c *Client) discover(ctx context.Context, e *era) error {
	o := &CallOptions{}
	if !e.http {
		o.Timeout = c.o.ProbeTimeout
	}
	result, err := c.requestStateless(ctx, e, codec.MethodDiscover, []byte("{}"), o)
	if err != nil {
		return c.judge(ctx, e, err)
	}
	versions := codec.Member(result, "supportedVersions")
	capabilities := codec.Member(result, "capabilities")
	switch supported := textList(versions); {
	case versions == nil || !codec.IsObject(capabilities):
		return &legacyError{fmt.Errorf("%w: server/discover gave no supportedVersions or no capabilities: %s", ErrMalformed, excerpt(result))}
	case !slices.Contains(supported, ProtocolStateless):
		return noCommonVersion(supported, nil)
	}
	c.server = ServerInfo{
		Protocol:     ProtocolStateless,
		Capabilities: bytes.Clone(capabilities),
		Instructions: codec.Text(result, "instructions"),
	}
	info := codec.Member(result, "_meta", codec.MetaServerInfo)
	if info == nil { // where drafts of the revision had it
		info = codec.Member(result, "serverInfo")
	}
	c.server.Name, c.server.Title, c.server.Version = codec.Text(info, "name"), codec.Text(info, "title"), codec.Text(info, "version")
	return nil
}

// noCommonVersion is the error where a server names what it serves and the
// stateless revision is not among that. If a session would do, it is a
// *legacyError.
func noCommonVersion(versions []string, cause error) error {
	err := cause
	if err == nil {
		err = &VersionError{Asked: ProtocolStateless, Answered: strings.Join(versions, ", ")}
	}
	if slices.ContainsFunc(versions, supported) {
		return &legacyError{err}
	}
	return err
}

// judge says what the failure of server/discover means.
func (c *Client) judge(ctx context.Context, e *era, err error) error {
	var rpc *codec.Error
	var status *HTTPError
	var version *UnsupportedVersionError
	errors.As(err, &status)
	switch {
	case ctx.Err() != nil || c.Err() != nil:
		return fmt.Errorf("client: server/discover: %w", err)
	case errors.As(err, &version):
		return noCommonVersion(version.Supported, err)
	case hasCode(err, codec.CodeHeaderMismatch), hasCode(err, codec.CodeMissingClientCapability):
		return fmt.Errorf("client: server/discover: %w", err) // of the stateless era, and nothing helps
	case status != nil && status.Status == http.StatusNotFound && hasCode(err, codec.CodeMethodNotFound):
		e.blind = true
		c.server = ServerInfo{Protocol: ProtocolStateless, Capabilities: []byte("{}")}
		return nil
	case errors.As(err, &rpc), errors.Is(err, ErrMalformed):
		return &legacyError{err}
	case status != nil && mayHaveSessions(status.Status):
		return &legacyError{err}
	case !e.http && errors.Is(err, context.DeadlineExceeded):
		return &legacyError{err}
	}
	return fmt.Errorf("client: server/discover: %w", err)
}

// mayHaveSessions reports whether a status can be how an endpoint of the
// session-based era refuses a request that it does not know. Others concern the
// client's rights or the server's health, and initialize would meet them too.
func mayHaveSessions(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusTooManyRequests:
		return false
	case http.StatusInternalServerError, http.StatusNotImplemented:
		return true
	}
	return status/100 == 4
}
