package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// TaskStatus is where a task stands.
type TaskStatus string

// The statuses of a task. The last three are final.
const (
	TaskWorking TaskStatus = "working"
	// TaskInputRequired: the server waits for an answer of this client's. A call
	// of Task.Result lets it ask.
	TaskInputRequired TaskStatus = "input_required"
	TaskCompleted     TaskStatus = "completed"
	TaskFailed        TaskStatus = "failed"
	TaskCancelled     TaskStatus = "cancelled"
)

// Final reports whether the status will not change any more.
func (s TaskStatus) Final() bool {
	return s == TaskCompleted || s == TaskFailed || s == TaskCancelled
}

// TaskInfo is what is known of a task at one time (section Tasks of 2025-11-25,
// which calls them experimental, or the tasks extension of 2026-07-28).
type TaskInfo struct {
	ID     string
	Status TaskStatus
	// StatusMessage is for people, and may be empty.
	StatusMessage string
	// Created and Updated are zero where the peer wrote no such time.
	Created, Updated time.Time
	// TTL is how long after Created the task is kept, for ever where Unlimited.
	TTL       time.Duration
	Unlimited bool
	// PollInterval is how long to wait between two calls of Task.Get, or zero.
	PollInterval time.Duration
	Raw          []byte
}

func parseTask(raw []byte) (TaskInfo, error) {
	t := TaskInfo{
		ID:            codec.Text(raw, "taskId"),
		Status:        TaskStatus(codec.Text(raw, "status")),
		StatusMessage: codec.Text(raw, "statusMessage"),
		Raw:           raw,
	}
	if t.ID == "" || t.Status == "" {
		return t, fmt.Errorf("%w: not a task: %s", ErrMalformed, excerpt(raw))
	}
	// A time that cannot be read is as good as none.
	t.Created, _ = time.Parse(time.RFC3339, codec.Text(raw, "createdAt"))
	t.Updated, _ = time.Parse(time.RFC3339, codec.Text(raw, "lastUpdatedAt"))
	var limited bool
	if t.TTL, limited = milliseconds(raw, "ttl"); !limited {
		t.TTL, limited = milliseconds(raw, "ttlMs") // of the extension
	}
	t.Unlimited = !limited
	if t.PollInterval, limited = milliseconds(raw, "pollInterval"); !limited {
		t.PollInterval, _ = milliseconds(raw, "pollIntervalMs")
	}
	return t, nil
}

// Task is a call that the server works on while nobody waits for its answer. Its
// methods may be used from several goroutines at once.
type Task struct {
	c      *Client
	id     string
	result []byte // where the server answered the call at once

	mu   sync.Mutex // guards info
	info TaskInfo
}

// taskWatch is the progress of a task, which goes on after the call that made it
// was answered.
type taskWatch struct {
	report  func(Progress)
	task    string    // "" until the server has named it
	expires time.Time // zero for never
}

// CallToolAsTask calls a tool and returns as soon as the server has accepted the
// call (tools/call with task). ttl is how long the task is to be kept, from its
// creation; zero leaves it to the server, which may decide otherwise in any
// case. o.OnProgress is called until the task is known to be over.
//
// The error is a *CapabilityError where the server did not declare
// tasks.requests.tools.call. Where ctx ends before the server has named the
// task, nobody can cancel it, and it ends by itself.
//
// On the stateless revision this is the tasks extension, which needs
// Options.TaskExtension: the server alone decides whether the call becomes a
// task, and ttl is its own choice. A call that it has answered at once gives a
// Task that is completed and has no ID.
func (c *Client) CallToolAsTask(ctx context.Context, name string, arguments any, ttl time.Duration, o *CallOptions) (*Task, error) {
	if err := c.needTasks("requests", "tools", "call"); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.era.Load() != nil {
		return c.callForTask(ctx, name, arguments, o)
	}
	params, err := toolParams(name, arguments)
	if err != nil {
		return nil, err
	}
	params = append(params[:len(params)-1], `,"task":{`...)
	if ttl > 0 {
		params = strconv.AppendInt(append(params, `"ttl":`...), ttl.Milliseconds(), 10)
	}
	k, err := c.newCall(ctx, codec.MethodToolsCall, append(params, '}', '}'), o)
	if err != nil {
		return nil, err
	}
	k.asTask = true
	if k.onProgress != nil {
		if err := c.watch(k); err != nil {
			k.cancel(nil)
			return nil, err
		}
	}
	result, err := c.run(k, o)
	if err != nil {
		c.named(k.id, nil)
		return nil, c.typedError(err)
	}
	info, err := parseTask(codec.Member(result, "task"))
	if err != nil {
		c.named(k.id, nil)
		return nil, err
	}
	c.named(k.id, &info)
	return &Task{c: c, id: info.ID, info: info}, nil
}

// needTasks gives an error where the server did not declare a part of tasks, or
// the revision has none.
func (c *Client) needTasks(path ...string) error {
	if e := c.era.Load(); e != nil {
		if len(path) > 0 && path[0] == "list" { // which the extension does not have
			return &CapabilityError{Capability: "tasks.list", Owner: "server"}
		}
		return c.needTaskExtension(e)
	}
	err := c.needServer(append([]string{"tasks"}, path...)...)
	if err == nil && c.server.Protocol < revision20251125 {
		return &CapabilityError{Capability: "tasks", Owner: "server"}
	}
	return err
}

// watch makes the progress of a call outlive its answer. Tasks whose time is up
// make room for others.
func (c *Client) watch(k *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.progress) >= c.o.MaxPending {
		now := time.Now()
		for token, w := range c.progress {
			if !w.expires.IsZero() && now.After(w.expires) {
				delete(c.progress, token)
			}
		}
	}
	if len(c.progress) >= c.o.MaxPending {
		return ErrTooManyCalls
	}
	c.progress[k.id] = &taskWatch{report: k.onProgress}
	return nil
}

// named tells which task a call has become, nil for none.
func (c *Client) named(token uint64, info *TaskInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.progress[token]
	switch {
	case w == nil:
	case info == nil || info.Status.Final():
		delete(c.progress, token)
	default:
		w.task = info.ID
		if !info.Unlimited {
			w.expires = time.Now().Add(info.TTL)
		}
	}
}

// unwatch ends the progress of a task that is over.
func (c *Client) unwatch(info *TaskInfo) {
	if !info.Status.Final() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for token, w := range c.progress {
		if w.task == info.ID {
			delete(c.progress, token)
		}
	}
}

// Task gives a handle on a task whose id is known, such as one of ListTasks.
// Nothing is sent.
func (c *Client) Task(id string) *Task { return &Task{c: c, id: id, info: TaskInfo{ID: id}} }

// ID gives the id that the server chose.
func (t *Task) ID() string { return t.id }

// Info gives what the last answer of the server said of the task.
func (t *Task) Info() TaskInfo {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.info
}

// Get asks the server where the task stands (tasks/get). Between two calls the
// protocol wants TaskInfo.PollInterval to pass.
func (t *Task) Get(ctx context.Context) (TaskInfo, error) {
	if err := t.c.needTasks(); err != nil {
		return TaskInfo{}, err
	}
	if t.result != nil {
		return t.Info(), nil
	}
	return t.ask(ctx, codec.MethodTasksGet)
}

// Cancel asks the server to stop the task (tasks/cancel), which fails with
// -32602 where it is over already. The error is a *CapabilityError where the
// server did not declare tasks.cancel. A task of the extension is asked to stop,
// and may yet end otherwise.
func (t *Task) Cancel(ctx context.Context) (TaskInfo, error) {
	if err := t.c.needTasks("cancel"); err != nil {
		return TaskInfo{}, err
	}
	if t.c.era.Load() != nil {
		if t.result != nil {
			return t.Info(), nil
		}
		if err := t.request(ctx, codec.MethodTasksCancel); err != nil {
			return TaskInfo{}, err
		}
		return t.ask(ctx, codec.MethodTasksGet)
	}
	return t.ask(ctx, codec.MethodTasksCancel)
}

func (t *Task) ask(ctx context.Context, method string) (TaskInfo, error) {
	result, err := t.c.Request(ctx, method, t.params(), nil)
	if err != nil {
		return TaskInfo{}, err
	}
	info, err := parseTask(result)
	if err == nil && info.ID != t.id {
		err = fmt.Errorf("%w: %s answered for another task: %s", ErrMalformed, method, excerpt(result))
	}
	if err != nil {
		return TaskInfo{}, err
	}
	t.c.unwatch(&info)
	t.mu.Lock()
	t.info = info
	t.mu.Unlock()
	return info, nil
}

// Result waits until the task is over and gives what the call would have given:
// a result or a *codec.Error (tasks/result). It may be called again as long as
// the server keeps the task. It waits as long as ctx does, unless o has a
// Timeout; to give up ends only the wait. While it waits, the server can ask
// what the task needs.
//
// A task of the extension is looked at again and again, as often as the server
// wants it, and what it asks for is answered by the callbacks of Options; one
// that was cancelled gives ErrTaskCancelled. o.Timeout is then the limit of the
// whole wait.
func (t *Task) Result(ctx context.Context, o *CallOptions) (*ToolResult, error) {
	if err := t.c.needTasks(); err != nil {
		return nil, err
	}
	if t.c.era.Load() != nil {
		return t.await(ctx, o)
	}
	var waiting CallOptions
	if o != nil {
		waiting = *o
	}
	orDefault(&waiting.Timeout, -1)
	result, err := t.c.Request(ctx, codec.MethodTasksResult, t.params(), &waiting)
	var answered *codec.Error
	if err == nil || errors.As(err, &answered) {
		t.c.unwatch(&TaskInfo{ID: t.id, Status: TaskCompleted})
	}
	if err != nil {
		return nil, err
	}
	return parseToolResult(result)
}

func (t *Task) params() []byte {
	return append(codec.AppendString([]byte(`{"taskId":`), t.id), '}')
}

// ListTasks gives all tasks that the server keeps for this client, over all
// pages (tasks/list). The error is a *CapabilityError where the server did not
// declare tasks.list.
func (c *Client) ListTasks(ctx context.Context) ([]TaskInfo, error) {
	if err := c.needTasks("list"); err != nil {
		return nil, err
	}
	return list(ctx, c, codec.MethodTasksList, "tasks", func(raw []byte) TaskInfo {
		info, err := parseTask(raw)
		if err != nil {
			c.log.Warn("client: tasks/list", "error", err)
		}
		return info
	})
}
