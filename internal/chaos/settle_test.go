package chaos_test

import (
	"encoding/json"
	"time"
)

// heapLeft is how much more of the heap may be in use after everything than
// before: less than anything would need that stays for each session, of which a
// long run has tens of thousands.
const heapLeft = 2 << 20

// until waits until a report is as wanted, for some time.
func until(limit time.Duration, take func() (report, error), wanted func(report) bool) (report, error) {
	for deadline := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		r, err := take()
		if err != nil || wanted(r) || time.Now().After(deadline) {
			return r, err
		}
	}
}

// isEmpty reports whether a server holds nothing for anybody, and has the
// goroutines and descriptors that it had.
func isEmpty(now, before report) bool {
	return now.Sessions == 0 && now.Requests == 0 && now.Streams == 0 &&
		now.Goroutines <= before.Goroutines && now.Descriptors <= before.Descriptors
}

// checkChild checks the process that was started last.
func (r *run) checkChild() {
	now, err := until(r.bound, r.child.report, func(now report) bool { return isEmpty(now, r.idle) })
	if err != nil {
		r.t.Error(err)
		return
	}
	text, _ := json.Marshal(now)
	if !isEmpty(now, r.idle) {
		before, _ := json.Marshal(r.idle)
		r.t.Errorf("the last server process holds something after the end:\n got %s\nwant %s", text, before)
	}
	violations, err := r.child.settled()
	if err != nil {
		r.t.Error(err)
	}
	for _, violation := range violations {
		r.tally.violate("%s", violation)
	}
	r.t.Logf("the last server process: %s; the first one had at its start: %d goroutines, %d descriptors, heap %d",
		text, r.idle.Goroutines, r.idle.Descriptors, r.idle.Heap)
}

// checkInside checks the server of this process, and so the clients as well.
func (r *run) checkInside() {
	for _, w := range r.worlds {
		if w.proxy != nil {
			w.proxy.Close()
		}
	}
	for _, violation := range r.site.books.settledWithin(r.bound) {
		r.tally.violate("%s", violation)
	}
	r.site.books.forget()
	kept := r.site.report().Heap
	r.site.replay.forget()
	take := func() (report, error) { return r.site.report(), nil }
	long := *chaosTime >= longForm
	now, _ := until(r.bound, take, func(now report) bool {
		return isEmpty(now, r.before) && (!long || now.Heap <= r.before.Heap+heapLeft)
	})
	text, _ := json.Marshal(now)
	r.t.Logf("inside at the end: %s; heap with the events of abandoned sessions %d", text, kept)
	if !isEmpty(now, r.before) {
		before, _ := json.Marshal(r.before)
		r.t.Errorf("this process holds something after the end:\n got %s\nwant %s", text, before)
	}
	if grown := now.Heap - r.before.Heap; long && grown > heapLeft {
		r.t.Errorf("the heap grew by %d bytes, want at most %d", grown, heapLeft)
	}
	if now.Started != now.Ended || now.Audited < now.Started {
		r.t.Errorf("%d handlers have begun, %d have ended, and there are %d records", now.Started, now.Ended, now.Audited)
	}
	if err := r.site.close(); err != nil {
		r.t.Errorf("Shutdown: %v", err)
	}
}
