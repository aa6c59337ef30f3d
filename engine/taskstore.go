package engine

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// TaskStatus is where a task stands.
type TaskStatus string

// The states of a task. The last three are final.
const (
	TaskWorking       TaskStatus = "working"
	TaskInputRequired TaskStatus = "input_required"
	TaskCompleted     TaskStatus = "completed"
	TaskFailed        TaskStatus = "failed"
	TaskCancelled     TaskStatus = "cancelled"
)

// Final reports whether a task in this state changes no more.
func (s TaskStatus) Final() bool { return s == TaskCompleted || s == TaskFailed || s == TaskCancelled }

// Task is the record of a task: work that goes on after the request for it was
// answered.
type Task struct {
	ID           string // unguessable
	Owner        string // who may see it: a session, or a principal
	Status       TaskStatus
	Message      string // what Status means here, for people
	Created      time.Time
	Updated      time.Time
	TTL          time.Duration // from Created on
	PollInterval time.Duration
	Result       json.RawMessage // the result of the request, once there is one
	Error        *codec.Error    // or its error
	Inputs       json.RawMessage // what it waits for, an inputRequests object (2026-07-28)
}

// TaskStore keeps the records of tasks. Its methods may be called at once from
// many goroutines, and must not block for long. What Put was given and what Get
// gives may not be changed by either side.
type TaskStore interface {
	// Put adds or replaces a record. ErrTasksFull refuses a new one.
	Put(t *Task) error
	// Get gives a record, or ErrNoTask where there is none or its time is over.
	Get(id string) (*Task, error)
	// List gives up to limit records of an owner in the order of creation, from
	// the one after the task of the id after, or from the first.
	List(owner, after string, limit int) (tasks []*Task, more bool, err error)
	// Delete drops a record, if there is one.
	Delete(id string) error
}

// Errors of a TaskStore.
var (
	ErrNoTask    = errors.New("engine: no such task")
	ErrTasksFull = errors.New("engine: too many tasks")
)

// memoryTasks is the default store, bounded and in memory.
type memoryTasks struct {
	max int

	mu   sync.Mutex // guards byID
	byID map[string]*Task
}

// NewMemoryTasks makes a store that holds up to max tasks, 10,000 where max is
// 0. When it is full, tasks whose time is over make room; there being none, new
// tasks are refused.
func NewMemoryTasks(max int) TaskStore {
	if max <= 0 {
		max = 10_000
	}
	return &memoryTasks{max: max, byID: make(map[string]*Task)}
}

func (s *memoryTasks) Put(t *Task) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID[t.ID] == nil && len(s.byID) >= s.max {
		now := time.Now()
		for id, old := range s.byID {
			if old.expired(now) {
				delete(s.byID, id)
			}
		}
		if len(s.byID) >= s.max {
			return ErrTasksFull
		}
	}
	s.byID[t.ID] = t
	return nil
}

func (s *memoryTasks) Get(id string) (*Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.byID[id]
	if t == nil {
		return nil, ErrNoTask
	}
	if t.expired(time.Now()) {
		delete(s.byID, id)
		return nil, ErrNoTask
	}
	return t, nil
}

func (s *memoryTasks) List(owner, after string, limit int) ([]*Task, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*Task
	now := time.Now()
	for _, t := range s.byID {
		if t.Owner == owner && !t.expired(now) {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *Task) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	if after != "" {
		i := slices.IndexFunc(list, func(t *Task) bool { return t.ID == after })
		if i < 0 {
			return nil, false, ErrNoTask
		}
		list = list[i+1:]
	}
	if len(list) > limit {
		return list[:limit], true, nil
	}
	return list, false, nil
}

func (s *memoryTasks) Delete(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
	return nil
}

func (t *Task) expired(now time.Time) bool { return now.Sub(t.Created) > t.TTL }
