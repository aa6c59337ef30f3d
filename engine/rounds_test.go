package engine_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// callAsk are the params of a call that asks.
const callAsk = `{"name":"ask","arguments":{"a":1}}`

// addTwoRounds registers a tool, a prompt and a resource that ask for a name,
// then for a word, and keep a note between the rounds.
func addTwoRounds(t *testing.T, e *engine.Engine) {
	t.Helper()
	two := func(ctx context.Context, c *engine.Call) (string, error) {
		name, err := c.Elicit(ctx, askName("name"))
		if err != nil {
			return "", err
		}
		if note := c.State(); note == nil {
			c.SetState([]byte("note of " + codec.Text(name.Content, "name")))
		}
		word, err := c.Sample(ctx, &engine.SampleRequest{Key: "word", MaxTokens: 5,
			Messages: []engine.SampleMessage{{Role: "user", Content: []engine.Content{engine.Text{Text: "a word"}}}}})
		if err != nil {
			return "", err
		}
		return codec.Text(name.Content, "name") + ", " + word.Text() + ", " + string(c.State()), nil
	}
	must(t, addTool(e, engine.Tool{Name: "ask"}, two))
	must(t, addTool(e, engine.Tool{Name: "other"}, two))
	must(t, e.AddPrompt(engine.Prompt{Name: "ask"}, func(ctx context.Context, c *engine.Call, _ map[string]string) (*engine.PromptResult, error) {
		words, err := two(ctx, c)
		return &engine.PromptResult{Messages: []engine.PromptMessage{{Role: "user", Content: engine.Text{Text: words}}}}, err
	}))
	must(t, e.AddResource(engine.Resource{URI: "ask:", Name: "n"}, func(ctx context.Context, c *engine.Call, _ string) ([]engine.ResourceContents, error) {
		words, err := two(ctx, c)
		return []engine.ResourceContents{{Text: words}}, err
	}))
}

const (
	annAnswer  = `{"name":{"action":"accept","content":{"name":"Ann"}}}`
	wordAnswer = `{"word":{"role":"assistant","content":{"type":"text","text":"hey"},"model":"m"}}`
	badState   = "-32602 Invalid params: requestState was not given out for this request, or its time is over"
)

// TestRounds follows a request over its rounds. Only the answers of the last one
// come each time.
func TestRounds(t *testing.T) {
	e, _ := newEngine(t, nil)
	addTwoRounds(t, e)
	c := newModern(t, e).with(everything)
	for _, r := range []struct{ method, params, want string }{
		{codec.MethodToolsCall, callAsk, complete(`"content":[{"type":"text","text":"Ann, hey, note of Ann"}]`)},
		{codec.MethodPromptsGet, `{"name":"ask"}`, complete(`"messages":[{"role":"user","content":{"type":"text","text":"Ann, hey, note of Ann"}}]`)},
		{codec.MethodResourcesRead, `{"uri":"ask:"}`, complete(`"contents":[{"uri":"ask:","text":"Ann, hey, note of Ann"}],"ttlMs":0,"cacheScope":"private"`)},
	} {
		first := c.result(r.method, r.params)
		question, state1 := inputs(first)
		check(t, r.method+", round 1", question, "name=elicitation/create")
		if codec.Member([]byte(first), "ttlMs") != nil || codec.Member([]byte(first), "content") != nil {
			t.Errorf("%s, round 1: got %s, want neither content nor ttlMs", r.method, first)
		}
		question, state2 := inputs(c.result(r.method, retry(r.params, annAnswer, state1)))
		check(t, r.method+", round 2", question, "word=sampling/createMessage")
		if state1 == state2 || state1 == "" || state2 == "" {
			t.Errorf("%s: states %q and %q, want two", r.method, state1, state2)
		}
		check(t, r.method+", round 3", c.result(r.method, retry(r.params, wordAnswer, state2)), r.want)
		check(t, r.method+", round 3 again", c.result(r.method, retry(r.params, wordAnswer, state2)), r.want)
		got, n := c.rounds(r.method, r.params, func(method string, _ []byte) string {
			key := map[string]string{codec.MethodElicit: annAnswer, codec.MethodSample: wordAnswer}[method]
			return key[strings.Index(key, ":")+1 : len(key)-1]
		})
		check(t, r.method+", by a client", got, r.want)
		if n != 3 {
			t.Errorf("%s: took %d rounds, want 3", r.method, n)
		}
	}
	if got := e.Stats(); got.Sessions != 0 || got.ActiveRequests != 0 {
		t.Errorf("Stats: got %+v, want nothing left", got)
	}
}

// TestRetries sends answers of many shapes. What will do is taken, even without
// a state; what will not is asked for again.
func TestRetries(t *testing.T) {
	e, _ := newEngine(t, nil)
	addTwoRounds(t, e)
	c := newModern(t, e).with(everything)
	_, state := inputs(c.result(codec.MethodToolsCall, callAsk))
	const first, second = "name=elicitation/create", "word=sampling/createMessage"
	for _, r := range []struct{ responses, state, want string }{
		{annAnswer, state, second},
		{annAnswer, "", second},
		{`{"wrong":{"action":"accept"},"name":{"action":"accept","content":{"name":"Ann"}},"x":1}`, "", second},
		{`{"name":{"action":"decline"}}`, state, second},
		{`{}`, state, first},
		{`{"wrong":{"action":"accept","content":{"name":"Ann"}}}`, state, first},
		{`{"name":{"action":"accept"}}`, state, first},
		{`{"name":{"action":"accept","content":{"name":7}}}`, state, first},
		{`{"name":{"action":"accept","content":[]}}`, state, first},
		{`{"name":{"action":"maybe"}}`, state, first},
		{`{"name":{}}`, state, first},
		{`{"name":12345}`, state, first},
		{`{"name":null}`, state, first},
		{`{"name":[{"action":"accept"}]}`, state, first},
		{`null`, state, first},
		{`[]`, state, first},
		{`"x"`, state, first},
		{wordAnswer, state, first}, // of a later question, which is kept
	} {
		got, _ := inputs(c.result(codec.MethodToolsCall, retry(callAsk, r.responses, r.state)))
		check(t, "a retry with "+r.responses, got, r.want)
	}
	// A later answer that came too early counts when its turn has come.
	_, early := inputs(c.result(codec.MethodToolsCall, retry(callAsk, wordAnswer, state)))
	check(t, "the answers in another order", c.result(codec.MethodToolsCall, retry(callAsk, annAnswer, early)),
		complete(`"content":[{"type":"text","text":"Ann, hey, note of Ann"}]`))
}

// TestForeignStates refuses a state that is not ours, or not of this request.
func TestForeignStates(t *testing.T) {
	type who struct{}
	options := func() *engine.Options {
		return &engine.Options{Principal: func(ctx context.Context) string { name, _ := ctx.Value(who{}).(string); return name }}
	}
	e, _ := newEngine(t, options())
	addTwoRounds(t, e)
	of := func(e *engine.Engine, name string) *modern {
		c := newModern(t, e).with(everything)
		c.ctx = context.WithValue(context.Background(), who{}, name)
		return c
	}
	ann := of(e, "ann")
	_, state := inputs(ann.result(codec.MethodToolsCall, callAsk))
	stranger, _ := newEngine(t, options())
	addTwoRounds(t, stranger)
	flipped := []byte(state)
	flipped[len(flipped)/2] ^= 1
	const second = "word=sampling/createMessage"
	for _, r := range []struct {
		what           string
		c              *modern
		method, params string
		state          string
		want           string
	}{
		{"its own", ann, codec.MethodToolsCall, callAsk, state, second},
		{"other white space around the arguments", ann, codec.MethodToolsCall, `{"name":"ask", "arguments": {"a":1}}`, state, second},
		{"another principal", of(e, "bob"), codec.MethodToolsCall, callAsk, state, badState},
		{"nobody", of(e, ""), codec.MethodToolsCall, callAsk, state, badState},
		{"other arguments", ann, codec.MethodToolsCall, `{"name":"ask","arguments":{"a":2}}`, state, badState},
		{"no arguments", ann, codec.MethodToolsCall, `{"name":"ask"}`, state, badState},
		{"another tool", ann, codec.MethodToolsCall, `{"name":"other","arguments":{"a":1}}`, state, badState},
		{"a prompt of that name", ann, codec.MethodPromptsGet, `{"name":"ask"}`, state, badState},
		{"a resource", ann, codec.MethodResourcesRead, `{"uri":"ask:"}`, state, badState},
		{"a stranger's engine", of(stranger, "ann"), codec.MethodToolsCall, callAsk, state, badState},
		{"a suffix", ann, codec.MethodToolsCall, callAsk, state + "-TAMPERED", badState},
		{"cut short", ann, codec.MethodToolsCall, callAsk, state[:len(state)-4], badState},
		{"a flipped bit", ann, codec.MethodToolsCall, callAsk, string(flipped), badState},
		{"nonsense", ann, codec.MethodToolsCall, callAsk, "e30", badState},
		{"empty", ann, codec.MethodToolsCall, strings.TrimSuffix(callAsk, "}") + `,"requestState":""}`, "", badState},
		{"not a string, which is none", ann, codec.MethodToolsCall, strings.TrimSuffix(callAsk, "}") + `,"requestState":7}`, "", second},
		{"null", ann, codec.MethodToolsCall, strings.TrimSuffix(callAsk, "}") + `,"requestState":null}`, "", second},
	} {
		got := r.c.result(r.method, retry(r.params, annAnswer, r.state))
		if asked, _ := inputs(got); asked != "" {
			got = asked
		}
		check(t, "a state: "+r.what, got, r.want)
	}
}

// TestStateOfReplicas resumes on another engine, with other keys around the one
// that sealed.
func TestStateOfReplicas(t *testing.T) {
	key := func(b byte) []byte { return []byte(strings.Repeat(string(rune(b)), 32)) }
	replica := func(keys ...[]byte) *modern {
		e, _ := newEngine(t, &engine.Options{StateKeys: keys})
		addTwoRounds(t, e)
		return newModern(t, e).with(everything)
	}
	before, between, after, late := replica(key('a')), replica(key('b'), key('a')), replica(key('b')), replica(key('c'), key('b'))
	_, state := inputs(before.result(codec.MethodToolsCall, callAsk))
	_, rotated := inputs(between.result(codec.MethodToolsCall, callAsk))
	for _, r := range []struct {
		what  string
		c     *modern
		state string
		ok    bool
	}{
		{"old by old", before, state, true}, {"old between", between, state, true}, {"old by new", after, state, false},
		{"new by old", before, rotated, false}, {"new by new", after, rotated, true}, {"new, later", late, rotated, true},
	} {
		got := r.c.result(codec.MethodToolsCall, retry(callAsk, annAnswer, r.state))
		if ok := got != badState; ok != r.ok {
			t.Errorf("%s: got %s, taken %t, want %t", r.what, got, ok, r.ok)
		}
	}
	for _, wrong := range [][]byte{nil, {}, key('a')[:16], append(key('a'), 'a')} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("New with a key of %d bytes: no panic", len(wrong))
				}
			}()
			engine.New(engine.Info{}, &engine.Options{StateKeys: [][]byte{wrong}})
		}()
	}
}

// TestStateExpires keeps a state for a quarter of an hour, in virtual time.
func TestStateExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(t, nil)
		addTwoRounds(t, e)
		c := newModern(t, e).with(everything)
		_, state := inputs(c.result(codec.MethodToolsCall, callAsk))
		time.Sleep(15 * time.Minute)
		got, next := inputs(c.result(codec.MethodToolsCall, retry(callAsk, annAnswer, state)))
		check(t, "after 15 minutes", got, "word=sampling/createMessage")
		time.Sleep(time.Second)
		check(t, "a second later", c.result(codec.MethodToolsCall, retry(callAsk, annAnswer, state)), badState)
		check(t, "the next round's", c.result(codec.MethodToolsCall, retry(callAsk, wordAnswer, next)),
			complete(`"content":[{"type":"text","text":"Ann, hey, note of Ann"}]`))
	})
}

// TestStateExpiresByTheClock does the same with Options.Clock, which jumps.
func TestStateExpiresByTheClock(t *testing.T) {
	var ahead atomic.Int64
	e, _ := newEngine(t, &engine.Options{Clock: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	addTwoRounds(t, e)
	c := newModern(t, e).with(everything)
	_, state := inputs(c.result(codec.MethodToolsCall, callAsk))
	for _, jump := range []struct {
		to  time.Duration
		bad bool
	}{{14 * time.Minute, false}, {16 * time.Minute, true}, {-16 * time.Minute, false}, {0, false}} {
		ahead.Store(int64(jump.to))
		if got := c.result(codec.MethodToolsCall, retry(callAsk, annAnswer, state)); (got == badState) != jump.bad {
			t.Errorf("with a clock that is %v ahead: got %s, want it refused: %t", jump.to, got, jump.bad)
		}
	}
}

// TestRoundsAreBounded has a handler that asks for ever.
func TestRoundsAreBounded(t *testing.T) {
	e, _ := newEngine(t, nil)
	n := 0
	must(t, addTool(e, engine.Tool{Name: "ask"}, func(ctx context.Context, c *engine.Call) (string, error) {
		n++
		_, err := c.Elicit(ctx, askName(fmt.Sprint("q", n)))
		return "", err
	}))
	got, rounds := newModern(t, e).with(everything).rounds(codec.MethodToolsCall, callAsk, yes)
	check(t, "a request without end", got, "-32603 The request took too many rounds")
	if rounds != 33 {
		t.Errorf("rounds: got %d, want 33", rounds)
	}
}

// TestStateIsBounded answers so much that it cannot be kept, and almost.
func TestStateIsBounded(t *testing.T) {
	e, _ := newEngine(t, nil)
	addTwoRounds(t, e)
	c := newModern(t, e).with(everything)
	for _, r := range []struct {
		kilobytes int
		want      string
	}{{60, "word=sampling/createMessage"}, {300, "-32602 Invalid params: the answers are too long to be kept for the next round"}} {
		name := strings.Repeat("x", r.kilobytes<<10)
		got := c.result(codec.MethodToolsCall, retry(callAsk, `{"unknown":{},"name":{"action":"accept","content":{"name":"`+name+`"}}}`, ""))
		asked, state := inputs(got)
		if asked != "" {
			got = asked
		}
		check(t, fmt.Sprint(r.kilobytes, " KiB"), got, r.want)
		if asked != "" {
			if got := c.result(codec.MethodToolsCall, retry(callAsk, wordAnswer, state)); !strings.Contains(got, name) {
				t.Errorf("%d KiB, the next round: got %.200s", r.kilobytes, got)
			}
		}
	}
}

// TestAskAllInRounds asks three things in one round, and what it may of them.
func TestAskAllInRounds(t *testing.T) {
	e, _ := newEngine(t, nil)
	must(t, addTool(e, engine.Tool{Name: "all"}, askThree))
	must(t, addTool(e, engine.Tool{Name: "twice"}, func(ctx context.Context, c *engine.Call) (string, error) {
		_, err := c.AskAll(ctx, askName("same"), askName("same"), askName(""), askName(""))
		return "done", err
	}))
	must(t, addTool(e, engine.Tool{Name: "careful"}, func(ctx context.Context, c *engine.Call) (string, error) {
		if c.Require("elicitation.form") == nil || c.Require("elicitation") == nil {
			if _, err := c.Elicit(ctx, askName("")); err != nil {
				return "", err
			}
			return "asked", nil
		}
		_, err := c.Roots(ctx)
		return "roots", err
	}))
	c := newModern(t, e)
	got, state := inputs(c.with(everything).call("all", "{}"))
	check(t, "all", got, "name=elicitation/create roots=roots/list sample=sampling/createMessage")
	if state == "" {
		t.Error("all: no requestState")
	}
	result, n := c.with(everything).rounds(codec.MethodToolsCall, `{"name":"all"}`, yes)
	check(t, "all, answered", result, complete(`"content":[{"type":"text","text":"accept sampled file:///x"}]`))
	if n != 2 {
		t.Errorf("all: took %d rounds, want 2", n)
	}
	// A part of the answers: the rest is asked for again.
	got, _ = inputs(c.with(everything).result(codec.MethodToolsCall, retry(`{"name":"all"}`, annAnswer, "")))
	check(t, "all, one answered", got, "roots=roots/list sample=sampling/createMessage")

	got, _ = inputs(c.with(everything).call("twice", "{}"))
	check(t, "one key twice", got, "same=elicitation/create input-1=elicitation/create input-2=elicitation/create")

	for _, missing := range []struct{ caps, tool, want string }{
		{`{}`, "all", `-32021 Missing required client capability: elicitation {"requiredCapabilities":{"elicitation":{}}}`},
		{`{"elicitation":{"url":{}}}`, "all", `-32021 Missing required client capability: elicitation.form {"requiredCapabilities":{"elicitation":{"form":{}}}}`},
		{`{"elicitation":{},"roots":{}}`, "all", `-32021 Missing required client capability: sampling {"requiredCapabilities":{"sampling":{}}}`},
		{`{"elicitation":{},"sampling":{}}`, "all", `-32021 Missing required client capability: roots {"requiredCapabilities":{"roots":{}}}`},
		{`{}`, "careful", `-32021 Missing required client capability: roots {"requiredCapabilities":{"roots":{}}}`},
	} {
		check(t, missing.tool+" with "+missing.caps, c.with(missing.caps).call(missing.tool, "{}"), missing.want)
	}
	got, _ = inputs(c.with(`{"roots":{}}`).call("careful", "{}"))
	check(t, "a tool that can do with less", got, "input-1=roots/list")
}

// TestNoRoundsElsewhere has handlers of other methods ask. The client is not
// asked, and capabilities of an earlier request mean nothing.
func TestNoRoundsElsewhere(t *testing.T) {
	e, _ := newEngine(t, nil)
	ask := func(ctx context.Context, c *engine.Call) error {
		_, err := c.Roots(ctx)
		return err
	}
	must(t, e.AddMethod("x/ask", ask))
	must(t, e.AddPrompt(engine.Prompt{Name: "p", Arguments: []engine.PromptArgument{{Name: "a"}},
		Complete: func(ctx context.Context, c *engine.Call, _, _ string, _ map[string]string) (engine.Completion, error) {
			return engine.Completion{}, ask(ctx, c)
		}}, nil))
	must(t, addTool(e, engine.Tool{Name: "roots"}, func(ctx context.Context, c *engine.Call) (string, error) { return "", ask(ctx, c) }))
	c := newModern(t, e).with(`{"roots":{}}`)
	check(t, "a method of one's own", c.result("x/ask", ""), "-32603 Internal error")
	check(t, "completion", c.result(codec.MethodComplete, `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}`),
		"-32603 Internal error")
	if asked, _ := inputs(c.call("roots", "{}")); asked != "input-1=roots/list" {
		t.Errorf("a tool: got %q, want roots/list", asked)
	}
	check(t, "a client that says nothing now", c.with("{}").call("roots", "{}"),
		`-32021 Missing required client capability: roots {"requiredCapabilities":{"roots":{}}}`)
}

// TestStateIsSecret looks for what the server keeps in what the client gets.
func TestStateIsSecret(t *testing.T) {
	e, _ := newEngine(t, nil)
	addTwoRounds(t, e)
	c := newModern(t, e).with(everything)
	_, state := inputs(c.result(codec.MethodToolsCall, callAsk))
	_, state = inputs(c.result(codec.MethodToolsCall, retry(callAsk, annAnswer, state)))
	raw, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil {
		t.Fatalf("requestState %q: %v", state, err)
	}
	if strings.Contains(string(raw), "Ann") || strings.Contains(string(raw), "note") {
		t.Errorf("requestState tells %q", raw)
	}
	_, again := inputs(c.result(codec.MethodToolsCall, callAsk))
	_, once := inputs(c.result(codec.MethodToolsCall, callAsk))
	if again == once {
		t.Error("two states are the same: the nonce repeats")
	}
}
