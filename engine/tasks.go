package engine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
)

// Tasks of 2025-11-25 (experimental there): a tools/call that carries a task is
// answered at once with a record, and its handler goes on as an actor that
// belongs to no request. What it has to say goes to whoever waits in
// tasks/result, else to the session's own stream.

const (
	defaultTaskTTL   = 10 * time.Minute
	maxTaskTTL       = 24 * time.Hour
	taskPollInterval = time.Second
)

// taskTable runs tasks and remembers those that are not final.
type taskTable struct {
	engine *Engine
	store  TaskStore

	refused atomic.Int64 // tasks that found no room

	mu   sync.Mutex // guards live, and the writing of records
	live map[string]*liveTask
}

// liveTask is a task whose handler has not returned.
type liveTask struct {
	table   *taskTable
	id      string
	session *Session // nil in the stateless era
	call    *Call
	message codec.Message // of the request, over a frame of its own
	done    chan struct{} // closed when the record is final
	timer   *time.Timer   // of its ttl

	mu     sync.Mutex            // guards what follows
	waiter *Call                 // a tasks/result that waits
	inputs map[string]*taskInput // what the task waits for, by key
	keys   map[string]int        // how often a key was used
}

// taskRoute gives the handler of a tools/call with regard to its task member.
func (e *entry) taskRoute(m *codec.Message, rev Revision, declared capability) (Handler, *codec.Error) {
	switch {
	case rev.IsModern():
		return e.modernTaskRoute(), nil
	case rev != Rev20251125 || declared&capTasks == 0:
		return e.wrapped, nil
	}
	wanted := codec.IsObject(m.Task)
	switch {
	case wanted && e.taskSupport != "optional" && e.taskSupport != "required":
		return nil, codec.NewError(codec.CodeMethodNotFound, "Method not found: this tool does not run as a task")
	case !wanted && e.taskSupport == "required":
		return nil, codec.NewError(codec.CodeMethodNotFound, "Method not found: this tool runs only as a task")
	case wanted:
		return func(_ context.Context, c *Call) error { return c.engine.tasks.create(c, e.wrapped) }, nil
	}
	return e.wrapped, nil
}

// create begins a task for a call and answers with its record.
func (t *taskTable) create(c *Call, handler Handler) error {
	ttl := defaultTaskTTL
	if ms, ok := codec.Int(c.message.Task, "ttl"); ok {
		if ms <= 0 {
			return codec.NewError(codec.CodeInvalidParams, "Invalid params: task.ttl must be positive")
		}
		ttl = min(time.Duration(min(ms, maxTaskTTL.Milliseconds()))*time.Millisecond, maxTaskTTL)
	}
	record, err := t.start(c, handler, c.session.Key(), ttl)
	if err != nil {
		return err
	}
	c.out = append(c.out[:c.result], `{"task":`...)
	c.out = append(record.appendTo(c.out), '}')
	return nil
}

// start begins a task that runs a handler on the request of a call.
func (t *taskTable) start(c *Call, handler Handler, owner string, ttl time.Duration) (*Task, error) {
	now := time.Now()
	record := &Task{
		ID: rand.Text(), Owner: owner, Status: TaskWorking,
		Created: now, Updated: now, TTL: ttl, PollInterval: taskPollInterval,
	}
	live := &liveTask{table: t, id: record.ID, session: c.session, done: make(chan struct{})}
	frame := codec.AppendRequest(nil, codec.AppendString(nil, record.ID), codec.MethodToolsCall, c.message.Params)
	if err := codec.Decode(frame, &live.message); err != nil {
		return nil, err
	}
	live.call = &Call{
		engine: t.engine, session: c.session, rev: c.rev, stream: taskStream{live}, message: &live.message,
		handler: handler, name: c.name, ctx: callContext{base: c.ctx.base}, task: live,
	}
	request, err := t.engine.system.Lease(nil, live.message.ID, live.call)
	if err != nil {
		return nil, err
	}
	live.call.request, live.call.generation = request, request.Generation()
	live.call.hooks = c.hooks.forTask(record.ID)
	if c.hooks != nil && c.hooks.replaced {
		live.message.Arguments = c.message.Arguments
	}
	t.mu.Lock()
	if err = t.store.Put(record); err == nil {
		t.live[record.ID] = live
		live.timer = time.AfterFunc(ttl, func() { live.end(TaskCancelled, "its time is over") })
	}
	t.mu.Unlock()
	if err != nil {
		request.Release()
		if errors.Is(err, ErrTasksFull) {
			t.refused.Add(1)
			err = codec.ErrOverloaded
		}
		return nil, err
	}
	release := func() {}
	if c.session != nil {
		release = c.session.Hold() // a session at work is not idle
	}
	t.engine.working.Go(func() {
		defer release()
		live.run()
	})
	return record, nil
}

// run runs the handler to its end.
func (l *liveTask) run() {
	l.call.run()
	l.call.request.Release()
	l.finish(TaskCancelled, "", nil, nil)
	l.timer.Stop()
}

// end ends the task from outside.
func (l *liveTask) end(status TaskStatus, message string) {
	l.finish(status, message, nil, nil)
	l.call.request.EndLease(l.call.generation, actors.ErrCancelled)
}

// finish makes the record final, unless it is.
func (l *liveTask) finish(status TaskStatus, message string, result json.RawMessage, fault *codec.Error) bool {
	t := l.table
	t.mu.Lock()
	if t.live[l.id] != l {
		t.mu.Unlock()
		return false
	}
	delete(t.live, l.id)
	record := l.rewrite(func(r *Task) {
		r.Status, r.Message, r.Result, r.Error, r.Inputs = status, message, result, fault, nil
	})
	close(l.done)
	t.mu.Unlock()
	l.announce(record)
	return true
}

// setStatus changes the status of a task that is not final.
func (l *liveTask) setStatus(status TaskStatus) {
	l.update(func(r *Task) { r.Status = status })
}

// update changes the record of a task that is not final.
func (l *liveTask) update(change func(*Task)) {
	t := l.table
	t.mu.Lock()
	if t.live[l.id] != l {
		t.mu.Unlock()
		return
	}
	record := l.rewrite(change)
	t.mu.Unlock()
	l.announce(record)
}

// rewrite writes a changed copy of the record. The table's lock is held.
func (l *liveTask) rewrite(change func(*Task)) *Task {
	old, err := l.table.store.Get(l.id)
	if err != nil {
		return nil
	}
	record := *old
	change(&record)
	record.Updated = time.Now()
	if err := l.table.store.Put(&record); err != nil {
		l.table.engine.log.Error("task record lost", "task", l.id, "error", err)
	}
	return &record
}

// announce tells the client the new status.
func (l *liveTask) announce(record *Task) {
	switch {
	case record == nil:
	case l.session == nil:
		l.table.engine.system.Publish(topicTask+l.id, nil)
	default:
		l.session.notify(codec.AppendNotification(nil, codec.NotifyTaskStatus, record.appendTo(nil)))
	}
}

// endOf ends the tasks of a session that is over.
func (t *taskTable) endOf(s *Session) {
	t.mu.Lock()
	var left []*liveTask
	for _, l := range t.live {
		if l.session == s {
			left = append(left, l)
		}
	}
	t.mu.Unlock()
	for _, l := range left {
		l.end(TaskCancelled, "the session has ended")
		_ = t.store.Delete(l.id)
	}
}

// taskStream is where the frames of a task's call go.
type taskStream struct{ task *liveTask }

func (s taskStream) Send(frame []byte) error {
	l := s.task
	frame = l.related(frame)
	l.mu.Lock()
	waiter := l.waiter
	l.mu.Unlock()
	if waiter != nil && waiter.emit(frame) == nil {
		return nil
	}
	if l.session != nil {
		l.session.notify(clone(frame))
	}
	return nil
}

// related has a notification of a session's task name the task, as the task's
// requests do already.
func (l *liveTask) related(frame []byte) []byte {
	if l.session == nil || codec.Member(frame, "id") != nil {
		return frame
	}
	member := append(codec.AppendString([]byte(`"`+codec.MetaRelatedTask+`":{"taskId":`), l.id), '}')
	return codec.AppendNotification(nil, codec.Text(frame, "method"), appendWithMeta(nil, codec.Member(frame, "params"), member))
}

// Finish keeps the answer as the task's.
func (s taskStream) Finish(frame []byte, _ int) {
	if frame == nil {
		return
	}
	var m codec.Message
	if codec.Decode(clone(frame), &m) != nil {
		return
	}
	switch {
	case m.Kind == codec.KindError:
		code, _ := codec.Int(m.Error, "code")
		fault := &codec.Error{Code: int(code), Message: codec.Text(m.Error, "message"), Data: codec.Member(m.Error, "data")}
		s.task.finish(TaskFailed, fault.Message, nil, fault)
	case codec.Bool(m.Result, "isError") && s.task.session != nil:
		s.task.finish(TaskFailed, "the tool failed", m.Result, nil)
	default:
		s.task.finish(TaskCompleted, "", m.Result, nil)
	}
}

func (s taskStream) Flush() {}

// owner gives whose tasks a call may see.
func (c *Call) owner() string {
	if c.session != nil {
		return c.session.Key()
	}
	return "principal:" + c.principal()
}

// find gives a record that the caller may see.
func (t *taskTable) find(c *Call) (*Task, error) {
	if c.message.TaskID == nil {
		return nil, codec.NewError(codec.CodeInvalidParams, `Invalid params: "taskId" must be a string`)
	}
	record, err := t.store.Get(string(c.message.TaskID))
	if errors.Is(err, ErrNoTask) || err == nil && record.Owner != c.owner() {
		return nil, errNoTask
	}
	return record, err
}

var errNoTask = codec.NewError(codec.CodeInvalidParams, "Invalid params: no such task")

func handleTaskGet(_ context.Context, c *Call) error {
	record, err := c.engine.tasks.find(c)
	if err != nil {
		return err
	}
	c.out = record.appendTo(c.out)
	return nil
}

// handleTaskResult waits until the task is final and answers what its request
// would have been answered.
func handleTaskResult(ctx context.Context, c *Call) error {
	t := c.engine.tasks
	record, err := t.find(c)
	if err != nil {
		return err
	}
	t.mu.Lock()
	live := t.live[record.ID]
	t.mu.Unlock()
	if live != nil {
		live.swapWaiter(nil, c)
		defer live.swapWaiter(c, nil)
		select {
		case <-live.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if record, err = t.find(c); err != nil {
		return err
	}
	switch {
	case record.Error != nil:
		return record.Error
	case record.Result == nil:
		return codec.NewError(codec.CodeInvalidParams, "Invalid params: the task was cancelled")
	}
	related := append([]byte(`"`+codec.MetaRelatedTask+`":{"taskId":`), codec.AppendString(nil, record.ID)...)
	c.out = appendWithMeta(c.out, record.Result, append(related, '}'))
	return nil
}

// swapWaiter sets who waits for the task, where old is nil or waits now.
func (l *liveTask) swapWaiter(old, waiter *Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old == nil || l.waiter == old {
		l.waiter = waiter
	}
}

func handleTaskCancel(_ context.Context, c *Call) error {
	t := c.engine.tasks
	record, err := t.find(c)
	if err != nil {
		return err
	}
	t.mu.Lock()
	live := t.live[record.ID]
	t.mu.Unlock()
	if live == nil {
		return codec.NewError(codec.CodeInvalidParams, "Invalid params: the task is final")
	}
	live.end(TaskCancelled, "cancelled by the client")
	if record, err = t.find(c); err != nil {
		return err
	}
	c.out = record.appendTo(c.out)
	return nil
}

func handleTaskList(_ context.Context, c *Call) error {
	after := ""
	if c.message.CursorPresent {
		raw, ok := parseTextCursor(c.message.Cursor)
		if !ok {
			return errCursor
		}
		after = raw
	}
	records, more, err := c.engine.tasks.store.List(c.session.Key(), after, c.engine.options.PageSize)
	if errors.Is(err, ErrNoTask) {
		return errCursor
	}
	if err != nil {
		return err
	}
	dst := append(c.out, `{"tasks":[`...)
	for i, record := range records {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = record.appendTo(dst)
	}
	dst = append(dst, ']')
	if more {
		dst = append(dst, `,"nextCursor":"`...)
		dst = append(appendTextCursor(dst, records[len(records)-1].ID), '"')
	}
	c.out = append(dst, '}')
	return nil
}

// appendTo renders the record as revision 2025-11-25 has it.
func (t *Task) appendTo(dst []byte) []byte {
	dst = append(dst, `{"taskId":`...)
	dst = codec.AppendString(dst, t.ID)
	dst = append(dst, `,"status":"`...)
	dst = append(append(dst, t.Status...), '"')
	dst = appendMember(dst, "statusMessage", t.Message)
	dst = appendMember(dst, "createdAt", t.Created.UTC().Format(time.RFC3339Nano))
	dst = appendMember(dst, "lastUpdatedAt", t.Updated.UTC().Format(time.RFC3339Nano))
	dst = append(dst, `,"ttl":`...)
	dst = strconv.AppendInt(dst, t.TTL.Milliseconds(), 10)
	if t.PollInterval > 0 {
		dst = append(dst, `,"pollInterval":`...)
		dst = strconv.AppendInt(dst, t.PollInterval.Milliseconds(), 10)
	}
	return append(dst, '}')
}
