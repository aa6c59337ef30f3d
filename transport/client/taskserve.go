package client

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// taskTable holds the tasks that the server has made of its requests (section
// Tasks of 2025-11-25, where this client is the receiver).
type taskTable struct {
	most    int
	longest time.Duration

	mu    sync.Mutex // guards tasks and the fields of each that change
	tasks []*ownTask // the oldest first
}

// ownTask is a request of the server that this client works on as a task.
type ownTask struct {
	// Set when it is made.

	id      string
	created time.Time
	ttl     time.Duration
	cancel  context.CancelFunc
	done    chan struct{} // closed when the status is final

	// Guarded by the table; set once, with the final status.

	status  TaskStatus
	message string
	updated time.Time
	result  []byte
	fault   *codec.Error
}

func newTaskTable(most int, longest time.Duration) *taskTable {
	return &taskTable{most: most, longest: longest}
}

// taskPoll is how often a server is told to ask for the status.
const taskPoll = time.Second

// wantsTask reports whether a request is to become a task. Where that was not
// declared for its method, the wish is ignored, as the protocol asks.
func (c *Client) wantsTask(m *codec.Message) bool {
	f := c.features.Load()
	switch string(m.Method) {
	case codec.MethodSample:
		return f.sampleTask && codec.IsObject(m.Task)
	case codec.MethodElicit:
		return f.elicitTask && codec.IsObject(m.Task)
	}
	return false
}

// startTask makes a task of a request, answers it with that, and runs the
// handler. The slot for it has been taken.
func (c *Client) startTask(r *serverRequest, h handler) {
	ttl, ok := milliseconds(codec.Member(r.params, "task"), "ttl")
	if !ok || ttl == 0 || ttl > c.tasks.longest {
		ttl = c.tasks.longest
	}
	ctx, cancel := context.WithTimeout(c.ctx, ttl)
	t := c.tasks.add(ttl, cancel)
	if t == nil {
		cancel()
		<-c.handlers
		c.reply(r.batch, r.id, nil, codec.ErrOverloaded)
		return
	}
	own := codec.AppendString([]byte(`{"taskId":`), t.id)
	created := append([]byte(`{"task":`), c.tasks.describe(t)...)
	created = append(created, '}')
	if r.related != nil {
		created = withMeta(created, metaRelatedTask, r.related)
	}
	r.related = append(own, '}')
	c.reply(r.batch, r.id, created, nil)
	started := c.spawn(func() {
		defer func() { <-c.handlers }()
		result, fault := c.runHandler(ctx, r, h)
		if c.tasks.finish(t, result, fault) {
			c.notifyTask(t)
		}
	})
	if !started {
		cancel()
		<-c.handlers
	}
}

// notifyTask tells the server of the final status, which saves it a question.
func (c *Client) notifyTask(t *ownTask) {
	c.sendAside(codec.AppendNotification(nil, codec.NotifyTaskStatus, c.tasks.describe(t)))
}

// taskHandler gives what answers the requests about tasks.
func (c *Client) taskHandler(method string, f *features) handler {
	switch {
	case !f.tasks(), method == codec.MethodTasksList && !f.taskList, method == codec.MethodTasksCancel && !f.taskCancel:
		return nil
	case method == codec.MethodTasksList:
		return c.listOwnTasks
	case method == codec.MethodTasksGet:
		return c.ofTask(c.getOwnTask)
	case method == codec.MethodTasksCancel:
		return c.ofTask(c.cancelOwnTask)
	}
	return c.ofTask(c.resultOfOwnTask)
}

// ofTask finds the task that a request names. The requests about tasks say so in
// taskId, and what their _meta says of a task is ignored.
func (c *Client) ofTask(h func(ctx context.Context, t *ownTask) ([]byte, error)) handler {
	return func(ctx context.Context, r *serverRequest) ([]byte, error) {
		r.related = nil
		t := c.tasks.find(codec.Text(r.params, "taskId"))
		if t == nil {
			return nil, codec.NewError(codec.CodeInvalidParams, "Invalid params: no such task")
		}
		return h(ctx, t)
	}
}

func (c *Client) getOwnTask(_ context.Context, t *ownTask) ([]byte, error) {
	return c.tasks.describe(t), nil
}

func (c *Client) cancelOwnTask(_ context.Context, t *ownTask) ([]byte, error) {
	if !c.tasks.stop(t) {
		return nil, codec.NewError(codec.CodeInvalidParams, "Invalid params: the task is over")
	}
	return c.tasks.describe(t), nil
}

func (c *Client) resultOfOwnTask(ctx context.Context, t *ownTask) ([]byte, error) {
	select {
	case <-t.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.tasks.mu.Lock()
	result, fault, status := t.result, t.fault, t.status
	c.tasks.mu.Unlock()
	switch {
	case status == TaskCancelled:
		return nil, codec.NewError(codec.CodeInvalidParams, "Invalid params: the task was cancelled")
	case fault != nil:
		return nil, fault
	}
	return result, nil
}

// listOwnTasks answers tasks/list with one page: there are not many.
func (c *Client) listOwnTasks(_ context.Context, r *serverRequest) ([]byte, error) {
	r.related = nil
	if codec.Member(r.params, "cursor") != nil {
		return nil, codec.NewError(codec.CodeInvalidParams, "Invalid params: no such cursor")
	}
	out := []byte(`{"tasks":[`)
	for i, t := range c.tasks.all() {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, c.tasks.describe(t)...)
	}
	return append(out, `]}`...), nil
}

// add makes a task, or gives nil where there are too many.
func (t *taskTable) add(ttl time.Duration, cancel context.CancelFunc) *ownTask {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep()
	if len(t.tasks) >= t.most {
		return nil
	}
	now := time.Now()
	own := &ownTask{
		id: rand.Text(), created: now, ttl: ttl, cancel: cancel, done: make(chan struct{}),
		status: TaskWorking, updated: now,
	}
	t.tasks = append(t.tasks, own)
	return own
}

// sweep forgets the tasks whose time is up. Those that still run were told so by
// their context.
func (t *taskTable) sweep() {
	now := time.Now()
	t.tasks = slices.DeleteFunc(t.tasks, func(own *ownTask) bool { return now.Sub(own.created) >= own.ttl })
}

func (t *taskTable) all() []*ownTask {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep()
	return slices.Clone(t.tasks)
}

func (t *taskTable) find(id string) *ownTask {
	all := t.all()
	i := slices.IndexFunc(all, func(own *ownTask) bool { return own.id == id })
	if i < 0 {
		return nil
	}
	return all[i]
}

// finish keeps the outcome of a task, unless it is final already.
func (t *taskTable) finish(own *ownTask, result []byte, fault *codec.Error) bool {
	status, message := TaskCompleted, ""
	if fault != nil {
		status, message = TaskFailed, fault.Message
	}
	return t.settle(own, func() {
		own.status, own.message, own.result, own.fault = status, message, result, fault
	})
}

// stop cancels a task, unless it is final already.
func (t *taskTable) stop(own *ownTask) bool {
	return t.settle(own, func() { own.status = TaskCancelled })
}

func (t *taskTable) settle(own *ownTask, set func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.status.Final() {
		return false
	}
	set()
	own.updated = time.Now()
	own.cancel()
	close(own.done)
	return true
}

// describe makes the object that the protocol has for a task.
func (t *taskTable) describe(own *ownTask) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := codec.AppendString([]byte(`{"taskId":`), own.id)
	out = codec.AppendString(append(out, `,"status":`...), own.status)
	if own.message != "" {
		out = codec.AppendString(append(out, `,"statusMessage":`...), own.message)
	}
	out = codec.AppendString(append(out, `,"createdAt":`...), own.created.UTC().Format(time.RFC3339Nano))
	out = codec.AppendString(append(out, `,"lastUpdatedAt":`...), own.updated.UTC().Format(time.RFC3339Nano))
	out = codec.AppendFloat(append(out, `,"ttl":`...), float64(own.ttl.Milliseconds()))
	out = codec.AppendFloat(append(out, `,"pollInterval":`...), float64(taskPoll.Milliseconds()))
	return append(out, '}')
}
