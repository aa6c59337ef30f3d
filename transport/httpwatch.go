package transport

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// watch sees to the posts of a handler for which something takes too long: a
// body that does not arrive, a reply that has to become an event stream. A timer
// for each post would be set and stopped for nothing with nearly every request;
// here a post says with one store what it waits for, and one timer for all looks
// at them. It runs only while there are posts in flight. A post whose reply is
// late gets a timer of its own and is not looked at any more.
//
// A wait counts from when it was seen first, so that it may last a tick longer.
type watch struct {
	handler *HTTPHandler
	tick    time.Duration
	awake   atomic.Bool // the timer runs, or look does

	mu    sync.Mutex // guards what follows, and what post says
	timer *time.Timer
	posts []weak.Pointer[post] // in use, and not late, or in the pool
}

// waiting is what a post waits for.
type waiting uint64

const (
	waitsNot   waiting = iota
	waitsBody          // for its body
	waitsReply         // for its answer
	waitsMask  waiting = 3
)

// The longest and the shortest time between two looks.
const (
	longestTick  = 100 * time.Millisecond
	shortestTick = time.Millisecond
)

func (w *watch) init(h *HTTPHandler) {
	o := &h.options
	w.handler = h
	w.tick = min(max(min(o.CommitDelay, o.BodyTimeout)/8, shortestTick), longestTick)
	w.timer = time.AfterFunc(longestTick, w.look)
	w.timer.Stop()
}

// add makes a post known. It is known for as long as anybody else holds it.
func (w *watch) add(p *post) {
	w.mu.Lock()
	w.posts = append(w.posts, weak.Make(p))
	w.mu.Unlock()
}

// wake starts the timer, because of a post that has begun to wait.
func (w *watch) wake(p *post) {
	if !w.awake.CompareAndSwap(false, true) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	p.seen = waiting(p.turn.Load())
	p.since = now
	w.timer.Reset(min(w.limit(p.seen), w.tick))
}

// limit gives how long a wait may last.
func (w *watch) limit(turn waiting) time.Duration {
	if turn&waitsMask == waitsBody {
		return w.handler.options.BodyTimeout
	}
	return w.handler.options.CommitDelay
}

// look sees to all posts, and comes back unless none waits.
func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	next, busy := w.round()
	if !busy {
		w.awake.Store(false)
		// Who began to wait before that has not called wake.
		if next, busy = w.round(); !busy || !w.awake.CompareAndSwap(false, true) {
			return
		}
	}
	w.timer.Reset(next)
}

// round sees to all posts once. It gives the time until the next look, and
// whether any post waits. w.mu is held.
func (w *watch) round() (next time.Duration, busy bool) {
	now := time.Now()
	next = w.tick
	for i := 0; i < len(w.posts); {
		p := w.posts[i].Value()
		if p == nil || !w.judge(p, now, &next, &busy) {
			last := len(w.posts) - 1
			w.posts[i] = w.posts[last]
			w.posts = w.posts[:last]
			continue
		}
		i++
	}
	return next, busy
}

// judge sees to one post, and to when that has to be done again. It reports
// whether the post is to be looked at any more. w.mu is held.
func (w *watch) judge(p *post, now time.Time, next *time.Duration, busy *bool) bool {
	turn := waiting(p.turn.Load())
	if turn&waitsMask == waitsNot {
		return true
	}
	if turn != p.seen {
		p.seen, p.since = turn, now
	}
	left := w.limit(turn) - now.Sub(p.since)
	switch {
	case left > 0:
		*next, *busy = min(*next, left), true
	case turn&waitsMask == waitsBody:
		p.giveUpBody(turn)
	default:
		return !p.late(turn)
	}
	return true
}

// wait begins to wait for something, or ends it. It is called by the goroutine
// of the request alone.
func (p *post) wait(what waiting) (turn waiting) {
	turn = waiting(p.turn.Load())&^waitsMask + waitsMask + 1 | what
	p.turn.Store(uint64(turn))
	if w := &p.handler.watch; what != waitsNot && !w.awake.Load() {
		w.wake(p)
	}
	return turn
}

// giveUpBody makes the read of the body fail, unless it is done.
func (p *post) giveUpBody(turn waiting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn.CompareAndSwap(uint64(turn), uint64(turn&^waitsMask)) {
		_ = http.NewResponseController(p.w).SetReadDeadline(time.Now())
	}
}

// gotBody ends the wait for the body. It reports whether the time was over, and
// the deadline of the connection is set.
func (p *post) gotBody(turn waiting) (late bool) {
	if p.turn.CompareAndSwap(uint64(turn), uint64(turn&^waitsMask)) {
		return false
	}
	p.mu.Lock() // until giveUpBody is done
	defer p.mu.Unlock()
	return true
}

// late takes a post with a late reply over from the watch. It reports whether it
// was still waiting. From now on the post has a timer, and it is not used again.
func (p *post) late(turn waiting) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || waiting(p.turn.Load()) != turn {
		return false
	}
	p.slow = true
	p.timer = time.AfterFunc(p.handler.options.KeepAlive, p.tick)
	if p.form == replyNone {
		p.form = replyEvents
		go p.Flush()
		return true
	}
	go p.tick()
	return true
}

// tick keeps a late reply alive.
func (p *post) tick() {
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		return
	}
	p.queue = append(p.queue, keepAlive...)
	p.timer.Reset(p.handler.options.KeepAlive)
	p.mu.Unlock()
	p.Flush()
}
