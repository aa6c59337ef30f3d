package bench

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client/wire"
)

const (
	keepers     = 4 // that keep the sessions alive
	keepsPerTTL = 3
)

// holder opens sessions, keeps them, and ends them, for a measurement of what sessions cost.
type holder struct {
	ctx     context.Context
	quit    context.CancelFunc
	unwatch func() // of the context that ctx comes from
	cfg     *Config
	set     *sessionSet    // callers and counts
	busy    sync.WaitGroup // those who keep sessions alive
	openers []*caller      // of open, which one goroutine calls at a time

	mu   sync.Mutex
	held []*place // guarded by mu: open, as far as is known, the latest last
}

// newHolder makes a holder whose calls end with ctx.
func newHolder(ctx context.Context, c *Config) *holder {
	c.Sessions = 0
	keeping, quit := context.WithCancel(ctx)
	h := &holder{ctx: keeping, quit: quit, cfg: c, set: newSessionSet(c)}
	h.unwatch = abortAfter(ctx, h.set.abort)
	return h
}

// close ends everything.
func (h *holder) close() {
	h.quit()
	h.busy.Wait()
	h.unwatch()
	h.set.revive()
	h.end(h.take(h.size()))
	for _, c := range h.openers {
		h.set.release(c)
	}
}

// size counts the sessions that are held.
func (h *holder) size() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.held)
}

// add opens one session.
func (h *holder) add(c *caller) (*place, error) {
	at := &place{}
	if err := h.set.openOne(at, c); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = append(h.held, at)
	return at, nil
}

// open opens up to n sessions until the server refuses one. It gives that refusal. It always uses the same connections,
// so that these cost the server nothing anew.
func (h *holder) open(n int) error {
	var wg sync.WaitGroup
	var next atomic.Int64
	var stop atomic.Bool
	var first error
	var once sync.Once
	for len(h.openers) < stepsAtOnce {
		h.openers = append(h.openers, h.set.newCaller())
	}
	for _, c := range h.openers {
		wg.Go(func() {
			for h.ctx.Err() == nil && !stop.Load() && int(next.Add(1)) <= n {
				if _, err := h.add(c); err != nil {
					stop.Store(true)
					once.Do(func() { first = err })
				}
			}
		})
	}
	wg.Wait()
	return first
}

// take gives up the n sessions that were opened last: nobody keeps them alive any more.
func (h *holder) take(n int) []*place {
	h.mu.Lock()
	defer h.mu.Unlock()
	n = min(n, len(h.held))
	out := append([]*place(nil), h.held[len(h.held)-n:]...)
	h.held = h.held[:len(h.held)-n]
	return out
}

// end ends sessions by DELETE, also after an interrupt. It counts those that the server has ended.
func (h *holder) end(places []*place) int {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), closeBudget)
	defer cancel()
	var wg sync.WaitGroup
	var next, ended atomic.Int64
	for range min(openAtOnce, len(places)) {
		wg.Go(func() {
			c := h.set.newCaller()
			defer h.set.release(c)
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(places) {
					return
				}
				sess := places[i].sess.Swap(nil)
				if sess == nil {
					continue
				}
				switch err := (*sess).close(c, time.Now().Add(closeTimeout)); {
				case err == nil:
					ended.Add(1)
					h.set.closed.Add(1)
				case (*sess).lost(err):
					h.set.lost.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return int(ended.Load())
}

// keepAlive pings every session that is held often enough that a server which ends idle ones after ttl does not.
func (h *holder) keepAlive(ttl time.Duration) {
	every := ttl / keepsPerTTL
	for k := range keepers {
		h.busy.Go(func() {
			c := h.set.newCaller()
			defer h.set.release(c)
			for pauseFor(h.ctx, every/8) {
				begin := time.Now()
				for i := k; h.ctx.Err() == nil; i += keepers {
					at := h.at(i)
					if at == nil {
						break
					}
					if err := h.ping(at, c); err != nil {
						h.gone(at, err)
					}
				}
				if !pauseFor(h.ctx, every*7/8-time.Since(begin)) {
					return
				}
			}
		})
	}
}

func (h *holder) at(i int) *place {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i < len(h.held) {
		return h.held[i]
	}
	return nil
}

// gone forgets a session that the server no longer knows.
func (h *holder) gone(at *place, err error) {
	sess := at.sess.Load()
	if sess == nil || !notKnown(*sess, err) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.held {
		if h.held[i] == at {
			h.held = append(h.held[:i], h.held[i+1:]...)
			h.set.lost.Add(1)
			return
		}
	}
}

// ping uses a session. The error is nil where the server knows it.
func (h *holder) ping(at *place, c *caller) error {
	sess := at.sess.Load()
	if sess == nil {
		return errNoSession
	}
	q, err := (*sess).query(codec.MethodPing, "", []byte("{}"), nil)
	if err != nil {
		return err
	}
	return (*sess).request(c, q, time.Now().Add(h.cfg.Timeout))
}

// abortAfter calls abort when ctx ends. The function that it returns ends the watch; after it abort has returned, or will
// not be called.
func abortAfter(ctx context.Context, abort func()) (stop func()) {
	done := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(done)
		abort()
	})
	return sync.OnceFunc(func() {
		if !unwatch() {
			<-done
		}
	})
}

// refusedBy reports whether err, of an attempt to open a session, is an answer of the server and not a fault of the way
// to it.
func refusedBy(err error) bool {
	var status *wire.StatusError
	var hand *handshakeError
	return errors.As(err, &status) || errors.As(err, &hand)
}
