package bench

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

const (
	interruptDrain = 2 * time.Second        // what calls in flight get after an interrupt
	lateGrace      = 50 * time.Millisecond  // after the end, for calls that were due before it
	openingTick    = 250 * time.Millisecond // progress while sessions are opened or closed
)

// run is one run while it is under way.
type run struct {
	cfg    Config
	set    *sessionSet
	rec    *recorder
	tools  []tool  // of a plain run
	script *script // of a run with flows
	series []series
	calls  int // how many of the series are calls; what stands aside comes after them
	picker *picker

	stop   context.Context // no call is begun after it has ended
	cancel context.CancelFunc

	origin time.Time    // begin of the schedule
	from   time.Time    // begin of the measured window: origin and the warm-up
	until  atomic.Int64 // end of the measured window in Unix nanoseconds; MaxInt64 while nobody knows

	turn     atomic.Uint64 // rows of arguments used so far
	claimed  atomic.Int64  // closed loop with a number of calls: those taken so far
	measured atomic.Int64  // calls begun in the measured window
	warm     atomic.Int64  // calls begun before it
	dropped  atomic.Int64  // measured starts that were due and not begun
	starved  atomic.Int64  // connections that this machine refused: descriptors or ports
	held     atomic.Int64  // calls that the cap on calls in flight has held back

	mu    sync.Mutex
	ended string // guarded by mu: why the run ended before its time
}

// Run offers the load that c describes and gives what it has found. Ending ctx ends the run early: no further call is
// begun, calls in flight get two seconds, the sessions are closed, and the Result tells what was measured until then. The
// error is a *UsageError where c cannot be run, and otherwise says why no session could be opened.
func Run(ctx context.Context, c Config) (*Result, error) {
	cfg, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg.peer == nil {
		if cfg.peer, err = newPeer(&cfg); err != nil {
			return nil, err
		}
	}
	r := &run{cfg: cfg, set: newSessionSet(&cfg)}
	r.until.Store(math.MaxInt64)
	r.stop, r.cancel = context.WithCancel(ctx)
	defer r.cancel()
	stopAborting := r.abortAfter(ctx)
	finish := sync.OnceFunc(func() {
		stopAborting() // the sessions are ended in good order, also after an interrupt
		r.finish()
	})
	defer finish()

	started := time.Now()
	if err := r.prepare(); err != nil {
		return nil, err
	}
	if cfg.OnBegin != nil {
		cfg.OnBegin(r.conditions(cfg.Duration))
	}
	found := r.measure()
	finish()
	res := r.result(found, started)
	res.Interrupted = ctx.Err() != nil
	return res, nil
}

func newPeer(c *Config) (peer, error) {
	if len(c.Command) > 0 {
		return newStdioPeer(c), nil
	}
	return newHTTPPeer(c)
}

// abortAfter makes an interrupt end what is in flight when it has had its time. The function that it returns ends the
// watch.
func (r *run) abortAfter(ctx context.Context) (stop func()) {
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-ctx.Done():
		case <-done:
			return
		}
		r.shorten(time.Now())
		select {
		case <-time.After(interruptDrain):
			r.set.abort()
		case <-done:
		}
	})
	return sync.OnceFunc(func() {
		close(done)
		watch.Wait()
	})
}

// shorten moves the end of the measured window to now, where it lies later.
func (r *run) shorten(now time.Time) {
	if old := r.until.Load(); now.UnixNano() < old {
		r.until.CompareAndSwap(old, now.UnixNano())
	}
}

// prepare opens one session, prepares the calls with it, and opens the others.
func (r *run) prepare() error {
	c := r.set.newCaller()
	defer r.set.release(c)
	if err := r.set.openOne(r.set.places[0], c); err != nil {
		return r.connectError(err)
	}
	_, sess := r.set.pick(0, true)
	var err error
	if len(r.cfg.Flows) > 0 {
		err = r.prepareFlows(sess, c)
	} else {
		err = r.prepareTools(sess, c)
	}
	if err != nil {
		return err
	}
	if r.cfg.Streams && sess.info().protocol == Stateless {
		r.cfg.OnWarning("protocol " + Stateless + " has no GET streams, so none is opened")
	}
	r.rec = newRecorder(len(r.series))
	r.during(PhaseOpening, func() { r.set.openAll(r.stop) })
	if n := r.set.failed.Load(); n > 0 {
		r.cfg.OnWarning(plural(n, "session") + " could not be opened: " + r.set.failure().Error())
	}
	return nil
}

// prepareTools chooses the tools of a plain run.
func (r *run) prepareTools(sess session, c *caller) error {
	listed, err := r.listTools(sess, c)
	if err != nil {
		return err
	}
	if r.tools, err = chooseTools(&r.cfg, listed); err != nil {
		return err
	}
	r.picker = &picker{}
	for i := range r.tools {
		t := &r.tools[i]
		if err := t.prepare(sess); err != nil {
			return err
		}
		r.picker.add(t.weight)
		r.series = append(r.series, series{codec.MethodToolsCall, t.name})
	}
	r.calls = len(r.series)
	return nil
}

// listTools lists the tools that may be called in the era of the session.
func (r *run) listTools(sess session, c *caller) ([]listedTool, error) {
	listed, err := listTools(sess, c, r.cfg.Timeout)
	if err != nil {
		return nil, r.connectError(err)
	}
	if _, ok := sess.(*statelessSession); ok {
		listed = callable(listed, r.cfg.OnWarning)
	}
	return listed, nil
}

// during reports progress while f opens or closes sessions.
func (r *run) during(phase Phase, f func()) {
	begin := time.Now()
	done := make(chan struct{})
	var reporter sync.WaitGroup
	reporter.Go(func() {
		t := time.NewTicker(openingTick)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				r.cfg.OnProgress(Progress{
					Phase: phase, Elapsed: time.Since(begin), Wanted: r.cfg.Sessions,
					Sessions: r.set.opened.Load() - r.set.lost.Load() - r.set.closed.Load(),
				})
			case <-done:
				return
			}
		}
	})
	f()
	close(done)
	reporter.Wait()
}

// measure offers the load and sees the calls in flight out.
func (r *run) measure() *collector {
	col := newCollector(r)
	r.origin = time.Now()
	r.from = r.origin.Add(r.cfg.Warmup)
	if r.cfg.Duration > 0 && r.stop.Err() == nil {
		r.until.Store(r.from.Add(r.cfg.Duration).UnixNano())
	}
	col.start()
	switch {
	case r.cfg.open():
		r.openLoop()
	case r.cfg.Users > 0:
		r.userLoop()
	default:
		r.closedLoop()
	}
	col.finish()
	r.cancel() // lost sessions are not replaced any more
	r.set.reopening.Wait()
	return col
}

// finish closes the sessions.
func (r *run) finish() {
	r.cancel()
	r.set.reopening.Wait()
	r.settleAnswers()
	r.set.revive()
	r.during(PhaseClosing, r.set.closeAll)
}

// endEarly ends the run for a reason other than an interrupt.
func (r *run) endEarly(why string) {
	r.mu.Lock()
	if r.ended == "" {
		r.ended = why
	}
	r.mu.Unlock()
	r.shorten(time.Now())
	r.cancel()
}

// windowEnd gives the end of the measured window.
func (r *run) windowEnd() time.Time { return time.Unix(0, r.until.Load()) }
