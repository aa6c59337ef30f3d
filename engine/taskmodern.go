package engine

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// The tasks extension of 2026-07-28: the server decides, for a client that can
// take it, to answer a tools/call with a task. The client asks how it stands,
// answers what the task wants to know, and may listen for changes.

const extensionTasks = "io.modelcontextprotocol/tasks"

// needTasks tells whether the client can take tasks.
func (c *Call) needTasks() error {
	if c.client().clientHas("extensions", extensionTasks) {
		return nil
	}
	return &CapabilityError{"extensions." + extensionTasks}
}

// modernTaskRoute gives the handler of a tools/call in the stateless era.
func (e *entry) modernTaskRoute() Handler {
	switch e.taskSupport {
	case "optional":
		return func(_ context.Context, c *Call) error { return c.runAsTask(e.wrapped, e.wrapped) }
	case "required":
		return func(_ context.Context, c *Call) error {
			if err := c.needTasks(); err != nil {
				return err
			}
			return c.runAsTask(e.wrapped, e.wrapped)
		}
	}
	return e.wrapped
}

// errAnswered tells that a call's result is there, whatever else the handler
// gives.
var errAnswered = errors.New("engine: the call is answered; return this error")

// RunAsTask goes on with h as a task and answers the call with the task, where
// the client can take one (2026-07-28, the tasks extension). Elsewhere h runs at
// once. h gets a Call of its own, and gives its result with SetResult. A handler
// that calls RunAsTask has to return its error, whatever result it returns.
func (c *Call) RunAsTask(h Handler) error {
	return c.runAsTask(h, c.engine.catalog.Load().interceptors.reviewed(toolHandler(nil, h)))
}

// runAsTask runs now where there can be no task, else later in one.
func (c *Call) runAsTask(now, later Handler) error {
	if c.session != nil || c.task != nil || c.needTasks() != nil {
		if err := now(&c.ctx, c); err != nil {
			return err
		}
		return errAnswered
	}
	record, err := c.engine.tasks.start(c, later, c.owner(), defaultTaskTTL)
	if err != nil {
		return err
	}
	c.out = append(record.appendModern(c.out[:c.result]), '}')
	c.resultType = "task"
	return errAnswered
}

// taskInput is something that a task waits for.
type taskInput struct {
	question
	answer chan []byte // capacity 1
}

// input asks the client for something and waits for it. Keys are unique over the
// task's life, so one that was used gets a number.
func (l *liveTask) input(ctx context.Context, key, method string, params []byte, read func([]byte) error) error {
	if key == "" {
		key = "input"
	}
	for {
		asked := l.ask(key, method, params)
		select {
		case answer := <-asked.answer:
			if read(answer) == nil {
				return nil
			}
		case <-ctx.Done():
			l.unask(asked.key)
			return ctx.Err()
		}
	}
}

// ask notes a question in the record.
func (l *liveTask) ask(key, method string, params []byte) *taskInput {
	l.mu.Lock()
	if l.inputs == nil {
		l.inputs, l.keys = make(map[string]*taskInput), make(map[string]int)
	}
	l.keys[key]++
	if n := l.keys[key]; n > 1 {
		key += "-" + strconv.Itoa(n)
	}
	asked := &taskInput{question{key, method, params}, make(chan []byte, 1)}
	l.inputs[key] = asked
	l.mu.Unlock()
	l.recordInputs()
	return asked
}

func (l *liveTask) unask(key string) {
	l.mu.Lock()
	delete(l.inputs, key)
	l.mu.Unlock()
	l.recordInputs()
}

// recordInputs writes what the task waits for into its record.
func (l *liveTask) recordInputs() {
	l.update(func(r *Task) {
		l.mu.Lock()
		defer l.mu.Unlock()
		var questions []question
		for _, asked := range l.inputs {
			questions = append(questions, asked.question)
		}
		r.Status, r.Inputs = TaskWorking, nil
		if len(questions) > 0 {
			r.Status, r.Inputs = TaskInputRequired, appendQuestions(nil, questions)
		}
	})
}

// reply hands answers to whoever asked. Unknown keys are passed over.
func (l *liveTask) reply(answers []byte) {
	codec.EachMember(answers, func(key, answer []byte) bool {
		l.mu.Lock()
		asked := l.inputs[string(key)]
		delete(l.inputs, string(key))
		l.mu.Unlock()
		if asked != nil {
			asked.answer <- clone(answer)
		}
		return true
	})
	l.recordInputs()
}

// findModern finds the record that a request of the extension names, and the
// task while it runs.
func (c *Call) findModern() (*Task, *liveTask, error) {
	if err := c.needTasks(); err != nil {
		return nil, nil, err
	}
	t := c.engine.tasks
	record, err := t.find(c)
	if err != nil {
		return nil, nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return record, t.live[record.ID], nil
}

func handleModernTaskGet(_ context.Context, c *Call) error {
	record, _, err := c.findModern()
	if err != nil {
		return err
	}
	c.out = record.appendDetailed(c.out)
	c.out = append(c.out, '}')
	return nil
}

func handleModernTaskUpdate(_ context.Context, c *Call) error {
	_, live, err := c.findModern()
	if err != nil {
		return err
	}
	if !codec.IsObject(c.message.Responses) {
		return codec.NewError(codec.CodeInvalidParams, `Invalid params: "inputResponses" must be an object`)
	}
	if live != nil {
		live.reply(c.message.Responses)
	}
	c.SetResult(emptyObject)
	return nil
}

func handleModernTaskCancel(_ context.Context, c *Call) error {
	_, live, err := c.findModern()
	if err != nil {
		return err
	}
	if live != nil {
		live.end(TaskCancelled, "cancelled by the client")
	}
	c.SetResult(emptyObject)
	return nil
}

// appendModern renders the record as the extension has it, without the closing
// brace.
func (t *Task) appendModern(dst []byte) []byte {
	dst = append(dst, `{"taskId":`...)
	dst = codec.AppendString(dst, t.ID)
	dst = append(dst, `,"status":"`...)
	dst = append(append(dst, t.Status...), '"')
	dst = appendMember(dst, "statusMessage", t.Message)
	dst = appendMember(dst, "createdAt", t.Created.UTC().Format(time.RFC3339Nano))
	dst = appendMember(dst, "lastUpdatedAt", t.Updated.UTC().Format(time.RFC3339Nano))
	dst = append(dst, `,"ttlMs":`...)
	dst = strconv.AppendInt(dst, t.TTL.Milliseconds(), 10)
	if t.PollInterval > 0 {
		dst = append(dst, `,"pollIntervalMs":`...)
		dst = strconv.AppendInt(dst, t.PollInterval.Milliseconds(), 10)
	}
	return dst
}

// appendDetailed is appendModern with what the task has come to.
func (t *Task) appendDetailed(dst []byte) []byte {
	dst = t.appendModern(dst)
	switch {
	case t.Error != nil:
		dst = append(dst, `,"error":`...)
		dst = t.Error.AppendObject(dst)
	case t.Result != nil:
		dst = append(dst, `,"result":`...)
		dst = append(dst, t.Result...)
	case t.Inputs != nil:
		dst = append(dst, `,"inputRequests":`...)
		dst = append(dst, t.Inputs...)
	}
	return dst
}

// appendEvent appends the notification that a task has changed.
func (t *taskTable) appendEvent(dst []byte, id string, member []byte) []byte {
	record, err := t.store.Get(id)
	if err != nil {
		return dst
	}
	dst = append(dst, `{"jsonrpc":"2.0","method":"notifications/tasks","params":`...)
	dst = record.appendDetailed(dst)
	dst = append(append(dst, `,"_meta":{`...), member...)
	return append(dst, '}', '}', '}')
}
