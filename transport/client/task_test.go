package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client"
)

const allTasks = `{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`

func taskObject(id, status string) string {
	return `{"taskId":"` + id + `","status":"` + status + `","statusMessage":"s","createdAt":"2025-11-25T10:30:00Z",` +
		`"lastUpdatedAt":"2025-11-25T10:40:00Z","ttl":60000,"pollInterval":5000}`
}

func TestTask(t *testing.T) {
	noLeaks(t)
	ctx := context.Background()
	c, p, _ := connectPipeAs(t, initResultOf("2025-11-25", allTasks), nil)
	sent := make(chan string, 10)
	failed := `"error":{"code":-7,"message":"no"}`
	go func() {
		results := 0
		for f, ok := p.read(); ok; f, ok = p.read() {
			sent <- f.Method + string(f.Params)
			switch f.Method {
			case "tools/call":
				p.write(resultOf(f, `{"task":`+taskObject("t1", "working")+`}`))
			case "tasks/get":
				p.write(resultOf(f, taskObject("t1", "input_required")))
			case "tasks/cancel":
				p.write(resultOf(f, taskObject("t1", "cancelled")))
			case "tasks/list":
				p.write(resultOf(f, `{"tasks":[`+taskObject("t1", "completed")+`,`+taskObject("t2", "failed")+`]}`))
			case "tasks/result":
				if results++; results > 1 {
					p.write(`{"jsonrpc":"2.0","id":` + string(f.ID) + `,` + failed + `}`)
					continue
				}
				p.write(resultOf(f, `{"content":[{"type":"text","text":"done"}]}`))
			}
		}
	}()
	check := func(what string, err error, got, want, wantSent string) {
		t.Helper()
		if s := <-sent; err != nil || got != want || s != wantSent {
			t.Errorf("%s: sent %s, got %s, %v; want %s, %s", what, s, got, err, wantSent, want)
		}
	}
	task, err := c.CallToolAsTask(ctx, "f", []byte(`{"a":1}`), time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	call := `{"name":"f","arguments":{"a":1},"task":{"ttl":60000}}`
	validate(t, "2025-11-25", "CallToolRequestParams", call)
	i := task.Info()
	check("CallToolAsTask", err, fmt.Sprint(task.ID(), " ", i.Status, i.StatusMessage, i.Updated.Sub(i.Created), i.TTL, i.Unlimited, i.PollInterval),
		"t1 workings10m0s 1m0s false 5s", "tools/call"+call)
	i, err = task.Get(ctx)
	check("Get", err, string(i.Status+task.Info().Status), "input_requiredinput_required", `tasks/get{"taskId":"t1"}`)
	r, err := task.Result(ctx, nil)
	check("Result", err, r.Text(), "done", `tasks/result{"taskId":"t1"}`)
	if _, err = task.Result(ctx, nil); !errors.Is(err, codec.NewError(-7, "")) {
		t.Errorf("Result again: got %v, want error -7", err)
	}
	<-sent
	i, err = task.Cancel(ctx)
	check("Cancel", err, fmt.Sprint(i.Status, i.Status.Final()), "cancelledtrue", `tasks/cancel{"taskId":"t1"}`)
	all, err := c.ListTasks(ctx)
	check("ListTasks", err, fmt.Sprint(len(all), all[1].ID, all[1].Status), "2t2failed", `tasks/list`)
	if _, err = c.Task("t9").Get(ctx); !errors.Is(err, client.ErrMalformed) {
		t.Errorf("Get of t9, answered with t1: got %v, want ErrMalformed", err)
	}
}

// TestTaskFails: what is no task is an error, and nothing is left behind that
// would make later tasks fail.
func TestTaskFails(t *testing.T) {
	noLeaks(t)
	c, p, _ := connectPipeAs(t, initResultOf("2025-11-25", allTasks), &client.Options{MaxPending: 1})
	replies := []string{`"error":{"code":-32601,"message":"no"}`, `"result":{"content":[]}`, `"result":{"task":{"taskId":"t"}}`}
	go func() {
		for i := 0; ; i++ {
			f, ok := p.read()
			if !ok {
				return
			}
			p.write(`{"jsonrpc":"2.0","id":` + string(f.ID) + `,` + replies[i] + `}`)
		}
	}()
	for i, is := range []error{codec.ErrMethodNotFound, client.ErrMalformed, client.ErrMalformed} {
		_, err := c.CallToolAsTask(context.Background(), "f", nil, 0, &client.CallOptions{OnProgress: func(client.Progress) {}})
		if !errors.Is(err, is) {
			t.Errorf("CallToolAsTask answered %s: got %v, want %v", replies[i], err, is)
		}
	}
	if _, err := c.CallToolAsTask(context.Background(), "f", []byte(`{`), 0, nil); !errors.Is(err, client.ErrBadParams) {
		t.Errorf("CallToolAsTask with bad arguments: got %v, want ErrBadParams", err)
	}
}

// TestTaskProgress: the token of the call holds until the task is over.
func TestTaskProgress(t *testing.T) {
	noLeaks(t)
	ctx := context.Background()
	var others []string
	c, p, _ := connectPipeAs(t, initResultOf("2025-11-25", allTasks), &client.Options{
		MaxPending:     1,
		OnNotification: func(_ string, params []byte) { others = append(others, codec.Text(params, "message")) },
	})
	progress := func(token, message string) string {
		return `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":1,"message":"` + message + `"}}`
	}
	go func() {
		f := p.expect("tools/call")
		token := string(f.ID)
		if want := `{"_meta":{"progressToken":` + token + `},"name":"f","task":{}}`; string(f.Params) != want {
			t.Errorf("tools/call: got %s, want %s", f.Params, want)
		}
		p.write(progress(token, "before"), resultOf(f, `{"task":`+taskObject("t1", "working")+`}`), progress(token, "after"))
		p.write(resultOf(p.expect("ping"), `{}`))
		f = p.expect("tasks/get")
		p.write(resultOf(f, taskObject("t1", "working")), progress(token, "later"))
		p.write(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":`+taskObject("t1", "completed")+`}`, progress(token, "over"))
		p.write(resultOf(p.expect("tools/call"), `{"task":`+taskObject("t2", "working")+`}`))
	}()
	var got []string
	o := &client.CallOptions{OnProgress: func(p client.Progress) { got = append(got, p.Message) }}
	task, err := c.CallToolAsTask(ctx, "f", nil, 0, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(ctx); err != nil {
		t.Error(err)
	}
	if _, err := c.CallToolAsTask(ctx, "f", nil, 0, o); !errors.Is(err, client.ErrTooManyCalls) {
		t.Errorf("one watched task more than MaxPending: got %v, want ErrTooManyCalls", err)
	}
	if _, err := task.Get(ctx); err != nil {
		t.Error(err)
	}
	for { // there is room again once the first task is over
		if _, err := c.CallToolAsTask(ctx, "f", nil, 0, o); err == nil {
			break
		} else if !errors.Is(err, client.ErrTooManyCalls) {
			t.Fatal(err)
		}
	}
	if have := strings.Join(got, " "); have != "before after later" {
		t.Errorf("progress: got %s, want before after later", have)
	}
	if have := strings.Join(others, " "); have != " over" {
		t.Errorf("other notifications: got %q, want the status and what came after it", have)
	}
}

// TestTaskNotCancelled: notifications/cancelled must not name the call of a
// task; it may name the wait for a result.
func TestTaskNotCancelled(t *testing.T) {
	noLeaks(t)
	c, p, _ := connectPipeAs(t, initResultOf("2025-11-25", allTasks), nil)
	for _, test := range []struct {
		call func(ctx context.Context) error
		want string
	}{
		{func(ctx context.Context) error { _, err := c.CallToolAsTask(ctx, "f", nil, 0, nil); return err }, "ping"},
		{func(ctx context.Context) error { _, err := c.Task("t").Result(ctx, nil); return err }, "notifications/cancelled"},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		next := make(chan string)
		go func() {
			p.read()
			cancel()
			f, _ := p.read()
			if f.Method != "ping" {
				p.write(resultOf(p.expect("ping"), `{}`))
			} else {
				p.write(resultOf(f, `{}`))
			}
			next <- f.Method
		}()
		if err := test.call(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
		if err := c.Ping(context.Background()); err != nil {
			t.Error(err)
		}
		if got := <-next; got != test.want {
			t.Errorf("after the context ended: sent %s, want %s", got, test.want)
		}
	}
}
