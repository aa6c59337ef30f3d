package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

const noTasks = `-32021 Missing required client capability: extensions.io.modelcontextprotocol/tasks ` +
	`{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

// createModern begins a task of the extension and gives its id.
func createModern(t *testing.T, c *modern, tool string) string {
	t.Helper()
	got := []byte(c.call(tool, "{}"))
	id := codec.Text(got, "taskId")
	if codec.Text(got, "resultType") != "task" || id == "" {
		t.Fatalf("tools/call %s: got %s, want a task", tool, got)
	}
	return id
}

// TestTasksExtension follows tasks of 2026-07-28, where the server decides.
func TestTasksExtension(t *testing.T) {
	taskBubble(t, engine.Options{}, func(t *testing.T, e *engine.Engine) {
		must(t, e.AddRawTool(engine.Tool{Name: "decides", TaskSupport: "handler"}, func(_ context.Context, c *engine.Call, args, out []byte) ([]byte, error) {
			if !codec.Bool(args, "long") {
				return engine.AppendTextResult(out, "at once"), nil
			}
			return nil, c.RunAsTask(func(_ context.Context, c *engine.Call) error {
				time.Sleep(time.Minute)
				c.SetResult(engine.AppendTextResult(nil, "later"))
				return nil
			})
		}))
		without := newModern(t, e)
		c := without.with(everything)
		slept := `"content":[{"type":"text","text":"slept"}]`
		check(t, "never a task", c.call("never", "{}"), complete(slept))
		check(t, "a client without", without.call("may", "{}"), complete(slept))
		check(t, "a client without, which the tool demands", without.call("must", "{}"), noTasks)
		check(t, "params.task means nothing", without.result(codec.MethodToolsCall, `{"name":"may","task":{"ttl":1}}`), complete(slept))
		check(t, "the handler decides: no", c.call("decides", "{}"), complete(`"content":[{"type":"text","text":"at once"}]`))
		check(t, "the handler decides, a client without", without.call("decides", `{"long":true}`), complete(`"content":[{"type":"text","text":"later"}]`))
		check(t, "the handler decides, a session", connect(t, e, engine.Rev20251125).call("decides", `{"long":true}`), text("later"))

		now := time.Now().UTC().Format(time.RFC3339Nano)
		created := c.call("must", "{}")
		id := codec.Text([]byte(created), "taskId")
		head := `"taskId":"` + id + `","status":"working","createdAt":"` + now + `","lastUpdatedAt":"` + now + `","ttlMs":600000,"pollIntervalMs":1000`
		check(t, "a task", created, `{"resultType":"task",`+head+`,"_meta":{`+serverInfo+`}}`)
		check(t, "tasks/get", c.result(codec.MethodTasksGet, aboutTask(id)), complete(head))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		later := time.Now().UTC().Format(time.RFC3339Nano)
		check(t, "tasks/get at the end", c.result(codec.MethodTasksGet, aboutTask(id)), complete(strings.Replace(
			strings.Replace(head, "working", "completed", 1), `lastUpdatedAt":"`+now, `lastUpdatedAt":"`+later, 1)+`,"result":`+complete(slept)))

		for _, r := range []struct{ tool, status, member, want string }{
			{"fails", "completed", "result", complete(`"content":[{"type":"text","text":"no luck"}],"isError":true`)},
			{"refuses", "failed no", "error", `{"code":7,"message":"no","data":{"a":1}}`},
			{"panics", "failed Internal error", "error", `{"code":-32603,"message":"Internal error"}`},
		} {
			id := createModern(t, c, r.tool)
			synctest.Wait()
			got := c.result(codec.MethodTasksGet, aboutTask(id))
			check(t, r.tool+", status", status(got), r.status)
			check(t, r.tool+", "+r.member, string(codec.Member([]byte(got), r.member)), r.want)
		}

		id = createModern(t, c, "may")
		check(t, "tasks/cancel", c.result(codec.MethodTasksCancel, aboutTask(id)), complete(""))
		synctest.Wait()
		check(t, "tasks/get of a cancelled task", status(c.result(codec.MethodTasksGet, aboutTask(id))), "cancelled cancelled by the client")
		check(t, "tasks/cancel again", c.result(codec.MethodTasksCancel, aboutTask(id)), complete(""))
		check(t, "tasks/update of a final task", c.result(codec.MethodTasksUpdate, `{"taskId":"`+id+`","inputResponses":{}}`), complete(""))
		for _, method := range []string{codec.MethodTasksGet, codec.MethodTasksUpdate, codec.MethodTasksCancel} {
			check(t, method+" of none", c.result(method, `{"taskId":"x","inputResponses":{}}`), noTask)
			check(t, method+" by a client without", without.result(method, aboutTask(id)), noTasks)
		}
		for _, responses := range []string{`null`, `[]`, `"x"`} {
			check(t, "tasks/update with "+responses, c.result(codec.MethodTasksUpdate, `{"taskId":"`+id+`","inputResponses":`+responses+`}`),
				`-32602 Invalid params: "inputResponses" must be an object`)
		}
		id = createModern(t, c, "may")
		time.Sleep(10 * time.Minute)
		check(t, "at the end of its time", status(c.result(codec.MethodTasksGet, aboutTask(id))), "completed")
		time.Sleep(ms)
		check(t, "after its time", c.result(codec.MethodTasksGet, aboutTask(id)), noTask)
		check(t, "a task of a session", c.result(codec.MethodTasksGet,
			aboutTask(createTask(t, connectWith(t, e, engine.Rev20251125, everything, yes), "may"))), noTask)
	})
}

// TestTaskInputModern has a task ask its client, which polls.
func TestTaskInputModern(t *testing.T) {
	taskBubble(t, engine.Options{}, func(t *testing.T, e *engine.Engine) {
		must(t, addTool(e, engine.Tool{Name: "many", TaskSupport: "required"}, func(ctx context.Context, c *engine.Call) (string, error) {
			got, err := c.AskAll(ctx, askName("a"), askName("b"))
			if err != nil {
				return "", err
			}
			again, err := c.Elicit(ctx, askName("a"))
			if err != nil {
				return "", err
			}
			return codec.Text(got[0].Elicit.Content, "name") + codec.Text(got[1].Elicit.Content, "name") + codec.Text(again.Content, "name"), nil
		}))
		c := newModern(t, e).with(everything)
		id := createModern(t, c, "many")
		keys := func() string {
			synctest.Wait()
			got := c.result(codec.MethodTasksGet, aboutTask(id))
			asked, state := inputs(got)
			if state != "" {
				t.Errorf("tasks/get: a requestState, which tasks do not have: %s", got)
			}
			var list []string
			for _, question := range strings.Fields(asked) {
				list = append(list, strings.TrimSuffix(question, "=elicitation/create"))
			}
			if len(list) == 2 && list[0] > list[1] {
				list[0], list[1] = list[1], list[0]
			}
			return status(got) + " " + strings.Join(list, " ")
		}
		update := func(key, answer string) {
			t.Helper()
			check(t, "tasks/update "+key, c.result(codec.MethodTasksUpdate, `{"taskId":"`+id+`","inputResponses":{"`+key+`":`+answer+`}}`), complete(""))
		}
		name := func(s string) string { return `{"action":"accept","content":{"name":"` + s + `"}}` }
		check(t, "at first", keys(), "input_required a b")
		check(t, "again", keys(), "input_required a b")
		update("unknown", name("X"))
		check(t, "after an unknown key", keys(), "input_required a b")
		update("b", name("B"))
		check(t, "after a part", keys(), "input_required a")
		update("b", name("X"))
		check(t, "after an answered key", keys(), "input_required a")
		update("a", `{"action":"accept","content":{"name":7}}`)
		check(t, "after an answer that will not do, under a new key", keys(), "input_required a-2")
		update("a-2", name("A"))
		check(t, "the next question of that key", keys(), "input_required a-3")
		update("a-3", name("C"))
		check(t, "at the end", keys(), "completed ")
		check(t, "the result", string(codec.Member([]byte(c.result(codec.MethodTasksGet, aboutTask(id))), "result", "content")), `[{"type":"text","text":"ABC"}]`)

		id = createModern(t, c, "many")
		synctest.Wait()
		check(t, "tasks/cancel", c.result(codec.MethodTasksCancel, aboutTask(id)), complete(""))
		check(t, "after it", keys(), "cancelled cancelled by the client ")
		if got := e.Stats().ActiveRequests; got != 0 {
			t.Errorf("requests that run: got %d, want 0", got)
		}
	})
}

// TestTaskOwners keeps principals out of each other's tasks, and out of hearing.
func TestTaskOwners(t *testing.T) {
	type who struct{}
	principal := func(ctx context.Context) string { name, _ := ctx.Value(who{}).(string); return name }
	taskBubble(t, engine.Options{Principal: principal}, func(t *testing.T, e *engine.Engine) {
		of := func(name string) *modern {
			c := newModern(t, e).with(everything)
			c.ctx = context.WithValue(t.Context(), who{}, name)
			return c
		}
		ann, bob := of("ann"), of("bob")
		id := createModern(t, ann, "asks")
		synctest.Wait()
		check(t, "tasks/get by its owner", status(ann.result(codec.MethodTasksGet, aboutTask(id))), "input_required")
		for _, method := range []string{codec.MethodTasksGet, codec.MethodTasksUpdate, codec.MethodTasksCancel} {
			check(t, method+" by another", bob.result(method, `{"taskId":"`+id+`","inputResponses":{}}`), noTask)
		}
		ctx, cancel := context.WithCancel(t.Context())
		filter := `{"taskIds":["` + id + `","no-such"],"toolsListChanged":true}`
		hers, hersDone := ann.start(context.WithValue(ctx, who{}, "ann"), listenFrame(ann, `1`, filter))
		his, hisDone := bob.start(context.WithValue(ctx, who{}, "bob"), listenFrame(bob, `2`, filter))
		synctest.Wait()
		checkFrames(t, "her subscription", hers.take(), acknowledged(`1`, `{"toolsListChanged":true,"taskIds":["`+id+`"]}`))
		checkFrames(t, "his subscription", his.take(), acknowledged(`2`, `{"toolsListChanged":true,"taskIds":[]}`))
		check(t, "a listener without the extension", newModern(t, e).result(codec.MethodListen, `{"notifications":{"taskIds":[]}}`), noTasks)
		ann.result(codec.MethodTasksUpdate, `{"taskId":"`+id+`","inputResponses":{"name":{"action":"accept","content":{"name":"Ann"}}}}`)
		synctest.Wait()
		var heard []string
		for _, frame := range hers.take() {
			params := codec.Member([]byte(frame), "params")
			asked, _ := inputs(string(params))
			heard = append(heard, strings.TrimSpace(fmt.Sprint(codec.Text([]byte(frame), "method"), " ", codec.Text(params, "status"), " ",
				string(codec.Member(params, "_meta", codec.MetaSubscriptionID)), " ", asked)))
		}
		if len(heard) == 0 || heard[len(heard)-1] != "notifications/tasks input_required 1 input=roots/list" {
			t.Errorf("she heard %q, want the next question at last", heard)
		}
		checkFrames(t, "he heard", his.take())
		cancel()
		<-hersDone
		<-hisDone
		ann.result(codec.MethodTasksCancel, aboutTask(id))
		synctest.Wait()
	})
}
