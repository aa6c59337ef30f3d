package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
	"github.com/mcpengine/mcpengine/transport/client"
)

// hookedServer serves an engine with all hooks over HTTP. The header X-User says
// who somebody is.
func hookedServer(t *testing.T, audit *records) (*engine.Engine, *httptest.Server) {
	t.Helper()
	e := guarded(t, engine.Options{
		Audit: audit.add,
		Before: []before{func(_ context.Context, c *engine.Call) error {
			if codec.Text(c.Arguments(), "x") == "forbidden" {
				return fmt.Errorf("not with this argument")
			}
			return nil
		}},
		After: []after{func(_ context.Context, c *engine.Call, _ *engine.Outcome) {
			c.SetResult(bytes.ReplaceAll(c.Result(), []byte("password"), []byte("…")))
		}},
	})
	mcp := transport.NewHTTPHandler(e, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mcp.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, r.Header.Get("X-User"))))
	}))
	t.Cleanup(server.Close)
	return e, server
}

// httpCaller is a client over HTTP of either era.
type httpCaller struct {
	t       *testing.T
	server  *httptest.Server
	who     string
	session string // "" in the stateless era
}

// post sends a frame and gives the status and the body.
func (c *httpCaller) post(frame string, headers http.Header) (*http.Response, string) {
	c.t.Helper()
	r, err := http.NewRequest(http.MethodPost, c.server.URL, strings.NewReader(frame))
	if err != nil {
		c.t.Fatal(err)
	}
	if headers != nil {
		r.Header = headers
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("X-User", c.who)
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	response, err := c.server.Client().Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return response, string(body)
}

func (c *httpCaller) result(method, params string) string {
	c.t.Helper()
	frame, headers := request("1", method, params), http.Header(nil)
	if c.session == "" {
		frame = (&modern{t: c.t, caps: "{}"}).frame("1", method, params)
		headers = headersFor(frame)
	}
	_, body := c.post(frame, headers)
	return answerOf(c.t, body, "1")
}

// httpAs gives a client of a revision that is somebody.
func httpAs(t *testing.T, server *httptest.Server, rev engine.Revision, who string) *httpCaller {
	t.Helper()
	c := &httpCaller{t: t, server: server, who: who}
	if !rev.IsModern() {
		response, _ := c.post(request("0", codec.MethodInitialize, `{"protocolVersion":"`+rev.String()+`","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`), nil)
		if c.session = response.Header.Get("Mcp-Session-Id"); c.session == "" {
			t.Fatalf("initialize: got status %s and no session", response.Status)
		}
	}
	return c
}

// TestHooksOverHTTP has the hooks tell users apart by what a middleware of
// net/http has found out.
func TestHooksOverHTTP(t *testing.T) {
	for _, rev := range bothEras {
		var audit records
		_, server := hookedServer(t, &audit)
		for _, c := range []struct {
			who, method, params, want, outcome string
		}{
			{"boss", codec.MethodToolsCall, `{"name":"secret"}`, text("{}"), "ok 0"},
			{"guest", codec.MethodToolsCall, `{"name":"secret"}`, "-32602 Unknown tool: secret", "refused -32602"},
			{"guest", codec.MethodToolsCall, `{"name":"open","arguments":{"x":"a password"}}`, text(`{\"x\":\"a …\"}`), "ok 0"},
			{"guest", codec.MethodToolsCall, `{"name":"open","arguments":{"x":"forbidden"}}`, toolError("not with this argument"), "refused 0"},
			{"", codec.MethodResourcesRead, `{"uri":"r:open"}`, `{"contents":[{"uri":"r:open","text":"open"}]}`, "ok 0"},
		} {
			got := httpAs(t, server, rev, c.who).result(c.method, c.params)
			check(t, fmt.Sprint(rev, " ", c.method, " ", c.params, " as ", c.who), plain(got), c.want)
			list := audit.take()
			if len(list) != 1 || fmt.Sprint(list[0].Outcome, " ", list[0].Code) != c.outcome || list[0].Principal != c.who {
				t.Errorf("%v %s as %q: got records %+v, want one of %s", rev, c.params, c.who, list, c.outcome)
			}
		}
	}
}

// TestHooksOverPipe has the hooks know a pipe's user by its context.
func TestHooksOverPipe(t *testing.T) {
	for who, want := range map[string]string{"boss": "open secret", "guest": "open"} {
		var audit records
		e := guarded(t, engine.Options{Audit: audit.add})
		pipe, served := transport.Pipe(as(who), e)
		c, err := client.ConnectPipe(t.Context(), pipe, nil)
		if err != nil {
			t.Fatal(err)
		}
		tools, err := c.ListTools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range tools {
			names = append(names, tool.Name)
		}
		check(t, "tools of "+who, strings.Join(names, " "), want)
		_, err = c.CallTool(t.Context(), "secret", nil, nil)
		if (err == nil) != (who == "boss") {
			t.Errorf("call of secret as %s: got error %v", who, err)
		}
		_ = c.Close(t.Context())
		<-served
		outcome := map[string]string{"boss": "ok 0", "guest": "refused -32602"}[who]
		got := audit.outcomes()
		checkList(t, "records of "+who, got[len(got)-1:], "tools/call secret "+outcome)
	}
}
