package client_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/transport/client"
)

const someNotifications = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"l","data":{"a":1}}}
{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{}}
{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}
{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"u:1"}}
{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{}}
{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t","status":"working","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"x","ttl":null}}
{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t"}}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`

// TestTypedNotifications: each goes to its callback, and to OnNotification where
// there is none or where it is malformed.
func TestTypedNotifications(t *testing.T) {
	noLeaks(t)
	var got []string
	add := func(parts ...any) { got = append(got, strings.TrimSpace(fmt.Sprintln(parts...))) }
	other := func(method string, _ []byte) { add("other", method) }
	typed := client.Options{
		OnNotification:    other,
		OnLog:             func(m client.LogMessage) { add(m.Level, m.Logger, string(m.Data)) },
		OnListChanged:     func(kind client.ListKind) { add("changed", kind) },
		OnResourceUpdated: func(uri string) { add("updated", uri) },
		OnTaskStatus: func(i client.TaskInfo) {
			add(i.ID, i.Status, i.Created.Year(), i.Updated.IsZero(), i.Unlimited)
		},
		OnElicitationComplete: func(id string) { add("complete", id) },
	}
	for _, test := range []struct {
		name string
		o    client.Options
		want string
	}{
		{"typed", typed, "warning l {\"a\":1}\nchanged tools\nchanged resources\nchanged prompts\nupdated u:1\nother notifications/resources/updated\n" +
			"t working 2025 true true\nother notifications/tasks/status\nother notifications/cancelled"},
		{"raw", client.Options{OnNotification: other}, "other notifications/message\nother notifications/tools/list_changed\n" +
			"other notifications/resources/list_changed\nother notifications/prompts/list_changed\nother notifications/resources/updated\n" +
			"other notifications/resources/updated\nother notifications/tasks/status\nother notifications/tasks/status\nother notifications/cancelled"},
		{"none", client.Options{}, ""},
	} {
		got = nil
		c, p := connectPipe(t, &test.o)
		go func() {
			f := p.expect("ping")
			p.write(someNotifications, resultOf(f, `{}`))
		}()
		if err := c.Ping(context.Background()); err != nil {
			t.Error(err)
		}
		if got := strings.Join(got, "\n"); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}

// TestManyElicitations: ids that are never reported complete do not pile up.
func TestManyElicitations(t *testing.T) {
	noLeaks(t)
	var completed []string
	c, p := connectPipe(t, &client.Options{
		OnElicit: onElicit, ElicitModes: client.ElicitURL,
		OnElicitationComplete: func(id string) { completed = append(completed, id) },
	})
	for i := range 1025 {
		p.ask(fmt.Sprintf(`"id":%d,"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://x/","elicitationId":"e%d"}`, i, i))
	}
	go func() {
		f := p.expect("ping")
		for _, i := range []int{0, 1, 1024} {
			p.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e%d"}}`, i))
		}
		p.write(resultOf(f, `{}`))
	}()
	if err := c.Ping(context.Background()); err != nil {
		t.Error(err)
	}
	if got := strings.Join(completed, " "); got != "e1 e1024" {
		t.Errorf("complete: got %s, want e1 e1024: the oldest is forgotten", got)
	}
}

func TestCompleteAndSetLevel(t *testing.T) {
	noLeaks(t)
	ctx := context.Background()
	for _, revision := range []string{"2025-11-25", "2025-03-26", "2024-11-05"} {
		capabilities := `{"logging":{},"completions":{}}`
		if revision == "2024-11-05" {
			capabilities = `{"logging":{}}` // it has no capability for completions
		}
		c, p, _ := connectPipeAs(t, initResultOf(revision, capabilities), nil)
		var sent, reply string
		go func() {
			for f, ok := p.read(); ok; f, ok = p.read() {
				sent = f.Method + string(f.Params)
				p.write(resultOf(f, reply))
			}
		}()
		reply = `{}`
		if err := c.SetLevel(ctx, client.LevelNotice); err != nil || sent != `logging/setLevel{"level":"notice"}` {
			t.Errorf("SetLevel: sent %s, got %v", sent, err)
		}
		for _, test := range []struct {
			r     client.CompleteRequest
			reply string
			sent  string // "" for nothing; context is cut out before 2025-06-18
			want  string
		}{
			{client.CompleteRequest{Prompt: "p", Argument: "a", Value: "v"}, `{"completion":{"values":["x","y"],"total":5,"hasMore":true}}`,
				`{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"}}`, `[x y] 5 true true <nil>`},
			{client.CompleteRequest{Template: "u:{a}", Argument: "a", Others: map[string]string{"c": "2", "b": "1"}}, `{"completion":{"values":[]}}`,
				`{"ref":{"type":"ref/resource","uri":"u:{a}"},"argument":{"name":"a","value":""},"context":{"arguments":{"b":"1","c":"2"}}}`, `[] 0 false false <nil>`},
			{client.CompleteRequest{Argument: "a"}, ``, ``, `client: a completion needs either Prompt or Template`},
			{client.CompleteRequest{Prompt: "p", Template: "u"}, ``, ``, `client: a completion needs either Prompt or Template`},
			{client.CompleteRequest{Prompt: "p"}, `{"completion":{"values":[1]}}`,
				`{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"","value":""}}`, `client: malformed answer: completion/complete gave no values: {"completion":{"values":[1]}}`},
		} {
			sent, reply = "", test.reply
			got, err := c.Complete(ctx, &test.r)
			have := fmt.Sprint(err)
			if err == nil {
				have = fmt.Sprintln(got.Values, got.Total, got.HasTotal, got.HasMore, err)
			}
			if revision != "2025-11-25" {
				test.sent = strings.Replace(test.sent, `,"context":{"arguments":{"b":"1","c":"2"}}`, ``, 1)
			}
			if strings.TrimSpace(have) != test.want || strings.TrimPrefix(sent, "completion/complete") != test.sent {
				t.Errorf("Complete(%+v) in %s: sent %s, got %s; want %s, %s", test.r, revision, sent, have, test.sent, test.want)
			}
			if test.sent != "" && revision == "2025-11-25" {
				validate(t, revision, "CompleteRequestParams", test.sent)
			}
		}
	}
}
