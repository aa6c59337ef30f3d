package bench

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// maxNotices bounds the notifications that wait for a flow; the oldest makes room.
const maxNotices = 1024

// notices hands the notifications of a session to the flows that listen. The zero value is ready; while nobody
// listens a notification costs one load.
type notices struct {
	listening atomic.Int32 // flows in the list

	mu        sync.Mutex
	listeners []*listener // guarded by mu
}

// notice is a notification that has come.
type notice struct {
	method, uri string
	at          time.Time
}

// listener is a flow that waits, or will wait, for notifications.
type listener struct {
	methods []string      // that it wants
	wake    chan struct{} // capacity 1: something has come

	mu   sync.Mutex
	come []notice // guarded by mu
}

// deliver takes a notification that was read on a session. The message is borrowed.
func (n *notices) deliver(m *codec.Message) {
	if n.listening.Load() == 0 || m.Kind != codec.KindNotification {
		return
	}
	now := time.Now()
	n.mu.Lock()
	listeners := slices.Clone(n.listeners)
	n.mu.Unlock()
	for _, l := range listeners {
		if slices.ContainsFunc(l.methods, func(method string) bool { return method == string(m.Method) }) {
			l.put(notice{string(m.Method), codec.Text(m.Params, "uri"), now})
		}
	}
}

// attach begins to listen, and detach ends it.
func (n *notices) attach(l *listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners = append(n.listeners, l)
	n.listening.Add(1)
}

func (n *notices) detach(l *listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := slices.Index(n.listeners, l); i >= 0 {
		n.listeners = slices.Delete(n.listeners, i, i+1)
		n.listening.Add(-1)
	}
}

func (l *listener) put(what notice) {
	l.mu.Lock()
	if len(l.come) == maxNotices {
		l.come = slices.Delete(l.come, 0, 1)
	}
	l.come = append(l.come, what)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default: // it has not been taken yet
	}
}

// take gives the first notification that fits, and keeps it from later steps.
func (l *listener) take(method, uri string) (notice, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, got := range l.come {
		if got.method == method && (uri == "" || got.uri == uri) {
			l.come = slices.Delete(l.come, i, i+1)
			return got, true
		}
	}
	return notice{}, false
}

// await waits until a notification fits, the time is over, or the run has been stopped.
func (l *listener) await(r *run, method, uri string, deadline time.Time) (notice, bool) {
	t := time.NewTimer(time.Until(deadline))
	defer t.Stop()
	for {
		if got, ok := l.take(method, uri); ok {
			return got, true
		}
		select {
		case <-l.wake:
		case <-t.C:
			return notice{}, false
		case <-r.stop.Done():
			return notice{}, false
		}
	}
}
