package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// ListenFilter says what a subscription is to tell (section Subscriptions of
// 2026-07-28).
type ListenFilter struct {
	// Tools, Prompts and Resources stand for the changes of the lists.
	Tools, Prompts, Resources bool
	// URIs are resources whose updates are wanted, Tasks the ids of tasks
	// (Options.TaskExtension).
	URIs, Tasks []string
}

// Change is something that a subscription tells. One of the first three fields
// is set, unless the server tells something that this client does not know.
type Change struct {
	Kind ListKind  // of the list that has changed
	URI  string    // of the resource that was updated, or of a part of it
	Task *TaskInfo // the task as it is now
	// Method and Params are the notification. Params are borrowed: copy what is
	// to be kept.
	Method string
	Params []byte
}

// Subscription is what Client.Listen has begun. Its methods may be used from
// several goroutines at once.
type Subscription struct {
	c        *Client
	call     *call
	onChange func(Change)

	once     sync.Once
	started  chan struct{} // closed when accepted is set
	accepted ListenFilter

	done chan struct{} // closed when err is set
	err  error
}

// errUnsubscribed is the cause that ends the call of a subscription that the
// client ends.
var errUnsubscribed = errors.New("client: the subscription was closed")

// Listen asks a server of the stateless revision to tell what changes
// (subscriptions/listen), and returns once the server has agreed. ctx governs
// that wait only; the subscription lives until its Close, until the connection
// ends, or until the server ends it. Several at once are fine; each has its own
// stream over HTTP, and counts as one of Options.MaxPending.
//
// onChange gets what the server tells, in order, on the goroutine that reads the
// stream: it must return soon. Where it is nil, the callbacks of Options get it.
// Nothing that happened before Listen, or between two subscriptions, is told:
// fetch what you need after Listen has returned. On an older revision, where the
// session tells of lists and Subscribe of resources, the error is a
// *CapabilityError.
func (c *Client) Listen(ctx context.Context, filter ListenFilter, onChange func(Change)) (*Subscription, error) {
	e := c.era.Load()
	if e == nil {
		return nil, &CapabilityError{Capability: "subscriptions", Owner: "server"}
	}
	k, err := c.newCall(c.ctx, codec.MethodListen, filter.params(), nil)
	if err != nil {
		return nil, err
	}
	s := &Subscription{c: c, call: k, onChange: onChange, started: make(chan struct{}), done: make(chan struct{})}
	e.mu.Lock()
	e.subs[k.id] = s
	e.mu.Unlock()
	if !c.spawn(func() { s.run(e) }) {
		s.leave(e)
		return nil, c.Err()
	}
	if err := s.awaitStart(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// run makes the call, which lasts as long as the subscription.
func (s *Subscription) run(e *era) {
	defer s.leave(e)
	_, err := s.c.run(s.call, &CallOptions{Timeout: -1})
	switch {
	case err == nil:
		s.err = ErrSubscriptionEnded
	case errors.Is(err, errUnsubscribed) || s.c.ctx.Err() != nil:
		s.err = ErrClosed
	default:
		s.err = typedEraError(err)
	}
	close(s.done)
}

func (s *Subscription) leave(e *era) {
	s.call.cancel(nil)
	e.mu.Lock()
	delete(e.subs, s.call.id)
	e.mu.Unlock()
}

// awaitStart waits until the server has agreed, and gives up the subscription
// where it does not.
func (s *Subscription) awaitStart(ctx context.Context) error {
	limit := s.c.o.CallTimeout
	if limit < 0 {
		limit = s.c.o.MaxCallTimeout
	}
	patience := time.NewTimer(limit)
	defer patience.Stop()
	select {
	case <-s.started:
		return nil
	case <-s.done:
		select {
		case <-s.started:
			return nil
		default:
			return s.err
		}
	case <-ctx.Done():
		s.Close()
		return ctx.Err()
	case <-patience.C:
		s.Close()
		return &timeoutError{method: codec.MethodListen, after: limit}
	}
}

// Accepted gives what the server has agreed to tell: what was asked for as far
// as the server has it.
func (s *Subscription) Accepted() ListenFilter { return s.accepted }

// Done is closed when the subscription has ended, for whatever reason.
func (s *Subscription) Done() <-chan struct{} { return s.done }

// Err tells why the subscription has ended: ErrClosed after Close of it or of the
// Client, ErrSubscriptionEnded where the server ended it in good order, and
// otherwise what went wrong, as ErrNoResponse for a stream that broke. It is nil
// while the subscription stands.
func (s *Subscription) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Close ends the subscription, of which the server is told: over HTTP by the end
// of the stream, elsewhere by notifications/cancelled. Nothing that arrives later
// is told; onChange may still be running as Close returns, and may call it.
func (s *Subscription) Close() {
	s.call.cancel(errUnsubscribed)
	<-s.done
}

func (f *ListenFilter) params() []byte {
	p := []byte(`{"notifications":{`)
	begin := len(p)
	add := func(name, value []byte) {
		if len(p) > begin {
			p = append(p, ',')
		}
		p = append(codec.AppendString(p, name), ':')
		p = append(p, value...)
	}
	for _, flag := range []flag{{"toolsListChanged", f.Tools}, {"promptsListChanged", f.Prompts}, {"resourcesListChanged", f.Resources}} {
		if flag.set {
			add([]byte(flag.name), []byte("true"))
		}
	}
	for name, list := range map[string][]string{"resourceSubscriptions": f.URIs, "taskIds": f.Tasks} {
		if len(list) > 0 {
			add([]byte(name), appendList(nil, list))
		}
	}
	return append(p, '}', '}')
}

func appendList(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = codec.AppendString(dst, s)
	}
	return append(dst, ']')
}

// start takes the acknowledgement.
func (s *Subscription) start(params []byte) {
	s.once.Do(func() {
		f := codec.Member(params, "notifications")
		s.accepted = ListenFilter{
			Tools:     codec.Bool(f, "toolsListChanged"),
			Prompts:   codec.Bool(f, "promptsListChanged"),
			Resources: codec.Bool(f, "resourcesListChanged"),
			URIs:      textList(codec.Member(f, "resourceSubscriptions")),
			Tasks:     textList(codec.Member(f, "taskIds")),
		}
		close(s.started)
	})
}

// receiveSubscribed takes a notification of a subscription, and reports whether
// it is one. Those of a subscription that has ended are dropped.
func (c *Client) receiveSubscribed(e *era, m *codec.Message) bool {
	token := codec.Member(m.Meta, codec.MetaSubscriptionID)
	if token == nil && string(m.Method) == codec.NotifyCancelled {
		token = m.RequestID
	}
	if token == nil {
		return false
	}
	id, _ := codec.ParseUint(token)
	e.mu.Lock()
	s := e.subs[id]
	e.mu.Unlock()
	switch {
	case s == nil:
		c.log.Debug("client: a notification of no subscription", "method", string(m.Method))
	case string(m.Method) == codec.NotifySubscriptionsStarted:
		s.start(m.Params)
	case string(m.Method) == codec.NotifyCancelled:
		// The result may follow, or may not; the two say the same.
		if k := c.take([]byte(token), nil); k != nil {
			k.finish(nil, nil)
			k.cancel(errAnswered)
		}
	default:
		e.cache.changed(m)
		s.tell(m)
	}
	return true
}

// tell hands a notification to whoever wants it.
func (s *Subscription) tell(m *codec.Message) {
	c := s.c
	if s.call.ctx.Err() != nil {
		return
	}
	if s.onChange == nil {
		if !c.consume(m) && c.o.OnNotification != nil {
			c.guard("OnNotification", func() { c.o.OnNotification(string(m.Method), m.Params) })
		}
		return
	}
	change := Change{Method: string(m.Method), Params: m.Params}
	switch change.Method {
	case codec.NotifyToolsChanged:
		change.Kind = ListTools
	case codec.NotifyPromptsChanged:
		change.Kind = ListPrompts
	case codec.NotifyResourcesChanged:
		change.Kind = ListResources
	case codec.NotifyResourceUpdated:
		change.URI = string(m.URI)
	case codec.NotifyTasks:
		if info, err := parseTask(append([]byte(nil), m.Params...)); err == nil {
			change.Task = &info
		}
	}
	c.guard("Listen", func() { s.onChange(change) })
}

// subscribeByListen is Subscribe where there are no sessions: a subscription for
// the one resource, whose updates Options.OnResourceUpdated receives.
func (c *Client) subscribeByListen(ctx context.Context, e *era, uri string) error {
	e.mu.Lock()
	old := e.byURI[uri]
	e.mu.Unlock()
	if old != nil && old.Err() == nil {
		return nil
	}
	s, err := c.Listen(ctx, ListenFilter{URIs: []string{uri}}, nil)
	if err != nil {
		return err
	}
	if len(s.Accepted().URIs) == 0 {
		s.Close()
		return fmt.Errorf("client: %s: %w", excerpt(uri), &CapabilityError{Capability: "resources.subscribe", Owner: "server"})
	}
	e.mu.Lock()
	second := e.byURI[uri]
	if second == nil || second.Err() != nil {
		e.byURI[uri], s = s, nil
	}
	e.mu.Unlock()
	if s != nil { // somebody else was faster
		s.Close()
	}
	return nil
}

// unsubscribeByListen ends what subscribeByListen began.
func (e *era) unsubscribeByListen(uri string) {
	e.mu.Lock()
	s := e.byURI[uri]
	delete(e.byURI, uri)
	e.mu.Unlock()
	if s != nil {
		s.Close()
	}
}
