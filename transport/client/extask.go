package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// The tasks extension of 2026-07-28: the server decides to answer a tools/call
// with a task. Task and its methods are the same as for the tasks of 2025-11-25.

const (
	// usualPoll is how long to wait between two looks at a task where the server
	// does not say, leastPoll the shortest that is waited in any case.
	usualPoll = time.Second
	leastPoll = 10 * time.Millisecond
)

// toolOutcome makes a task of the result of tools/call: one that the server
// works on, or one that is over at once.
func (c *Client) toolOutcome(result []byte) (*Task, error) {
	if codec.Text(result, "resultType") != "task" {
		return &Task{c: c, info: TaskInfo{Status: TaskCompleted}, result: result}, nil
	}
	info, err := parseTask(result)
	if err != nil {
		return nil, err
	}
	return &Task{c: c, id: info.ID, info: info}, nil
}

// callForTask is CallToolAsTask for a server of the stateless revision.
func (c *Client) callForTask(ctx context.Context, name string, arguments any, o *CallOptions) (*Task, error) {
	params, err := toolParams(name, arguments)
	if err != nil {
		return nil, err
	}
	result, err := c.Request(ctx, codec.MethodToolsCall, params, o)
	if err != nil {
		return nil, err
	}
	return c.toolOutcome(result)
}

// waitForTask gives the result of a tools/call that the server has answered with
// a task, for a caller who does not care. A caller who gives up ends the task.
func (c *Client) waitForTask(ctx context.Context, result []byte) (*ToolResult, error) {
	t, err := c.toolOutcome(result)
	if err != nil {
		return nil, err
	}
	outcome, err := t.Result(ctx, &CallOptions{Timeout: c.o.MaxCallTimeout})
	if err != nil && (ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded)) {
		c.spawn(func() {
			if cancelErr := t.request(c.ctx, codec.MethodTasksCancel); cancelErr != nil {
				c.log.Debug("client: a task that nobody waits for was not cancelled", "error", cancelErr)
			}
		})
	}
	return outcome, err
}

// needTaskExtension gives an error where one side did not declare the extension.
func (c *Client) needTaskExtension(e *era) error {
	if !e.tasks {
		return &CapabilityError{Capability: "extensions." + extensionTasks, Owner: "client"}
	}
	return c.needServer("extensions", extensionTasks)
}

// request makes a request of the extension about the task.
func (t *Task) request(ctx context.Context, method string) error {
	_, err := t.c.Request(ctx, method, t.params(), nil)
	return err
}

// Update answers what a task of the extension wants to know (tasks/update).
// answers is a raw object: the key of an input request, and the result that its
// method has. Result does so by itself, by the callbacks of Options. Answers may
// come one by one.
func (t *Task) Update(ctx context.Context, answers []byte) error {
	e := t.c.era.Load()
	if e == nil {
		return &CapabilityError{Capability: "extensions." + extensionTasks, Owner: "server"}
	}
	if err := t.c.needTaskExtension(e); err != nil {
		return err
	}
	if answers == nil || !isObjectOrNil(answers) {
		return ErrBadParams
	}
	params := t.params()
	params = append(params[:len(params)-1], `,"inputResponses":`...)
	_, err := t.c.Request(ctx, codec.MethodTasksUpdate, append(append(params, answers...), '}'), nil)
	return err
}

// await looks at a task of the extension until it is over, answers what it wants
// to know, and gives its result.
func (t *Task) await(ctx context.Context, o *CallOptions) (*ToolResult, error) {
	if o != nil && o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Timeout)
		defer cancel()
	}
	if t.result != nil {
		return parseToolResult(t.result)
	}
	answered := map[string]bool{}
	for {
		info, err := t.ask(ctx, codec.MethodTasksGet)
		if err != nil {
			return nil, err
		}
		switch info.Status {
		case TaskCompleted:
			return parseToolResult(codec.Member(info.Raw, "result"))
		case TaskFailed:
			return nil, parseError(codec.Member(info.Raw, "error"))
		case TaskCancelled:
			return nil, ErrTaskCancelled
		case TaskInputRequired:
			if err := t.answer(ctx, info.Raw, answered); err != nil {
				return nil, err
			}
		}
		pause := info.PollInterval
		orDefault(&pause, usualPoll)
		if !sleep(ctx, max(pause, leastPoll)) {
			return nil, context.Cause(ctx)
		}
	}
}

// answer answers the input requests of a task that were not answered before. A
// server repeats a request until it has taken note of the answer, and never uses
// a key twice.
func (t *Task) answer(ctx context.Context, raw []byte, answered map[string]bool) error {
	asked := codec.Member(raw, "inputRequests")
	present := map[string]bool{}
	open := false
	codec.EachMember(asked, func(key, _ []byte) bool {
		present[string(key)] = true
		open = open || !answered[string(key)]
		return true
	})
	maps.DeleteFunc(answered, func(key string, _ bool) bool { return !present[key] })
	if !open {
		return nil
	}
	answers, err := t.c.answerInputs(ctx, asked, answered)
	if err != nil {
		return err
	}
	if err := t.Update(ctx, answers); err != nil {
		return fmt.Errorf("client: answering a task: %w", err)
	}
	maps.Copy(answered, present)
	return nil
}
