package interop

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/internal/interop/fixture"
	"github.com/mcpengine/mcpengine/transport/client"
	"go.uber.org/goleak"
)

// TestOurStatelessClient drives servers that serve 2026-07-28 with package client, told so or finding out, and lets it
// find sessions where there is nothing else.
func TestOurStatelessClient(t *testing.T) {
	for _, test := range []struct {
		server    *server
		transport string
		extra     []string // flags of the server
		protocol  string
		want      string
	}{
		{mcpLoad, "http", nil, client.ProtocolStateless, client.ProtocolStateless},
		{mcpLoad, "http", nil, client.ProtocolAuto, client.ProtocolStateless},
		{mcpLoad, "stdio", nil, client.ProtocolStateless, client.ProtocolStateless},
		{mcpLoad, "stdio", nil, client.ProtocolAuto, client.ProtocolStateless},
		{goSDK, "http", []string{"-stateless"}, client.ProtocolStateless, client.ProtocolStateless},
		{goSDK, "http", []string{"-stateless"}, client.ProtocolAuto, client.ProtocolStateless},
		{goSDK, "http", nil, client.ProtocolAuto, "2025-11-25"},
		{goSDK, "stdio", nil, client.ProtocolStateless, client.ProtocolStateless},
		{goSDK, "stdio", nil, client.ProtocolAuto, client.ProtocolStateless},
		{mcpGo, "http", nil, client.ProtocolAuto, client.ProtocolStateless},
		{mcpGo, "stdio", nil, client.ProtocolAuto, client.ProtocolStateless},
	} {
		name := strings.Join(append([]string{test.server.name, test.transport, test.protocol}, test.extra...), "/")
		t.Run(name, func(t *testing.T) {
			c := &ourClient{peer: test.server}
			options := &client.Options{Protocol: test.protocol, CallTimeout: limit, CloseGrace: limit / 2}
			var err error
			if test.transport == "http" {
				c.endpoint = test.server.serveHTTP(t, test.extra...)
				c.before = goleak.IgnoreCurrent()
				c.Client, err = client.ConnectHTTP(within(t), c.endpoint, options)
			} else {
				argv := test.server.stdioCommand(t)
				c.before = goleak.IgnoreCurrent()
				c.Client, err = client.Spawn(within(t), argv, options)
			}
			if err != nil {
				t.Fatalf("connect: %v", err)
			}
			t.Cleanup(func() { c.Close(context.Background()) })
			info := c.Server()
			if info.Name == "" || info.Protocol != test.want {
				t.Errorf("server: got name %q, revision %s; want a name and %s", info.Name, info.Protocol, test.want)
			}
			if err := c.Ping(within(t)); err != nil {
				t.Errorf("ping: %v", err)
			}
			t.Run("tools", c.checkTools)
			t.Run("failing tools", c.checkFailingTools)
			t.Run("resources", c.checkResources)
			t.Run("prompts", c.checkPrompts)
			t.Run("progress", c.checkProgress)
			t.Run("cancel", c.checkCancel)
			t.Run("close", c.checkClose)
		})
	}
}

// TestStatelessLoad lets mcp-load measure servers of 2026-07-28, and servers of which it finds out what they serve.
func TestStatelessLoad(t *testing.T) {
	for _, test := range []struct {
		server   *server
		extra    []string
		protocol string
		want     string
	}{
		{mcpLoad, nil, "2026-07-28", "2026-07-28"},
		{mcpLoad, nil, "auto", "2026-07-28"},
		{goSDK, []string{"-stateless"}, "2026-07-28", "2026-07-28"},
		{goSDK, []string{"-stateless"}, "auto", "2026-07-28"},
		{goSDK, nil, "auto", "2025-11-25"},
		{mcpGo, nil, "auto", "2026-07-28"},
	} {
		t.Run(strings.Join(append([]string{test.server.name, test.protocol}, test.extra...), "/"), func(t *testing.T) {
			url := test.server.serveHTTP(t, test.extra...)
			r := runLoad(t, slices.Concat(echoFlags, []string{"-d", "1s", "--protocol", test.protocol, "--sessions", "8", "-c", "4", url})...)
			r.check(t, "http", 8)
			if r.Conditions.Protocol != test.want {
				t.Errorf("protocol: got %s, want %s", r.Conditions.Protocol, test.want)
			}
		})
	}
	for _, s := range []*server{mcpLoad, goSDK, mcpGo} {
		t.Run(s.name+"/stdio", func(t *testing.T) {
			command := append([]string{"-d", "1s", "--protocol", "auto", "-c", "2", "--"}, s.stdioCommand(t)...)
			r := runLoad(t, slices.Concat(echoFlags, command)...)
			r.check(t, "stdio", 1)
		})
	}
}

// TestStatelessCounts compares what mcp-load says about a run without sessions with what the server saw.
func TestStatelessCounts(t *testing.T) {
	url := goSDK.serveHTTP(t, "-counting", "-stateless")
	r := runLoad(t, slices.Concat(echoFlags, []string{"-d", "1s", "--protocol", "auto", "--sessions", "20", "-c", "8", url})...)
	r.check(t, "http", 20)
	want := fixture.Counts{Calls: r.Requests.Total}
	if got := readCounts(t, url); got != want {
		t.Errorf("the server saw %+v, the result file says %+v", got, want)
	}
}
