package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

type (
	before = func(ctx context.Context, c *engine.Call) error
	after  = func(ctx context.Context, c *engine.Call, o *engine.Outcome)
)

// TestHookOrder notes who runs when around a call of each kind.
func TestHookOrder(t *testing.T) {
	for _, rev := range bothEras {
		var log []string
		note := func(name string) before {
			return func(context.Context, *engine.Call) error { log = append(log, name); return nil }
		}
		noteAfter := func(name string) after {
			return func(context.Context, *engine.Call, *engine.Outcome) { log = append(log, name) }
		}
		e, _ := newEngine(t, &engine.Options{
			Before: []before{note("before1"), note("before2")}, After: []after{noteAfter("after1"), noteAfter("after2")},
		})
		e.Use(track(&log, "use"))
		must(t, engine.AddTool(e, engine.Tool{Name: "tool"}, func(context.Context, *engine.Call, struct{}) (string, error) {
			log = append(log, "handler")
			return "", nil
		}))
		must(t, e.AddPrompt(engine.Prompt{Name: "p"}, func(context.Context, *engine.Call, map[string]string) (*engine.PromptResult, error) {
			log = append(log, "handler")
			return &engine.PromptResult{}, nil
		}))
		must(t, e.AddResource(engine.Resource{URI: "r:", Name: "r"}, func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) {
			log = append(log, "handler")
			return nil, nil
		}))
		c := callerAs(t, e, rev, "")
		const whole = "before1 before2 use> handler <use after1 after2"
		for _, r := range []struct{ method, params, want string }{
			{codec.MethodToolsCall, `{"name":"tool"}`, whole},
			{codec.MethodToolsCall, `{"name":"tool","arguments":{"no":"such"}}`, strings.Replace(whole, "handler ", "", 1)},
			{codec.MethodPromptsGet, `{"name":"p"}`, whole},
			{codec.MethodResourcesRead, `{"uri":"r:"}`, whole},
			{codec.MethodToolsList, `{}`, "use> <use"},
			{codec.MethodToolsCall, `{"name":"no such"}`, ""},
		} {
			log = nil
			c.result(r.method, r.params)
			check(t, fmt.Sprint(rev, " ", r.method, " ", r.params), strings.Join(log, " "), r.want)
		}
	}
}

// hooked makes an engine whose hooks are set by the test, between calls.
func hooked(t *testing.T) (e *engine.Engine, b *before, a *after) {
	t.Helper()
	b, a = new(before), new(after)
	e, _ = newEngine(t, &engine.Options{
		Before: []before{func(ctx context.Context, c *engine.Call) error {
			if *b == nil {
				return nil
			}
			return (*b)(ctx, c)
		}},
		After: []after{func(ctx context.Context, c *engine.Call, o *engine.Outcome) {
			if *a != nil {
				(*a)(ctx, c, o)
			}
		}},
	})
	must(t, engine.AddTool(e, engine.Tool{Name: "add"}, func(_ context.Context, _ *engine.Call, in struct {
		X, Y int
	}) (string, error) {
		if in.X < 0 {
			return "", errors.New("secret: X is negative")
		}
		return fmt.Sprint("secret ", in.X+in.Y), nil
	}))
	echo(t, e, "echo")
	must(t, e.AddPrompt(engine.Prompt{Name: "p", Arguments: []engine.PromptArgument{{Name: "a"}}},
		func(_ context.Context, _ *engine.Call, args map[string]string) (*engine.PromptResult, error) {
			if args["a"] == "bad" {
				return nil, codec.NewError(7, "secret")
			}
			return &engine.PromptResult{Description: "secret " + args["a"]}, nil
		}))
	must(t, e.AddResource(engine.Resource{URI: "r:", Name: "r"}, readsAs("secret")))
	return e, b, a
}

// plain takes from a result of the stateless era what only that has.
func plain(result string) string {
	result = strings.Replace(result, `"resultType":"complete",`, "", 1)
	result = strings.Replace(result, `,"_meta":{`+serverInfo+`}`, "", 1)
	return strings.Replace(result, `,"ttlMs":0,"cacheScope":"private"`, "", 1)
}

func TestBefore(t *testing.T) {
	refuse := func(err error) before { return func(context.Context, *engine.Call) error { return err } }
	set := func(raw string) before {
		return func(_ context.Context, c *engine.Call) error { return c.SetArguments(json.RawMessage(raw)) }
	}
	const add, prompt = `{"name":"add","arguments":{"X":1,"Y":2}}`, `{"name":"p"}`
	for _, rev := range bothEras {
		e, b, _ := hooked(t)
		c := callerAs(t, e, rev, "")
		for _, r := range []struct {
			what           string
			before         before
			method, params string
			want           string
		}{
			{"lets through", nil, codec.MethodToolsCall, add, text("secret 3")},
			{"refuses a tool", refuse(errors.New("ask /home/me first")), codec.MethodToolsCall, add, toolError("ask …/me first")},
			{"refuses a tool by the protocol", refuse(codec.NewError(-7, "no")), codec.MethodToolsCall, add, "-7 no"},
			{"refuses a tool by the protocol, wrapped", refuse(fmt.Errorf("x: %w", codec.NewError(-7, "no"))), codec.MethodToolsCall, add, "-7 no"},
			{"refuses a prompt", refuse(errors.New("no")), codec.MethodPromptsGet, prompt, "-32603 Internal error"},
			{"refuses a prompt by the protocol", refuse(codec.NewError(-7, "no")), codec.MethodPromptsGet, prompt, "-7 no"},
			{"refuses a resource by the protocol", refuse(codec.NewError(-7, "no")), codec.MethodResourcesRead, `{"uri":"r:"}`, "-7 no"},
			{"panics", func(context.Context, *engine.Call) error { panic("oh") }, codec.MethodToolsCall, add, "-32603 Internal error"},
			{"replaces arguments", set(`{"X":10,"Y":20}`), codec.MethodToolsCall, add, text("secret 30")},
			{"replaces arguments that were missing", set(`{"X":10,"Y":20}`), codec.MethodToolsCall, `{"name":"add"}`, text("secret 30")},
			{"replaces arguments that would not do", set(`{"X":10,"Y":20}`), codec.MethodToolsCall, `{"name":"add","arguments":{"Z":1}}`, text("secret 30")},
			{"replaces arguments by bad ones", set(`{"X":"ten","Y":2}`), codec.MethodToolsCall, add,
				toolError("Invalid arguments: /X must be an integer, not a string")},
			{"replaces raw arguments", set(`{"a": "\u0062"}`), codec.MethodToolsCall, `{"name":"echo"}`, text(`{\"a\": \"\\u0062\"}`)},
			{"replaces a prompt's", set(`{"a":"new"}`), codec.MethodPromptsGet, `{"name":"p","arguments":{"a":"old"}}`,
				`{"description":"secret new","messages":[]}`},
			{"replaces a prompt's by bad ones", set(`{"a":1}`), codec.MethodPromptsGet, prompt,
				"-32602 Invalid params: argument a must be a string"},
			{"replaces by no object", set(`[1]`), codec.MethodToolsCall, add, toolError("engine: arguments are a JSON object")},
			{"replaces by no JSON", set(`{"X":1`), codec.MethodToolsCall, add, toolError("engine: arguments are a JSON object")},
			{"replaces by nothing", set(``), codec.MethodToolsCall, add, toolError("engine: arguments are a JSON object")},
		} {
			*b = r.before
			check(t, fmt.Sprint(rev, " Before that ", r.what), plain(c.result(r.method, r.params)), r.want)
		}
	}
}

// TestBeforeOldRevision checks that a refusal is what a handler's error would
// be where arguments that do not fit are a protocol error.
func TestBeforeOldRevision(t *testing.T) {
	e, b, _ := hooked(t)
	p := connect(t, e, engine.Rev20241105)
	*b = func(context.Context, *engine.Call) error { return errors.New("no") }
	check(t, "refusal", p.call("add", `{"X":1,"Y":2}`), toolError("no"))
	*b = func(_ context.Context, c *engine.Call) error { return c.SetArguments(json.RawMessage(`{}`)) }
	check(t, "arguments that do not fit", p.call("add", `{"X":1,"Y":2}`), "-32602 Invalid arguments: /X is required but missing")
}

func TestAfter(t *testing.T) {
	const add = `{"name":"add","arguments":{"X":1,"Y":2}}`
	redact := func(_ context.Context, c *engine.Call, o *engine.Outcome) {
		if o.Err != nil {
			o.Err = codec.NewError(8, "redacted")
			return
		}
		c.SetResult(json.RawMessage(strings.ReplaceAll(string(c.Result()), "secret", "…")))
	}
	for _, rev := range bothEras {
		e, b, a := hooked(t)
		c := callerAs(t, e, rev, "")
		for _, r := range []struct {
			what           string
			before         before
			after          after
			method, params string
			want           string
		}{
			{"a result", nil, redact, codec.MethodToolsCall, add, text("… 3")},
			{"a tool's error", nil, redact, codec.MethodToolsCall, `{"name":"add","arguments":{"X":-1,"Y":2}}`, toolError("…: X is negative")},
			{"arguments that do not fit", nil, redact, codec.MethodToolsCall, `{"name":"add","arguments":{"secret":1,"X":1,"Y":2}}`,
				toolError(`Invalid arguments: /… is not a known member; known: \"X\", \"Y\"`)},
			{"a prompt", nil, redact, codec.MethodPromptsGet, `{"name":"p","arguments":{"a":"x"}}`, `{"description":"… x","messages":[]}`},
			{"a prompt's error", nil, redact, codec.MethodPromptsGet, `{"name":"p","arguments":{"a":"bad"}}`, "8 redacted"},
			{"a resource", nil, redact, codec.MethodResourcesRead, `{"uri":"r:"}`, `{"contents":[{"uri":"r:","text":"…"}]}`},
			{"a refusal", func(context.Context, *engine.Call) error { return errors.New("secret") }, redact, codec.MethodToolsCall, add, toolError("…")},
			{"a refusal by the protocol", func(context.Context, *engine.Call) error { return codec.NewError(1, "secret") }, redact,
				codec.MethodToolsCall, add, "8 redacted"},
			{"an error that becomes a result", nil, func(_ context.Context, c *engine.Call, o *engine.Outcome) {
				c.SetResult(json.RawMessage(`{"description":"instead of ` + o.Err.Error() + `,` + string(c.Result()) + `","messages":[]}`))
				o.Err = nil
			}, codec.MethodPromptsGet, `{"name":"p","arguments":{"a":"bad"}}`, `{"description":"instead of secret (7),","messages":[]}`},
			{"a result that becomes an error", nil, func(_ context.Context, _ *engine.Call, o *engine.Outcome) {
				o.Err = codec.NewError(9, "withheld")
			}, codec.MethodToolsCall, add, "9 withheld"},
			{"a panic", nil, func(context.Context, *engine.Call, *engine.Outcome) { panic("oh") }, codec.MethodToolsCall, add, "-32603 Internal error"},
		} {
			*b, *a = r.before, r.after
			check(t, fmt.Sprint(rev, " After on ", r.what), plain(c.result(r.method, r.params)), r.want)
		}
	}
}

// TestOutcome checks what After is told.
func TestOutcome(t *testing.T) {
	for _, rev := range bothEras {
		e, b, a := hooked(t)
		must(t, e.AddRawTool(engine.Tool{Name: "panics"}, func(context.Context, *engine.Call, []byte, []byte) ([]byte, error) { panic("oh") }))
		c := callerAs(t, e, rev, "")
		var got string
		*a = func(_ context.Context, _ *engine.Call, o *engine.Outcome) {
			got = fmt.Sprint(o.Err, " ", o.ToolError, " ", o.Refused)
		}
		refusal := func(err error) before { return func(context.Context, *engine.Call) error { return err } }
		for _, r := range []struct {
			what           string
			before         before
			method, params string
			want           string
		}{
			{"a result", nil, codec.MethodToolsCall, `{"name":"echo"}`, "<nil> false false"},
			{"a tool's error", nil, codec.MethodToolsCall, `{"name":"add","arguments":{"X":-1,"Y":2}}`, "<nil> true false"},
			{"a protocol error", nil, codec.MethodPromptsGet, `{"name":"p","arguments":{"a":"bad"}}`, "secret (7) false false"},
			{"a refusal", refusal(errors.New("no")), codec.MethodToolsCall, `{"name":"echo"}`, "<nil> true true"},
			{"a refusal by the protocol", refusal(codec.NewError(7, "no")), codec.MethodToolsCall, `{"name":"echo"}`, "no (7) false true"},
			{"a refusal of a prompt", refusal(errors.New("no")), codec.MethodPromptsGet, `{"name":"p"}`, "no false true"},
			{"a panic", nil, codec.MethodToolsCall, `{"name":"panics"}`, ""},
		} {
			got, *b = "", r.before
			c.result(r.method, r.params)
			check(t, fmt.Sprint(rev, " outcome of ", r.what), got, r.want)
		}
	}
}

// TestApproval has a Before hook ask the user, which in the stateless era takes
// a round, and replace the arguments, on which the round's state must not
// depend.
func TestApproval(t *testing.T) {
	for _, answer := range []string{"accept", "decline"} {
		var rounds int
		e, _ := newEngine(t, &engine.Options{
			Before: []before{func(ctx context.Context, c *engine.Call) error {
				rounds++
				if err := c.SetArguments(json.RawMessage(`{"checked":true}`)); err != nil {
					return err
				}
				r, err := c.Elicit(ctx, askName("approval"))
				if err != nil {
					return err
				}
				if r.Action != "accept" {
					return errors.New("the user said no")
				}
				return nil
			}},
			After: []after{func(_ context.Context, c *engine.Call, o *engine.Outcome) {
				c.SetResult(json.RawMessage(strings.Replace(string(c.Result()), "checked", fmt.Sprint("refused:", o.Refused), 1)))
			}},
		})
		echo(t, e, "echo")
		reply := func(string, []byte) string {
			if answer == "accept" {
				return `{"action":"accept","content":{"name":"Ann"}}`
			}
			return `{"action":"` + answer + `"}`
		}
		want := map[string]string{"accept": text(`{\"refused:false\":true}`), "decline": toolError("the user said no")}[answer]
		p := connectWith(t, e, engine.Rev20251125, everything, reply)
		check(t, "in a session, after "+answer, p.call("echo", `{"mine":1}`), want)
		if rounds != 1 {
			t.Errorf("in a session: Before ran %d times, want once", rounds)
		}
		rounds = 0
		got, n := newModern(t, e).with(everything).rounds(codec.MethodToolsCall, `{"name":"echo","arguments":{"mine":1}}`, reply)
		check(t, "without a session, after "+answer, plain(got), want)
		if n != 2 || rounds != 2 {
			t.Errorf("without a session: %d rounds, in which Before ran %d times, want 2 and 2", n, rounds)
		}
	}
}
