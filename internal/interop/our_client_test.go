package interop

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/internal/interop/fixture"
	"github.com/mcpengine/mcpengine/transport/client"
	"go.uber.org/goleak"
)

// TestOurClient drives servers of other makes with package client, in every session-based revision.
func TestOurClient(t *testing.T) {
	for _, s := range []*server{mcpLoad, goSDK, mcpGo} {
		for _, transport := range []string{"stdio", "http"} {
			for _, revision := range []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
				t.Run(strings.Join([]string{s.name, transport, revision}, "/"), func(t *testing.T) {
					c := connectOurs(t, s, transport, revision)
					t.Run("server", func(t *testing.T) { c.checkServer(t, revision) })
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
	}
}

// ourClient is a connection of our own client.
type ourClient struct {
	*client.Client
	peer     *server
	endpoint string        // "" on stdio
	before   goleak.Option // the goroutines that were there before the connection
}

func connectOurs(t *testing.T, s *server, transport, revision string) *ourClient {
	t.Helper()
	c := &ourClient{peer: s}
	options := &client.Options{Protocol: revision, CallTimeout: limit, CloseGrace: limit / 2}
	var err error
	if transport == "http" {
		c.endpoint = s.serveHTTP(t)
		c.before = goleak.IgnoreCurrent()
		c.Client, err = client.ConnectHTTP(within(t), c.endpoint, options)
	} else {
		argv := s.stdioCommand(t)
		c.before = goleak.IgnoreCurrent()
		c.Client, err = client.Spawn(within(t), argv, options)
	}
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// text returns the text of a tool's result.
func text(r *client.ToolResult) string {
	if r == nil {
		return ""
	}
	var b strings.Builder
	for _, item := range r.Content {
		b.WriteString(item.Text)
	}
	return b.String()
}

func (c *ourClient) checkServer(t *testing.T, revision string) {
	info := c.Server()
	if info.Name == "" || info.Protocol != revision {
		t.Errorf("server: got name %q, revision %s; want a name and %s", info.Name, info.Protocol, revision)
	}
	if (c.SessionID() != "") != (c.endpoint != "") {
		t.Errorf("session id: got %q, want one on HTTP only", c.SessionID())
	}
	if (c.PID() != 0) != (c.endpoint == "") {
		t.Errorf("process id: got %d, want one on stdio only", c.PID())
	}
	if err := c.Ping(within(t)); err != nil {
		t.Errorf("ping: %v", err)
	}
}

func (c *ourClient) echo(t *testing.T, message string) {
	t.Helper()
	r, err := c.CallTool(within(t), "echo", fixture.Message{Message: message}, nil)
	if err != nil || r.IsError || text(r) != message {
		t.Errorf("echo(%.40q): got %.80v, %v", message, r, err)
	}
}

func (c *ourClient) checkTools(t *testing.T) {
	tools, err := c.ListTools(within(t))
	if err != nil {
		t.Fatalf("tools/list: %v", err)
	}
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
		if tool.InputSchema == nil {
			t.Errorf("tool %s has no input schema", tool.Name)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, fixture.ToolNames) {
		t.Errorf("tools/list: got %v, want %v", names, fixture.ToolNames)
	}
	for _, message := range []string{"hello", "", "a \"quoted\" line\nand ünïcødé \U0001F600", strings.Repeat("long ", 20_000)} {
		c.echo(t, message)
	}
	r, err := c.CallTool(within(t), "big", []byte(`{"bytes":1048576}`), nil)
	if err != nil || len(text(r)) != 1<<20 {
		t.Errorf("big(1 MiB): got a text of %d bytes, %v", len(text(r)), err)
	}
	errs := make(chan error)
	for range 20 {
		go func() {
			_, err := c.CallTool(within(t), "sleep", fixture.Sleep{MS: 20}, nil)
			errs <- err
		}()
	}
	for range 20 {
		if err := <-errs; err != nil {
			t.Errorf("sleep(20), 20 at once: %v", err)
		}
	}
}

func (c *ourClient) checkFailingTools(t *testing.T) {
	r, err := c.CallTool(within(t), "fail", nil, nil)
	if err != nil || !r.IsError || text(r) == "" {
		t.Errorf("fail: got %v, %v; want a tool error with a text", r, err)
	}
	for _, name := range []string{"panic", "no such tool"} {
		if r, err := c.CallTool(within(t), name, nil, nil); err == nil && !r.IsError {
			t.Errorf("%s: got %v, want an error of either kind", name, r)
		}
	}
	if r, err := c.Request(within(t), "no/such/method", nil, nil); err == nil {
		t.Errorf("unknown method: got %s, want an error", r)
	}
	c.echo(t, "still here")
}

func (c *ourClient) checkResources(t *testing.T) {
	resources, err := c.ListResources(within(t))
	if err != nil || !slices.ContainsFunc(resources, func(r client.Resource) bool { return r.URI == fixture.StaticURI }) {
		t.Errorf("resources/list: got %v, %v; want %s among them", resources, err, fixture.StaticURI)
	}
	templates, err := c.ListResourceTemplates(within(t))
	if err != nil || len(templates) != 1 || templates[0].URITemplate != fixture.ItemTemplate {
		t.Errorf("resources/templates/list: got %v, %v; want %s", templates, err, fixture.ItemTemplate)
	}
	for uri, want := range map[string]string{fixture.StaticURI: "", fixture.ItemPrefix + "4711": "4711"} {
		r, err := c.ReadResource(within(t), uri)
		if err != nil {
			t.Errorf("read %s: %v", uri, err)
			continue
		}
		if len(r.Contents) != 1 || r.Contents[0].URI != uri || r.Contents[0].Text == "" || !strings.Contains(r.Contents[0].Text, want) {
			t.Errorf("read %s: got %+v, want one text that contains %q", uri, r.Contents, want)
		}
	}
	if r, err := c.ReadResource(within(t), "test://nothing/here"); err == nil {
		t.Errorf("read an unknown resource: got %s, want an error", r.Raw)
	}
}

func (c *ourClient) checkPrompts(t *testing.T) {
	prompts, err := c.ListPrompts(within(t))
	if err != nil || len(prompts) != 1 || prompts[0].Name != fixture.PromptName {
		t.Errorf("prompts/list: got %v, %v; want %s", prompts, err, fixture.PromptName)
	}
	r, err := c.GetPrompt(within(t), fixture.PromptName, map[string]string{"name": "Ada"})
	if err != nil || len(r.Messages) == 0 || !strings.Contains(r.Messages[0].Content.Text, "Ada") {
		t.Errorf("greeting(Ada): got %v, %v; want a message with the name", r, err)
	}
}

func (c *ourClient) checkProgress(t *testing.T) {
	var (
		mu   sync.Mutex // a notification on the GET stream may arrive together with the result
		seen []client.Progress
	)
	options := &client.CallOptions{OnProgress: func(p client.Progress) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, p)
	}}
	r, err := c.CallTool(within(t), "progress", fixture.Progress{Steps: 4, DelayMS: 30}, options)
	if err != nil || text(r) != "done" {
		t.Fatalf("progress: got %v, %v; want the text done", r, err)
	}
	mu.Lock()
	defer mu.Unlock()
	want := 4
	if c.peer == mcpGo {
		// It divides the notifications between the reply's stream and the GET stream, so that they arrive in any
		// order, and sends the last one at the same time as the result, so that it may come too late.
		slices.SortFunc(seen, func(a, b client.Progress) int { return cmp.Compare(a.Progress, b.Progress) })
		want = 3
	}
	if len(seen) < want {
		t.Errorf("got %d notifications, want %d", len(seen), want)
	}
	for i, p := range seen {
		if p.Progress != float64(i+1) || !p.HasTotal || p.Total != 4 {
			t.Errorf("notification %d: got %+v, want progress %d of 4", i+1, p, i+1)
		}
	}
}

// checkCancel cancels a call that certainly runs, because it has reported progress.
func (c *ourClient) checkCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	cancelled := make(chan time.Time, 1)
	options := &client.CallOptions{OnProgress: func(client.Progress) {
		select {
		case cancelled <- time.Now():
			cancel()
		default: // a later notification, on its way already
		}
	}}
	_, err := c.CallTool(ctx, "progress", fixture.Progress{Steps: 100_000, DelayMS: 10}, options)
	select {
	case at := <-cancelled:
		wantCancelled(t, err, time.Since(at))
	default:
		t.Fatalf("the call ended before it was cancelled: %v", err)
	}
	c.echo(t, "after the cancellation")
}

// checkClose ends the connection: nothing may be left of it here, and over HTTP the server must have ended the session.
func (c *ourClient) checkClose(t *testing.T) {
	id := c.SessionID()
	start := time.Now()
	if err := c.Close(within(t)); err != nil {
		t.Errorf("close: %v", err)
	}
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("close took %v", took)
	}
	goleak.VerifyNone(t, c.before)
	if _, err := c.CallTool(within(t), "echo", nil, nil); !errors.Is(err, client.ErrClosed) {
		t.Errorf("call after close: got %v, want ErrClosed", err)
	}
	if id == "" {
		return
	}
	if status := pingWithSession(t, c.endpoint, id); status != http.StatusNotFound {
		t.Errorf("a request on the ended session: got HTTP status %d, want 404", status)
	}
}
