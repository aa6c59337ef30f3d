package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/mcpengine/mcpengine/codec"
)

// ServerInfo is what the server told of itself in the handshake.
type ServerInfo struct {
	Name, Title, Version string
	// Protocol is the revision in force.
	Protocol string
	// Capabilities is a raw JSON object. It must not be changed.
	Capabilities []byte
	Instructions string
}

// Server tells what the server said in the handshake.
func (c *Client) Server() ServerInfo { return c.server }

// connect makes the handshake on a link that is running, and closes it where
// that fails (section Lifecycle of the basic protocol).
func (c *Client) connect(ctx context.Context) (*Client, error) {
	if err := c.handshake(ctx); err != nil {
		// The caller may have given up; what was begun is ended all the same, with
		// a grace for each step.
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*c.o.CloseGrace)
		defer cancel()
		if closeErr := c.Close(closing); closeErr != nil {
			c.log.Debug("client: closing after a failed handshake", "error", closeErr)
		}
		return nil, err
	}
	return c, nil
}

func (c *Client) handshake(ctx context.Context) error {
	if err := checkRoots(c.o.RootList); err != nil {
		return err
	}
	if c.o.asksStateless() {
		err := c.shakeStateless(ctx)
		var legacy *legacyError
		if !errors.As(err, &legacy) || c.o.Protocol != ProtocolAuto {
			return err
		}
		if _, ok := c.link.(*statelessLink); ok {
			return err
		}
		c.log.Debug("client: the server has sessions", "reason", err)
	}
	result, err := c.Request(ctx, codec.MethodInitialize, c.initializeParams(), nil)
	if err != nil {
		return fmt.Errorf("client: initialize: %w", err)
	}
	if c.server, err = parseServerInfo(result); err != nil {
		return err
	}
	if !supported(c.server.Protocol) {
		return &VersionError{Asked: c.askedRevision(), Answered: c.server.Protocol}
	}
	c.batches.Store(c.server.Protocol == revision20250326)
	c.features.Store(c.features.Load().in(c.server.Protocol))
	c.link.negotiated(c.server.Protocol)
	if err := c.Notify(ctx, codec.NotifyInitialized, nil); err != nil {
		return fmt.Errorf("client: initialized: %w", err)
	}
	c.link.ready(ctx)
	return nil
}

func (c *Client) initializeParams() []byte {
	p := append([]byte(nil), `{"protocolVersion":`...)
	p = codec.AppendString(p, c.askedRevision())
	p = append(p, `,"capabilities":`...)
	p = append(p, c.o.Capabilities...)
	p = c.appendClientInfo(append(p, `,"clientInfo":`...))
	return append(p, '}')
}

// askedRevision is the revision that initialize asks for.
func (c *Client) askedRevision() string {
	if c.o.asksStateless() {
		return revision20251125
	}
	return c.o.Protocol
}

func (c *Client) appendClientInfo(p []byte) []byte {
	p = append(p, `{"name":`...)
	p = codec.AppendString(p, c.o.Info.Name)
	if c.o.Info.Title != "" {
		p = append(p, `,"title":`...)
		p = codec.AppendString(p, c.o.Info.Title)
	}
	p = append(p, `,"version":`...)
	p = codec.AppendString(p, c.o.Info.Version)
	return append(p, '}')
}

// parseServerInfo reads the result of initialize.
func parseServerInfo(result []byte) (ServerInfo, error) {
	s := ServerInfo{
		Name:         codec.Text(result, "serverInfo", "name"),
		Title:        codec.Text(result, "serverInfo", "title"),
		Version:      codec.Text(result, "serverInfo", "version"),
		Protocol:     codec.Text(result, "protocolVersion"),
		Capabilities: bytes.Clone(codec.Member(result, "capabilities")),
		Instructions: codec.Text(result, "instructions"),
	}
	if s.Protocol == "" || !codec.IsObject(s.Capabilities) {
		return s, fmt.Errorf("%w: initialize gave no protocolVersion or no capabilities: %s", ErrMalformed, excerpt(result))
	}
	return s, nil
}
