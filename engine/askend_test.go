package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// TestAskEnds covers the ways in which a request to the client ends without an
// answer, in virtual time.
func TestAskEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		during func(t *testing.T, p *asked, id string)
		took   time.Duration
		err    error  // of the handler
		sent   string // to the client after the question
		reply  string // to the call, "" for none
	}{
		{"timeout", nil, 10 * time.Second, engine.ErrAskTimeout,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":ID,"reason":"timeout"}}`, text("over")},
		{"progress extends", func(_ *testing.T, p *asked, id string) {
			for range 3 {
				time.Sleep(9 * time.Second)
				p.notify(codec.NotifyProgress, `{"progressToken":`+id+`,"progress":1}`)
			}
		}, 37 * time.Second, engine.ErrAskTimeout,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":ID,"reason":"timeout"}}`, text("over")},
		{"progress of another", func(_ *testing.T, p *asked, _ string) {
			time.Sleep(9 * time.Second)
			p.notify(codec.NotifyProgress, `{"progressToken":"x","progress":1}`)
			p.notify(codec.NotifyProgress, `{"progressToken":99,"progress":1}`)
		}, 10 * time.Second, engine.ErrAskTimeout,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":ID,"reason":"timeout"}}`, text("over")},
		{"the call is cancelled", func(_ *testing.T, p *asked, _ string) {
			time.Sleep(time.Second)
			p.notify(codec.NotifyCancelled, `{"requestId":7}`)
		}, time.Second, context.Canceled, "", ""}, // the call's own stream has ended
		{"answers to others", func(_ *testing.T, p *asked, id string) {
			for _, wrong := range []string{`"` + id + `"`, "0", "99999999999999999999", "-1", id + id} {
				p.peer.receive(context.Background(), `{"jsonrpc":"2.0","id":`+wrong+`,"result":{"roots":[]}}`, new(reply))
			}
			time.Sleep(time.Second)
			p.peer.receive(context.Background(), `{"jsonrpc":"2.0","id":`+id+`,"result":{"roots":[]}}`, new(reply))
		}, time.Second, nil, "", text("over")},
		{"the session ends", func(_ *testing.T, p *asked, _ string) {
			time.Sleep(time.Second)
			p.session.Close()
		}, time.Second, errAny, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _ := newEngine(t, nil)
				result := make(chan error, 1)
				must(t, addTool(e, engine.Tool{Name: "ask"}, func(ctx context.Context, c *engine.Call) (string, error) {
					_, err := c.Elicit(ctx, &engine.ElicitRequest{Message: "m", Schema: json.RawMessage(nameForm), Timeout: 10 * time.Second})
					if err != nil && strings.Contains(err.Error(), "action") {
						err = nil // the answer came; it is for roots
					}
					result <- err
					return "over", nil
				}))
				p := connectWith(t, e, engine.Rev20251125, everything, nil)
				begin := time.Now()
				r, done := p.begin(request("7", codec.MethodToolsCall, `{"name":"ask"}`))
				synctest.Wait()
				questions := p.taken()
				if len(questions) != 1 || p.session.PendingRequests() != 1 {
					t.Fatalf("got questions %v, pending %d, want one", questions, p.session.PendingRequests())
				}
				id := string(codec.Member([]byte(questions[0]), "id"))
				if c.during != nil {
					c.during(t, p, id)
				}
				err := <-result
				if took := time.Since(begin); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if c.err == errAny && err == nil || c.err != errAny && !errors.Is(err, c.err) {
					t.Errorf("the handler got %v, want %v", err, c.err)
				}
				<-done
				var want []string
				if c.sent != "" {
					want = append(want, strings.ReplaceAll(c.sent, "ID", id))
				}
				if c.reply != "" {
					want = append(want, `{"jsonrpc":"2.0","id":7,"result":`+c.reply+`}`)
				}
				checkFrames(t, "the reply's stream", r.take(), want...)
				if n := p.session.PendingRequests(); n != 0 {
					t.Errorf("pending requests: got %d, want 0", n)
				}
				// A late answer means nothing.
				p.peer.receive(context.Background(), `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`, new(reply))
				_ = e.Shutdown(t.Context())
				time.Sleep(2 * time.Second) // for the actor library's timer of dead letters
			})
		})
	}
}

var errAny = errors.New("any error")

// TestConcurrentQuestions has many calls ask at once. Each gets its own answer.
func TestConcurrentQuestions(t *testing.T) {
	e, _ := newEngine(t, nil)
	must(t, e.AddRawTool(engine.Tool{Name: "ask"}, func(ctx context.Context, c *engine.Call, args, out []byte) ([]byte, error) {
		r, err := c.Elicit(ctx, &engine.ElicitRequest{Message: codec.Text(args, "text"), Schema: json.RawMessage(nameForm)})
		if err != nil {
			return nil, err
		}
		return engine.AppendTextResult(out, codec.Text(r.Content, "name")), nil
	}))
	p := connectWith(t, e, engine.Rev20251125, everything, func(_ string, params []byte) string {
		return `{"action":"accept","content":{"name":"for ` + codec.Text(params, "message") + `"}}`
	})
	var calls sync.WaitGroup
	for i := range 64 {
		calls.Go(func() {
			id := fmt.Sprint(100 + i)
			frames := p.frames(id, codec.MethodToolsCall, `{"name":"ask","arguments":{"text":"`+id+`"}}`)
			check(t, "call "+id, frames[len(frames)-1], text("for "+id))
		})
	}
	calls.Wait()
	seen := make(map[string]bool)
	for _, frame := range p.taken() {
		id := string(codec.Member([]byte(frame), "id"))
		if seen[id] {
			t.Errorf("id %s is used twice", id)
		}
		seen[id] = true
	}
	if len(seen) != 64 || p.session.PendingRequests() != 0 {
		t.Errorf("got %d questions, %d of them pending, want 64, 0", len(seen), p.session.PendingRequests())
	}
}

// TestAskBeforeInitialized checks that a client is asked nothing but a ping
// before it is ready.
func TestAskBeforeInitialized(t *testing.T) {
	e, _ := newEngine(t, nil)
	must(t, addTool(e, engine.Tool{Name: "roots"}, func(ctx context.Context, c *engine.Call) (string, error) {
		_, err := c.Roots(ctx)
		return fmt.Sprint(err), nil
	}))
	p := &asked{open(t, e), &questions{answer: yes}}
	p.session.Attach(watch(t, p.session.Revision, "", answering{p.notes, p}))
	must(t, p.session.Ping(t.Context()))
	p.result(codec.MethodInitialize, `{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}`)
	check(t, "roots before initialized", p.call("roots", "{}"), text(engine.ErrNotOperating.Error()))
	p.notify(codec.NotifyInitialized, "{}")
	check(t, "roots after initialized", p.call("roots", "{}"), text("<nil>"))
	got := p.taken()
	if len(got) != 2 || codec.Text([]byte(got[0]), "method") != "ping" || codec.Text([]byte(got[1]), "method") != "roots/list" {
		t.Errorf("requests to the client: got %v, want a ping and roots/list", got)
	}
}

// TestAskAll asks three things at once in a session.
func TestAskAll(t *testing.T) {
	e, _ := newEngine(t, nil)
	must(t, addTool(e, engine.Tool{Name: "all"}, askThree))
	p := connectWith(t, e, engine.Rev20251125, everything, yes)
	check(t, "all", p.call("all", "{}"), text("accept sampled file:///x"))
	if got := len(p.taken()); got != 3 {
		t.Errorf("requests to the client: got %d, want 3", got)
	}
	p = connectWith(t, e, engine.Rev20251125, `{"roots":{},"elicitation":{}}`, yes)
	check(t, "all, without sampling", p.call("all", "{}"), toolError("engine: the client did not declare the capability sampling"))
}

func askThree(ctx context.Context, c *engine.Call) (string, error) {
	got, err := c.AskAll(ctx, askName("name"), engine.RootsRequest{Key: "roots"}, &engine.SampleRequest{Key: "sample", MaxTokens: 1,
		Messages: []engine.SampleMessage{{Role: "user", Content: []engine.Content{engine.Text{Text: "hi"}}}}})
	if err != nil {
		return "", err
	}
	return got[0].Elicit.Action + " " + got[2].Sample.Text() + " " + got[1].Roots[0].URI, nil
}

// TestNeedURL checks what each peer gets of an error that lists pages.
func TestNeedURL(t *testing.T) {
	e, _ := newEngine(t, nil)
	pages := func() error {
		return engine.NeedURL("visit first", &engine.ElicitRequest{Message: "m", URL: "https://example.com/a", ElicitationID: "a"},
			&engine.ElicitRequest{Message: "n", URL: "https://example.com/b", ElicitationID: "b"})
	}
	must(t, addTool(e, engine.Tool{Name: "page"}, func(context.Context, *engine.Call) (string, error) { return "", pages() }))
	must(t, e.AddPrompt(engine.Prompt{Name: "page"}, func(context.Context, *engine.Call, map[string]string) (*engine.PromptResult, error) {
		return nil, pages()
	}))
	const listed = `-32042 visit first {"elicitations":[{"mode":"url","message":"m","elicitationId":"a","url":"https://example.com/a"},` +
		`{"mode":"url","message":"n","elicitationId":"b","url":"https://example.com/b"}]}`
	for _, rev := range legacy {
		for _, caps := range []string{everything, `{"elicitation":{}}`, `{}`} {
			tool, prompt := toolError("visit first"), "-32603 visit first"
			if rev == engine.Rev20251125 && caps == everything {
				tool, prompt = listed, listed
			}
			p := connectWith(t, e, rev, caps, yes)
			check(t, rev.String()+" tools/call "+caps, p.call("page", "{}"), tool)
			check(t, rev.String()+" prompts/get "+caps, p.result(codec.MethodPromptsGet, `{"name":"page"}`), prompt)
		}
	}
	c := newModern(t, e)
	check(t, "a modern client without", c.call("page", "{}"), complete(`"content":[{"type":"text","text":"visit first"}],"isError":true`))
	got := c.with(everything).call("page", "{}")
	check(t, "a modern client", string(codec.Member([]byte(got), "inputRequests")),
		`{"input-1":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://example.com/a"}},`+
			`"input-2":{"method":"elicitation/create","params":{"mode":"url","message":"n","url":"https://example.com/b"}}}`)
}

// TestElicitationComplete checks which client is told.
func TestElicitationComplete(t *testing.T) {
	e, _ := newEngine(t, nil)
	for _, c := range []struct {
		rev  engine.Revision
		caps string
		want []string
	}{
		{engine.Rev20250618, everything, nil},
		{engine.Rev20251125, `{"elicitation":{}}`, nil},
		{engine.Rev20251125, everything, []string{`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e\"1"}}`}},
	} {
		p := connectWith(t, e, c.rev, c.caps, yes)
		p.session.NotifyElicitationComplete(`e"1`)
		checkFrames(t, c.rev.String()+" "+c.caps, p.notes.take(), c.want...)
	}
}
