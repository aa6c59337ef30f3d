package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport/client"
)

// TestRealTasks is the tasks extension.
func TestRealTasks(t *testing.T) {
	both(t, func(t *testing.T, over string) {
		s := newRealServer(t, engine.Options{})
		o := answering()
		o.TaskExtension = true
		c := s.connect(t, over, o)
		if r, err := c.CallTool(t.Context(), "slow", nil, nil); err != nil || r.Text() != "slowly" {
			t.Errorf("CallTool: got %v, %v; want slowly", r, err)
		}
		task := startTask(t, c, "ask")
		if r, err := task.Result(t.Context(), nil); err != nil || r.Text() != allAnswers || !task.Info().Status.Final() {
			t.Errorf("a task that asks: got %v, %v; want %s", r, err, allAnswers)
		}
		task = startTask(t, c, "break")
		if _, err := task.Result(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "broken (-32603)") {
			t.Errorf("a task that fails: got %v, want -32603", err)
		}
		task = startTask(t, c, "wait")
		<-s.began
		seen := make(chan client.TaskStatus, 9)
		sub, err := c.Listen(t.Context(), client.ListenFilter{Tasks: []string{task.ID()}}, func(change client.Change) { seen <- change.Task.Status })
		if err != nil {
			t.Fatalf("Listen: %v", err)
		}
		info, err := task.Get(t.Context())
		if err != nil || info.Status != client.TaskWorking || info.Unlimited || info.TTL <= 0 {
			t.Errorf("Get: got %+v, %v; want a working task with a TTL", info, err)
		}
		if info, err := task.Cancel(t.Context()); err != nil || info.Status != client.TaskCancelled {
			t.Errorf("Cancel: got %+v, %v; want cancelled", info, err)
		}
		<-s.cancelled
		if got := <-seen; got != client.TaskCancelled {
			t.Errorf("notification: got %s, want cancelled", got)
		}
		sub.Close()
		if _, err := task.Result(t.Context(), nil); !errors.Is(err, client.ErrTaskCancelled) {
			t.Errorf("Result: got %v, want ErrTaskCancelled", err)
		}
		task = startTask(t, c, "echo")
		if r, err := task.Result(t.Context(), nil); err != nil || r.Text() != "" || task.ID() != "" || task.Info().Status != client.TaskCompleted {
			t.Errorf("a call answered at once: got %v, %v, id %q", r, err, task.ID())
		}
		var missing *client.CapabilityError
		if _, err := c.ListTasks(t.Context()); !errors.As(err, &missing) {
			t.Errorf("ListTasks: got %v, want a *CapabilityError", err)
		}
		if _, err := s.connect(t, over, client.Options{}).CallToolAsTask(t.Context(), "slow", nil, 0, nil); !errors.As(err, &missing) || missing.Owner != "client" {
			t.Errorf("CallToolAsTask without the extension: got %v, want a *CapabilityError of the client's", err)
		}
	})
}

func startTask(t *testing.T, c *client.Client, tool string) *client.Task {
	t.Helper()
	task, err := c.CallToolAsTask(t.Context(), tool, []byte(`{}`), 0, nil)
	if err != nil {
		t.Fatalf("CallToolAsTask(%s): %v", tool, err)
	}
	return task
}

// TestRealTaskGivenUp: a caller of CallTool who gives up while the task runs ends the task as well.
func TestRealTaskGivenUp(t *testing.T) {
	both(t, func(t *testing.T, over string) {
		s := newRealServer(t, engine.Options{})
		c := s.connect(t, over, client.Options{TaskExtension: true, MaxCallTimeout: 300 * time.Millisecond})
		if _, err := c.CallTool(t.Context(), "wait", nil, &client.CallOptions{Timeout: 10 * time.Second}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("CallTool: got %v, want context.DeadlineExceeded", err)
		}
		<-s.began
		select {
		case <-s.cancelled:
		case <-time.After(2 * time.Second):
			t.Error("the task still runs")
		}
	})
}
