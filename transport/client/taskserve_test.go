package client_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client"
)

const sampleTask = `"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"task":{"ttl":60000}}`

// TestOwnTasks is the life of tasks that the server makes of its requests, in
// virtual time: one is answered, one fails, one is cancelled, one expires.
func TestOwnTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 2)
		_, p := connectPipe(t, &client.Options{
			MaxTasks: 3, SampleTasks: true, OnElicit: onElicit,
			OnSample: func(ctx context.Context, r *client.SampleRequest) (*client.SampleResult, error) {
				switch codec.Text(r.Raw, "systemPrompt") {
				case "fail":
					return nil, client.ErrRejected
				case "wait":
					<-ctx.Done()
					ended <- ctx.Err()
					return nil, ctx.Err()
				}
				time.Sleep(time.Second)
				return onSample(ctx, r)
			},
		})
		created := func(request string) string {
			t.Helper()
			got := p.ask(request)
			_, result, _ := strings.Cut(got, `"result":`)
			id := codec.Text([]byte(result), "task", "taskId")
			if id == "" {
				t.Fatalf("answer to %s: got %s, want a task", request, got)
			}
			validate(t, "2025-11-25", "CreateTaskResult", result)
			return id
		}
		ask := func(id int, method, task string) string {
			return p.ask(fmt.Sprintf(`"id":%d,"method":"tasks/%s","params":{"taskId":"%s"}`, id, method, task))
		}
		expect := func(what, got string, want ...string) {
			t.Helper()
			for _, w := range want {
				if !strings.Contains(got, w) {
					t.Errorf("%s: got %s, want %s in it", what, got, w)
				}
			}
		}
		prompt := func(text string) string {
			return strings.Replace(sampleTask, `"maxTokens"`, `"systemPrompt":"`+text+`","maxTokens"`, 1)
		}

		first := created(`"id":1,` + sampleTask)
		expect("get", ask(2, "get", first), `"id":2,"result":{"taskId":"`+first+`","status":"working","createdAt":"2000-01-01T00:00:00Z"`, `"ttl":60000,"pollInterval":1000}`)
		p.write(`{"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"` + first + `"}}`) // it waits
		status, result := p.line(), p.line()
		if strings.HasPrefix(status, `"id"`) { // either may come first
			status, result = result, status
		}
		expect("status", status, `"method":"notifications/tasks/status","params":{"taskId":"`+first+`","status":"completed"`, `"lastUpdatedAt":"2000-01-01T00:00:01Z"`)
		expect("result", result, `"id":3,"result":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"`+first+`"}},"role":"assistant"`)
		if again := ask(3, "result", first); again != result {
			t.Errorf("result again: got %s, want %s", again, result)
		}

		second := created(`"id":4,` + prompt("fail"))
		expect("status", p.line(), `"status":"failed","statusMessage":"User rejected sampling request"`)
		expect("result", ask(5, "result", second), `"id":5,"error":{"code":-1,`)
		expect("cancel of one that is over", ask(6, "cancel", second), `"error":{"code":-32602,`)

		third := created(`"id":7,` + prompt("wait"))
		expect("one more than MaxTasks", p.ask(`"id":8,`+sampleTask), `"id":8,"error":{"code":-31900,`)
		expect("list", p.ask(`"id":9,"method":"tasks/list"`), `"result":{"tasks":[{"taskId":"`+first, `{"taskId":"`+second, `{"taskId":"`+third, `"status":"working"`)
		expect("list with a cursor", p.ask(`"id":9,"method":"tasks/list","params":{"cursor":""}`), `"error":{"code":-32602,`)
		cancelled := ask(10, "cancel", third)
		expect("cancel", cancelled, `"id":10,"result":{"taskId":"`+third+`","status":"cancelled"`)
		validate(t, "2025-11-25", "CancelTaskResult", strings.TrimPrefix(cancelled, `"id":10,"result":`))
		if err := <-ended; err != context.Canceled {
			t.Errorf("the context of a cancelled task: got %v, want context.Canceled", err)
		}
		expect("result of a cancelled one", ask(11, "result", third), `"error":{"code":-32602,`)
		expect("unknown", ask(12, "get", "x"), `"error":{"code":-32602,`)

		time.Sleep(time.Minute)
		expect("expired", ask(13, "get", first), `"error":{"code":-32602,`)
		fourth := created(`"id":14,` + prompt("wait"))
		expect("expiry", p.line(), `"status":"failed","statusMessage":"Internal error"`)
		if err := <-ended; err != context.DeadlineExceeded {
			t.Errorf("the context of an expired task: got %v, want context.DeadlineExceeded", err)
		}
		expect("list", p.ask(`"id":15,"method":"tasks/list"`), `"id":15,"result":{"tasks":[]}`)
		expect("expired", ask(16, "result", fourth), `"error":{"code":-32602,`)

		// Elicitations were not declared to be tasks: the wish is ignored.
		expect("elicitation", p.ask(`"id":17,"method":"elicitation/create","params":{"message":"m","task":{},"requestedSchema":`+oneField+`}`), `"result":{"action":"accept"`)
	})
}

// TestOwnTaskClosed: closing ends the tasks.
func TestOwnTaskClosed(t *testing.T) {
	noLeaks(t)
	entered := make(chan struct{})
	c, p := connectPipe(t, &client.Options{
		ElicitTasks: true,
		OnElicit: func(ctx context.Context, _ *client.ElicitRequest) (*client.ElicitResult, error) {
			close(entered)
			<-ctx.Done()
			return nil, ctx.Err()
		},
	})
	got := p.ask(`"id":1,"method":"elicitation/create","params":{"message":"m","task":{},"requestedSchema":` + oneField + `}`)
	if !strings.Contains(got, `"ttl":3600000,`) {
		t.Errorf("a task without ttl: got %s, want that of MaxTaskTime", got)
	}
	<-entered
	closeClient(t, c)
}
