package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// listKind names the lists whose changes are announced.
type listKind uint8

const (
	listTools listKind = iota
	listResources
	listPrompts
	listKinds
)

var changedFrames = [listKinds][]byte{
	listTools:     codec.AppendNotification(nil, codec.NotifyToolsChanged, nil),
	listResources: codec.AppendNotification(nil, codec.NotifyResourcesChanged, nil),
	listPrompts:   codec.AppendNotification(nil, codec.NotifyPromptsChanged, nil),
}

// announcer sends list_changed notifications: the first at once, those of
// further changes within the interval as one when it is over, so that the last
// change is always followed by a notification.
type announcer struct {
	engine *Engine

	// changes counts the changes of each list. A session remembers the counts
	// at its handshake: what changed before is no news to it.
	changes [listKinds]atomic.Uint32

	mu      sync.Mutex // guards what follows
	timer   [listKinds]*time.Timer
	cooling [listKinds]bool
	dirty   [listKinds]bool
	log     [listKinds][]listChange // the last ones, the oldest first, where there is a filter
	told    [listKinds]uint32       // the count of changes that sessions were told of, likewise
	stopped bool
}

// changed notes that a list has changed, and how.
func (a *announcer) changed(kind listKind, change listChange) {
	a.mu.Lock()
	change.count = a.changes[kind].Add(1)
	if a.engine.options.Visible != nil {
		a.note(kind, change)
	}
	if a.stopped {
		a.mu.Unlock()
		return
	}
	if a.cooling[kind] {
		a.dirty[kind] = true
		a.mu.Unlock()
		return
	}
	a.cool(kind)
	a.mu.Unlock()
	a.engine.broadcast(kind)
}

// cool begins the interval in which changes gather. a.mu is held.
func (a *announcer) cool(kind listKind) {
	a.cooling[kind] = true
	interval := a.engine.options.ListChangedInterval
	if a.timer[kind] == nil {
		a.timer[kind] = time.AfterFunc(interval, func() { a.elapsed(kind) })
		return
	}
	a.timer[kind].Reset(interval)
}

// elapsed ends an interval.
func (a *announcer) elapsed(kind listKind) {
	a.mu.Lock()
	a.cooling[kind] = false
	again := a.dirty[kind] && !a.stopped
	a.dirty[kind] = false
	if again {
		a.cool(kind)
	}
	a.mu.Unlock()
	if again {
		a.engine.broadcast(kind)
	}
}

func (a *announcer) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
	for _, t := range a.timer {
		if t != nil {
			t.Stop()
		}
	}
}

// seen gives the counts of changes for a new session to remember.
func (a *announcer) seen() (counts [listKinds]uint32) {
	for kind := range counts {
		counts[kind] = a.changes[kind].Load()
	}
	return counts
}

// broadcast sends a list_changed notification to every session that was told
// to expect it and began before the change.
func (e *Engine) broadcast(kind listKind) {
	e.system.Publish(listTopics[kind], nil)
	if e.options.Visible != nil {
		e.broadcastVisible(kind)
		return
	}
	changes := e.announcer.changes[kind].Load()
	e.EachSession(func(s *Session) {
		n := s.negotiated.Load()
		if n != nil && n.declared&listCapability[kind] != 0 && n.seen[kind] != changes {
			s.notify(changedFrames[kind])
		}
	})
}

var listCapability = [listKinds]capability{listTools: capTools, listResources: capResources, listPrompts: capPrompts}

// NotifyListChanged announces a change of a list that the engine cannot see,
// say of what Options.Visible lets through: "tools", "resources" or "prompts".
// Everybody is told who is told of changes of that list.
func (e *Engine) NotifyListChanged(list string) {
	switch list {
	case "tools":
		e.announcer.changed(listTools, listChange{all: true})
	case "resources":
		e.announcer.changed(listResources, listChange{all: true})
	case "prompts":
		e.announcer.changed(listPrompts, listChange{all: true})
	}
}
