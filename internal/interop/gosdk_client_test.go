package interop

import (
	"cmp"
	"context"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/internal/interop/fixture"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// revisions are what the SDK's client is told to ask for; "" leaves the choice to it (it tries the newest it knows
// with server/discover and falls back to an initialize with 2025-11-25).
var revisions = []string{"", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// TestGoSDKClient drives each server with the client of the official Go SDK. The SDK's own server is in the table to
// show that the expectations are not peculiar to ours.
func TestGoSDKClient(t *testing.T) {
	for _, s := range []*server{mcpLoad, goSDK} {
		for _, transport := range []string{"stdio", "http"} {
			for _, revision := range revisions {
				name := strings.Join([]string{s.name, transport, cmp.Or(revision, "default")}, "/")
				t.Run(name, func(t *testing.T) {
					c := connectGoSDK(t, s, transport, revision)
					t.Run("revision", func(t *testing.T) { c.checkRevision(t, revision) })
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

// goSDKClient is a connected session and the progress values that arrived on it.
type goSDKClient struct {
	session  *mcp.ClientSession
	endpoint string // "" on stdio
	progress chan *mcp.ProgressNotificationParams
}

func connectGoSDK(t *testing.T, s *server, transport, revision string) *goSDKClient {
	t.Helper()
	c := &goSDKClient{progress: make(chan *mcp.ProgressNotificationParams, 1000)}
	var pipe mcp.Transport
	if transport == "http" {
		c.endpoint = s.serveHTTP(t)
		pipe = &mcp.StreamableClientTransport{Endpoint: c.endpoint}
	} else {
		argv := s.stdioCommand(t)
		pipe = &mcp.CommandTransport{Command: exec.Command(argv[0], argv[1:]...), TerminateDuration: limit / 2}
	}
	c.connect(t, pipe, revision)
	return c
}

func (c *goSDKClient) connect(t *testing.T, pipe mcp.Transport, revision string) {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			c.progress <- r.Params
		},
	})
	session, err := client.Connect(within(t), pipe, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	c.session = session
	t.Cleanup(func() { session.Close() })
}

func (c *goSDKClient) checkRevision(t *testing.T, asked string) {
	got := c.session.InitializeResult().ProtocolVersion
	if asked != "" && got != asked {
		t.Errorf("asked for %s: got %s", asked, got)
	}
	if asked == "" && got < "2025-11-25" {
		t.Errorf("left to the SDK: got %s, want 2025-11-25 or newer", got)
	}
	if c.session.InitializeResult().ServerInfo.Name == "" {
		t.Error("the server has no name")
	}
}

func (c *goSDKClient) call(ctx context.Context, name string, arguments any) (*mcp.CallToolResult, error) {
	return c.session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
}

func textOf(content []mcp.Content) string {
	var b strings.Builder
	for _, item := range content {
		if text, ok := item.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

func (c *goSDKClient) checkTools(t *testing.T) {
	var names []string
	for tool, err := range c.session.Tools(within(t), nil) {
		if err != nil {
			t.Fatalf("tools/list: %v", err)
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, fixture.ToolNames) {
		t.Errorf("tools/list: got %v, want %v", names, fixture.ToolNames)
	}
	for _, message := range []string{"hello", "", "a \"quoted\" line\nand ünïcødé \U0001F600", strings.Repeat("long ", 20_000)} {
		r, err := c.call(within(t), "echo", fixture.Message{Message: message})
		if err != nil || r.IsError || textOf(r.Content) != message {
			t.Errorf("echo(%.40q): got %.80v, %v", message, r, err)
		}
	}
	r, err := c.call(within(t), "big", fixture.Big{Bytes: 1 << 20})
	if err != nil || len(textOf(r.Content)) != 1<<20 {
		t.Errorf("big(1 MiB): got %.80v, %v; want a text of 1 MiB", r, err)
	}
	r, err = c.call(within(t), "sleep", fixture.Sleep{MS: 10})
	if err != nil || r.IsError {
		t.Errorf("sleep(10): got %v, %v", r, err)
	}
}

func (c *goSDKClient) checkFailingTools(t *testing.T) {
	r, err := c.call(within(t), "fail", nil)
	if err != nil || !r.IsError || textOf(r.Content) == "" {
		t.Errorf("fail: got %v, %v; want a tool error with a text", r, err)
	}
	if r, err := c.call(within(t), "panic", nil); err == nil && !r.IsError {
		t.Errorf("panic: got %v, want an error of either kind", r)
	}
	if r, err := c.call(within(t), "no such tool", nil); err == nil && !r.IsError {
		t.Errorf("unknown tool: got %v, want an error", r)
	}
	if r, err := c.call(within(t), "echo", fixture.Message{Message: "still here"}); err != nil || textOf(r.Content) != "still here" {
		t.Errorf("echo afterwards: got %v, %v", r, err)
	}
}

func (c *goSDKClient) checkResources(t *testing.T) {
	var uris []string
	for resource, err := range c.session.Resources(within(t), nil) {
		if err != nil {
			t.Fatalf("resources/list: %v", err)
		}
		uris = append(uris, resource.URI)
	}
	if !slices.Contains(uris, fixture.StaticURI) {
		t.Errorf("resources/list: got %v, want %s among them", uris, fixture.StaticURI)
	}
	templates, err := c.session.ListResourceTemplates(within(t), nil)
	if err != nil || len(templates.ResourceTemplates) != 1 || templates.ResourceTemplates[0].URITemplate != fixture.ItemTemplate {
		t.Errorf("resources/templates/list: got %v, %v; want %s", templates, err, fixture.ItemTemplate)
	}
	for uri, want := range map[string]string{fixture.StaticURI: "", fixture.ItemPrefix + "4711": "4711"} {
		r, err := c.session.ReadResource(within(t), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			t.Errorf("read %s: %v", uri, err)
			continue
		}
		if len(r.Contents) != 1 || r.Contents[0].URI != uri || r.Contents[0].Text == "" || !strings.Contains(r.Contents[0].Text, want) {
			t.Errorf("read %s: got %+v, want one text that contains %q", uri, r.Contents, want)
		}
	}
	if r, err := c.session.ReadResource(within(t), &mcp.ReadResourceParams{URI: "test://nothing/here"}); err == nil {
		t.Errorf("read an unknown resource: got %+v, want an error", r)
	}
}

func (c *goSDKClient) checkPrompts(t *testing.T) {
	list, err := c.session.ListPrompts(within(t), nil)
	if err != nil || len(list.Prompts) != 1 || list.Prompts[0].Name != fixture.PromptName {
		t.Errorf("prompts/list: got %v, %v; want %s", list, err, fixture.PromptName)
	}
	arguments := map[string]string{"name": "Ada"}
	r, err := c.session.GetPrompt(within(t), &mcp.GetPromptParams{Name: fixture.PromptName, Arguments: arguments})
	if err != nil || len(r.Messages) == 0 || !strings.Contains(textOf([]mcp.Content{r.Messages[0].Content}), "Ada") {
		t.Errorf("greeting(Ada): got %v, %v; want a message with the name", r, err)
	}
}

func (c *goSDKClient) checkProgress(t *testing.T) {
	params := &mcp.CallToolParams{Name: "progress", Arguments: fixture.Progress{Steps: 3, DelayMS: 5}}
	params.SetProgressToken("token of the interop test")
	r, err := c.session.CallTool(within(t), params)
	if err != nil || textOf(r.Content) != "done" {
		t.Fatalf("progress: got %v, %v; want the text done", r, err)
	}
	for i := 1.0; i <= 3; i++ {
		p := c.nextProgress(t)
		if p.ProgressToken != "token of the interop test" || p.Progress != i || p.Total != 3 {
			t.Errorf("notification %v: got %+v, want progress %v of 3", i, p, i)
		}
	}
}

// nextProgress waits for a notification: the SDK may return the result of the call before its handler has run.
func (c *goSDKClient) nextProgress(t *testing.T) *mcp.ProgressNotificationParams {
	t.Helper()
	select {
	case p := <-c.progress:
		return p
	case <-time.After(limit):
		t.Fatal("no progress notification arrived")
		return nil
	}
}

// checkCancel cancels a call that certainly runs, because it has reported progress.
func (c *goSDKClient) checkCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(within(t))
	params := &mcp.CallToolParams{Name: "progress", Arguments: fixture.Progress{Steps: 100_000, DelayMS: 10}}
	params.SetProgressToken("token of the cancelled call")
	cancelled := make(chan time.Time, 1)
	go func() {
		select {
		case <-c.progress:
		case <-ctx.Done(): // the call fails with the wrong error
		}
		cancelled <- time.Now()
		cancel()
	}()
	_, err := c.session.CallTool(ctx, params)
	wantCancelled(t, err, time.Since(<-cancelled))
	if r, err := c.call(within(t), "echo", fixture.Message{Message: "after"}); err != nil || textOf(r.Content) != "after" {
		t.Errorf("echo after the cancellation: got %v, %v", r, err)
	}
}

// checkClose ends the session. On stdio this shows that the cancelled call, which would have run for many minutes, does
// not hold the server up; on HTTP the server must not know the session any more.
func (c *goSDKClient) checkClose(t *testing.T) {
	id := c.session.ID()
	start := time.Now()
	if err := c.session.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("close took %v", took)
	}
	if c.endpoint == "" || id == "" {
		return // no session id: a stateless revision
	}
	if status := pingWithSession(t, c.endpoint, id); status != http.StatusNotFound {
		t.Errorf("a request on the ended session: got HTTP status %d, want 404", status)
	}
}
