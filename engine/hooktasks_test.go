package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// TestHooksOfTasks checks that what goes on as a task passes each hook once,
// with the arguments that Before gave it, and is recorded as one.
func TestHooksOfTasks(t *testing.T) {
	for _, support := range []string{"optional", "required", "handler"} {
		for _, rev := range bothEras {
			if support == "handler" && !rev.IsModern() {
				continue
			}
			var befores, afters, tasks atomic.Int32
			var audit records
			e, _ := newEngine(t, &engine.Options{
				Before: []before{func(_ context.Context, c *engine.Call) error {
					befores.Add(1)
					return c.SetArguments(json.RawMessage(`{"set":true}`))
				}},
				After: []after{func(_ context.Context, c *engine.Call, _ *engine.Outcome) {
					afters.Add(1)
					c.SetResult(json.RawMessage(strings.ReplaceAll(string(c.Result()), "set", "redacted")))
				}},
				Audit: audit.add,
			})
			answer := func(_ context.Context, c *engine.Call) error {
				tasks.Add(1)
				c.SetResult(engine.AppendTextResult(nil, c.Arguments()))
				return nil
			}
			must(t, e.AddRawTool(engine.Tool{Name: "task", TaskSupport: support},
				func(_ context.Context, c *engine.Call, args, out []byte) ([]byte, error) {
					if support == "handler" {
						return out, c.RunAsTask(answer)
					}
					tasks.Add(1)
					return engine.AppendTextResult(out, args), nil
				}))
			what := fmt.Sprint(rev, " ", support)
			got := taskResult(t, e, rev)
			check(t, what+" result", got, text(`{\"redacted\":true}`))
			if befores.Load() != 1 || afters.Load() != 1 || tasks.Load() != 1 {
				t.Errorf("%s: Before ran %d times, After %d, the tool %d, want once each", what, befores.Load(), afters.Load(), tasks.Load())
			}
			_ = e.Shutdown(t.Context()) // waits for the records
			inTask, calls := 0, 0
			for _, r := range audit.take() {
				if r.Method == codec.MethodToolsCall && r.Outcome == engine.AuditOK {
					calls++
					if r.Task != "" && r.RequestID == "1" && r.Name == "task" {
						inTask++
					}
				}
			}
			if calls != 2 || inTask != 1 {
				t.Errorf("%s: %d records of the call, %d of them of the task, want 2 and 1", what, calls, inTask)
			}
		}
	}
}

// taskResult calls the tool "task" as a task and gives the task's result.
func taskResult(t *testing.T, e *engine.Engine, rev engine.Revision) string {
	t.Helper()
	if !rev.IsModern() {
		p := connect(t, e, rev)
		begun := p.result(codec.MethodToolsCall, `{"name":"task","arguments":{},"task":{}}`)
		id := codec.Text(codec.Member([]byte(begun), "task"), "taskId")
		result := p.result(codec.MethodTasksResult, `{"taskId":"`+id+`"}`)
		return strings.Replace(result, `"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"`+id+`"}},`, "", 1)
	}
	c := newModern(t, e).with(everything)
	frames := c.send(c.frame("1", codec.MethodToolsCall, `{"name":"task","arguments":{}}`)).take()
	id := codec.Text([]byte(answerOf(t, frames[len(frames)-1], "1")), "taskId")
	for {
		task := c.result(codec.MethodTasksGet, `{"taskId":"`+id+`"}`)
		if result := codec.Member([]byte(task), "result"); result != nil {
			return plain(string(result))
		}
		if status := codec.Text([]byte(task), "status"); status != "working" {
			t.Fatalf("task: got %s, want it working or completed", task)
		}
		time.Sleep(time.Millisecond)
	}
}
