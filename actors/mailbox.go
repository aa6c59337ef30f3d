package actors

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// inlineBudget is how many messages of others a sender handles on its own
// goroutine before the rest goes to another one.
const inlineBudget = 16

// refusable is a message that wants to be told when a full mailbox did not
// take it. Others become dead letters.
type refusable interface{ refuse(error) }

// urgent is a message that a full mailbox takes all the same: the end of a
// request, of which there are no more than requests in flight.
type urgent interface{ urgent() bool }

// mailbox is the bounded mailbox of a session or subscription. Whoever posts
// into an idle mailbox handles the message, and what others post meanwhile, on
// its own goroutine.
type mailbox struct {
	system *System

	mu        sync.Mutex // guards what follows; never held while a message is handled
	invoker   actor.MessageInvoker
	user      []any
	priority  []any // system messages
	running   bool
	suspended bool
	closed    bool // the actor has stopped; nobody will read
}

var _ actor.Mailbox = (*mailbox)(nil)

// RegisterHandlers is called once, before the first message.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.invoker = invoker
}

// Start has nothing to do: the mailbox runs when it is posted to.
func (m *mailbox) Start() {}

// UserMessageCount gives the number of messages that wait.
func (m *mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.user)
}

// PostUserMessage handles the message or queues it, or refuses it when full.
func (m *mailbox) PostUserMessage(message any) {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		m.refuse(message, ErrSessionClosed)
		return
	}
	if len(m.user) >= m.system.limits.MaxMailbox && !isUrgent(message) {
		m.mu.Unlock()
		m.refuse(message, ErrOverloaded)
		return
	}
	if m.running || m.suspended || len(m.user) > 0 || len(m.priority) > 0 {
		m.user = append(m.user, message)
		m.runLocked()
		return
	}
	m.running = true
	m.mu.Unlock()
	m.invoke(message, false)
	m.drain(inlineBudget)
}

// PostSystemMessage handles or queues a message that goes before all others.
func (m *mailbox) PostSystemMessage(message any) {
	m.mu.Lock()
	m.priority = append(m.priority, message)
	m.runLocked()
}

// runLocked begins to drain unless somebody does. It unlocks m.mu.
func (m *mailbox) runLocked() {
	start := !m.running
	m.running = true
	m.mu.Unlock()
	if start {
		m.drain(inlineBudget)
	}
}

// drain handles messages until none is left, or the budget is spent and another
// goroutine takes over. A budget below zero is none.
func (m *mailbox) drain(budget int) {
	for {
		m.mu.Lock()
		message, system := m.next()
		if message == nil {
			m.running = false
			m.mu.Unlock()
			return
		}
		m.mu.Unlock()
		if budget == 0 {
			go func() {
				m.invoke(message, system)
				m.drain(-1)
			}()
			return
		}
		budget--
		m.invoke(message, system)
	}
}

// next takes the next message, or nil. m.mu is held.
func (m *mailbox) next() (message any, system bool) {
	if len(m.priority) > 0 {
		message, m.priority = shift(m.priority)
		return message, true
	}
	if m.suspended || len(m.user) == 0 {
		return nil, false
	}
	message, m.user = shift(m.user)
	return message, false
}

// shift takes the first element. The array is let go when it is empty and had
// grown large, so that an idle mailbox holds next to nothing.
func shift(q []any) (first any, rest []any) {
	first = q[0]
	q[0] = nil
	if len(q) > 1 {
		return first, q[1:]
	}
	if cap(q) > 64 {
		return first, nil
	}
	return first, q[:0]
}

// invoke handles one message. A panic goes to the supervisor.
func (m *mailbox) invoke(message any, system bool) {
	defer func() {
		if reason := recover(); reason != nil {
			m.invoker.EscalateFailure(reason, message)
		}
	}()
	switch message.(type) {
	case *actor.SuspendMailbox:
		m.suspend(true)
	case *actor.ResumeMailbox:
		m.suspend(false)
	default:
		if system {
			m.invoker.InvokeSystemMessage(message)
		} else {
			m.invoker.InvokeUserMessage(message)
		}
	}
}

func (m *mailbox) suspend(on bool) {
	m.mu.Lock()
	m.suspended = on
	m.mu.Unlock()
}

func isUrgent(message any) bool {
	u, ok := message.(urgent)
	return ok && u.urgent()
}

// refuse tells the sender, or else the dead letters, that a message was not
// taken.
func (m *mailbox) refuse(message any, why error) {
	if r, ok := message.(refusable); ok {
		r.refuse(why)
		return
	}
	m.system.actors.EventStream.Publish(&actor.DeadLetterEvent{Message: message})
}

// close hands back everything that waits and refuses all that comes. The actor
// library drops such messages without a word, and their senders would wait for
// ever.
func (m *mailbox) close() {
	m.mu.Lock()
	left := m.user
	m.user, m.closed = nil, true
	m.mu.Unlock()
	for _, message := range left {
		m.refuse(message, ErrSessionClosed)
	}
}
