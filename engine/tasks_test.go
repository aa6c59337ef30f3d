package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// taskBubble runs a test in virtual time with an engine whose tools may be
// tasks.
func taskBubble(t *testing.T, o engine.Options, f func(t *testing.T, e *engine.Engine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(t, &o)
		tool := func(name, support string, h func(ctx context.Context, c *engine.Call) (string, error)) {
			must(t, addTool(e, engine.Tool{Name: name, TaskSupport: support}, h))
		}
		sleep := func(ctx context.Context, _ *engine.Call) (string, error) {
			select {
			case <-time.After(10 * time.Second):
				return "slept", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		tool("never", "", sleep)
		tool("may", "optional", sleep)
		tool("must", "required", sleep)
		tool("fails", "optional", func(context.Context, *engine.Call) (string, error) { return "", errors.New("no luck") })
		tool("refuses", "optional", func(context.Context, *engine.Call) (string, error) {
			return "", &codec.Error{Code: 7, Message: "no", Data: []byte(`{"a":1}`)}
		})
		tool("panics", "optional", func(context.Context, *engine.Call) (string, error) { panic("oh") })
		tool("asks", "optional", func(ctx context.Context, c *engine.Call) (string, error) {
			c.Progress(ctx, 1, 2)
			name, err := c.Elicit(ctx, askName("name"))
			if err != nil {
				return "", err
			}
			roots, err := c.Roots(ctx)
			if err != nil {
				return "", err
			}
			return codec.Text(name.Content, "name") + " " + fmt.Sprint(len(roots)), nil
		})
		time.Sleep(time.Minute)
		f(t, e)
		_ = e.Shutdown(t.Context())
		time.Sleep(2 * time.Second) // for the actor library's timer of dead letters
	})
}

// createTask begins a task in a session and gives its id.
func createTask(t *testing.T, p *asked, tool string) string {
	t.Helper()
	got := []byte(p.result(codec.MethodToolsCall, `{"name":"`+tool+`","task":{}}`))
	id := codec.Text(got, "task", "taskId")
	if id == "" || codec.Text(got, "task", "status") != "working" {
		t.Fatalf("tools/call %s as a task: got %s, want a working task", tool, got)
	}
	return id
}

func aboutTask(id string) string { return `{"taskId":"` + id + `"}` }

// status gives the status of a task, or of the error in its place.
func status(result string) string {
	if s := codec.Text([]byte(result), "status"); s != "" {
		return strings.TrimSpace(s + " " + codec.Text([]byte(result), "statusMessage"))
	}
	return result
}

const (
	noTask   = "-32602 Invalid params: no such task"
	isFinal  = "-32602 Invalid params: the task is final"
	noResult = "-32602 Invalid params: the task was cancelled"
)

// TestTaskRules checks what may be a task, in which revision.
func TestTaskRules(t *testing.T) {
	taskBubble(t, engine.Options{}, func(t *testing.T, e *engine.Engine) {
		const forbidden, demanded = "-32601 Method not found: this tool does not run as a task", "-32601 Method not found: this tool runs only as a task"
		for _, c := range []struct {
			rev          engine.Revision
			params, want string
		}{
			{engine.Rev20251125, `{"name":"never","task":{}}`, forbidden},
			{engine.Rev20251125, `{"name":"never"}`, text("slept")},
			{engine.Rev20251125, `{"name":"may"}`, text("slept")},
			{engine.Rev20251125, `{"name":"may","task":null}`, text("slept")},
			{engine.Rev20251125, `{"name":"must"}`, demanded},
			{engine.Rev20251125, `{"name":"may","task":{"ttl":0}}`, "-32602 Invalid params: task.ttl must be positive"},
			{engine.Rev20251125, `{"name":"may","task":{"ttl":-5}}`, "-32602 Invalid params: task.ttl must be positive"},
			{engine.Rev20250618, `{"name":"must","task":{}}`, text("slept")}, // no tasks there
			{engine.Rev20241105, `{"name":"may","task":{}}`, text("slept")},
		} {
			p := connect(t, e, c.rev)
			check(t, c.rev.String()+" "+c.params, p.result(codec.MethodToolsCall, c.params), c.want)
		}
		for _, c := range []struct {
			params string
			ttl    int
		}{
			{`{"name":"must","task":{}}`, 600_000},
			{`{"name":"may","task":{"ttl":60000}}`, 60_000},
			{`{"name":"may","task":{"ttl":999999999999}}`, 86_400_000},
		} {
			now := time.Now().UTC().Format(time.RFC3339Nano)
			got := connect(t, e, engine.Rev20251125).result(codec.MethodToolsCall, c.params)
			id := codec.Text([]byte(got), "task", "taskId")
			check(t, c.params, got, fmt.Sprintf(`{"task":{"taskId":"%s","status":"working","createdAt":"%s","lastUpdatedAt":"%s","ttl":%d,"pollInterval":1000}}`, id, now, now, c.ttl))
			if len(id) < 26 {
				t.Errorf("task id %q: too short to be unguessable", id)
			}
		}
		for _, method := range []string{codec.MethodTasksGet, codec.MethodTasksResult, codec.MethodTasksList, codec.MethodTasksCancel} {
			check(t, method+" in 2025-06-18", connect(t, e, engine.Rev20250618).result(method, aboutTask("x")), "-32601 Method not found: "+method)
		}
		p := connect(t, e, engine.Rev20251125)
		execution := map[string]string{}
		codec.EachElement(codec.Member([]byte(p.result(codec.MethodToolsList, "")), "tools"), func(tool []byte) bool {
			execution[codec.Text(tool, "name")] = codec.Text(tool, "execution", "taskSupport")
			return true
		})
		if execution["never"] != "" || execution["may"] != "optional" || execution["must"] != "required" {
			t.Errorf("execution.taskSupport: got %v", execution)
		}
	})
}

// TestTaskLife follows tasks of a session from their beginning to their end.
func TestTaskLife(t *testing.T) {
	taskBubble(t, engine.Options{}, func(t *testing.T, e *engine.Engine) {
		p := connectWith(t, e, engine.Rev20251125, everything, yes)
		notes := func() (list []string) {
			synctest.Wait()
			for _, frame := range p.notes.take() {
				list = append(list, strings.TrimSpace(codec.Text([]byte(frame), "method")+" "+codec.Text([]byte(frame), "params", "status")))
			}
			return list
		}
		related := func(id string) string {
			return `"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"` + id + `"}}`
		}
		notes()
		id := createTask(t, p, "may")
		check(t, "tasks/get", status(p.result(codec.MethodTasksGet, aboutTask(id))), "working")
		begin := time.Now()
		want := `{` + related(id) + `,"content":[{"type":"text","text":"slept"}]}`
		check(t, "tasks/result waits", p.result(codec.MethodTasksResult, aboutTask(id)), want)
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("tasks/result took %v, want 10s", took)
		}
		check(t, "tasks/result again", p.result(codec.MethodTasksResult, aboutTask(id)), want)
		check(t, "tasks/get of a final task", status(p.result(codec.MethodTasksGet, aboutTask(id))), "completed")
		check(t, "tasks/cancel of a final task", p.result(codec.MethodTasksCancel, aboutTask(id)), isFinal)
		checkFrames(t, "notifications", notes(), "notifications/tasks/status completed")

		for _, c := range []struct{ tool, status, result string }{
			{"fails", "failed the tool failed", `{` + related("ID") + `,"content":[{"type":"text","text":"no luck"}],"isError":true}`},
			{"refuses", "failed no", `7 no {"a":1}`},
			{"panics", "failed Internal error", "-32603 Internal error"},
		} {
			id := createTask(t, p, c.tool)
			synctest.Wait()
			check(t, c.tool+", tasks/get", status(p.result(codec.MethodTasksGet, aboutTask(id))), c.status)
			check(t, c.tool+", tasks/result", p.result(codec.MethodTasksResult, aboutTask(id)), strings.ReplaceAll(c.result, "ID", id))
		}
		notes()

		id = createTask(t, p, "may")
		waiting, done := p.begin(request("5", codec.MethodTasksResult, aboutTask(id)))
		abandoned, gone := p.begin(request("6", codec.MethodTasksResult, aboutTask(id)))
		synctest.Wait()
		p.notify(codec.NotifyCancelled, `{"requestId":6}`) // ends the wait, not the task
		<-gone
		checkFrames(t, "a wait that was given up", abandoned.take())
		check(t, "tasks/get after it", status(p.result(codec.MethodTasksGet, aboutTask(id))), "working")
		check(t, "tasks/cancel", status(p.result(codec.MethodTasksCancel, aboutTask(id))), "cancelled cancelled by the client")
		<-done
		check(t, "tasks/result of a cancelled task", answerOf(t, waiting.take()[0], "5"), noResult)
		time.Sleep(time.Minute)
		check(t, "tasks/get of a cancelled task", status(p.result(codec.MethodTasksGet, aboutTask(id))), "cancelled cancelled by the client")
		checkFrames(t, "notifications of the cancelled task", notes(), "notifications/tasks/status cancelled")

		for _, method := range []string{codec.MethodTasksGet, codec.MethodTasksResult, codec.MethodTasksCancel} {
			check(t, method+" of none", p.result(method, aboutTask("x")), noTask)
			check(t, method+" without an id", p.result(method, "{}"), `-32602 Invalid params: "taskId" must be a string`)
			check(t, method+" by another session", connect(t, e, engine.Rev20251125).result(method, aboutTask(id)), noTask)
		}
		p.session.Close()
		synctest.Wait()
		if got := e.Stats(); got.ActiveRequests != 0 || got.Sessions != 3 {
			t.Errorf("Stats: got %+v, want no requests", got)
		}
	})
}

// TestTaskInput has a task ask its client. What belongs to the task says so.
func TestTaskInput(t *testing.T) {
	taskBubble(t, engine.Options{}, func(t *testing.T, e *engine.Engine) {
		var held []string
		p := connectWith(t, e, engine.Rev20251125, everything, func(method string, params []byte) string {
			if method == codec.MethodElicit {
				held = append(held, string(params))
				return "" // later
			}
			return yes(method, params)
		})
		got := p.result(codec.MethodToolsCall, `{"name":"asks","task":{},"_meta":{"progressToken":9}}`)
		id := codec.Text([]byte(got), "task", "taskId")
		synctest.Wait()
		related := `"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"` + id + `"}}`
		check(t, "tasks/get", status(p.result(codec.MethodTasksGet, aboutTask(id))), "input_required")
		checkFrames(t, "the question", held, `{`+related+`,"mode":"form","message":"Name?","requestedSchema":`+nameForm+`}`)
		notes := p.notes.take()
		if len(notes) != 2 {
			t.Fatalf("notifications: got %v, want progress and the status", notes)
		}
		check(t, "progress of a task", notes[0], `{"jsonrpc":"2.0","method":"notifications/progress","params":{`+related+`,"progressToken":9,"progress":1,"total":2}}`)
		check(t, "its status", codec.Text([]byte(notes[1]), "params", "status"), "input_required")
		if strings.Contains(notes[1], codec.MetaRelatedTask) {
			t.Errorf("a status names its task twice: %s", notes[1])
		}
		question := p.taken()[0]
		waiting, done := p.begin(request("5", codec.MethodTasksResult, aboutTask(id)))
		synctest.Wait()
		p.peer.receive(t.Context(), `{"jsonrpc":"2.0","id":`+string(codec.Member([]byte(question), "id"))+
			`,"result":{"action":"accept","content":{"name":"Ann"},`+related+`}}`, new(reply))
		<-done
		frames := waiting.take()
		check(t, "tasks/result", answerOf(t, frames[len(frames)-1], "5"), `{`+related+`,"content":[{"type":"text","text":"Ann 1"}]}`)
		// While somebody waits for the result, the questions come on that stream.
		more := p.taken()
		if len(more) != 1 || !strings.Contains(more[0], `"roots/list","params":{`+related+`}`) {
			t.Errorf("the second question: got %v, want roots/list that names the task", more)
		}
		check(t, "tasks/get at the end", status(p.result(codec.MethodTasksGet, aboutTask(id))), "completed")
	})
}

// TestTaskList pages through the tasks of a session.
func TestTaskList(t *testing.T) {
	taskBubble(t, engine.Options{PageSize: 2}, func(t *testing.T, e *engine.Engine) {
		p := connectWith(t, e, engine.Rev20251125, everything, yes)
		check(t, "no tasks", p.result(codec.MethodTasksList, ""), `{"tasks":[]}`)
		var want []string
		for range 5 {
			want = append(want, createTask(t, p, "may"))
			time.Sleep(time.Second)
		}
		createTask(t, connectWith(t, e, engine.Rev20251125, everything, yes), "may") // of another
		var got []string
		for params := ""; ; {
			names, next := page(t, p.result(codec.MethodTasksList, params), "tasks", "taskId")
			got = append(got, strings.Fields(names)...)
			if params = next; next == "" {
				break
			}
		}
		checkFrames(t, "tasks", got, want...)
		for _, cursor := range []string{`""`, `"x"`, `"dDp4"`, `7`} {
			check(t, "cursor "+cursor, p.result(codec.MethodTasksList, `{"cursor":`+cursor+`}`), "-32602 Invalid params: this cursor was not given out here")
		}
	})
}

// TestTaskTime lets the time of a task run out, and its session end.
func TestTaskTime(t *testing.T) {
	taskBubble(t, engine.Options{}, func(t *testing.T, e *engine.Engine) {
		p := connectWith(t, e, engine.Rev20251125, everything, yes)
		short := codec.Text([]byte(p.result(codec.MethodToolsCall, `{"name":"may","task":{"ttl":5000}}`)), "task", "taskId")
		kept := codec.Text([]byte(p.result(codec.MethodToolsCall, `{"name":"may","task":{"ttl":60000}}`)), "task", "taskId")
		time.Sleep(4999 * ms)
		check(t, "before its time", status(p.result(codec.MethodTasksGet, aboutTask(short))), "working")
		time.Sleep(2 * ms)
		check(t, "after its time", p.result(codec.MethodTasksGet, aboutTask(short)), noTask)
		synctest.Wait()
		if got := e.Stats().ActiveRequests; got != 1 {
			t.Errorf("requests that run: got %d, want that of the other task", got)
		}
		time.Sleep(30 * time.Second)
		check(t, "the other", status(p.result(codec.MethodTasksGet, aboutTask(kept))), "completed")
		time.Sleep(25 * time.Second)
		check(t, "the other, after its time", p.result(codec.MethodTasksGet, aboutTask(kept)), noTask)
	})
}

// TestTaskStore holds the default store to its bounds.
func TestTaskStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := engine.NewMemoryTasks(3)
		put := func(id, owner string, ttl time.Duration) error {
			return s.Put(&engine.Task{ID: id, Owner: owner, Status: engine.TaskWorking, Created: time.Now(), Updated: time.Now(), TTL: ttl})
		}
		for i, c := range []struct {
			id, owner string
			ttl       time.Duration
			want      error
		}{
			{"a", "x", time.Second, nil}, {"b", "x", time.Minute, nil}, {"c", "y", time.Minute, nil},
			{"d", "x", time.Minute, engine.ErrTasksFull}, {"b", "x", time.Minute, nil},
		} {
			if got := put(c.id, c.owner, c.ttl); !errors.Is(got, c.want) || c.want == nil && got != nil {
				t.Errorf("Put %d, %s: got %v, want %v", i, c.id, got, c.want)
			}
			time.Sleep(ms)
		}
		list := func(owner, after string, limit int) string {
			tasks, more, err := s.List(owner, after, limit)
			var ids []string
			for _, task := range tasks {
				ids = append(ids, task.ID)
			}
			return fmt.Sprint(ids, more, err)
		}
		check(t, "List x", list("x", "", 9), "[a b] false <nil>")
		check(t, "List x, one", list("x", "", 1), "[a] true <nil>")
		check(t, "List x after a", list("x", "a", 9), "[b] false <nil>")
		check(t, "List x after c, of y", list("x", "c", 9), "[] false engine: no such task")
		time.Sleep(2 * time.Second)
		if _, err := s.Get("a"); !errors.Is(err, engine.ErrNoTask) {
			t.Errorf("Get of an expired task: got %v, want %v", err, engine.ErrNoTask)
		}
		must(t, put("d", "x", time.Second)) // in the place of a
		if err := put("e", "x", time.Minute); !errors.Is(err, engine.ErrTasksFull) {
			t.Errorf("Put: got %v, want %v", err, engine.ErrTasksFull)
		}
		time.Sleep(2 * time.Second)
		must(t, put("e", "x", time.Minute)) // d, which nobody looked at, makes room
		check(t, "List x later", list("x", "", 9), "[b e] false <nil>")
		must(t, s.Delete("b"))
		must(t, s.Delete("b"))
		if _, err := s.Get("b"); !errors.Is(err, engine.ErrNoTask) {
			t.Errorf("Get after Delete: got %v, want %v", err, engine.ErrNoTask)
		}
	})
}

// TestTasksFull refuses tasks that find no room.
func TestTasksFull(t *testing.T) {
	taskBubble(t, engine.Options{Tasks: engine.NewMemoryTasks(1)}, func(t *testing.T, e *engine.Engine) {
		p := connectWith(t, e, engine.Rev20251125, everything, yes)
		id := createTask(t, p, "may")
		check(t, "a second task", p.result(codec.MethodToolsCall, `{"name":"may","task":{}}`), overloaded)
		if got := e.Stats().Refusals.Tasks; got != 1 {
			t.Errorf("Refusals.Tasks: got %d, want 1", got)
		}
		check(t, "a call that is none", p.call("may", "{}"), text("slept"))
		synctest.Wait() // it and the task end at the same time
		check(t, "the first", status(p.result(codec.MethodTasksGet, aboutTask(id))), "completed")
		time.Sleep(10 * time.Minute)
		createTask(t, p, "may")
		if got := e.Stats().ActiveRequests; got != 1 {
			t.Errorf("requests that run: got %d, want 1", got)
		}
	})
}
