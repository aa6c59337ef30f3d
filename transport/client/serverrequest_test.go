package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/transport/client"
)

func TestReportProgress(t *testing.T) {
	noLeaks(t)
	var kept context.Context
	o := &client.Options{OnSample: func(ctx context.Context, r *client.SampleRequest) (*client.SampleResult, error) {
		kept = ctx
		for _, p := range []client.Progress{{Progress: 0}, {Progress: 1.5, Total: 4, HasTotal: true, Message: "half"}, {Progress: 1.5}, {Progress: 1}, {Progress: 2}} {
			if err := client.ReportProgress(ctx, p); err != nil {
				return nil, err
			}
		}
		return onSample(ctx, r)
	}}
	const params = `"messages":[],"maxTokens":1`
	const related = `"io.modelcontextprotocol/related-task":{"taskId":"t"}`
	for _, test := range []struct {
		revision, meta string
		want           []string // of the params, before the answer
		result         string   // the beginning of the answer's
	}{
		{"2025-11-25", `"progressToken":"7"`, []string{
			`{"progressToken":"7","progress":0}`,
			`{"progressToken":"7","progress":1.5,"total":4,"message":"half"}`,
			`{"progressToken":"7","progress":2}`,
		}, `{"role":`},
		{"2024-11-05", `"progressToken":7`, []string{
			`{"progressToken":7,"progress":0}`, `{"progressToken":7,"progress":1.5,"total":4}`, `{"progressToken":7,"progress":2}`,
		}, `{"role":`},
		{"2025-11-25", ``, nil, `{"role":`},
		{"2025-11-25", `"progressToken":1.5`, nil, `{"role":`},
		{"2025-11-25", `"progressToken":1,` + related, []string{
			`{"_meta":{` + related + `},"progressToken":1,"progress":0}`,
			`{"_meta":{` + related + `},"progressToken":1,"progress":1.5,"total":4,"message":"half"}`,
			`{"_meta":{` + related + `},"progressToken":1,"progress":2}`,
		}, `{"_meta":{` + related + `},"role":`},
		{"2025-06-18", related, nil, `{"role":`},
	} {
		_, p, _ := connectPipeAs(t, initResultOf(test.revision, `{}`), o)
		got := p.ask(`"id":1,"method":"sampling/createMessage","params":{` + params + `,"_meta":{` + test.meta + `}}`)
		for _, want := range test.want {
			if want = `"method":"notifications/progress","params":` + want; got != want {
				t.Errorf("with _meta {%s}: got %s, want %s", test.meta, got, want)
			}
			got = p.line()
		}
		if !strings.HasPrefix(got, `"id":1,"result":`+test.result) {
			t.Errorf("with _meta {%s}: got %s, want the result %s…", test.meta, got, test.result)
		}
		if err := client.ReportProgress(context.WithoutCancel(kept), client.Progress{Progress: 9}); err != nil {
			t.Errorf("after the answer: got %v, want nothing", err)
		}
		if got := p.ask(`"id":2,"method":"ping"`); got != `"id":2,"result":{}` {
			t.Errorf("after the answer: got %s", got)
		}
	}
	if err := client.ReportProgress(context.Background(), client.Progress{}); err == nil {
		t.Error("with another context: got no error")
	}
}

// TestCancelTyped: a request that the server cancels is not answered, whatever
// the callback returns.
func TestCancelTyped(t *testing.T) {
	noLeaks(t)
	entered, ended := make(chan struct{}), make(chan error)
	_, p := connectPipe(t, &client.Options{OnElicit: func(ctx context.Context, r *client.ElicitRequest) (*client.ElicitResult, error) {
		close(entered)
		<-ctx.Done()
		ended <- ctx.Err()
		return onElicit(ctx, r)
	}})
	p.write(`{"jsonrpc":"2.0","id":"a","method":"elicitation/create","params":{"message":"m","requestedSchema":` + oneField + `}}`)
	<-entered
	p.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`)
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the context: got %v, want context.Canceled", err)
	}
	if got := p.ask(`"id":"b","method":"ping"`); got != `"id":"b","result":{}` {
		t.Errorf("the next frame: got %s, want the answer to ping", got)
	}
}

func TestAnswerTooLarge(t *testing.T) {
	noLeaks(t)
	_, p := connectPipe(t, &client.Options{MaxMessageBytes: 1000, OnRequest: func(context.Context, string, []byte) ([]byte, error) {
		return []byte(`"` + strings.Repeat("x", 1000) + `"`), nil
	}})
	if got, want := p.ask(`"id":1,"method":"m"`), `"id":1,"error":{"code":-32603,"message":"Internal error"}`; got != want {
		t.Errorf("answer: got %.80s, want %s", got, want)
	}
}

func TestRoots(t *testing.T) {
	noLeaks(t)
	ctx := context.Background()
	root := client.Root{URI: "file:///a b", Name: `"A"`}
	c, p := connectPipe(t, &client.Options{RootList: []client.Root{root, {URI: "file:///b"}}})
	want := `{"roots":[{"uri":"file:///a b","name":"\"A\""},{"uri":"file:///b"}]}`
	validate(t, "2025-11-25", "ListRootsResult", want)
	if got := p.ask(`"id":1,"method":"roots/list"`); got != `"id":1,"result":`+want {
		t.Errorf("roots: got %s, want %s", got, want)
	}
	changed := make(chan string, 1)
	go func() { changed <- p.line() }()
	if err := c.SetRoots(ctx, nil); err != nil {
		t.Error(err)
	}
	if got, want := <-changed, `"method":"notifications/roots/list_changed"`; got != want {
		t.Errorf("SetRoots: sent %s, want %s", got, want)
	}
	if got := p.ask(`"id":2,"method":"roots/list"`); got != `"id":2,"result":{"roots":[]}` {
		t.Errorf("roots after SetRoots: got %s", got)
	}
	if err := c.SetRoots(ctx, []client.Root{{URI: "https://x"}}); err == nil {
		t.Error("SetRoots with https: got no error")
	}

	for _, test := range []struct {
		o         client.Options
		set, note bool // whether SetRoots and RootsChanged send
	}{
		{client.Options{}, false, false},
		{client.Options{Roots: onRoots}, false, true},
		{client.Options{RootList: []client.Root{}, Capabilities: []byte(`{"roots":{}}`)}, false, false},
	} {
		c, p := connectPipe(t, &test.o)
		go p.drain()
		if err := c.SetRoots(ctx, nil); (err == nil) != test.set {
			t.Errorf("SetRoots with %+v: got %v", test.o, err)
		}
		if err := c.RootsChanged(ctx); (err == nil) != test.note {
			t.Errorf("RootsChanged with %+v: got %v", test.o, err)
		}
	}
}

// TestRootsFunction: what the callback gives is checked before it is sent.
func TestRootsFunction(t *testing.T) {
	noLeaks(t)
	for _, test := range []struct {
		roots []client.Root
		err   error
		want  string
	}{
		{[]client.Root{{URI: "file:///x"}}, nil, `"result":{"roots":[{"uri":"file:///x"}]}`},
		{[]client.Root{{URI: "x"}}, nil, `"error":{"code":-32603,"message":"Internal error"}`},
		{nil, errors.New("secret"), `"error":{"code":-32603,"message":"Internal error"}`},
	} {
		_, p := connectPipe(t, &client.Options{Roots: func(context.Context) ([]client.Root, error) { return test.roots, test.err }})
		if got := p.ask(`"id":1,"method":"roots/list"`); got != `"id":1,`+test.want {
			t.Errorf("Roots gives %v, %v: got %s, want %s", test.roots, test.err, got, test.want)
		}
	}
}
