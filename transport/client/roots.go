package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpengine/mcpengine/codec"
)

// Root is a folder or file that a server may work on (section Roots of the
// client features).
type Root struct {
	// URI begins with file://.
	URI string
	// Name is for people, and may be empty.
	Name string
}

func checkRoots(roots []Root) error {
	for _, r := range roots {
		if !strings.HasPrefix(r.URI, "file://") {
			return fmt.Errorf("client: the root %q is no file:// URI", r.URI)
		}
	}
	return nil
}

// listRoots answers roots/list.
func (c *Client) listRoots(ctx context.Context, _ *serverRequest) ([]byte, error) {
	c.mu.Lock()
	roots := c.roots
	c.mu.Unlock()
	if c.o.Roots != nil {
		var err error
		if roots, err = c.o.Roots(ctx); err != nil {
			return nil, err
		}
		if err = checkRoots(roots); err != nil {
			return nil, err
		}
	}
	out := []byte(`{"roots":[`)
	for i, r := range roots {
		if i > 0 {
			out = append(out, ',')
		}
		out = codec.AppendString(append(out, `{"uri":`...), r.URI)
		if r.Name != "" {
			out = codec.AppendString(append(out, `,"name":`...), r.Name)
		}
		out = append(out, '}')
	}
	return append(out, `]}`...), nil
}

// SetRoots replaces the roots that Options.RootList began with and tells the
// server, which then asks for the list. It is an error where Options.RootList is
// nil or Options.Roots is set.
func (c *Client) SetRoots(ctx context.Context, roots []Root) error {
	if err := checkRoots(roots); err != nil {
		return err
	}
	if c.o.Roots != nil {
		return errors.New("client: the roots come from Options.Roots")
	}
	if c.o.RootList == nil {
		return &CapabilityError{Capability: "roots", Owner: "client"}
	}
	c.mu.Lock()
	c.roots = slices.Clone(roots)
	c.mu.Unlock()
	return c.RootsChanged(ctx)
}

// RootsChanged tells the server that Options.Roots would now give another list
// (notifications/roots/list_changed). The error is a *CapabilityError where
// roots were not declared.
func (c *Client) RootsChanged(ctx context.Context) error {
	if !codec.Bool(c.o.Capabilities, "roots", "listChanged") {
		return &CapabilityError{Capability: "roots.listChanged", Owner: "client"}
	}
	if c.era.Load() != nil { // servers ask for the list when they need it
		return nil
	}
	return c.Notify(ctx, codec.NotifyRootsChanged, nil)
}
